//! What becomes of a partition when its replicas come and go? The controller's side.

use engine::replica::{
    BadState, BrokerEvent, ChangeRequest, Election, ElrOptions, Partition as State,
    PartitionChange, clear_elr, effective_min_isr, merge_change, plan_broker_event, plan_election,
    plan_partition_change,
};

use super::types::{Partition, PartitionEvent};
use crate::error::{Failure, Outcome, SiltError, Status, fits, guard, invalid};
use crate::memory::{check_struct, items_of, put, read_struct, u32_of, write_plain, write_struct};

/// `SILT_PARTITION_RECOVERING`.
const RECOVERING: u32 = 1;

const NO_ELR: u32 = 1;
const NO_LAST_KNOWN_LEADER: u32 = 2;
const BUMP_ON_SHRINK: u32 = 4;
const HAS_TARGET_ISR: u32 = 8;

/// # Safety
/// The struct is NULL or one of the header, and its arrays are NULL or as long as it says.
unsafe fn read(partition: *const Partition) -> Outcome<State> {
    // SAFETY: the caller's promise.
    let given = unsafe { read_struct(partition)? };
    let list = |items: *mut i32, count: u32| {
        // SAFETY: the caller's array.
        unsafe { items_of(items.cast_const(), u64::from(count)) }.map(<[i32]>::to_vec)
    };
    Ok(State {
        replicas: list(given.replicas, given.replica_count)?,
        isr: list(given.isr, given.isr_count)?,
        elr: list(given.elr, given.elr_count)?,
        last_known_elr: list(given.last_known_elr, given.last_known_elr_count)?,
        adding: list(given.adding, given.adding_count)?,
        removing: list(given.removing, given.removing_count)?,
        leader: given.leader,
        recovering: given.flags & RECOVERING != 0,
        leader_epoch: given.leader_epoch,
        partition_epoch: given.partition_epoch,
    })
}

/// Writes to a partition of the caller, each of whose arrays has room for `capacity` replicas.
///
/// # Safety
/// That of [`read`], with the capacity as the length.
unsafe fn tell(state: &State, to: *mut Partition) -> Outcome<()> {
    // SAFETY: the caller's promise.
    let asked = unsafe { read_struct(to.cast_const())? };
    let mut is_whole = true;
    let mut put_list = |items: *mut i32, list: &[i32]| {
        // SAFETY: the caller's array.
        is_whole &= unsafe { put(items, asked.capacity, list)? };
        Ok::<_, Failure>(u32_of(list.len()))
    };
    let told = Partition {
        struct_size: 0,
        flags: if state.recovering { RECOVERING } else { 0 },
        replica_count: put_list(asked.replicas, &state.replicas)?,
        isr_count: put_list(asked.isr, &state.isr)?,
        elr_count: put_list(asked.elr, &state.elr)?,
        last_known_elr_count: put_list(asked.last_known_elr, &state.last_known_elr)?,
        adding_count: put_list(asked.adding, &state.adding)?,
        removing_count: put_list(asked.removing, &state.removing)?,
        leader: state.leader,
        leader_epoch: state.leader_epoch,
        partition_epoch: state.partition_epoch,
        ..asked
    };
    // SAFETY: a struct of the header.
    unsafe { write_struct(to, &told)? };
    fits(is_whole, "the arrays of the partition are too small")
}

/// What becomes of a partition; `Err` with an error code of the protocol.
///
/// # Safety
/// The event's arrays are NULL or as long as it says.
unsafe fn plan(
    partition: &State,
    event: &PartitionEvent,
) -> Outcome<Result<Option<PartitionChange>, i16>> {
    if event.flags & !(NO_ELR | NO_LAST_KNOWN_LEADER | BUMP_ON_SHRINK | HAS_TARGET_ISR) != 0 {
        return invalid("flags are none of SILT_PARTITION_EVENT_");
    }
    let options = ElrOptions {
        elr: event.flags & NO_ELR == 0,
        last_known_leader: event.flags & NO_LAST_KNOWN_LEADER == 0,
        bump_on_shrink: event.flags & BUMP_ON_SHRINK != 0,
    };
    let election = match event.election {
        0 => Election::Online,
        1 => Election::Preferred,
        2 => Election::Unclean,
        _ => return invalid("election is none of SILT_ELECTION_"),
    };
    // SAFETY: the caller's array.
    let available = unsafe { items_of(event.available, u64::from(event.available_count))? };
    let is_ok = |replica: i32| available.contains(&replica);
    let min_isr = effective_min_isr(event.min_insync_replicas, partition.replicas.len());
    let of_broker = |what| {
        plan_broker_event(partition, event.broker, what, (election, min_isr), options, &is_ok)
    };
    Ok(Ok(match event.kind {
        0 => {
            // SAFETY: the caller's array.
            let target = unsafe { items_of(event.target_isr, u64::from(event.target_isr_count))? };
            // SAFETY: the caller's array.
            let unclean = unsafe { items_of(event.unclean, u64::from(event.unclean_count))? };
            let request = ChangeRequest {
                target_isr: (event.flags & HAS_TARGET_ISR != 0).then(|| target.to_vec()),
                unclean: unclean.to_vec(),
                election,
                min_isr,
                recovering: match event.recovering {
                    -1 => None,
                    0 => Some(false),
                    1 => Some(true),
                    _ => return invalid("recovering is none of -1, 0 and 1"),
                },
            };
            plan_partition_change(partition, &request, options, &is_ok)
        }
        1 => of_broker(BrokerEvent::Fenced),
        2 => of_broker(BrokerEvent::Unfenced),
        3 => of_broker(BrokerEvent::Unregistered),
        4 => of_broker(BrokerEvent::RestartedClean),
        5 => of_broker(BrokerEvent::RestartedUnclean),
        6 => match plan_election(partition, election, min_isr, options, &is_ok) {
            Ok(change) => Some(change),
            Err(refusal) => return Ok(Err(refusal.code())),
        },
        7 => clear_elr(partition),
        _ => return invalid("kind is none of SILT_PARTITION_"),
    }))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_partition_step(
    partition: *const Partition,
    event: *const PartitionEvent,
    out: *mut Partition,
    outcome: *mut i32,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header, and its arrays.
        let state = unsafe { read(partition)? };
        // SAFETY: a struct of the header.
        let event = unsafe { read_struct(event)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        // SAFETY: the event's arrays.
        let (state, told) = match unsafe { plan(&state, &event)? } {
            Ok(None) => (state, 0),
            Err(code) => (state, i32::from(code)),
            Ok(Some(change)) => match merge_change(&state, &change) {
                Ok(merged) => (merged, -1),
                Err(BadState::LeaderIsNoReplica) => {
                    return invalid("the leader would be none of the replicas");
                }
                Err(BadState::LeaderIsNotInSync) => {
                    return invalid("the leader would not be in sync");
                }
            },
        };
        // SAFETY: the caller's number.
        unsafe { write_plain(outcome, told)? };
        // SAFETY: a struct of the header, and its arrays.
        unsafe { tell(&state, out) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
