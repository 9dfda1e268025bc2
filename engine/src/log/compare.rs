//! At which offset do two replicas of a partition part?
//!
//! ```text
//! a: [ 100..104 ][ 105..109 ][ 110..119 ] batches by base offset, leader epoch, checksum b: ..99
//! ][ 100..104 ][ 105..109 ][ 110..112 ][ 113..
//!          \_____ the same _____/ ^ they part at 110
//! ```
//!
//! Followers copy batches as they are, so that replicas have the same batches in the same order,
//! wherever their segments begin. What only one of them has at either end (one starts later, or is
//! behind) is no difference. Compaction is each broker's own: of a compacted topic, only what no
//! cleaner has touched can be compared.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::io::{File, MapMode, OpenMode, Reader, Source, Storage};
use crate::log::facts::LogFacts;
use crate::log::progress::Progress;
use crate::problem::{Code, Problem, Severity};
use crate::record::BatchHeader;
use crate::record::scan::{ScanEnd, ScannedBatch, Stop, Visitor, scan};
use crate::segment::{FileRole, damage};

/// Bytes of a log that are looked at in one piece.
const WINDOW_BYTES: usize = 1 << 20;
/// Batches of a log that are held at a time.
const MARKS_MAX: usize = 4096;

/// What of a batch is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMark {
    /// Offset of its first record; of an old compressed message, of its last.
    pub base_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Leader epoch, -1 in the old formats.
    pub leader_epoch: i32,
    /// The stored checksum, which was found to be right.
    pub crc: u32,
    /// Its bytes.
    pub size_bytes: u32,
}

impl BatchMark {
    fn of(header: &BatchHeader) -> Self {
        BatchMark {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            leader_epoch: header.leader_epoch,
            crc: header.crc,
            size_bytes: header.size_bytes,
        }
    }
}

/// Where two replicas part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The first offset at which they differ.
    pub offset: i64,
    /// The batch of the one there, or the next one behind it.
    pub a: Option<BatchMark>,
    /// The batch of the other.
    pub b: Option<BatchMark>,
}

/// One of two replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Offsets from its first segment to the last whole batch of its newest one.
    pub offsets: Range<i64>,
    /// Where the reading stopped at something that is no batch: damage, or a tail that is torn or
    /// not finished.
    pub problem: Option<Problem>,
    /// Whether batches follow each other with offsets missing between them, as compaction leaves
    /// them.
    pub has_gaps: bool,
}

/// What comes of comparing two replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The one.
    pub a: Replica,
    /// The other.
    pub b: Replica,
    /// Batches that are the same.
    pub same_batches: u64,
    /// Where the comparison began.
    pub same_from: i64,
    /// Offset behind the last batch that is the same; the start of the common range before the
    /// first.
    pub same_to: i64,
    /// Leader epoch of that last batch.
    pub same_epoch: Option<i32>,
    /// Where they part; `None` where they do not.
    pub parting: Option<Parting>,
    /// Damage in one of them before the end of the other: the rest could not be compared.
    pub hindrance: Option<Problem>,
}

impl Comparison {
    /// Whether there was nothing to compare, although both have something.
    #[must_use]
    pub fn is_disjoint(&self) -> bool {
        let (a, b) = (&self.a.offsets, &self.b.offsets);
        !a.is_empty() && !b.is_empty() && self.same_from >= a.end.min(b.end)
    }
}

/// Compares the replicas in two partition directories up to where they part, beginning at `from` or
/// where the later one begins. Of a compacted topic, `from` is the greater of the two cleaners'
/// checkpoints.
pub fn compare_logs(
    storage: &dyn Storage,
    a: &Path,
    b: &Path,
    from: i64,
    maps: MapMode,
    progress: &dyn Progress,
) -> Result<Comparison> {
    let mut a = Cursor::open(storage, a, maps, progress)?;
    let mut b = Cursor::open(storage, b, maps, progress)?;
    let start = a.start.max(b.start).max(from);
    let mut compared = Comparison {
        a: a.replica(),
        b: b.replica(),
        same_batches: 0,
        same_from: start,
        same_to: start,
        same_epoch: None,
        parting: None,
        hindrance: None,
    };
    // What ends before the other one begins has nothing to be compared with.
    for cursor in [&mut a, &mut b] {
        while cursor.peek()?.is_some_and(|mark| mark.last_offset < start) {
            cursor.take();
        }
    }
    while let (Some(left), Some(right)) = (a.peek()?, b.peek()?) {
        if left != right {
            let offset = left.base_offset.min(right.base_offset).max(compared.same_to);
            compared.parting = Some(Parting { offset, a: Some(left), b: Some(right) });
            break;
        }
        compared.same_batches = compared.same_batches.saturating_add(1);
        compared.same_to = left.last_offset.saturating_add(1);
        compared.same_epoch = Some(left.leader_epoch);
        a.take();
        b.take();
    }
    if compared.parting.is_none() {
        let (more_a, more_b) = (a.peek()?.is_some(), b.peek()?.is_some());
        let of = |cursor: &Cursor<'_>, other_has_more: bool| {
            cursor.problem.clone().filter(|_| other_has_more && !cursor.is_at_tail)
        };
        compared.hindrance = of(&a, more_b).or_else(|| of(&b, more_a));
    }
    (compared.a, compared.b) = (a.replica(), b.replica());
    Ok(compared)
}

/// Walks the batches of a log, a few thousand at a time.
struct Cursor<'a> {
    storage: &'a dyn Storage,
    facts: LogFacts,
    maps: MapMode,
    progress: &'a dyn Progress,
    /// Base offsets of the segments that are still to be read, the next one last.
    segments: Vec<i64>,
    file: Option<(Box<dyn File>, i64)>,
    position: u64,
    marks: VecDeque<BatchMark>,
    start: i64,
    /// The end of the whole log.
    log_end: i64,
    /// The end of what was read.
    end: i64,
    has_gaps: bool,
    problem: Option<Problem>,
    /// Whether the problem is a tail, such as a kill or a running broker leaves.
    is_at_tail: bool,
}

impl<'a> Cursor<'a> {
    fn open(
        storage: &'a dyn Storage,
        dir: &Path,
        maps: MapMode,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let facts = LogFacts::read(storage, dir)?;
        let mut segments: Vec<i64> = facts.segments.iter().map(|s| s.base_offset).collect();
        let start = segments.first().copied().unwrap_or_default();
        segments.reverse();
        let log_end = facts.read_end(storage, maps)?.map_or(start, |end| end.end_offset);
        Ok(Cursor {
            storage,
            facts,
            maps,
            progress,
            segments,
            file: None,
            position: 0,
            marks: VecDeque::new(),
            start,
            log_end,
            end: start,
            has_gaps: false,
            problem: None,
            is_at_tail: false,
        })
    }

    fn replica(&self) -> Replica {
        Replica {
            offsets: self.start..self.log_end.max(self.end),
            problem: self.problem.clone(),
            has_gaps: self.has_gaps,
        }
    }

    /// The next batch; `None` at the end, or at damage.
    fn peek(&mut self) -> Result<Option<BatchMark>> {
        while self.marks.is_empty() && self.problem.is_none() {
            if self.file.is_none() {
                let Some(base_offset) = self.segments.pop() else { return Ok(None) };
                let path = self.facts.path_of(base_offset, FileRole::Log);
                let file = self.storage.open(&path, OpenMode::Read)?;
                (self.file, self.position) = (Some((file, base_offset)), 0);
            }
            self.fill()?;
        }
        Ok(self.marks.front().copied())
    }

    fn take(&mut self) {
        self.marks.pop_front();
    }

    /// Reads the next batches of the open file; lets go of it at its end.
    fn fill(&mut self) -> Result<()> {
        let Some((file, base_offset)) = self.file.take() else { return Ok(()) };
        if self.progress.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, "cancelled"));
        }
        let size = file.metadata()?.size_bytes;
        let mut source = Reader::new(&*file, size, WINDOW_BYTES, self.maps);
        let mut taker = Taker { marks: &mut self.marks, end: self.end, has_gaps: false };
        let end = scan(&mut source, self.position, u64::MAX, &mut taker)?;
        (self.end, self.has_gaps) = (taker.end, self.has_gaps | taker.has_gaps);
        self.progress.bytes(end.position.saturating_sub(self.position));
        self.position = end.position;
        if !matches!(end.stop, Stop::Visitor | Stop::End | Stop::Asked) {
            self.stop_at(&mut source, end, base_offset)?;
        }
        drop(source);
        if end.stop == Stop::Visitor {
            self.file = Some((file, base_offset));
        }
        Ok(())
    }

    /// Keeps what stands where a scan stopped.
    fn stop_at<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        end: ScanEnd,
        base_offset: i64,
    ) -> Result<()> {
        let found = damage::examine(source, end, base_offset, self.end)?;
        self.is_at_tail = self.segments.is_empty()
            && found
                .as_ref()
                .is_some_and(|found| matches!(found.code, Code::TornBatch | Code::ZeroTail));
        self.problem = found.map(|found| Problem {
            code: found.code,
            severity: Severity::Corrupt,
            file: self.facts.name_of(base_offset, FileRole::Log),
            position: Some(found.position),
            offset: Some(self.end),
            detail: found.detail,
        });
        Ok(())
    }
}

/// Takes the marks of a scan's batches.
struct Taker<'a> {
    marks: &'a mut VecDeque<BatchMark>,
    end: i64,
    has_gaps: bool,
}

impl Visitor for Taker<'_> {
    fn body_limit_bytes(&self) -> usize {
        0
    }

    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        if self.marks.len() >= MARKS_MAX {
            return Ok(ControlFlow::Break(()));
        }
        let mark = BatchMark::of(batch.header);
        // The header of an old compressed message does not tell where it begins.
        self.has_gaps |= batch.header.magic >= 2 && mark.base_offset > self.end;
        self.end = mark.last_offset.saturating_add(1);
        self.marks.push_back(mark);
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::log::progress::Silent;
    use crate::record::builder::BatchOptions;
    use crate::record::builder::samples::batch_of_one;

    /// A batch of one record: its offset, epoch and value.
    type Batch = (i64, i32, &'static str);

    fn replica(segments: &[&[Batch]]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for batches in segments {
            let mut log = Vec::new();
            for &(base_offset, leader_epoch, value) in *batches {
                let options = BatchOptions { base_offset, leader_epoch, ..BatchOptions::default() };
                log.extend(batch_of_one(options, 7, value.as_bytes()));
            }
            let name = format!("{:020}.log", batches[0].0);
            std::fs::write(dir.path().join(name), log).unwrap();
        }
        dir
    }

    fn compare(a: &tempfile::TempDir, b: &tempfile::TempDir) -> Comparison {
        compare_from(a, b, 0)
    }

    fn compare_from(a: &tempfile::TempDir, b: &tempfile::TempDir, from: i64) -> Comparison {
        let (disk, never) = (Disk::new(), MapMode::Never);
        let there = compare_logs(&disk, a.path(), b.path(), from, never, &Silent).unwrap();
        let back = compare_logs(&disk, b.path(), a.path(), from, never, &Silent).unwrap();
        let turned = back.parting.map(|parting| Parting { a: parting.b, b: parting.a, ..parting });
        assert_eq!((there.parting, there.same_to), (turned, back.same_to));
        there
    }

    const ONE: &[Batch] = &[(0, 0, "a"), (1, 0, "b"), (2, 1, "c"), (3, 1, "d")];

    #[test]
    fn replicas_with_other_segments_starts_and_ends_are_equal() {
        let a = replica(&[ONE]);
        let b = replica(&[&[(1, 0, "b")], &[(2, 1, "c"), (3, 1, "d"), (4, 1, "e")]]);
        let compared = compare(&a, &b);
        assert_eq!(compared.parting, None);
        assert_eq!((compared.same_batches, compared.same_to, compared.same_epoch), (3, 4, Some(1)));
        assert_eq!((compared.a.offsets.clone(), compared.b.offsets.clone()), (0..4, 1..5));
        assert!(!compared.is_disjoint() && compared.hindrance.is_none());
    }

    #[test]
    fn they_part_at_the_first_batch_that_differs() {
        let a = replica(&[ONE]);
        for (batch, offset) in [((2, 1, "x"), 2), ((2, 2, "c"), 2), ((3, 1, "c"), 2)] {
            let b = replica(&[&[(0, 0, "a"), (1, 0, "b"), batch, (5, 3, "y")]]);
            let parting = compare(&a, &b).parting.unwrap();
            assert_eq!(parting.offset, offset);
            assert_eq!(parting.b.unwrap().base_offset, batch.0);
        }
    }

    #[test]
    fn what_a_cleaner_has_touched_can_be_left_out() {
        let a = replica(&[&[(0, 0, "a"), (3, 0, "d"), (4, 0, "e")]]);
        let b = replica(&[&[(1, 0, "b"), (3, 0, "d"), (4, 0, "e")]]);
        assert_eq!(compare(&a, &b).parting.unwrap().offset, 1);
        let compared = compare_from(&a, &b, 4);
        assert_eq!((compared.parting, compared.same_batches, compared.same_from), (None, 1, 4));
        assert!(compared.a.has_gaps);
        assert!(compare_from(&a, &b, 5).is_disjoint());
    }

    #[test]
    fn logs_without_a_common_offset_are_told() {
        let a = replica(&[&[(0, 0, "a"), (1, 0, "b")]]);
        let b = replica(&[&[(2, 0, "c")]]);
        let compared = compare(&a, &b);
        assert!(compared.is_disjoint() && compared.parting.is_none());
        let empty = tempfile::tempdir().unwrap();
        assert!(!compare(&a, &empty).is_disjoint());
    }

    #[test]
    fn damage_before_the_end_of_the_other_hinders() {
        let (a, b) = (replica(&[ONE]), replica(&[ONE]));
        let path = a.path().join("00000000000000000000.log");
        let mut log = std::fs::read(&path).unwrap();
        let size = log.len();
        log[size / 2 + 40] ^= 1;
        std::fs::write(&path, &log).unwrap();
        let compared = compare(&a, &b);
        assert_eq!((compared.same_to, compared.parting), (2, None));
        assert_eq!(compared.hindrance.unwrap().code, Code::CrcMismatch);
        // A torn tail is only an end.
        log[size / 2 + 40] ^= 1;
        std::fs::write(&path, &log[..size - 3]).unwrap();
        let compared = compare(&a, &b);
        assert_eq!((compared.same_to, compared.hindrance), (3, None));
        assert_eq!(compared.a.problem.unwrap().code, Code::TornBatch);
    }

    #[test]
    fn more_batches_than_are_held_at_a_time_are_compared() {
        let many: Vec<Batch> = (0..10_000).map(|offset| (offset, 0, "x")).collect();
        let mut other = many.clone();
        other[9_000].2 = "y";
        let (a, b) = (replica(&[&many[..5000], &many[5000..]]), replica(&[&other]));
        let compared = compare(&a, &b);
        assert_eq!((compared.same_batches, compared.parting.unwrap().offset), (9_000, 9_000));
        assert!(!compared.a.has_gaps);
    }
}
