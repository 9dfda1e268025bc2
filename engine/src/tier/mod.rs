//! Remote storage: what may be uploaded, what lies there, how it is read and rebuilt from.
//!
//! The rules are plain functions over plain data. What must reach an object store goes through
//! [`ObjectTarget`], which the host implements or takes from here; the engine starts no thread and
//! knows no network.

mod epoch_state;
pub mod faulty_target;
pub mod highest_remote;
pub mod indexes;
pub mod inventory;
pub mod layout;
pub mod lineage;
pub mod local_target;
pub mod metadata_cache;
pub mod metadata_codec;
pub mod object_source;
pub mod remote_segment;
pub mod segment_reading;
pub mod target;
pub mod upload_lag;

pub use faulty_target::FaultyTarget;
pub use highest_remote::{HighestRemote, RemoteLogStart, highest_remote, remote_log_start};
pub use indexes::{IndexSource, SegmentIndexes, TargetIndexes};
pub use inventory::{RemoteInventory, RemoteParts};
pub use layout::{ObjectLayout, SegmentPart};
pub use lineage::Lineage;
pub use local_target::LocalTarget;
pub use metadata_cache::{Applied, Dropped, MetadataCache};
pub use metadata_codec::{RemoteMetadataRecord, metadata_partition};
pub use object_source::ObjectSource;
pub use remote_segment::{
    PartitionDelete, PartitionDeleteState, RemotePartition, RemoteSegment, RemoteSegmentId,
    RemoteSegmentState, RemoteSegmentUpdate, SegmentSnapshot,
};
pub use segment_reading::SegmentReading;
pub use target::{ObjectBytes, ObjectInfo, ObjectTarget, get_exact};
pub use upload_lag::{UploadLag, upload_lag};
