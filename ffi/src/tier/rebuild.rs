//! Many replicas rebuilt from remote storage in one call.

use std::path::Path;
use std::sync::Arc;

use engine::Kind;
use engine::tier::{
    AuxError, AuxErrorKind, AuxJob, AuxLimits, AuxPlace, AuxRemote, AuxResult, LocalTarget,
    ObjectLayout, RemoteMetadataRecord, RemoteSegment, build_aux_bulk,
};

use super::record::read_record;
use super::types::{Rebuild, RebuildOptions};
use crate::error::{OK, Outcome, SiltError, Status, guard_or, invalid, status_of};
use crate::handle::poison;
use crate::log::{disk, open_log};
use crate::memory::{items_of, items_of_mut, path, read_struct, text, threads_of, u32_of};

/// `SILT_REBUILD_RETRYABLE`.
const RETRYABLE: u32 = 1;

/// A job of the caller's, as far as it can be read.
struct Asked<'a> {
    place: AuxPlace<'a>,
    segment: RemoteSegment,
    log_start_offset: i64,
}

/// # Safety
/// The item's pointers are NULL or what the header says.
unsafe fn read<'a>(item: &Rebuild) -> Outcome<Asked<'a>> {
    // SAFETY: a struct of the header.
    let record = unsafe { read_struct(item.segment)? };
    // SAFETY: the record's arrays.
    let RemoteMetadataRecord::Segment(segment) = (unsafe { read_record(&record)? }) else {
        return invalid("the record is none of a segment");
    };
    let place = match (item.log.is_null(), item.dir.is_null()) {
        // SAFETY: an object of the caller's.
        (false, true) => AuxPlace::Log(&unsafe { open_log(item.log)? }.log),
        // SAFETY: a text of the caller's.
        (true, false) => AuxPlace::Dir(unsafe { path(item.dir)? }),
        _ => return invalid("a rebuild is of a log or of a directory"),
    };
    Ok(Asked { place, segment, log_start_offset: item.log_start_offset })
}

/// The remote storage of the options, and what a rebuild may use.
///
/// # Safety
/// The options' texts are NULL or end with a NUL.
unsafe fn layout_of<'a>(options: &RebuildOptions) -> Outcome<(&'a Path, ObjectLayout)> {
    // SAFETY: a text of the caller's.
    let store = unsafe { path(options.store_dir)? };
    let layout = match options.prefix.is_null() {
        true => ObjectLayout::default(),
        // SAFETY: a text of the caller's.
        false => ObjectLayout::with_prefix(unsafe { text(options.prefix)? }),
    };
    Ok((store, layout))
}

fn limits(options: &RebuildOptions) -> Outcome<AuxLimits> {
    let defaults = AuxLimits::new(options.now_ms);
    let or = |asked: u64, default: u64| if asked == 0 { default } else { asked };
    let count = |asked: u32, default: usize| match usize::try_from(asked) {
        Ok(0) | Err(_) => default,
        Ok(count) => count,
    };
    Ok(AuxLimits {
        threads: threads_of(options.threads)?,
        readers: defaults.readers,
        held_bytes_max: or(options.held_bytes_max, defaults.held_bytes_max),
        partitions_max: count(options.partitions_max, defaults.partitions_max),
        object_bytes_max: or(options.object_bytes_max, defaults.object_bytes_max),
        now_ms: options.now_ms,
    })
}

/// Tells what came of a job.
fn tell(item: &mut Rebuild, result: AuxResult<engine::tier::AuxInstalled>) -> Status {
    match result {
        Ok(done) => {
            item.next_offset = done.next_offset;
            item.first_open_offset = done.first_open_offset.unwrap_or(-1);
            item.bytes_read = done.bytes_read;
            item.producer_count = u32_of(done.producer_count);
            OK
        }
        Err(error) => {
            item.flags = if is_retryable(&error) { RETRYABLE } else { 0 };
            status_of(error.error())
        }
    }
}

fn is_retryable(error: &AuxError) -> bool {
    match error.kind() {
        AuxErrorKind::NotReady => true,
        AuxErrorKind::Remote { retryable } => retryable,
        AuxErrorKind::Io => error.error().kind() == Kind::Conflict,
        AuxErrorKind::SegmentNotFound | AuxErrorKind::Corrupt { .. } => false,
    }
}

/// # Safety
/// The items' pointers are NULL or what the header says.
unsafe fn rebuild(
    items: &mut [Rebuild],
    statuses: &mut [Status],
    options: &RebuildOptions,
) -> Outcome<()> {
    // SAFETY: the options' texts.
    let (store, layout) = unsafe { layout_of(options)? };
    let limits = limits(options)?;
    let storage = disk(options.io)?;
    let target = LocalTarget::new(Arc::clone(&storage), store);
    let mut asked = Vec::with_capacity(items.len());
    for (number, (item, status)) in items.iter_mut().zip(statuses.iter_mut()).enumerate() {
        item.forget_results();
        // SAFETY: the caller's promise.
        match unsafe { read(item) } {
            Ok(job) => asked.push((number, job)),
            Err(failure) => *status = failure.status(),
        }
    }
    let jobs: Vec<AuxJob<'_>> = asked
        .iter()
        .map(|(_, it)| AuxJob {
            place: it.place,
            segment: &it.segment,
            log_start_offset: it.log_start_offset,
        })
        .collect();
    let remote = AuxRemote { target: &target, layout: &layout };
    let results = build_aux_bulk(&*storage, &jobs, remote, &limits);
    for ((number, _), result) in asked.iter().zip(results) {
        if let (Some(item), Some(status)) = (items.get_mut(*number), statuses.get_mut(*number)) {
            *status = tell(item, result);
        }
    }
    Ok(())
}

/// Poisons the logs of items that a call panicked on.
///
/// # Safety
/// The items are as the header says.
unsafe fn poison_rebuilds(items: *const Rebuild, count: u32) {
    // SAFETY: the caller's array.
    for item in unsafe { items_of(items, u64::from(count)) }.into_iter().flatten() {
        // SAFETY: an object of the caller's, or NULL.
        unsafe { poison(item.log) };
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_tier_rebuild(
    items: *mut Rebuild,
    count: u32,
    options: *const RebuildOptions,
    status: *mut Status,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let options = unsafe { read_struct(options)? };
        // SAFETY: the caller's array.
        let items = unsafe { items_of_mut(items, u64::from(count))? };
        // SAFETY: the caller's array.
        let statuses = unsafe { items_of_mut(status, u64::from(count))? };
        // SAFETY: what the items point to.
        unsafe { rebuild(items, statuses, &options) }
    };
    // SAFETY: the caller's items.
    let poison = || unsafe { poison_rebuilds(items, count) };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard_or(err, poison, body) }
}
