//! What may a replica do? Follower fetch over tiered storage (KIP-405, KIP-1023), high watermark,
//! in-sync and eligible leader replicas (KIP-966).
//!
//! Rules alone: numbers in, decisions out. Nothing here reads a file, sends a request, looks at a
//! clock or starts a thread; the host does, and tells what came of it.

pub mod follower;
pub mod follower_start;
pub mod invariants;
pub mod leader;
pub mod leader_offsets;
pub mod truncation;

pub use follower::{
    Action, AppendFailure, AuxFailure, Event, FailReason, FetchAnswer, FetchState, FollowerConfig,
    FollowerView, Phase, Request, RetryReason, follower_step,
};
pub use follower_start::{
    AuxTarget, EpochEnd, LeaderAnswers, OffsetAndEpoch, Query, aux_target, lacks_history,
    should_start_at_tiered,
};
pub use invariants::{Invariant, check_action, check_installed, check_offsets};
pub use leader::{
    FetchError, FetchRequest, FetchVerdict, LeaderView, Reader, leader_fetch_verdict,
};
pub use leader_offsets::{OffsetError, special_offset};
pub use truncation::{Truncation, truncation_point};
