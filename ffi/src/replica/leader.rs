//! What does a leader answer?

use engine::log::Isolation;
use engine::replica::{
    FetchRequest, FetchVerdict as Verdict, LeaderView, Reader, leader_fetch_verdict, special_offset,
};
use engine::segment::TimestampAndOffset;

use super::types::{Bounds, FetchVerdict};
use super::view::View;
use crate::error::{SiltError, Status, guard, invalid};
use crate::memory::{Growing, check_struct, items_of, write_plain, write_struct};
use crate::types::TimeOffset;

/// `OFFSET_MOVED_TO_TIERED_STORAGE`.
const MOVED: i32 = 109;

fn leader_of(view: &View) -> LeaderView<'_> {
    LeaderView {
        bounds: view.bounds(),
        high_watermark: view.given.high_watermark,
        last_stable_offset: view.given.last_stable_offset,
        leader_epoch: view.given.leader_epoch,
        leader_epoch_start_offset: view.given.leader_epoch_start_offset,
    }
}

fn told(verdict: &Verdict) -> FetchVerdict {
    let none = FetchVerdict::INIT;
    match *verdict {
        Verdict::Serve { high_watermark, log_start_offset } => {
            FetchVerdict { high_watermark, log_start_offset, ..none }
        }
        Verdict::ReadRemote => FetchVerdict { kind: 1, ..none },
        Verdict::MovedToTieredStorage { high_watermark, log_start_offset, log_end_offset } => {
            FetchVerdict {
                kind: 4,
                error_code: MOVED,
                high_watermark,
                log_start_offset,
                log_end_offset,
                ..none
            }
        }
        Verdict::Diverging { epoch, end_offset } => {
            FetchVerdict { kind: 2, epoch, end_offset, ..none }
        }
        Verdict::Refuse(error) => {
            FetchVerdict { kind: 3, error_code: i32::from(error.code()), ..none }
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_leader_fetch(
    leader: *const Bounds,
    is_follower: u8,
    fetch_offset: i64,
    leader_epoch: i32,
    last_fetched_epoch: i32,
    out: *mut FetchVerdict,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let view = unsafe { View::read(leader)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let request = FetchRequest {
            reader: if is_follower == 0 { Reader::Consumer } else { Reader::Follower },
            fetch_offset,
            leader_epoch: (leader_epoch >= 0).then_some(leader_epoch),
            last_fetched_epoch: (last_fetched_epoch >= 0).then_some(last_fetched_epoch),
        };
        let verdict = leader_fetch_verdict(&leader_of(&view), &request);
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &told(&verdict)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_leader_offset(
    leader: *const Bounds,
    timestamp: i64,
    version: i16,
    up_to: u32,
    found: *const TimeOffset,
    out: *mut TimeOffset,
    error_code: *mut i32,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let view = unsafe { View::read(leader)? };
        let reader = match up_to {
            0 => Isolation::LogEnd,
            1 => Isolation::HighWatermark,
            2 => Isolation::Committed,
            _ => return invalid("up_to is none of SILT_UP_TO_"),
        };
        let found = match found.is_null() {
            true => None,
            // SAFETY: the caller's struct, as an array of one.
            false => unsafe { items_of(found, 1)? }.first().map(|found| TimestampAndOffset {
                timestamp_ms: found.timestamp_ms,
                offset: found.offset,
                leader_epoch: (found.leader_epoch >= 0).then_some(found.leader_epoch),
            }),
        };
        let answer = special_offset(&leader_of(&view), timestamp, version, reader, found);
        let (told, code) = match answer {
            Ok(Some(it)) => ((it.timestamp_ms, it.offset, it.leader_epoch), 0),
            Ok(None) => ((-1, -1, None), 0),
            Err(error) => ((-1, -1, None), i32::from(error.code())),
        };
        let (timestamp_ms, offset, epoch) = told;
        let leader_epoch = epoch.unwrap_or(-1);
        // SAFETY: the caller's struct.
        unsafe {
            write_plain(out, TimeOffset { timestamp_ms, offset, leader_epoch, reserved: 0 })?
        };
        // SAFETY: the caller's number.
        unsafe { write_plain(error_code, code) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
