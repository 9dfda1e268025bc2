//! What is a file of a partition directory, by its name?
//!
//! ```text
//! 00000000000000000042 .log | .index | .timeindex | .txnindex | .snapshot    [ .deleted | .cleaned | .swap ]
//! the base offset, at least 20 digits
//! ```

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileRole {
    /// Batches.
    Log,
    /// Offset index.
    OffsetIndex,
    /// Time index.
    TimeIndex,
    /// Transaction index.
    TxnIndex,
    /// Producer snapshot.
    Snapshot,
}

impl FileRole {
    /// All of them.
    pub const ALL: [FileRole; 5] = [
        FileRole::Log,
        FileRole::OffsetIndex,
        FileRole::TimeIndex,
        FileRole::TxnIndex,
        FileRole::Snapshot,
    ];

    /// The suffix, with its dot.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            FileRole::Log => ".log",
            FileRole::OffsetIndex => ".index",
            FileRole::TimeIndex => ".timeindex",
            FileRole::TxnIndex => ".txnindex",
            FileRole::Snapshot => ".snapshot",
        }
    }
}

/// Where a file stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileState {
    /// In use.
    Live,
    /// Waiting to be unlinked.
    Deleted,
    /// Output of a compaction or split that did not end.
    Cleaned,
    /// Output of a compaction or split that is to replace what it covers.
    Swap,
}

impl FileState {
    /// The suffix behind the role's; empty for a live file.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            FileState::Live => "",
            FileState::Deleted => ".deleted",
            FileState::Cleaned => ".cleaned",
            FileState::Swap => ".swap",
        }
    }
}

/// A name that belongs to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The offset in the name.
    pub offset: i64,
    /// What the file is for.
    pub role: FileRole,
    /// Where it stands in its life.
    pub state: FileState,
}

/// What a name turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A segment's file.
    Segment(FileName),
    /// It has the suffix of a segment's file, but no offset in front of it.
    Bad,
    /// None of a segment's files.
    Other,
}

impl FileName {
    /// The live file of this role at this offset.
    #[must_use]
    pub fn live(offset: i64, role: FileRole) -> Self {
        FileName { offset, role, state: FileState::Live }
    }

    /// Reads a file name. The offset is what stands before the first dot, as Kafka takes it.
    #[must_use]
    pub fn parse(name: &str) -> Parsed {
        let mut rest = name;
        let mut state = FileState::Live;
        for candidate in [FileState::Deleted, FileState::Cleaned, FileState::Swap] {
            if let Some(front) = rest.strip_suffix(candidate.suffix()) {
                (rest, state) = (front, candidate);
                break;
            }
        }
        let Some(role) = FileRole::ALL.into_iter().find(|role| rest.ends_with(role.suffix()))
        else {
            return Parsed::Other;
        };
        let number = rest.split('.').next().unwrap_or_default();
        // A second dot before the suffix is Kafka's to ignore; we take only names that we would
        // write back.
        let plain = number.len().saturating_add(role.suffix().len()) == rest.len();
        match parse_offset(number) {
            Some(offset) if plain => Parsed::Segment(FileName { offset, role, state }),
            _ => Parsed::Bad,
        }
    }

    /// The name as Kafka writes it.
    #[must_use]
    pub fn format(&self) -> String {
        format!("{:020}{}{}", self.offset, self.role.suffix(), self.state.suffix())
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.format())
    }
}

fn parse_offset(number: &str) -> Option<i64> {
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_we_write_reads_back() {
        for role in FileRole::ALL {
            for state in [FileState::Live, FileState::Deleted, FileState::Cleaned, FileState::Swap]
            {
                for offset in [0, 42, i64::MAX] {
                    let name = FileName { offset, role, state };
                    assert_eq!(FileName::parse(&name.format()), Parsed::Segment(name));
                }
            }
        }
        assert_eq!(FileName::live(42, FileRole::Log).format(), "00000000000000000042.log");
    }

    #[test]
    fn names_without_an_offset_are_bad_and_other_names_are_other() {
        for bad in ["abc.log", "99999999999999999999.log", ".log", "-5.index", "0.x.log", "+1.log"]
        {
            assert_eq!(FileName::parse(bad), Parsed::Bad, "{bad}");
        }
        for other in
            ["notes.txt", "00000000000000000000.log~", "leader-epoch-checkpoint", "", "log"]
        {
            assert_eq!(FileName::parse(other), Parsed::Other, "{other}");
        }
    }
}
