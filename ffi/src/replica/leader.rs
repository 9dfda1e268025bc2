//! What does a leader answer?

use engine::replica::{
    FetchRequest, FetchVerdict as Verdict, LeaderView, Reader, leader_fetch_verdict, special_offset,
};
use engine::segment::TimestampAndOffset;

use super::types::{Bounds, FetchVerdict};
use super::view::{View, known};
use crate::error::{SiltError, Status, guard};
use crate::memory::{Growing, check_struct, read_plain, write_plain, write_struct};
use crate::read::isolation_of;
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
            leader_epoch: known(leader_epoch),
            last_fetched_epoch: known(last_fetched_epoch),
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
        let reader = isolation_of(up_to)?;
        let found = match found.is_null() {
            true => None,
            false => {
                // SAFETY: the caller's struct.
                let TimeOffset { timestamp_ms, offset, leader_epoch, .. } =
                    unsafe { read_plain(found)? };
                let leader_epoch = known(leader_epoch);
                Some(TimestampAndOffset { timestamp_ms, offset, leader_epoch })
            }
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
