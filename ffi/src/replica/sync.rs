//! What is committed, and who is in sync?

use engine::replica::{
    AcksVerdict, AlterAnswer, AlterOutcome, BrokerStatus, ExpandVerdict, FollowerFetch,
    FollowerProgress, HighWatermarkChange, InSyncReplicas, IsrChange, LeaderProgress,
    acks_before_append, acks_verdict, advance_high_watermark, effective_min_isr,
};

use super::types::{Isr, Progress, Watermark};
use super::view::known;
use crate::error::{CONFLICT, Failure, Outcome, SiltError, Status, guard, invalid};
use crate::memory::{
    Growing, check_struct, items_of, items_of_mut, read_struct, write_plain, write_struct,
};

const FENCED: u32 = 1;
const SHUTTING_DOWN: u32 = 2;

/// The in-sync replicas of the caller.
struct Given {
    isr: Isr,
    replicas: InSyncReplicas,
}

impl Given {
    /// # Safety
    /// The struct is NULL or one of the header, and its arrays are NULL or as long as it says.
    unsafe fn read(isr: *const Isr) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let isr = unsafe { read_struct(isr)? };
        // SAFETY: the caller's array.
        let committed = unsafe { items_of(isr.committed, u64::from(isr.committed_count))? };
        // SAFETY: the caller's array.
        let changed = unsafe { items_of(isr.changed, u64::from(isr.changed_count))? };
        let mut replicas = InSyncReplicas::new(committed.to_vec(), isr.partition_epoch);
        let change = match (isr.change, changed) {
            (0, []) => None,
            (1, [replica]) => Some(IsrChange::Expand(*replica)),
            (2, removed) => Some(IsrChange::Shrink(removed.to_vec())),
            _ => return invalid("change and changed do not fit each other"),
        };
        if let Some(change) = change {
            replicas.propose(change);
        }
        Ok(Given { isr, replicas })
    }

    fn min_isr(&self) -> usize {
        let count = usize::try_from(self.isr.replica_count).unwrap_or(usize::MAX);
        effective_min_isr(self.isr.min_insync_replicas, count)
    }
}

fn progress_of(given: &Progress) -> FollowerProgress {
    FollowerProgress {
        replica: given.replica,
        log_start_offset: given.log_start_offset,
        log_end_offset: given.log_end_offset,
        last_caught_up_ms: given.last_caught_up_ms,
        last_fetch_ms: given.last_fetch_ms,
        leader_end_at_fetch: given.leader_end_at_fetch,
        broker_epoch: (given.broker_epoch != i64::MIN).then_some(given.broker_epoch),
    }
}

fn broker_of(given: &Progress) -> BrokerStatus {
    BrokerStatus {
        epoch: known(given.registered_epoch),
        fenced: given.flags & FENCED != 0,
        shutting_down: given.flags & SHUTTING_DOWN != 0,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_progress_record(
    follower: *mut Progress,
    offset: i64,
    log_start_offset: i64,
    broker_epoch: i64,
    leader_log_end_offset: i64,
    now_ms: i64,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's struct, as an array of one.
        let [given] = (unsafe { items_of_mut(follower, 1)? }) else {
            return invalid("no follower");
        };
        let mut progress = progress_of(given);
        let fetch =
            FollowerFetch { offset, log_start_offset, broker_epoch, now_ms, leader_log_end_offset };
        if progress.record(&fetch, broker_of(given).epoch).is_err() {
            return Err(Failure::Call(CONFLICT, "the fetch is of an earlier life of the broker"));
        }
        *given = Progress {
            log_start_offset: progress.log_start_offset,
            log_end_offset: progress.log_end_offset,
            last_caught_up_ms: progress.last_caught_up_ms,
            last_fetch_ms: progress.last_fetch_ms,
            leader_end_at_fetch: progress.leader_end_at_fetch,
            broker_epoch: progress.broker_epoch.unwrap_or(i64::MIN),
            ..*given
        };
        Ok(())
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_isr_watermark(
    isr: *const Isr,
    followers: *const Progress,
    count: u32,
    out: *mut Watermark,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let given = unsafe { Given::read(isr)? };
        // SAFETY: the caller's array.
        let followers = unsafe { items_of(followers, u64::from(count))? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let progress: Vec<FollowerProgress> = followers.iter().map(progress_of).collect();
        let leader = LeaderProgress {
            log_end_offset: given.isr.log_end_offset,
            high_watermark: given.isr.high_watermark,
            isr: &given.replicas,
            effective_min_isr: given.min_isr(),
            followers: &progress,
            now_ms: given.isr.now_ms,
            lag_max_ms: given.isr.lag_max_ms,
        };
        let unknown = BrokerStatus { epoch: None, fenced: false, shutting_down: false };
        let broker = |replica: i32| {
            followers.iter().find(|it| it.replica == replica).map_or(unknown, broker_of)
        };
        let none = Watermark { high_watermark: given.isr.high_watermark, ..Watermark::INIT };
        let told = match advance_high_watermark(&leader, broker) {
            HighWatermarkChange::Held { by } => Watermark { held_by: by.unwrap_or(-1), ..none },
            HighWatermarkChange::Advance { high_watermark, held_by } => {
                Watermark { kind: 1, high_watermark, held_by: held_by.unwrap_or(-1), ..none }
            }
            HighWatermarkChange::UnderMinIsr => Watermark { kind: 2, ..none },
        };
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &told) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_isr_verdicts(
    isr: *const Isr,
    followers: *const Progress,
    count: u32,
    verdicts: *mut u8,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let given = unsafe { Given::read(isr)? };
        // SAFETY: the caller's array.
        let followers = unsafe { items_of(followers, u64::from(count))? };
        // SAFETY: the caller's array.
        let verdicts = unsafe { items_of_mut(verdicts, u64::from(count))? };
        let progress: Vec<FollowerProgress> = followers.iter().map(progress_of).collect();
        let Isr { log_end_offset, high_watermark, now_ms, lag_max_ms, .. } = given.isr;
        let behind = given.replicas.out_of_sync(&progress, log_end_offset, now_ms, lag_max_ms);
        for ((verdict, follower), it) in verdicts.iter_mut().zip(followers).zip(&progress) {
            let start = given.isr.leader_epoch_start_offset;
            let broker = broker_of(follower);
            *verdict = match given.replicas.expand_verdict(it, broker, high_watermark, start) {
                _ if behind.contains(&it.replica) => 5,
                ExpandVerdict::Member => 0,
                ExpandVerdict::Join => 1,
                ExpandVerdict::InFlight => 2,
                ExpandVerdict::NotEligible => 3,
                ExpandVerdict::Behind => 4,
            };
        }
        Ok(())
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_isr_answered(
    isr: *const Isr,
    leader_epoch: i32,
    error_code: i32,
    answered_leader_epoch: i32,
    answered_partition_epoch: i32,
    outcome: *mut u32,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let mut given = unsafe { Given::read(isr)? };
        let answer = match i16::try_from(error_code) {
            Ok(0) => AlterAnswer::Ok {
                leader_epoch: answered_leader_epoch,
                partition_epoch: answered_partition_epoch,
                isr: Vec::new(),
            },
            Ok(code) => AlterAnswer::Error(code),
            Err(_) => return invalid("error_code is none of the protocol's errors"),
        };
        let partition_epoch = given.replicas.partition_epoch();
        let told = match given.replicas.change().cloned() {
            None => 4,
            Some(sent) => {
                match given.replicas.apply(&sent, leader_epoch, partition_epoch, answer) {
                    AlterOutcome::Committed => 0,
                    AlterOutcome::Reverted => 1,
                    AlterOutcome::Waiting => 2,
                    AlterOutcome::Retry => 3,
                    AlterOutcome::Ignored => 4,
                }
            }
        };
        // SAFETY: the caller's number.
        unsafe { write_plain(outcome, told) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_isr_acks(
    isr: *const Isr,
    acks: i16,
    required_offset: i64,
    verdict: *mut u32,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let given = unsafe { Given::read(isr)? };
        let min_isr = given.min_isr();
        let found = match required_offset {
            i64::MIN => acks_before_append(acks, &given.replicas, min_isr),
            offset => {
                let high_watermark = given.isr.high_watermark;
                Some(acks_verdict(acks, &given.replicas, min_isr, high_watermark, offset))
            }
        };
        let told = match found {
            // Nothing speaks against the append.
            None | Some(AcksVerdict::Done) => 0,
            Some(AcksVerdict::Wait) => 1,
            Some(AcksVerdict::Refuse) => 2,
            Some(AcksVerdict::DoneUnderReplicated) => 3,
        };
        // SAFETY: the caller's number.
        unsafe { write_plain(verdict, told) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
