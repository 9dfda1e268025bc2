//! The parts of one upload, as ranges of files that stay open.

use std::os::fd::AsRawFd;
use std::ptr::null;

use engine::log::FolderName;
use engine::tier::{
    ObjectBytes, PrepareError, RemotePartition, RemoteSegmentId, SegmentPart, UploadAs,
    UploadParts, prepare_upload,
};
use engine::uuid::Uuid;
use engine::{Error, Kind};

use super::record::tell_segment;
use super::types::{Part, RemoteRecord, UploadOptions};
use crate::error::{Failure, Outcome, SiltError, Status, invalid};
use crate::handle::{Handle, Object, close, object_function, on};
use crate::log::{LogObject, on_log};
use crate::memory::{check_place, fill, read_struct, u64_of, write_plain};

/// `SILT_UPLOAD_REBUILD_SNAPSHOT`.
const REBUILD_SNAPSHOT: u32 = 1;

/// What is behind a `silt_upload_t`.
pub struct UploadObject {
    parts: UploadParts,
}

impl Object for UploadObject {
    const MAGIC: u64 = 0x7369_6c74_5f75_706c;
}

fn upload_as(log: &LogObject, options: &UploadOptions) -> Outcome<UploadAs> {
    if options.flags & !REBUILD_SNAPSHOT != 0 {
        return invalid("flags are none of SILT_UPLOAD_");
    }
    let dir = log.log.dir();
    let Some(FolderName { topic, partition, .. }) = FolderName::of_dir(&dir) else {
        return invalid("the name of the log's directory is none of a partition");
    };
    let asked = Uuid(options.topic_id);
    let topic_id = match log.log.topic_id() {
        Some(known) if asked == Uuid::ZERO || asked == known => known,
        Some(known) => {
            let message = format!("the log is of topic id {known}, not {asked}");
            return Err(Error::new(Kind::Conflict, message).in_file(&dir).into());
        }
        None if asked == Uuid::ZERO => {
            return invalid("the log has no topic id, and none is given");
        }
        None => asked,
    };
    let segment_id = match Uuid(options.segment_id) {
        Uuid::ZERO => Uuid::random(),
        given => given,
    };
    Ok(UploadAs {
        id: RemoteSegmentId {
            partition: RemotePartition { topic_id, topic, partition },
            segment_id,
        },
        broker_id: options.broker_id,
        now_ms: options.now_ms,
        rebuilds_snapshot: options.flags & REBUILD_SNAPSHOT != 0,
    })
}

/// The status that says best why an upload cannot be.
fn refusal(error: PrepareError) -> Failure {
    let kind = match error {
        PrepareError::Io(error) | PrepareError::NotSealed(error) => return error.into(),
        PrepareError::NoSnapshot(_) => Kind::NotFound,
        PrepareError::Damaged { .. } => Kind::Corrupt,
        PrepareError::NotStable { .. } | PrepareError::OutsideLineage => Kind::Conflict,
        // A reason that came later than this header.
        _ => Kind::Conflict,
    };
    Error::new(kind, error.to_string()).into()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_tier_manifest(
    log: *const Handle<LogObject>,
    base_offset: i64,
    next_offset: i64,
    options: *const UploadOptions,
    upload: *mut *mut Handle<UploadObject>,
    err: *mut SiltError,
) -> Status {
    let body = |it: &LogObject| {
        // SAFETY: a struct of the header.
        let options = unsafe { read_struct(options)? };
        check_place(upload, "the place for the upload is NULL or not aligned")?;
        let upload_as = upload_as(it, &options)?;
        let parts =
            prepare_upload(&it.log, base_offset, next_offset, &upload_as).map_err(refusal)?;
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(upload, Handle::give(UploadObject { parts })) }
    };
    // SAFETY: an object of the caller's, and a struct of the header or NULL.
    unsafe { on_log(log, err, body) }
}

/// `SILT_PART_`.
fn number_of(part: SegmentPart) -> u32 {
    match part {
        SegmentPart::Log => 0,
        SegmentPart::OffsetIndex => 1,
        SegmentPart::TimeIndex => 2,
        SegmentPart::TransactionIndex => 3,
        SegmentPart::ProducerSnapshot => 4,
        SegmentPart::LeaderEpochs => 5,
    }
}

fn part_of(part: SegmentPart, bytes: ObjectBytes<'_>) -> Outcome<Part> {
    let part = number_of(part);
    Ok(match bytes {
        ObjectBytes::Memory(bytes) => Part {
            part,
            fd: -1,
            position: 0,
            size_bytes: u64_of(bytes.len()),
            bytes: bytes.as_ptr(),
        },
        ObjectBytes::File { file, position, size_bytes } => {
            let Some(fd) = file.descriptor() else { return invalid("the file has no descriptor") };
            Part { part, fd: fd.as_raw_fd(), position, size_bytes, bytes: null() }
        }
    })
}

object_function! {
    fn silt_upload_parts(
        upload: UploadObject,
        out: *mut Part,
        capacity: u32,
        count: *mut u32
    ) |it| {
        let known =
            SegmentPart::ALL.into_iter().filter_map(|part| Some((part, it.parts.bytes(part)?)));
        let parts = known.map(|(part, bytes)| part_of(part, bytes)).collect::<Outcome<Vec<_>>>()?;
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, parts.into_iter()) }
    }
}

object_function! {
    fn silt_upload_segment(upload: UploadObject, out: *mut RemoteRecord) |it| {
        // SAFETY: a struct of the header, and its arrays.
        unsafe { tell_segment(&it.parts.segment, out) }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_upload_is_intact(upload: *const Handle<UploadObject>) -> i32 {
    let mut is_intact = 0;
    let body = |it: &UploadObject| {
        is_intact = i32::from(it.parts.files.is_intact());
        Ok(())
    };
    // SAFETY: an object of the caller's; nobody is told.
    unsafe { on(upload, std::ptr::null_mut(), body) };
    is_intact
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_upload_close(upload: *mut Handle<UploadObject>) {
    // SAFETY: an object of the caller's, which it gives back.
    unsafe { close(upload) };
}
