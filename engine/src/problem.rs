//! What a check finds: findings are data, not errors.
//!
//! A [`Problem`] names the file, the byte in it and the offset where that is known, with one of the
//! stable codes that the command line prints.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The stable name of a kind of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// The name as the command line prints it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];
        }
    };
}

codes! {
    /// The log ends in zero bytes.
    ZeroTail = "zero_tail",
    /// The last batch has fewer bytes than it announces.
    TornBatch = "torn_batch",
    /// A length of a batch, or of a log, that cannot be.
    BadLength = "bad_length",
    /// The stored checksum is not that of the bytes.
    CrcMismatch = "crc_mismatch",
    /// A magic byte that this release does not know.
    UnknownMagic = "unknown_magic",
    /// A compression codec that does not exist.
    UnknownCodec = "unknown_codec",
    /// A payload that cannot be decompressed as Kafka would.
    Codec = "codec",
    /// Offsets that do not rise from batch to batch, or lie below the segment's base.
    OffsetOrder = "offset_order",
    /// An offset too far from the segment's base for its indexes.
    OffsetOverflow = "offset_overflow",
    /// The header's largest timestamp is not that of the records.
    MaxTimestampMismatch = "max_timestamp_mismatch",
    /// A record whose fields do not add up.
    Record = "record",
    /// The header's record count is not that of the payload.
    RecordCount = "record_count",
    /// A record offset outside its batch, or not rising.
    RecordOffsetRange = "record_offset_range",
    /// A control record of unknown version or type, or with a short key.
    ControlRecord = "control_record",
    /// Two log files with the same base offset.
    DuplicateBase = "duplicate_base",
    /// A segment whose batches reach into the next one.
    SegmentOverlap = "segment_overlap",
    /// A file name that is no segment's but looks like one.
    BadName = "bad_name",
    /// A `.deleted`, `.cleaned` or `.swap` file.
    Leftover = "leftover",
    /// The log start offset lies behind the log's end.
    LogStartBeyondEnd = "log_start_beyond_end",
    /// No offset or time index beside a segment with batches.
    IndexMissing = "index_missing",
    /// An index file whose size is no multiple of its entries'.
    IndexSize = "index_size",
    /// An offset index with zero entries behind the real ones.
    IndexZeroPadding = "index_zero_padding",
    /// Offset index entries that do not rise, or lie below the base.
    IndexOrder = "index_order",
    /// An offset index entry that does not point at the batch of its offset.
    IndexPosition = "index_position",
    /// An offset index entry behind the end of the log.
    IndexBeyondLog = "index_beyond_log",
    /// An index file without a log file.
    OrphanIndex = "orphan_index",
    /// A time index with zero entries behind the real ones.
    TimeindexZeroPadding = "timeindex_zero_padding",
    /// Time index entries that do not rise.
    TimeindexOrder = "timeindex_order",
    /// A time index that lacks the entry of the segment's largest timestamp.
    TimeindexShort = "timeindex_short",
    /// A time index entry whose timestamp or offset is not in the log.
    TimeindexMismatch = "timeindex_mismatch",
    /// No transaction index although the segment has aborted transactions.
    TxnindexMissing = "txnindex_missing",
    /// A transaction index whose size is no multiple of its entries'.
    TxnindexSize = "txnindex_size",
    /// Transaction index entries that do not rise.
    TxnindexOrder = "txnindex_order",
    /// A transaction index entry of an unknown version.
    TxnindexVersion = "txnindex_version",
    /// A transaction index that does not tell what the log's markers tell.
    TxnindexMismatch = "txnindex_mismatch",
    /// A producer snapshot with a wrong checksum.
    SnapshotCrc = "snapshot_crc",
    /// A producer snapshot of an unknown version.
    SnapshotVersion = "snapshot_version",
    /// A producer snapshot with fewer bytes than it needs.
    SnapshotTruncated = "snapshot_truncated",
    /// A producer snapshot that does not tell what the log tells.
    SnapshotMismatch = "snapshot_mismatch",
    /// A producer snapshot at an offset where none belongs.
    StraySnapshot = "stray_snapshot",
    /// No leader epoch checkpoint.
    EpochMissing = "epoch_missing",
    /// A leader epoch checkpoint that cannot be read.
    EpochFile = "epoch_file",
    /// Leader epochs that do not rise.
    EpochOrder = "epoch_order",
    /// A leader epoch that starts behind the end of the log.
    EpochBeyondEnd = "epoch_beyond_end",
    /// Leader epochs that are not those of the batches.
    EpochMismatch = "epoch_mismatch",
    /// A `partition.metadata` file that cannot be read.
    PartitionMetadata = "partition_metadata",
    /// A topic id other than the one asked for.
    TopicIdMismatch = "topic_id_mismatch",
    /// A checkpoint or properties file of the log directory that cannot be read.
    CheckpointFile = "checkpoint_file",
    /// A log that is to be cut, in a directory whose marker says that it was stopped cleanly.
    CleanMarker = "clean_marker",
    /// A part that every segment in remote storage has is not there.
    RemotePartMissing = "remote_part_missing",
    /// A replica that was rebuilt without the producers that were uploaded.
    ProducersForgotten = "producers_forgotten",
    /// A replica that was rebuilt without the leader epochs that were uploaded.
    EpochsForgotten = "epochs_forgotten",
    /// A transaction index in remote storage that lacks what a marker aborts.
    AbortedForgotten = "aborted_forgotten",
    /// Offsets that neither remote storage nor the local log has.
    RemoteHole = "remote_hole",
    /// A log in remote storage with other bytes than the local one.
    RemoteDiffers = "remote_differs",
    /// A rebuild from remote storage that was interrupted.
    InterruptedRebuild = "interrupted_rebuild",
    /// A file that could not be read.
    Unreadable = "unreadable",
    /// Notice: a timestamp that lies in the future.
    FutureTimestamp = "future_timestamp",
    /// Notice: a transaction that has not ended.
    OpenTransaction = "open_transaction",
    /// Notice: a file that is none of Kafka's.
    UnknownFile = "unknown_file",
    /// Notice: bytes that an earlier recovery cut and kept.
    Lost = "lost",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong, but the operator should know.
    Notice,
    /// A derived file is wrong and can be rebuilt without loss.
    Repairable,
    /// Bytes of the log itself are wrong.
    Corrupt,
    /// Nothing can be said, and nothing may be changed.
    Refused,
}

impl Severity {
    /// The name as the command line prints it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Notice => "notice",
            Severity::Repairable => "repairable",
            Severity::Corrupt => "corrupt",
            Severity::Refused => "refused",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// The file's name within its partition directory.
    pub file: String,
    /// The byte in the file where it begins, if it has one.
    pub position: Option<u64>,
    /// The log offset where it begins, if it has one.
    pub offset: Option<i64>,
    /// One sentence for the operator: what was expected and what was found.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(position) = self.position {
            write!(f, " at position {position}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {} ({})", self.detail, self.code)
    }
}
