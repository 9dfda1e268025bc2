//! What recovery of one partition is told.

use crate::io::MapMode;
use crate::segment::rebuild::IndexSettings;
use crate::uuid::Uuid;

/// What recovery of one partition is told: what is known of its past, what it may do, and the
/// topic's settings.
#[derive(Clone, Debug)]
pub struct RecoverOptions {
    /// Whether the broker stopped cleanly: then segments are trusted.
    pub clean_shutdown: bool,
    /// Up to where the log was flushed, exclusive, by the checkpoint; 0 when it says nothing:
    /// everything is read.
    pub recovery_point: i64,
    /// Whether the checkpoint says so, too: then whoever starts after a crash makes the indexes from there on anew, so
    /// that they can be written over.
    pub recovery_point_is_known: bool,
    /// Where the log starts by the checkpoint; 0 when it says nothing.
    pub log_start_offset: i64,
    /// Read every batch, whatever the checkpoints say.
    pub all: bool,
    /// Whole batches behind damage may be cut away.
    pub allow_loss: bool,
    /// What is cut is not kept in `.log.lost` files.
    pub discard_lost: bool,
    /// Cut the log here: the batch that holds this offset, and everything behind it, goes.
    pub truncate_to: Option<i64>,
    /// The topic id that the partition must have.
    pub topic_id: Option<Uuid>,
    /// Whether remote storage is on for the topic: its log may start before its first local
    /// segment.
    pub remote_storage: bool,
    /// Shape of the indexes.
    pub index: IndexSettings,
    /// The time at which producers are judged as expired, in milliseconds.
    pub now_ms: i64,
    /// `producer.id.expiration.ms`.
    pub producer_expiration_ms: i64,
    /// Bytes of new small files that are held in memory before they are written beside the old;
    /// nothing is written while analysing when this is `None` (a dry run).
    pub stage_bytes: Option<usize>,
    /// Bytes of a segment that one task scans; a segment is scanned in one go when it is not
    /// larger.
    pub piece_bytes: u64,
    /// Tasks that scan one segment side by side, in the pool that the call runs in; 1: in one go.
    pub parallel: usize,
    /// Whether logs may be read through maps.
    pub map_mode: MapMode,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        RecoverOptions {
            clean_shutdown: false,
            recovery_point: 0,
            recovery_point_is_known: false,
            log_start_offset: 0,
            all: false,
            allow_loss: false,
            discard_lost: false,
            truncate_to: None,
            topic_id: None,
            remote_storage: false,
            index: IndexSettings::default(),
            now_ms: 0,
            producer_expiration_ms: 86_400_000,
            stage_bytes: Some(8 << 20),
            piece_bytes: 4 << 20,
            parallel: 1,
            map_mode: MapMode::Never,
        }
    }
}
