//! What is in a partition, in numbers? Batches, records, codecs, times, producers, epochs, by the
//! headers of all batches.
//!
//! Records are counted as the headers count them. How far batches open is measured on a few of
//! them, spread over the log.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::io::{MapMode, OpenMode, Reader, Storage};
use crate::log::facts::LogFacts;
use crate::log::inventory::EPOCH_FILE;
use crate::log::progress::Progress;
use crate::problem::{Code, Problem, Severity};
use crate::record::batch::HEADER_SIZE;
use crate::record::codec::{Codec, Decompressor};
use crate::record::control::parse_control;
use crate::record::legacy::parse_message;
use crate::record::scan::{ScannedBatch, Visitor, scan};
use crate::record::{BatchHeader, TimestampType};
use crate::segment::{FileRole, damage};
use crate::state::checkpoint::parse_epochs;
use crate::state::{EpochEntry, ProducerEvent, ReplayState};
use crate::units::NO_TIMESTAMP;

/// Bytes of a log that are looked at in one piece.
const WINDOW_BYTES: usize = 1 << 20;
/// Bytes of a log between two batches that are opened, so that it costs little beside the scan.
const SAMPLE_INTERVAL_BYTES: u64 = 4 << 20;
/// A sampled batch that opens to more is left out.
const SAMPLE_BYTES_MAX: usize = 64 << 20;
/// A leader epoch checkpoint is far smaller.
const EPOCH_FILE_BYTES_MAX: u64 = 64 << 20;

/// The batches of one codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodecStats {
    /// How many.
    pub batches: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Compressed bytes of the payloads that were opened.
    pub sampled_bytes: u64,
    /// Bytes that they opened to.
    pub opened_bytes: u64,
}

/// A partition in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Names and sizes.
    pub facts: LogFacts,
    /// The offset behind the last whole batch.
    pub end_offset: i64,
    /// Whole batches; of the old formats, entries.
    pub batches: u64,
    /// Records by the headers' counts, those of control batches left out. Of a compressed entry of
    /// the old formats nothing is counted.
    pub records: u64,
    /// Batches by magic: 0, 1, 2.
    pub magics: [u64; 3],
    /// Batches that hold control records.
    pub control_batches: u64,
    /// Batches of transactions, control batches left out.
    pub transactional_batches: u64,
    /// Batches that compaction has emptied.
    pub empty_batches: u64,
    /// Bytes of the largest batch.
    pub largest_batch_bytes: u32,
    /// By codec id; 5 to 7 do not exist.
    pub codecs: BTreeMap<u8, CodecStats>,
    /// The smallest timestamp of the first records of batches, -1 for none.
    pub min_timestamp_ms: i64,
    /// The largest timestamp, -1 for none.
    pub max_timestamp_ms: i64,
    /// Producers that the log knows of.
    pub producers: u64,
    /// Producer and first offset of the transactions that have not ended.
    pub open_transactions: Vec<(i64, i64)>,
    /// The lines of the leader epoch checkpoint.
    pub epochs: Vec<EpochEntry>,
    /// What is damaged or could not be read; of a damaged segment, what stands before the damage was
    /// counted.
    pub problems: Vec<Problem>,
}

impl LogStats {
    /// Counts what is in the partition in `dir`.
    pub fn read(
        storage: &dyn Storage,
        dir: &Path,
        maps: MapMode,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let facts = LogFacts::read(storage, dir)?;
        let mut stats = LogStats {
            min_timestamp_ms: NO_TIMESTAMP,
            max_timestamp_ms: NO_TIMESTAMP,
            ..LogStats::default()
        };
        stats.problems = facts.unreadable_problems();
        stats.read_epochs(storage, dir)?;
        let mut count = Count {
            stats: &mut stats,
            state: ReplayState::new(),
            decompressor: Decompressor::new(),
            sample_at: 0,
        };
        for segment in &facts.segments {
            if progress.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "cancelled"));
            }
            count.stats.end_offset = count.stats.end_offset.max(segment.base_offset);
            if let Err(error) = count.segment(storage, &facts, segment.base_offset, maps) {
                let path = facts.path_of(segment.base_offset, FileRole::Log);
                let detail = error.to_string();
                // The file is told beside it.
                let own = detail.strip_prefix(&format!("{}: ", path.display())).map(str::to_owned);
                count.stats.problems.push(Problem {
                    code: Code::Unreadable,
                    severity: Severity::Refused,
                    file: facts.name_of(segment.base_offset, FileRole::Log),
                    position: None,
                    offset: None,
                    detail: own.unwrap_or(detail),
                });
            }
            progress.bytes(segment.log_size_bytes);
        }
        let state = count.state;
        stats.producers = u64::try_from(state.producers().len()).unwrap_or(u64::MAX);
        stats.open_transactions = state.ongoing().map(|(first, id)| (id, first)).collect();
        stats.facts = facts;
        Ok(stats)
    }

    fn read_epochs(&mut self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        let bytes = match storage.read(&dir.join(EPOCH_FILE), EPOCH_FILE_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(()),
            other => other?,
        };
        match parse_epochs(&bytes) {
            Ok(epochs) => self.epochs = epochs,
            Err(error) => self.problems.push(Problem {
                code: Code::EpochFile,
                severity: Severity::Repairable,
                file: EPOCH_FILE.to_owned(),
                position: None,
                offset: None,
                detail: error.message().to_owned(),
            }),
        }
        Ok(())
    }
}

/// Counts batches.
struct Count<'a> {
    stats: &'a mut LogStats,
    state: ReplayState,
    decompressor: Decompressor,
    /// Bytes of batches of a codec after which the next one is opened.
    sample_at: u64,
}

impl Count<'_> {
    fn segment(
        &mut self,
        storage: &dyn Storage,
        facts: &LogFacts,
        base_offset: i64,
        maps: MapMode,
    ) -> Result<()> {
        let file = storage.open(&facts.path_of(base_offset, FileRole::Log), OpenMode::Read)?;
        let size = file.metadata()?.size_bytes;
        let mut source = Reader::new(&*file, size, WINDOW_BYTES, maps);
        self.sample_at = 0;
        let end = scan(&mut source, 0, u64::MAX, self)?;
        let expected = self.stats.end_offset;
        if let Some(damage) = damage::examine(&mut source, end, base_offset, expected)? {
            self.stats.problems.push(Problem {
                code: damage.code,
                severity: Severity::Corrupt,
                file: facts.name_of(base_offset, FileRole::Log),
                position: Some(damage.position),
                offset: Some(expected),
                detail: damage.detail,
            });
        }
        Ok(())
    }

    fn count_times(&mut self, header: &BatchHeader) {
        self.stats.max_timestamp_ms = self.stats.max_timestamp_ms.max(header.max_timestamp);
        let first = match header.timestamp_type() {
            TimestampType::None => NO_TIMESTAMP,
            TimestampType::LogAppendTime => header.max_timestamp,
            // The field holds the delete horizon instead.
            TimestampType::CreateTime if header.delete_horizon_ms().is_some() => {
                header.max_timestamp
            }
            TimestampType::CreateTime => header.base_timestamp,
        };
        if first >= 0 && (self.stats.min_timestamp_ms < 0 || first < self.stats.min_timestamp_ms) {
            self.stats.min_timestamp_ms = first;
        }
    }

    /// Opens a batch now and then, to learn how far they open.
    fn sample(&mut self, batch: &ScannedBatch<'_>) {
        let header = batch.header;
        let Some(codec) = Codec::from_id(header.codec_id()).filter(|codec| *codec != Codec::None)
        else {
            return;
        };
        let is_whole = u32::try_from(batch.bytes.len()) == Ok(header.size_bytes);
        if batch.position < self.sample_at || !is_whole {
            return;
        }
        self.sample_at = batch.position.saturating_add(SAMPLE_INTERVAL_BYTES);
        let payload = match header.magic {
            2 => batch.bytes.get(HEADER_SIZE..),
            _ => parse_message(batch.bytes).ok().and_then(|message| message.value),
        };
        let Some(payload) = payload else { return };
        let opened = self.decompressor.decompress(codec, header.magic, payload, SAMPLE_BYTES_MAX);
        // Whether batches can be opened is for verify to tell.
        let Ok(opened) = opened else { return };
        let stats = self.stats.codecs.entry(header.codec_id()).or_default();
        let size = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        stats.sampled_bytes = stats.sampled_bytes.saturating_add(size(payload));
        stats.opened_bytes = stats.opened_bytes.saturating_add(size(opened));
    }
}

impl Visitor for Count<'_> {
    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        let header = batch.header;
        let stats = &mut *self.stats;
        stats.batches = stats.batches.saturating_add(1);
        stats.end_offset = header.next_offset();
        stats.largest_batch_bytes = stats.largest_batch_bytes.max(header.size_bytes);
        let magic = usize::from(header.magic.unsigned_abs());
        if let Some(count) = stats.magics.get_mut(magic) {
            *count = count.saturating_add(1);
        }
        let codec = stats.codecs.entry(header.codec_id()).or_default();
        codec.batches = codec.batches.saturating_add(1);
        codec.size_bytes = codec.size_bytes.saturating_add(u64::from(header.size_bytes));
        let records = match (header.magic, header.codec_id()) {
            (2, _) => u64::try_from(header.count).unwrap_or_default(),
            (_, 0) => 1,
            _ => 0,
        };
        if header.is_control() {
            stats.control_batches = stats.control_batches.saturating_add(1);
        } else {
            stats.records = stats.records.saturating_add(records);
            let transactional = u64::from(header.is_transactional());
            stats.transactional_batches = stats.transactional_batches.saturating_add(transactional);
        }
        let is_empty = u64::from(header.magic == 2 && header.count == 0);
        stats.empty_batches = stats.empty_batches.saturating_add(is_empty);
        self.count_times(header);
        if header.has_producer_id() {
            let control = header.is_control().then(|| parse_control(header, batch.bytes));
            if let Some(event) = ProducerEvent::of_batch(header, control) {
                // What the state does not allow is for verify to tell.
                let _ = self.state.apply(&event);
            }
        }
        self.sample(&batch);
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::log::progress::Silent;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;

    fn write(dir: &Path, base: i64, codecs: &[Codec]) -> Vec<u8> {
        let mut log = Vec::new();
        for (codec, base_offset) in codecs.iter().zip((base..).step_by(3)) {
            let mut builder = BatchBuilder::new(BatchOptions {
                base_offset,
                compression: (*codec).into(),
                producer_id: base_offset,
                producer_epoch: 0,
                base_sequence: 0,
                is_transactional: true,
                ..BatchOptions::default()
            })
            .unwrap();
            for offset in base_offset..base_offset + 3 {
                builder.append(1000 + offset, None, Some(&[b'x'; 1000])).unwrap();
            }
            builder.write_to(&mut Compressor::new(), &mut log).unwrap();
        }
        std::fs::write(dir.join(format!("{base:020}.log")), &log).unwrap();
        log
    }

    fn stats(dir: &Path) -> LogStats {
        LogStats::read(&Disk::new(), dir, MapMode::Never, &Silent).unwrap()
    }

    #[test]
    fn headers_are_counted_and_a_few_batches_opened() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 10, &[Codec::None, Codec::Zstd]);
        write(dir.path(), 16, &[Codec::Zstd]);
        std::fs::write(dir.path().join(EPOCH_FILE), b"0\n2\n0 10\n3 13\n").unwrap();
        let stats = stats(dir.path());
        assert_eq!((stats.batches, stats.records, stats.end_offset), (3, 9, 19));
        assert_eq!((stats.min_timestamp_ms, stats.max_timestamp_ms), (1010, 1018));
        assert_eq!((stats.magics, stats.transactional_batches), ([0, 0, 3], 3));
        assert_eq!((stats.producers, stats.open_transactions.len()), (3, 3));
        assert_eq!(stats.open_transactions[0], (10, 10));
        assert_eq!((stats.epochs.len(), stats.facts.segments.len()), (2, 2));
        let zstd = stats.codecs[&Codec::Zstd.id()];
        assert_eq!(zstd.batches, 2);
        assert!(zstd.opened_bytes > 10 * zstd.sampled_bytes, "{zstd:?}");
        assert_eq!(stats.codecs[&0].opened_bytes, 0);
        assert!(stats.problems.is_empty());
    }

    #[test]
    fn what_stands_before_damage_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = write(dir.path(), 0, &[Codec::None, Codec::None]);
        write(dir.path(), 6, &[Codec::None]);
        let last = log.len() - 1;
        log[last] ^= 1;
        std::fs::write(dir.path().join("00000000000000000000.log"), &log).unwrap();
        std::fs::write(dir.path().join(EPOCH_FILE), b"nonsense").unwrap();
        let stats = stats(dir.path());
        assert_eq!((stats.batches, stats.end_offset), (2, 9));
        let codes: Vec<Code> = stats.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [Code::EpochFile, Code::CrcMismatch]);
    }

    #[test]
    fn an_empty_directory_has_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let stats = stats(dir.path());
        assert_eq!((stats.batches, stats.end_offset, stats.max_timestamp_ms), (0, 0, -1));
    }
}
