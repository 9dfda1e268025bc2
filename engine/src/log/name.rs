//! Whose is a folder of a log directory, by its name?
//!
//! ```text
//! <topic>-<partition>                        a live log
//! <topic>-<partition>.<32 hex>-delete        waiting to be deleted
//! <topic>-<partition>.<32 hex>-stray         not assigned to this broker any more, kept
//! <topic>-<partition>.<32 hex>-future        growing here to replace the log in another log directory
//! ```
//!
//! Topics may contain dots and dashes. Kafka does not start with a folder of another name in a log
//! directory.

use std::fmt;
use std::path::Path;

use crate::uuid::Uuid;

/// Kafka's cache of remote indexes, the one folder that is no log and may be there.
pub const REMOTE_INDEX_CACHE: &str = "remote-log-index-cache";

/// The longest name that file systems take, in bytes.
const NAME_SIZE_MAX: usize = 255;

/// What becomes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FolderKind {
    /// It is in use.
    Live,
    /// It waits to be deleted.
    Delete,
    /// It will replace the log of another log directory.
    Future,
    /// It is not assigned to this broker any more.
    Stray,
}

impl FolderKind {
    /// The suffix of its name; empty for a live one.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            FolderKind::Live => "",
            FolderKind::Delete => "-delete",
            FolderKind::Future => "-future",
            FolderKind::Stray => "-stray",
        }
    }
}

/// The name of a partition's folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderName {
    /// The topic; of a deleted or stray log, Kafka may have cut it to fit.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// What becomes of the log.
    pub kind: FolderKind,
}

impl FolderName {
    /// Reads the name of a folder; `None` where Kafka would not start.
    // spec: segments 1.1
    #[must_use]
    pub fn parse(name: &str) -> Option<FolderName> {
        // In text, bytes that are no UTF-8 are such characters; Kafka does not find the folder again.
        if name.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        let marked = [FolderKind::Delete, FolderKind::Future, FolderKind::Stray];
        let kind = marked.into_iter().find(|kind| name.ends_with(kind.suffix()));
        let (plain, kind) = match kind {
            None => (name, FolderKind::Live),
            Some(kind) => (unmarked(name.strip_suffix(kind.suffix())?)?, kind),
        };
        let (topic, partition) = plain.rsplit_once('-')?;
        if topic.is_empty() {
            return None;
        }
        Some(FolderName { topic: topic.to_owned(), partition: partition.parse().ok()?, kind })
    }

    /// Reads the name of the folder at this path.
    #[must_use]
    pub fn of_dir(dir: &Path) -> Option<FolderName> {
        FolderName::parse(&dir.file_name()?.to_string_lossy())
    }
}

impl FolderName {
    /// The name of a folder of this kind, with an id that no other has. Of a deleted or stray log
    /// the topic is cut so that the name fits.
    // spec: segments 1.1
    #[must_use]
    pub fn marked(&self, id: Uuid) -> String {
        let FolderName { topic, partition, kind } = self;
        if *kind == FolderKind::Live {
            return self.to_string();
        }
        let hex: String = id.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let tail = format!("-{partition}.{hex}{}", kind.suffix());
        let room = match kind {
            FolderKind::Future => topic.len(),
            _ => NAME_SIZE_MAX.saturating_sub(tail.len()),
        };
        let cut = topic.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = cut.take_while(|end| *end <= room).last().unwrap_or(0);
        format!("{}{tail}", topic.get(..end).unwrap_or_default())
    }
}

/// What stands before the id of a marked folder.
fn unmarked(name: &str) -> Option<&str> {
    let (plain, id) = name.rsplit_once('.')?;
    let has_blank = name.contains(char::is_whitespace);
    (!id.is_empty() && !has_blank).then_some(plain)
}

impl fmt::Display for FolderName {
    /// The partition, as Kafka names it: `orders-0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<(String, i32, FolderKind)> {
        FolderName::parse(name).map(|folder| (folder.topic, folder.partition, folder.kind))
    }

    #[test]
    fn topics_may_hold_dots_and_dashes() {
        for (name, topic, partition) in [
            ("orders-0", "orders", 0),
            ("a.b_c-d-12", "a.b_c-d", 12),
            ("metrics.eu_west-3-7", "metrics.eu_west-3", 7),
            ("orders--1", "orders-", 1),
            ("__cluster_metadata-0", "__cluster_metadata", 0),
            ("t-2147483647", "t", i32::MAX),
        ] {
            assert_eq!(parse(name), Some((topic.into(), partition, FolderKind::Live)), "{name}");
        }
    }

    #[test]
    fn marked_folders_have_an_id_behind_the_last_dot() {
        for (suffix, kind) in [
            ("delete", FolderKind::Delete),
            ("future", FolderKind::Future),
            ("stray", FolderKind::Stray),
        ] {
            let name = format!("a.b-0.0123456789abcdef0123456789abcdef-{suffix}");
            assert_eq!(parse(&name), Some(("a.b".into(), 0, kind)));
            assert_eq!(parse(&format!("orders-0-{suffix}")), None, "without a dot");
            assert_eq!(parse(&format!("orders-0.-{suffix}")), None, "without an id");
            assert_eq!(parse(&format!("or ders-0.12-{suffix}")), None, "with a blank");
        }
    }

    #[test]
    fn marked_names_fit_and_read_back() {
        // spec: behaviours LL-025
        let id = Uuid([0xab; 16]);
        let marked = |topic: &str, kind| {
            FolderName { topic: topic.to_owned(), partition: 12, kind }.marked(id)
        };
        assert_eq!(
            marked("a.b", FolderKind::Delete),
            "a.b-12.abababababababababababababababab-delete"
        );
        assert_eq!(marked("a.b", FolderKind::Live), "a.b-12");
        // spec: behaviours MG-017
        let long = "t".repeat(249);
        for kind in [FolderKind::Delete, FolderKind::Stray] {
            let name = marked(&long, kind);
            assert_eq!(name.len(), 255);
            assert_eq!(parse(&name).map(|found| (found.1, found.2)), Some((12, kind)));
        }
        let future = marked(&long, FolderKind::Future);
        assert_eq!(parse(&future), Some((long.clone(), 12, FolderKind::Future)));
        assert!(marked(&"ä".repeat(200), FolderKind::Delete).len() <= 255);
    }

    #[test]
    fn what_would_keep_kafka_from_starting_is_no_name() {
        for name in [
            "orders",
            "orders-x",
            "orders-",
            "-3",
            "-",
            "",
            "lost+found",
            "t-2147483648",
            "t- 1",
            "t\u{fffd}-1",
            "remote-log-index-cache",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
