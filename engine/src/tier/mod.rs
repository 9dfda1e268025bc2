//! Remote storage: what may be uploaded, what lies there, how it is read and rebuilt from.
//!
//! The rules are plain functions over plain data. What must reach an object store goes through
//! [`ObjectTarget`], which the host implements or takes from here; the engine starts no thread and
//! knows no network.

pub mod aborted;
pub mod aux_build;
pub mod aux_bulk;
mod aux_homes;
pub mod byte_range;
pub mod candidates;
pub mod check_replica;
pub mod cold;
pub mod copy_quota;
pub mod direct_read;
mod epoch_state;
pub mod expire;
pub mod expiry;
pub mod faulty_target;
pub mod formats;
pub mod highest_remote;
pub mod index_cache;
pub mod indexes;
pub mod inventory;
pub mod layout;
pub mod lineage;
pub mod live;
pub mod local_target;
pub mod metadata_cache;
pub mod metadata_codec;
pub mod metadata_log;
pub mod object_source;
pub mod read;
mod read_many;
pub mod remote_metadata;
pub mod remote_segment;
pub mod scan;
pub mod segment_reading;
pub mod share_ranges;
pub mod side_files;
pub mod size_budget;
pub mod target;
#[cfg(test)]
mod test_store;
pub mod timestamp;
pub mod topic_rules;
mod txn_list;
pub mod upload;
pub mod upload_lag;
pub mod upload_list;
pub mod upload_parts;
pub mod view;

pub use aborted::{collect_remote_aborted, next_with_txn_index, remote_aborted_transactions};
pub use aux_build::{AuxError, AuxErrorKind, AuxInstalled, AuxJob, AuxPlace, AuxRemote, AuxResult};
pub use aux_bulk::{AuxLimits, build_aux_bulk};
pub use byte_range::{ByteRange, SegmentBounds, byte_range};
pub use candidates::{CopyLag, DamagedSegment, NotEligible, UploadAnswer, UploadView};
pub use cold::{ColdLog, ColdOptions, StableFrom};
pub use copy_quota::CopyQuota;
pub use direct_read::{
    DirectAnswer, DirectFallback, DirectRead, DirectRequest, DirectView, SegmentLocations,
    plan_direct_read, plan_direct_read_into,
};
pub use expire::{DeleteLag, ExpiryHost, ExpiryRun, delete_partition, run_expiry};
pub use expiry::{ExpiryInput, ExpiryPlan, ExpiryReason, ExpiryStop, plan_expiry};
pub use faulty_target::FaultyTarget;
pub use formats::{APACHE_KAFKA_V1, negotiate_format};
pub use highest_remote::{HighestRemote, RemoteLogStart, highest_remote, remote_log_start};
pub use index_cache::{CachedIndexes, IndexCacheOptions, IndexCacheStats, RemoteIndexCache};
pub use indexes::{IndexSource, SegmentIndexes, TargetIndexes};
pub use inventory::{RemoteInventory, RemoteParts};
pub use layout::{ObjectLayout, SegmentPart};
pub use lineage::Lineage;
pub use live::LogUploads;
pub use local_target::LocalTarget;
pub use metadata_cache::{Applied, Dropped, MetadataCache};
pub use metadata_codec::{RemoteMetadataRecord, metadata_partition};
pub use metadata_log::{MetadataLogReport, read_metadata_log};
pub use object_source::ObjectSource;
pub use read::{RemotePlace, RemoteRead, remote_read};
pub use read_many::{check_remote_segments, plan_aux_bulk, read_remote_segments};
pub use remote_metadata::RemoteMetadata;
pub use remote_segment::{
    PartitionDelete, PartitionDeleteState, RemotePartition, RemoteSegment, RemoteSegmentId,
    RemoteSegmentState, RemoteSegmentUpdate, SegmentSnapshot,
};
pub use scan::{UploadTable, list_uploads, oldest_first, scan_uploads};
pub use segment_reading::SegmentReading;
pub use share_ranges::{AcquiredRange, acquired_byte_ranges, batch_headers};
pub use size_budget::{SizeBreach, SizeBudget, SizeRetention, size_budget};
pub use target::{ObjectBytes, ObjectInfo, ObjectTarget, get_exact};
pub use timestamp::{RemoteTimestamp, remote_offset_for_timestamp};
pub use topic_rules::{ConfigRefusal, RemoteTasks, RemoteTopicConfig, check_topic_config};
pub use upload::{UploadHost, UploadRun, Uploader, delete_parts, put_parts, run_uploads};
pub use upload_lag::{UploadLag, upload_lag};
pub use upload_list::{UploadCandidate, UploadList};
pub use upload_parts::{PrepareError, UploadAs, UploadParts, prepare_upload};
pub use view::{LocalTransactions, NoLocalSegments, RemoteView};
