//! What may a replica do? Follower fetch over tiered storage (KIP-405, KIP-1023), high watermark,
//! in-sync and eligible leader replicas (KIP-966).
//!
//! Rules alone: numbers in, decisions out. Nothing here reads a file, sends a request, looks at a
//! clock or starts a thread; the host does, and tells what came of it.

pub mod alter_partition;
pub mod describe_paging;
pub mod describe_topic;
pub mod elr;
pub mod elr_events;
pub mod follower;
pub mod follower_progress;
pub mod follower_start;
pub mod high_watermark;
pub mod invariants;
pub mod isr;
pub mod leader;
pub mod leader_offsets;
pub mod partition_leader;
pub mod shutdown;
pub mod truncation;

pub use alter_partition::{AlterPartition, validate_alter_partition};
pub use describe_paging::{TopicMetadata, describe_topics};
pub use elr::{
    BadState, ChangeRequest, Election, ElrOptions, NO_LEADER, Partition, PartitionChange,
    merge_change, plan_partition_change,
};
pub use elr_events::{
    BrokerEvent, ElectionRefusal, ElrIndex, clear_elr, plan_broker_event, plan_election,
};
pub use follower::{
    Action, AppendFailure, AuxFailure, Event, FailReason, FetchAnswer, FetchState, FollowerConfig,
    FollowerView, Phase, Request, RetryReason, follower_step,
};
pub use follower_progress::{BrokerStatus, FollowerFetch, FollowerProgress, StaleBrokerEpoch};
pub use follower_start::{
    AuxTarget, EpochEnd, LeaderAnswers, OffsetAndEpoch, Query, aux_target, lacks_history,
    should_start_at_tiered,
};
pub use high_watermark::{
    AcksVerdict, HighWatermarkChange, LeaderProgress, acks_before_append, acks_verdict,
    advance_high_watermark, effective_min_isr, follower_high_watermark, low_watermark,
};
pub use invariants::{Invariant, check_action, check_caught_up, check_installed, check_offsets};
pub use isr::{AlterAnswer, AlterOutcome, ExpandVerdict, InSyncReplicas, IsrChange};
pub use leader::{
    FetchError, FetchRequest, FetchVerdict, LeaderView, Reader, leader_fetch_verdict,
};
pub use leader_offsets::{OffsetError, special_offset};
pub use partition_leader::{LeaderMoment, PartitionLeader, PartitionMetadata};
pub use shutdown::{Registration, ShutdownKind, shutdown_kind};
pub use truncation::{Truncation, truncation_point};
