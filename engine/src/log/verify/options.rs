//! What is asked of a check.

use std::fmt;

use crate::io::MapMode;
use crate::log::progress::{Progress, Silent};
use crate::uuid::Uuid;

/// How deep a check looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// At every record, compressed ones too.
    #[default]
    Records,
    /// At the header and checksum of every batch.
    Batches,
}

/// What a check is to know and how far it is to go.
#[derive(Clone, Copy)]
pub struct VerifyOptions<'a> {
    /// Where the log starts, when that is known: from `log-start-offset-checkpoint`, say. Records
    /// before it are deleted, though their batches may still be there.
    pub log_start_offset: Option<i64>,
    /// The log may start behind that: what a checkpoint says is some time old, and records may
    /// have been deleted since.
    pub log_start_may_have_moved: bool,
    /// The id that the topic should have.
    pub topic_id: Option<Uuid>,
    /// The time now, in milliseconds since 1970.
    pub now_ms: i64,
    /// `producer.id.expiration.ms`: how long a silent producer is remembered.
    pub producer_id_expiration_ms: i64,
    /// How deep to look.
    pub depth: Depth,
    /// A batch that opens to more bytes than this counts as one that cannot be opened.
    pub max_decompressed_bytes: u64,
    /// The most records that are listed one by one.
    pub records_listed_max: usize,
    /// The most aborted transactions that are listed.
    pub aborted_listed_max: usize,
    /// A broker is writing to the partition meanwhile: what is unfinished at its end is no
    /// problem, only worth a notice.
    pub is_live: bool,
    /// How files are read.
    pub maps: MapMode,
    /// Who hears of the progress, in bytes of logs.
    pub progress: &'a dyn Progress,
}

impl Default for VerifyOptions<'_> {
    /// Everything is looked at and nothing known; the time is the end of time, so that nothing lies
    /// in the future and every producer may be forgotten.
    fn default() -> Self {
        VerifyOptions {
            log_start_offset: None,
            log_start_may_have_moved: false,
            topic_id: None,
            now_ms: i64::MAX,
            producer_id_expiration_ms: 86_400_000,
            depth: Depth::Records,
            max_decompressed_bytes: u64::from(u32::MAX >> 1),
            records_listed_max: 10_000,
            aborted_listed_max: 100_000,
            is_live: false,
            maps: MapMode::Never,
            progress: &Silent,
        }
    }
}

impl fmt::Debug for VerifyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions")
            .field("log_start_offset", &self.log_start_offset)
            .field("log_start_may_have_moved", &self.log_start_may_have_moved)
            .field("topic_id", &self.topic_id)
            .field("now_ms", &self.now_ms)
            .field("producer_id_expiration_ms", &self.producer_id_expiration_ms)
            .field("depth", &self.depth)
            .field("max_decompressed_bytes", &self.max_decompressed_bytes)
            .field("records_listed_max", &self.records_listed_max)
            .field("aborted_listed_max", &self.aborted_listed_max)
            .field("is_live", &self.is_live)
            .field("maps", &self.maps)
            .finish_non_exhaustive()
    }
}
