//! Remote storage: what may be uploaded, what lies there, how it is read and rebuilt from.
//!
//! The rules are plain functions over plain data. What must reach an object store goes through
//! [`ObjectTarget`], which the host implements or takes from here; the engine starts no thread and
//! knows no network.

pub mod faulty_target;
pub mod indexes;
pub mod layout;
pub mod local_target;
pub mod remote_segment;
pub mod target;

pub use faulty_target::FaultyTarget;
pub use indexes::{IndexSource, SegmentIndexes, TargetIndexes};
pub use layout::{ObjectLayout, SegmentPart};
pub use local_target::LocalTarget;
pub use remote_segment::{
    RemotePartition, RemoteSegment, RemoteSegmentId, RemoteSegmentState, RemoteSegmentUpdate,
};
pub use target::{ObjectBytes, ObjectInfo, ObjectTarget, get_exact};
