//! What does the mark of an install that is in progress say?
//!
//! ```text
//! 0                          version
//! log_start 30               where the log will start
//! next 565                   where it will go on
//! epochs 19 1a2b3c4d         size and CRC-32C of the new checkpoint of leader epochs
//! snapshot 240 99aabbcc      size and CRC-32C of the new snapshot
//! topic_id AAAA...           where `partition.metadata` is to be made
//! segment 0 1379             base offset and bytes of every segment there was
//! crc 01020304               of all bytes before this line
//! ```
//!
//! The sums tell whether the new files reached the disk; the segments tell whether somebody else
//! wrote to the partition since.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::io::checksum::crc32c;
use crate::uuid::Uuid;

/// The mark's name. It has none of the suffixes that Kafka's loader looks at, so Kafka leaves it
/// alone.
pub const MARK_FILE: &str = "aux-rebuild.mark";
/// A mark names each segment of a partition, of which there are fewer than this has bytes.
pub(super) const MARK_BYTES_MAX: u64 = 256 << 20;

/// New files before they have their names.
pub(super) const STAGED_EPOCHS: &str = "aux-rebuild.epochs.tmp";
pub(super) const STAGED_SNAPSHOT: &str = "aux-rebuild.snapshot.tmp";
pub(super) const STAGED_METADATA: &str = "aux-rebuild.metadata.tmp";

/// All of them.
pub(super) const STAGED: [&str; 3] = [STAGED_EPOCHS, STAGED_SNAPSHOT, STAGED_METADATA];

/// Whether a name is that of a new file which is not in place.
pub(crate) fn is_staged_name(name: &str) -> bool {
    STAGED.contains(&name)
}

/// By what a file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    size_bytes: u64,
    crc: u32,
}

impl Sum {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let size_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Sum { size_bytes, crc: crc32c(bytes) }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn parse(text: &str) -> Option<Self> {
        let (size, crc) = text.split_once(' ')?;
        Some(Sum { size_bytes: size.parse().ok()?, crc: parse_crc(crc)? })
    }
}

/// What the mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) log_start_offset: i64,
    pub(super) next_offset: i64,
    pub(super) epochs: Sum,
    pub(super) snapshot: Sum,
    pub(super) topic_id: Option<Uuid>,
    pub(super) segments: BTreeMap<i64, u64>,
}

impl Mark {
    pub(super) fn format(&self) -> Vec<u8> {
        let mut text = format!(
            "0\nlog_start {}\nnext {}\nepochs {} {:08x}\nsnapshot {} {:08x}\n",
            self.log_start_offset,
            self.next_offset,
            self.epochs.size_bytes,
            self.epochs.crc,
            self.snapshot.size_bytes,
            self.snapshot.crc
        );
        // Writing to a string does not fail.
        if let Some(topic_id) = self.topic_id {
            let _ = writeln!(text, "topic_id {topic_id}");
        }
        for (base_offset, size_bytes) in &self.segments {
            let _ = writeln!(text, "segment {base_offset} {size_bytes}");
        }
        let crc = crc32c(text.as_bytes());
        let _ = writeln!(text, "crc {crc:08x}");
        text.into_bytes()
    }

    /// `None` for anything but the bytes of a whole mark.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let body = text.get(..text.strip_suffix('\n')?.rfind('\n')?.checked_add(1)?)?;
        let crc = text.strip_prefix(body)?.strip_prefix("crc ")?.strip_suffix('\n')?;
        if parse_crc(crc)? != crc32c(body.as_bytes()) {
            return None;
        }
        let mut lines = body.lines().peekable();
        if lines.next()? != "0" {
            return None;
        }
        let mut mark = Mark {
            log_start_offset: lines.next()?.strip_prefix("log_start ")?.parse().ok()?,
            next_offset: lines.next()?.strip_prefix("next ")?.parse().ok()?,
            epochs: Sum::parse(lines.next()?.strip_prefix("epochs ")?)?,
            snapshot: Sum::parse(lines.next()?.strip_prefix("snapshot ")?)?,
            topic_id: None,
            segments: BTreeMap::new(),
        };
        if let Some(topic_id) = lines.peek().and_then(|line| line.strip_prefix("topic_id ")) {
            mark.topic_id = Some(Uuid::parse(topic_id)?);
            lines.next();
        }
        for line in lines {
            let (base_offset, size_bytes) = line.strip_prefix("segment ")?.split_once(' ')?;
            mark.segments.insert(base_offset.parse().ok()?, size_bytes.parse().ok()?);
        }
        let is_possible = (0..mark.next_offset).contains(&mark.log_start_offset);
        is_possible.then_some(mark)
    }
}

fn parse_crc(text: &str) -> Option<u32> {
    let is_plain = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::segment::FileName;
    use crate::segment::name::Parsed;

    fn mark() -> Mark {
        Mark {
            log_start_offset: 30,
            next_offset: 565,
            epochs: Sum::of(b"0\n1\n0 0\n"),
            snapshot: Sum::of(b"snapshot"),
            topic_id: Uuid::parse("KhrFBVCXRj-kNEnYK4ZyLw"),
            segments: BTreeMap::from([(0, 1379), (100, 0)]),
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for mark in [
            mark(),
            Mark { topic_id: None, ..mark() },
            Mark { topic_id: None, segments: BTreeMap::new(), ..mark() },
        ] {
            assert_eq!(Mark::parse(&mark.format()), Some(mark));
        }
    }

    #[test]
    fn anything_but_a_whole_mark_is_none() {
        let bytes = mark().format();
        for end in 0..bytes.len() {
            assert_eq!(Mark::parse(bytes.get(..end).unwrap()), None, "{end} bytes");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                *flipped.get_mut(at).unwrap() ^= 1 << bit;
                let parsed = Mark::parse(&flipped);
                // The case of a hexadecimal digit says nothing.
                assert!(parsed.is_none() || parsed == Some(mark()), "bit {bit} of byte {at}");
            }
        }
        assert_eq!(Mark::parse(&[0; 100]), None);
        assert_eq!(Mark::parse(&Mark { log_start_offset: 565, ..mark() }.format()), None);
        assert_eq!(Mark::parse(&Mark { log_start_offset: -1, ..mark() }.format()), None);
    }

    #[test]
    fn no_name_is_one_that_kafkas_loader_looks_at() {
        for name in STAGED.into_iter().chain([MARK_FILE]) {
            assert_eq!(FileName::parse(name), Parsed::Other, "{name}");
        }
    }
}
