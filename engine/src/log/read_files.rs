//! Which batches and records do the files of a partition hold, of those that were asked for?
//!
//! [`read_log`] walks the segments of a directory, or one file, with the one
//! [`scan`](mod@crate::record::scan) loop and tells a [`LogReader`] what it meets, in order. Memory
//! is bounded by one window, and by one opened batch where records are wanted. Damage is told with
//! file, position and reason; the rest of that file is not guessed at, and the next one is
//! read. Nothing is written, and files may grow and vanish meanwhile.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::{FileKind, MapMode, OpenMode, Reader, Source, Storage};
use crate::problem::{Code, Problem, Severity};
use crate::record::scan::{ScanEnd, ScannedBatch, Stop, Visitor, scan};
use crate::record::{BatchHeader, BatchReader, Record};
use crate::segment::damage::next_batch;
use crate::segment::name::Parsed;
use crate::segment::{FileName, FileRole, FileState, damage};

/// Bytes of a file that are looked at in one piece.
const WINDOW_BYTES: usize = 1 << 20;

/// Bytes of look-alikes, beyond the size of the file itself, that are checked while the next whole
/// batch is searched for: crafted bytes could make that quadratic.
const SALVAGE_BYTES: u64 = 64 << 20;

/// Which batches and records are wanted. The default is all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Offsets, the end exclusive.
    pub offsets: Range<i64>,
    /// Timestamps in milliseconds, the end exclusive.
    pub times_ms: Range<i64>,
    /// Only batches of this producer.
    pub producer_id: Option<i64>,
    /// Only records with exactly this key.
    pub key: Option<Vec<u8>>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            offsets: i64::MIN..i64::MAX,
            times_ms: i64::MIN..i64::MAX,
            producer_id: None,
            key: None,
        }
    }
}

impl Selection {
    /// Whether this offset lies behind what is wanted. The largest number stands for no end.
    fn is_before(&self, offset: i64) -> bool {
        self.offsets.end != i64::MAX && offset >= self.offsets.end
    }

    /// Whether the header of a batch allows that something of it is wanted.
    fn may_take(&self, header: &BatchHeader, previous_end: i64) -> bool {
        // The header of a compressed message of the old formats names its last offset, and no first
        // one.
        let first = if header.magic < 2 { previous_end } else { header.base_offset };
        header.last_offset() >= self.offsets.start
            && !self.is_before(first)
            && (self.takes_all_times() || header.max_timestamp >= self.times_ms.start)
            && self.producer_id.is_none_or(|id| id == header.producer_id)
    }

    /// Whether a batch is wanted whose records nobody looks at: where the header leaves it open, it
    /// is.
    fn takes_header(&self, header: &BatchHeader) -> bool {
        // Timestamps within a batch need not rise: the first one is a bound only as far as anybody
        // knows.
        let earliest = header.base_timestamp.min(header.max_timestamp);
        self.takes_all_times()
            || header.delete_horizon_ms().is_some()
            || earliest < self.times_ms.end
    }

    /// Whether a batch is wanted whatever its records are, and so also when it has none.
    fn takes_without_records(&self, header: &BatchHeader) -> bool {
        self.takes_all_times()
            && self.key.is_none()
            && header.magic >= 2
            && header.base_offset >= self.offsets.start
            && !self.is_before(header.last_offset())
    }

    /// Whether a record of a wanted batch is wanted.
    fn takes(&self, record: &Record<'_>) -> bool {
        record.offset >= self.offsets.start
            && !self.is_before(record.offset)
            && (self.takes_all_times() || self.times_ms.contains(&record.timestamp_ms))
            && self.key.as_deref().is_none_or(|key| record.key == Some(key))
    }

    fn takes_all_times(&self) -> bool {
        self.times_ms == (i64::MIN..i64::MAX)
    }
}

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// What is wanted.
    pub selection: Selection,
    /// Whether records are wanted, and not only batches.
    pub with_records: bool,
    /// A batch that has, or opens to, more bytes is not opened: a problem is told in place of its
    /// records.
    pub limit_bytes: usize,
    /// Whether to go on behind damage, at the next bytes that are a whole batch with a right
    /// checksum and could continue the log.
    pub salvage: bool,
    /// Whether files are read through maps.
    pub maps: MapMode,
    /// The bytes of a file that are read, the end exclusive. A batch begins at the first. Where the
    /// file ends earlier than they do, that is a problem; the largest number stands for no end.
    pub positions: Range<u64>,
}

impl ReadOptions {
    fn needs_records(&self) -> bool {
        self.with_records || self.selection.key.is_some()
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            selection: Selection::default(),
            with_records: true,
            limit_bytes: 256 << 20,
            salvage: false,
            maps: MapMode::Never,
            positions: 0..u64::MAX,
        }
    }
}

/// Is told what the files hold. `Break` ends the reading.
pub trait LogReader {
    /// A file of batches begins. Its base offset is that of its name.
    fn file(&mut self, path: &Path, base_offset: i64, size_bytes: u64) -> ControlFlow<()> {
        let _ = (path, base_offset, size_bytes);
        ControlFlow::Continue(())
    }

    /// A wanted batch; its wanted records follow.
    fn batch(&mut self, batch: &ScannedBatch<'_>) -> ControlFlow<()>;

    /// A wanted record of the batch with this header.
    fn record(&mut self, header: &BatchHeader, record: &Record<'_>) -> ControlFlow<()>;

    /// Something is wrong in this file. Behind a bad batch the file is not read on; bad records are
    /// passed over.
    fn problem(&mut self, path: &Path, problem: Problem) -> ControlFlow<()>;

    /// A file could not be read.
    fn failed(&mut self, path: &Path, error: Error) -> ControlFlow<()>;
}

/// Reads the segments of a partition directory in order, or one file of batches.
///
/// # Errors
/// When the path itself cannot be looked at; what goes wrong with one of many files is told to the
/// reader.
pub fn read_log(
    storage: &dyn Storage,
    path: &Path,
    options: &ReadOptions,
    reader: &mut dyn LogReader,
) -> Result<()> {
    let files = match storage.metadata(path)?.kind {
        FileKind::Directory => segments(storage, path, &options.selection)?,
        _ => vec![(path.to_path_buf(), base_offset_of(path))],
    };
    for (file, base_offset) in files {
        let flow = match read_file(storage, &file, base_offset, options, reader) {
            Ok(flow) => flow,
            Err(error) => reader.failed(&file, error),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

/// The offset in a file's name; 0 where there is none. A metadata snapshot, whose name tells its
/// end, counts from 0. In remote storage the segment's id follows the offset.
fn base_offset_of(path: &Path) -> i64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_end = |c: char| c == '.' || (c == '-' && name.ends_with(FileRole::Log.suffix()));
    name.split(is_end).next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// The live logs of a directory that may hold something wanted, base offsets rising.
fn segments(
    storage: &dyn Storage,
    dir: &Path,
    selection: &Selection,
) -> Result<Vec<(PathBuf, i64)>> {
    let mut logs = Vec::new();
    for entry in storage.list(dir)? {
        if let Parsed::Segment(FileName { offset, role: FileRole::Log, state: FileState::Live }) =
            FileName::parse(&entry.name.to_string_lossy())
        {
            logs.push((dir.join(&entry.name), offset));
        }
    }
    logs.sort_by_key(|(_, base_offset)| *base_offset);
    let bases: Vec<i64> = logs.iter().map(|(_, base_offset)| *base_offset).collect();
    let mut next = bases.into_iter().skip(1).chain([i64::MAX]);
    logs.retain(|(_, base_offset)| {
        let end = next.next().unwrap_or(i64::MAX);
        !selection.is_before(*base_offset) && end > selection.offsets.start
    });
    Ok(logs)
}

fn read_file(
    storage: &dyn Storage,
    path: &Path,
    base_offset: i64,
    options: &ReadOptions,
    reader: &mut dyn LogReader,
) -> Result<ControlFlow<()>> {
    let file = storage.open(path, OpenMode::Read)?;
    let size = file.metadata()?.size_bytes;
    if reader.file(path, base_offset, size).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let Range { start, end } = options.positions;
    let end = end.min(size);
    let mut source = Reader::new(&*file, end, WINDOW_BYTES, options.maps);
    let mut walk = Walk {
        path,
        options,
        reader,
        batches: BatchReader::new(options.limit_bytes),
        next_offset: base_offset,
        flow: ControlFlow::Continue(()),
    };
    let (mut position, mut is_first) = (start.min(end), true);
    let mut budget = size.saturating_add(SALVAGE_BYTES);
    loop {
        let end = scan(&mut source, position, u64::MAX, &mut walk)?;
        if walk.flow.is_break() || walk.is_behind() {
            return Ok(walk.flow);
        }
        let expected = walk.next_offset;
        // Only the first damage is looked at closely: that reads all of the file behind it.
        let found = match is_first {
            true => examined(&mut source, end, base_offset, expected)?,
            false => stopped(end),
        };
        let Some((code, detail)) = found.or_else(|| cut_short(&options.positions, size)) else {
            return Ok(walk.flow);
        };
        if walk.problem(code, end.position, expected, detail).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !options.salvage {
            return Ok(ControlFlow::Continue(()));
        }
        let from = end.position.saturating_add(1);
        let end = source.end();
        let next = next_batch(&mut source, from, end, base_offset, expected, &mut budget)?;
        let Some(next) = next else { return Ok(ControlFlow::Continue(())) };
        (position, is_first) = (next, false);
    }
}

/// What is wrong where a scan ended, and how much stands behind it.
fn examined<S: Source + ?Sized>(
    source: &mut S,
    end: ScanEnd,
    base_offset: i64,
    expected: i64,
) -> Result<Option<(Code, String)>> {
    let found = damage::examine(source, end, base_offset, expected)?;
    Ok(found.map(|damage| match damage.survivors.batches {
        0 => (damage.code, damage.detail),
        behind => {
            let detail = damage.detail;
            let behind = damage::whole_batches(behind);
            (damage.code, format!("{detail}; {behind} behind it in this file"))
        }
    }))
}

/// What is wrong where bytes were asked for that the file does not have.
fn cut_short(positions: &Range<u64>, size_bytes: u64) -> Option<(Code, String)> {
    let wanted = if positions.end == u64::MAX { positions.start } else { positions.end };
    let detail = || format!("the file ends at byte {size_bytes}, {wanted} was asked for");
    (wanted > size_bytes).then(|| (Code::BadLength, detail()))
}

/// Why a scan ended, as far as it tells itself.
fn stopped(end: ScanEnd) -> Option<(Code, String)> {
    let (code, detail) = match end.stop {
        Stop::End | Stop::Asked | Stop::Visitor => return None,
        Stop::Short { .. } => (Code::TornBatch, "fewer bytes than a batch has or announces"),
        Stop::BadLength { .. } => (Code::BadLength, "a length that no batch has"),
        Stop::BadCrc { .. } => (Code::CrcMismatch, "the checksum is wrong"),
        Stop::UnknownMagic { .. } => (Code::UnknownMagic, "a magic that is not known"),
    };
    Some((code, detail.to_owned()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The visitor of one file.
struct Walk<'a> {
    path: &'a Path,
    options: &'a ReadOptions,
    reader: &'a mut dyn LogReader,
    batches: BatchReader,
    next_offset: i64,
    flow: ControlFlow<()>,
}

impl Visitor for Walk<'_> {
    fn body_limit_bytes(&self) -> usize {
        if self.options.needs_records() { self.options.limit_bytes } else { 0 }
    }

    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        let selection = &self.options.selection;
        if self.is_behind() {
            return Ok(ControlFlow::Break(()));
        }
        let is_wanted = selection.may_take(batch.header, self.next_offset);
        self.next_offset = batch.header.next_offset();
        if is_wanted {
            self.flow = self.take(&batch);
        }
        Ok(self.flow)
    }
}

impl Walk<'_> {
    /// Whether everything that is wanted was met.
    fn is_behind(&self) -> bool {
        self.options.selection.is_before(self.next_offset)
    }

    fn problem(
        &mut self,
        code: Code,
        position: u64,
        offset: i64,
        detail: String,
    ) -> ControlFlow<()> {
        let problem = Problem {
            code,
            severity: Severity::Corrupt,
            file: file_name(self.path),
            position: Some(position),
            offset: Some(offset),
            detail,
        };
        self.reader.problem(self.path, problem)
    }

    fn take(&mut self, batch: &ScannedBatch<'_>) -> ControlFlow<()> {
        let selection = &self.options.selection;
        if !self.options.needs_records() {
            return match selection.takes_header(batch.header) {
                true => self.reader.batch(batch),
                false => ControlFlow::Continue(()),
            };
        }
        let mut told = selection.takes_without_records(batch.header);
        if told {
            self.reader.batch(batch)?;
        }
        let (reader, with_records) = (&mut *self.reader, self.options.with_records);
        let mut flow = ControlFlow::Continue(());
        let outcome = self.batches.read(batch.header, batch.bytes, &mut |record| {
            if selection.takes(record) {
                if !std::mem::replace(&mut told, true) {
                    flow = reader.batch(batch);
                }
                if flow.is_continue() && with_records {
                    flow = reader.record(batch.header, record);
                }
            }
            flow
        });
        flow?;
        let Err(fault) = outcome else { return ControlFlow::Continue(()) };
        let offset = batch.header.base_offset;
        self.problem(fault.code, batch.position, offset, fault.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::{Codec, Compressor};

    /// What was told, in short.
    #[derive(Default)]
    struct Seen {
        batches: Vec<i64>,
        records: Vec<i64>,
        problems: Vec<(String, Option<u64>, Option<i64>)>,
        failed: usize,
        stop_after: Option<usize>,
    }

    impl LogReader for Seen {
        fn batch(&mut self, batch: &ScannedBatch<'_>) -> ControlFlow<()> {
            self.batches.push(batch.header.base_offset);
            ControlFlow::Continue(())
        }

        fn record(&mut self, _header: &BatchHeader, record: &Record<'_>) -> ControlFlow<()> {
            self.records.push(record.offset);
            match self.stop_after {
                Some(count) if count == self.records.len() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }

        fn problem(&mut self, _path: &Path, problem: Problem) -> ControlFlow<()> {
            self.problems.push((problem.code.to_string(), problem.position, problem.offset));
            ControlFlow::Continue(())
        }

        fn failed(&mut self, _path: &Path, _error: Error) -> ControlFlow<()> {
            self.failed += 1;
            ControlFlow::Continue(())
        }
    }

    /// Batches of two records each at offsets 0 to 11, three in each of two segments; timestamps
    /// are ten times the offset.
    fn partition() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (base, producers) in [(0, [1, 1, 2]), (6, [1, 2, 2])] {
            let mut log = Vec::new();
            for (producer_id, base_offset) in producers.into_iter().zip((base..).step_by(2)) {
                let mut builder = BatchBuilder::new(BatchOptions {
                    base_offset,
                    producer_id,
                    producer_epoch: 0,
                    base_sequence: 0,
                    compression: Codec::Lz4.into(),
                    ..BatchOptions::default()
                })
                .unwrap();
                for offset in base_offset..base_offset + 2 {
                    let key = format!("k{}", offset % 3);
                    builder.append(offset * 10, Some(key.as_bytes()), None).unwrap();
                }
                builder.write_to(&mut Compressor::new(), &mut log).unwrap();
            }
            std::fs::write(dir.path().join(format!("{base:020}.log")), log).unwrap();
        }
        dir
    }

    fn read(dir: &Path, options: &ReadOptions) -> Seen {
        let mut seen = Seen::default();
        read_log(&Disk::new(), dir, options, &mut seen).unwrap();
        seen
    }

    fn select(selection: Selection, with_records: bool) -> Seen {
        let dir = partition();
        read(dir.path(), &ReadOptions { selection, with_records, ..ReadOptions::default() })
    }

    #[test]
    fn everything_is_read_in_order() {
        let seen = select(Selection::default(), true);
        assert_eq!(seen.batches, [0, 2, 4, 6, 8, 10]);
        assert_eq!(seen.records, (0..12).collect::<Vec<_>>());
        assert!(seen.problems.is_empty() && seen.failed == 0);
        assert!(select(Selection::default(), false).records.is_empty());
    }

    #[test]
    fn offsets_select_records_and_batches() {
        let selection = Selection { offsets: 3..7, ..Selection::default() };
        let seen = select(selection.clone(), true);
        assert_eq!((seen.batches, seen.records), (vec![2, 4, 6], vec![3, 4, 5, 6]));
        assert_eq!(select(selection, false).batches, [2, 4, 6]);
        let none = Selection { offsets: 12..20, ..Selection::default() };
        assert!(select(none, true).batches.is_empty());
    }

    #[test]
    fn times_producers_and_keys_select() {
        let times = Selection { times_ms: 50..81, ..Selection::default() };
        let seen = select(times.clone(), true);
        assert_eq!((seen.batches, seen.records), (vec![4, 6, 8], vec![5, 6, 7, 8]));
        assert_eq!(select(times, false).batches, [4, 6, 8]);
        let producer = Selection { producer_id: Some(2), ..Selection::default() };
        assert_eq!(select(producer, true).records, [4, 5, 8, 9, 10, 11]);
        let key = Selection { key: Some(b"k1".to_vec()), ..Selection::default() };
        assert_eq!(select(key.clone(), true).records, [1, 4, 7, 10]);
        assert_eq!(select(key, false).batches, [0, 4, 6, 10]);
    }

    #[test]
    fn damage_ends_its_file_and_the_next_one_is_read() {
        let dir = partition();
        let path = dir.path().join("00000000000000000000.log");
        let mut log = std::fs::read(&path).unwrap();
        let second = log.len() / 3;
        log[second + 30] ^= 1;
        std::fs::write(&path, &log).unwrap();
        let seen = read(dir.path(), &ReadOptions::default());
        assert_eq!(seen.batches, [0, 6, 8, 10]);
        let position = u64::try_from(second).unwrap();
        assert_eq!(seen.problems, [("crc_mismatch".to_owned(), Some(position), Some(2))]);
        // What was asked for lies in front of the damage.
        let selection = Selection { offsets: 0..2, ..Selection::default() };
        let options = ReadOptions { selection, ..ReadOptions::default() };
        assert!(read(dir.path(), &options).problems.is_empty());
    }

    #[test]
    fn what_is_whole_behind_damage_can_be_salvaged() {
        let dir = partition();
        let path = dir.path().join("00000000000000000000.log");
        let mut log = std::fs::read(&path).unwrap();
        let size = log.len() / 3;
        log[30] ^= 1;
        log.splice(2 * size..2 * size, *b"between");
        std::fs::write(&path, &log).unwrap();
        let options = ReadOptions { salvage: true, ..ReadOptions::default() };
        let seen = read(&path, &options);
        assert_eq!((seen.batches, seen.records), (vec![2, 4], vec![2, 3, 4, 5]));
        let places: Vec<_> = seen.problems.iter().map(|problem| problem.1.unwrap()).collect();
        assert_eq!(places, [0, 2 * u64::try_from(size).unwrap()]);
        // Only where it is asked for.
        assert!(read(&path, &ReadOptions::default()).batches.is_empty());
    }

    #[test]
    fn a_batch_that_cannot_be_opened_is_passed_over() {
        let dir = partition();
        let options = ReadOptions { limit_bytes: 10, ..ReadOptions::default() };
        let seen = read(dir.path(), &options);
        assert_eq!((seen.batches.len(), seen.records.len(), seen.problems.len()), (6, 0, 6));
        assert_eq!(seen.problems[1].0, "codec");
    }

    #[test]
    fn a_range_of_bytes_is_read_as_it_is() {
        let dir = partition();
        let path = dir.path().join("00000000000000000000.log");
        let size = std::fs::metadata(&path).unwrap().len();
        let read = |positions: Range<u64>| {
            let seen = read(&path, &ReadOptions { positions, ..ReadOptions::default() });
            let problems: Vec<_> = seen.problems.into_iter().map(|it| (it.0, it.1)).collect();
            (seen.records, problems)
        };
        let second = size / 3;
        assert_eq!(read(second..2 * second), (vec![2, 3], vec![]));
        assert_eq!(read(second..u64::MAX), (vec![2, 3, 4, 5], vec![]));
        assert_eq!(read(size..u64::MAX), (vec![], vec![]));
        // What the file does not have is told.
        let short = || vec![("bad_length".to_owned(), Some(size))];
        assert_eq!(read(u64::MAX - 1..u64::MAX), (vec![], short()));
        assert_eq!(read(size..size + 1), (vec![], short()));
        assert_eq!(read(second..size + 1), (vec![2, 3, 4, 5], short()));
        // One that ends within a batch, and one that begins within one.
        let torn = ("torn_batch".to_owned(), Some(2 * second));
        assert_eq!(read(second..2 * second + 20), (vec![2, 3], vec![torn]));
        let (records, problems) = read(second + 1..size);
        assert_eq!((records, problems[0].1), (vec![], Some(second + 1)));
    }

    #[test]
    fn the_name_of_a_log_tells_its_base_offset() {
        for (name, base_offset) in [
            ("00000000000000000042.log", 42),
            ("00000000000000000042.log.swap", 42),
            ("00000000000000000042-y-tcbHSyS_K1aAUhhTCjAg.log", 42),
            ("00000000000000000042-0000000007.checkpoint", 0),
            ("copy.log", 0),
            ("", 0),
        ] {
            assert_eq!(base_offset_of(Path::new(name)), base_offset, "{name}");
        }
    }

    #[test]
    fn a_break_ends_the_reading() {
        let dir = partition();
        let mut seen = Seen { stop_after: Some(7), ..Seen::default() };
        read_log(&Disk::new(), dir.path(), &ReadOptions::default(), &mut seen).unwrap();
        assert_eq!(seen.records, (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_cannot_be_read_does_not_stop_the_others() {
        let dir = partition();
        let path = dir.path().join("00000000000000000000.log");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &path).unwrap();
        let seen = read(dir.path(), &ReadOptions::default());
        assert_eq!((seen.failed, seen.batches), (1, vec![6, 8, 10]));
        let one = read(&dir.path().join("00000000000000000006.log"), &ReadOptions::default());
        assert_eq!(one.batches, [6, 8, 10]);
    }
}
