//! What do Kafka's checkpoint files say?
//!
//! A checkpoint is UTF-8 text of lines, each ended by a line feed, the last one too:
//!
//! ```text
//! 0                          version
//! 2                          number of entries
//! orders 0 4711              offset checkpoint: topic, partition, offset
//! orders 1 12                leader epoch checkpoint: epoch, start offset
//! ```
//!
//! Offset checkpoints are `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
//! `replication-offset-checkpoint` and `cleaner-offset-checkpoint`; `leader-epoch-checkpoint` is
//! the other kind. An empty file is a checkpoint without entries.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::error::{Error, Kind, Result};

/// The only version of checkpoint files there is.
const VERSION: i32 = 0;
/// How much of a bad line an error shows, in characters.
const SHOWN_CHARACTERS: usize = 60;

/// One line of a `leader-epoch-checkpoint`: from `start_offset` on, batches are of `epoch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochEntry {
    /// The leader epoch.
    pub epoch: i32,
    /// The offset of its first batch.
    pub start_offset: i64,
}

/// An offset for each partition of a log directory, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct OffsetCheckpoint {
    entries: Vec<OffsetEntry>,
    slots: HashMap<Arc<str>, BTreeMap<i32, usize>>,
}

/// One line of an offset checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetEntry {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
    /// What the checkpoint says of it.
    pub offset: i64,
}

impl OffsetCheckpoint {
    /// A checkpoint without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the bytes of a file. Of two lines for one partition the later one holds.
    ///
    /// # Errors
    /// [`Kind::Corrupt`] with the number of the line that is malformed, or when there are more or
    /// fewer lines than the file says; [`Kind::Unsupported`] for a version other than 0.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut checkpoint = Self::new();
        parse_lines(bytes, "<topic> <partition> <offset>", |[topic, partition, offset]| {
            checkpoint.set(topic, partition.parse().ok()?, offset.parse().ok()?);
            Some(())
        })?;
        Ok(checkpoint)
    }

    /// The bytes of the file.
    #[must_use]
    pub fn format(&self) -> Vec<u8> {
        format_lines(
            self.entries.iter().map(|e| format!("{} {} {}\n", e.topic, e.partition, e.offset)),
        )
    }

    /// The offset of a partition.
    #[must_use]
    pub fn get(&self, topic: &str, partition: i32) -> Option<i64> {
        let slot = *self.slots.get(topic)?.get(&partition)?;
        self.entries.get(slot).map(|e| e.offset)
    }

    /// Sets the offset of a partition; a new partition goes to the end.
    pub fn set(&mut self, topic: &str, partition: i32, offset: i64) {
        let slot = self.slots.get(topic).and_then(|partitions| partitions.get(&partition)).copied();
        if let Some(entry) = slot.and_then(|slot| self.entries.get_mut(slot)) {
            entry.offset = offset;
            return;
        }
        let topic = match self.slots.get_key_value(topic) {
            Some((topic, _)) => Arc::clone(topic),
            None => Arc::from(topic),
        };
        let slots = self.slots.entry(Arc::clone(&topic)).or_default();
        slots.insert(partition, self.entries.len());
        self.entries.push(OffsetEntry { topic, partition, offset });
    }

    /// Keeps the entries for which `keep` says so, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&OffsetEntry) -> bool) {
        self.entries.retain(|entry| keep(entry));
        self.slots.clear();
        for (slot, entry) in self.entries.iter().enumerate() {
            self.slots.entry(Arc::clone(&entry.topic)).or_default().insert(entry.partition, slot);
        }
    }

    /// The entries in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[OffsetEntry] {
        &self.entries
    }
}

/// Reads the lines of a `leader-epoch-checkpoint` as they stand, in any order.
///
/// # Errors
/// As [`OffsetCheckpoint::parse`].
pub fn parse_epochs(bytes: &[u8]) -> Result<Vec<EpochEntry>> {
    let mut entries = Vec::new();
    parse_lines(bytes, "<epoch> <start offset>", |[epoch, start_offset]| {
        entries.push(EpochEntry {
            epoch: epoch.parse().ok()?,
            start_offset: start_offset.parse().ok()?,
        });
        Some(())
    })?;
    Ok(entries)
}

/// The bytes of a `leader-epoch-checkpoint` with these entries.
#[must_use]
pub fn format_epochs(entries: &[EpochEntry]) -> Vec<u8> {
    format_lines(entries.iter().map(|e| format!("{} {}\n", e.epoch, e.start_offset)))
}

// spec: segments 2.1
fn parse_lines<const FIELDS: usize>(
    bytes: &[u8],
    form: &str,
    mut entry: impl FnMut([&str; FIELDS]) -> Option<()>,
) -> Result<()> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        Error::corrupt("the bytes are not UTF-8 text")
            .at_position(u64::try_from(e.valid_up_to()).unwrap_or(u64::MAX))
    })?;
    let mut lines = Lines::of(text);
    let Some(version) = lines.next() else { return Ok(()) };
    match version.parse::<i32>() {
        Ok(VERSION) => {}
        Ok(other) => {
            let message = format!("checkpoint version {other} is unknown, only {VERSION} is known");
            return Err(Error::new(Kind::Unsupported, message));
        }
        Err(_) => return Err(malformed(1, "the version", version)),
    }
    let Some(announced) = lines.next() else { return Ok(()) };
    let announced: u32 =
        announced.parse().map_err(|_| malformed(2, "the number of entries", announced))?;
    let mut found = 0_u32;
    for (number, line) in (3_u64..).zip(lines) {
        fields(line).and_then(&mut entry).ok_or_else(|| malformed(number, form, line))?;
        found = found.saturating_add(1);
    }
    if found != announced {
        let message = format!("line 2 announces {announced} entries, {found} follow");
        return Err(Error::corrupt(message));
    }
    Ok(())
}

fn format_lines(lines: impl ExactSizeIterator<Item = String>) -> Vec<u8> {
    let mut text = format!("{VERSION}\n{}\n", lines.len());
    text.extend(lines);
    text.into_bytes()
}

/// Exactly `FIELDS` fields of a line, split at runs of blanks.
///
/// Blanks at the end are nothing, but those at the start part off an empty field, as Java's
/// `String.split` does.
fn fields<const FIELDS: usize>(line: &str) -> Option<[&str; FIELDS]> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r');
    let mut fields = [""; FIELDS];
    let mut rest = line.trim_end_matches(is_blank);
    if rest.is_empty() || rest.starts_with(is_blank) {
        return None;
    }
    for (number, field) in fields.iter_mut().enumerate() {
        let (head, tail) = match rest.find(is_blank) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        if head.is_empty() || (number + 1 == FIELDS && !tail.is_empty()) {
            return None;
        }
        *field = head;
        rest = tail.trim_start_matches(is_blank);
    }
    Some(fields)
}

fn malformed(line: u64, expected: &str, found: &str) -> Error {
    let mut shown: String = found.chars().take(SHOWN_CHARACTERS).collect();
    if shown.len() < found.len() {
        shown.push_str("...");
    }
    Error::corrupt(format!("line {line} is malformed: expected {expected}, found {shown:?}"))
}

/// The lines of a text as Java's `BufferedReader` parts them: at `\n`, `\r` or `\r\n`.
pub(super) struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Lines { rest: text }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = self.rest.find(['\n', '\r']) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let (line, tail) = self.rest.split_at(end);
        self.rest = match tail.strip_prefix("\r\n") {
            Some(rest) => rest,
            None => tail.get(1..).unwrap_or(""),
        };
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(epoch: i32, start_offset: i64) -> EpochEntry {
        EpochEntry { epoch, start_offset }
    }

    fn offsets(text: &str) -> Result<Vec<(String, i32, i64)>> {
        let checkpoint = OffsetCheckpoint::parse(text.as_bytes())?;
        let entries = checkpoint.entries().iter();
        Ok(entries.map(|e| (e.topic.to_string(), e.partition, e.offset)).collect())
    }

    #[test]
    fn what_is_written_is_read() {
        // spec: behaviours CP-001
        let mut checkpoint = OffsetCheckpoint::new();
        checkpoint.set("foo", 1, 5);
        checkpoint.set("bar", 2, 10);
        let bytes = checkpoint.format();
        assert_eq!(bytes, b"0\n2\nfoo 1 5\nbar 2 10\n");
        let read = OffsetCheckpoint::parse(&bytes).unwrap();
        assert_eq!(read.entries(), checkpoint.entries());
        assert_eq!((read.get("foo", 1), read.get("bar", 2)), (Some(5), Some(10)));
        assert_eq!((read.get("foo", 2), read.get("baz", 1)), (None, None));
    }

    #[test]
    fn an_empty_file_has_no_entries_and_no_entries_make_two_lines() {
        // spec: behaviours CP-003
        assert!(offsets("").unwrap().is_empty());
        assert!(offsets("0\n").unwrap().is_empty());
        assert!(offsets("0\n0\n").unwrap().is_empty());
        assert!(offsets("0\n0").unwrap().is_empty());
        assert_eq!(OffsetCheckpoint::new().format(), b"0\n0\n");
        assert_eq!(format_epochs(&[]), b"0\n0\n");
    }

    #[test]
    fn another_version_is_unsupported() {
        // spec: behaviours CP-004
        let error = offsets("1\n0\n").unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert_eq!(error.message(), "checkpoint version 1 is unknown, only 0 is known");
    }

    #[test]
    fn epochs_round_trip_and_the_second_list_replaces_the_first() {
        // spec: behaviours CP-007
        let first = [entry(0, 1), entry(1, 2), entry(2, 3)];
        assert_eq!(format_epochs(&first), b"0\n3\n0 1\n1 2\n2 3\n");
        let second = [entry(3, 4), entry(4, 5)];
        assert_eq!(parse_epochs(&format_epochs(&second)).unwrap(), second);
    }

    #[test]
    fn a_wrong_count_is_malformed() {
        // spec: behaviours CP-008
        for (text, message) in [
            ("0\n3\n0 1\n1 2\n", "line 2 announces 3 entries, 2 follow"),
            ("0\n3\n0 1\n1 2\n2 3\n3 4\n", "line 2 announces 3 entries, 4 follow"),
        ] {
            let error = parse_epochs(text.as_bytes()).unwrap_err();
            assert_eq!((error.kind(), error.message()), (Kind::Corrupt, message));
        }
    }

    #[test]
    fn runs_of_blanks_part_fields_but_none_may_lead_and_none_may_be_left_over() {
        // spec: behaviours CP-009
        assert_eq!(parse_epochs(b"0\n1\n1  2\n").unwrap(), [entry(1, 2)]);
        assert_eq!(parse_epochs(b"0\n1\n1\t \x0b2 \n").unwrap(), [entry(1, 2)]);
        for line in [" 1 2", "1 2 3", "", "1", " ", "a 2", "1 b", "1 99999999999999999999"] {
            let error = parse_epochs(format!("0\n1\n{line}\n").as_bytes()).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{line:?}");
            assert!(error.message().starts_with("line 3 is malformed"), "{error}");
        }
    }

    #[test]
    fn lines_end_as_java_reads_them() {
        let expected = [entry(1, 2), entry(3, 4)];
        for text in ["0\n2\n1 2\n3 4\n", "0\r\n2\r\n1 2\r\n3 4\r\n", "0\r2\r1 2\r3 4"] {
            assert_eq!(parse_epochs(text.as_bytes()).unwrap(), expected, "{text:?}");
        }
        assert!(parse_epochs(b"0\n1\n1 2\n\n").is_err(), "a blank line is an entry");
    }

    #[test]
    fn bad_heads_name_their_line() {
        for (text, start) in [
            ("x\n0\n", "line 1 is malformed: expected the version, found \"x\""),
            ("\n", "line 1"),
            ("0\nmany\n", "line 2 is malformed: expected the number of entries"),
            ("0\n-1\n", "line 2"),
            ("0\n\n", "line 2"),
        ] {
            let error = offsets(text).unwrap_err();
            assert!(error.message().starts_with(start), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_file_of_zero_bytes_is_malformed_not_empty() {
        // The size reached the disk before a power loss, the text did not.
        let error = parse_epochs(&[0; 12]).unwrap_err();
        assert!(error.message().starts_with("line 1 is malformed"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_say_where() {
        let error = parse_epochs(b"0\n1\n\xff").unwrap_err();
        assert_eq!((error.kind(), error.position()), (Kind::Corrupt, Some(4)));
    }

    #[test]
    fn a_long_bad_line_is_shown_in_part() {
        let error = offsets(&format!("0\n1\n{}\n", "x".repeat(100_000))).unwrap_err();
        assert!(error.message().len() < 200);
    }

    #[test]
    fn the_later_of_two_lines_for_a_partition_holds() {
        // spec: segments 2.2
        let read = offsets("0\n3\na 0 1\nb 0 2\na 0 3\n").unwrap();
        assert_eq!(read, [("a".into(), 0, 3), ("b".into(), 0, 2)]);
    }

    #[test]
    fn retained_entries_are_still_found() {
        let mut checkpoint = OffsetCheckpoint::parse(b"0\n3\na 0 1\na 1 2\nb 0 3\n").unwrap();
        checkpoint.retain(|e| e.partition == 1 || &*e.topic == "b");
        assert_eq!(checkpoint.format(), b"0\n2\na 1 2\nb 0 3\n");
        assert_eq!((checkpoint.get("a", 0), checkpoint.get("b", 0)), (None, Some(3)));
        checkpoint.set("b", 0, 4);
        assert_eq!(checkpoint.get("b", 0), Some(4));
    }

    #[test]
    fn every_prefix_gives_a_verdict() {
        let bytes = b"0\n2\norders 0 4711\norders 1 12\n";
        for end in 0..bytes.len() {
            let _ = OffsetCheckpoint::parse(&bytes[..end]);
        }
    }
}
