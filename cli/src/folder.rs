//! What is a folder of a log directory, by its name?

/// What kind of folder it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FolderKind {
    /// A partition in use.
    Live,
    /// The KRaft metadata log.
    Metadata,
    /// A partition that is being moved to this log directory.
    Future,
    /// A partition that is waiting to be unlinked.
    Delete,
    /// A partition that does not belong to this broker, kept for the operator.
    Stray,
}

impl FolderKind {
    /// The name as it is printed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FolderKind::Live => "live",
            FolderKind::Metadata => "metadata",
            FolderKind::Future => "future",
            FolderKind::Delete => "delete",
            FolderKind::Stray => "stray",
        }
    }
}

/// What the name of a folder says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderName {
    /// What kind it is.
    pub(crate) kind: FolderKind,
    /// The topic; of a deleted or stray one it may be cut.
    pub(crate) topic: String,
    /// The partition.
    pub(crate) partition: i32,
}

impl FolderName {
    /// Reads a name as Kafka does; `None` for one that would stop Kafka from starting.
    // spec: segments 1.1
    pub(crate) fn parse(name: &str) -> Option<FolderName> {
        let suffixes = [
            ("-delete", FolderKind::Delete),
            ("-future", FolderKind::Future),
            ("-stray", FolderKind::Stray),
        ];
        let marked = suffixes.into_iter().find(|(suffix, _)| name.ends_with(suffix));
        let (live, kind) = match marked {
            None if name == "__cluster_metadata-0" => (name, FolderKind::Metadata),
            None => (name, FolderKind::Live),
            Some((suffix, kind)) => {
                let (live, id) = name.strip_suffix(suffix)?.rsplit_once('.')?;
                (!id.is_empty()).then_some((live, kind))?
            }
        };
        let (topic, partition) = live.rsplit_once('-')?;
        let plain = !topic.is_empty() && !live.contains(char::is_whitespace);
        // Java reads a sign, too.
        let partition = partition.parse().ok()?;
        plain.then(|| FolderName { kind, topic: topic.to_owned(), partition })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_partitions_are_known_by_their_names() {
        let id = "0123456789abcdef0123456789abcdef";
        for (name, kind, topic, partition) in [
            ("orders-0".to_owned(), FolderKind::Live, "orders", 0),
            ("orders--1".to_owned(), FolderKind::Live, "orders-", 1),
            ("a.b_c-d-12".to_owned(), FolderKind::Live, "a.b_c-d", 12),
            ("__cluster_metadata-0".to_owned(), FolderKind::Metadata, "__cluster_metadata", 0),
            (format!("orders-0.{id}-delete"), FolderKind::Delete, "orders", 0),
            (format!("a.b-3.{id}-future"), FolderKind::Future, "a.b", 3),
            (format!("orders-0.{id}-stray"), FolderKind::Stray, "orders", 0),
        ] {
            let topic = topic.to_owned();
            assert_eq!(FolderName::parse(&name), Some(FolderName { kind, topic, partition }));
        }
    }

    #[test]
    fn names_that_would_stop_kafka_are_none() {
        for name in [
            "orders",
            "orders-x",
            "-3",
            "lost+found",
            "orders-0-delete",
            "orders-99999999999",
            "or ders-0",
            "",
        ] {
            assert_eq!(FolderName::parse(name), None, "{name}");
        }
    }
}
