//! How do segments come to remote storage? One after the other, each with its metadata before and
//! after, so that whatever fails leaves nothing that anybody would read.

use std::ops::ControlFlow;

use super::layout::{ObjectLayout, SegmentPart};
use super::live::LogUploads;
use super::remote_segment::{
    RemoteSegment, RemoteSegmentId, RemoteSegmentState, RemoteSegmentUpdate,
};
use super::target::ObjectTarget;
use super::upload_parts::{PrepareError, UploadAs, UploadParts, prepare_upload};
use crate::error::{Error, Kind, Result};
use crate::log::Log;

/// `remote.log.metadata.custom.metadata.max.bytes`, as it is by default.
pub const CUSTOM_METADATA_BYTES_MAX: usize = 128;

/// What uploading needs from whoever runs it.
pub trait UploadHost {
    /// A new random id for an upload.
    fn new_id(&mut self) -> RemoteSegmentId;

    /// Publishes that a copy has started, and waits until it can be seen.
    ///
    /// # Errors
    /// The run ends, and nothing was uploaded.
    fn publish(&mut self, segment: &RemoteSegment) -> Result<()>;

    /// Publishes a change of a segment's state, and waits until it can be seen.
    ///
    /// # Errors
    /// The run ends.
    fn publish_update(&mut self, update: RemoteSegmentUpdate) -> Result<()>;

    /// Stores the parts; gives what the store wants to be told again.
    ///
    /// # Errors
    /// `Io` for what may succeed when it is tried again: then nothing is cleaned up. After others
    /// the objects are deleted.
    fn copy(&mut self, parts: &UploadParts) -> Result<Option<Vec<u8>>>;

    /// Deletes all objects of a segment that was not copied.
    ///
    /// # Errors
    /// The segment stays as one whose removal has started, for expiration to try again.
    fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()>;

    /// Asks for leave to upload so many bytes, and waits for it where uploads are throttled;
    /// `false` ends the run. The bytes count from now on, whatever comes of the copy.
    fn admit(&mut self, size_bytes: u64) -> bool;

    /// Whether the task was cancelled, or the metadata of the partition is not there yet: asked
    /// before anything is done, and before each segment.
    fn is_cancelled(&self) -> bool;
}

/// Who uploads, and by which limits.
#[derive(Clone, Copy, Debug)]
pub struct Uploader {
    /// The broker.
    pub broker_id: i32,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// The longest custom metadata.
    pub custom_metadata_bytes_max: usize,
    /// As [`UploadAs::rebuilds_snapshot`].
    pub rebuilds_snapshot: bool,
}

impl Default for Uploader {
    /// Kafka's limit; segments without a snapshot get one.
    fn default() -> Self {
        let custom_metadata_bytes_max = CUSTOM_METADATA_BYTES_MAX;
        Uploader { broker_id: -1, now_ms: 0, custom_metadata_bytes_max, rebuilds_snapshot: true }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadRun {
    /// The last offset that is copied now; -1 for none. Of a log that was cut meanwhile, or whose
    /// remote storage was switched off, what is left of that.
    pub copied_offset: i64,
    /// How many segments it began to copy.
    pub requests: u64,
    /// The bytes of the logs that were copied.
    pub copied_bytes: u64,
    /// How often a copy failed in a way that trying again does not help.
    pub failures: u64,
    /// Whether the partition is not to be copied any more, until somebody has looked: the store
    /// gives metadata that is too long.
    pub must_cancel: bool,
}

/// Uploads what is to be uploaded of a log: `uploads` says what that is. The highest remote offset
/// is set to what was copied before, too, so that a run that has nothing to do leaves it right.
/// Where the topic's copies are switched off it does nothing.
///
/// `run` tells what was done also when it fails.
///
/// # Errors
/// The first one of the host, or what keeps a segment from being prepared. A segment that is not
/// what it was ends the run without an error: the next one looks again.
pub fn run_uploads(
    log: &Log,
    uploads: &LogUploads,
    uploader: &Uploader,
    host: &mut dyn UploadHost,
    run: &mut UploadRun,
) -> Result<()> {
    run.copied_offset = uploads.view().copied_offset;
    let outcome = upload_all(log, uploads, uploader, host, run);
    // However it ended: the next run begins where this one says.
    if !log.is_of_remote_generation(uploads.remote_generation(), run.copied_offset) {
        run.copied_offset = log.highest_remote_offset();
    }
    outcome
}

fn upload_all(
    log: &Log,
    uploads: &LogUploads,
    uploader: &Uploader,
    host: &mut dyn UploadHost,
    run: &mut UploadRun,
) -> Result<()> {
    // spec: tiered 2.1, 3
    let view = uploads.view();
    if host.is_cancelled() || !log.config().remote_copy_enabled() {
        return Ok(());
    }
    let generation = uploads.remote_generation();
    if !log.update_highest_remote_offset_of(generation, view.copied_offset) {
        return Ok(());
    }
    let answer = view.candidates(uploader.now_ms);
    for slot in answer.slots() {
        let next = view.bases.get(slot.saturating_add(1));
        let Some((base_offset, next_offset)) = view.bases.get(slot).zip(next) else { break };
        // What came in the place of a segment is looked at by the next run: there may be more that
        // is not copied before it.
        let last_offset = next_offset.saturating_sub(1);
        if host.is_cancelled() || !log.is_of_remote_generation(generation, last_offset) {
            break;
        }
        // The size is charged before the copy, whether it succeeds or not.
        if !host.admit(view.size_of(slot..slot.saturating_add(1))) {
            break;
        }
        let upload_as = UploadAs {
            id: host.new_id(),
            broker_id: uploader.broker_id,
            now_ms: uploader.now_ms,
            rebuilds_snapshot: uploader.rebuilds_snapshot,
        };
        let parts = match prepare_upload(log, *base_offset, *next_offset, &upload_as) {
            Ok(parts) => parts,
            Err(PrepareError::NotSealed(_) | PrepareError::NotStable { .. }) => break,
            Err(PrepareError::Io(error)) => return Err(error),
            Err(other) => {
                let error = Error::new(Kind::Corrupt, other.to_string());
                return Err(error.in_file(&log.dir()).at_offset(*base_offset));
            }
        };
        run.requests = run.requests.saturating_add(1);
        if upload_one(&parts, uploader, host, run)?.is_break() {
            break;
        }
        run.copied_bytes = run.copied_bytes.saturating_add(parts.files.log_size_bytes);
        run.copied_offset = last_offset;
        if !log.update_highest_remote_offset_of(generation, last_offset) {
            break;
        }
    }
    Ok(())
}

/// Uploads one segment; breaks where the run ends with it, and it was not uploaded.
fn upload_one(
    parts: &UploadParts,
    uploader: &Uploader,
    host: &mut dyn UploadHost,
    run: &mut UploadRun,
) -> Result<ControlFlow<()>> {
    let segment = &parts.segment;
    host.publish(segment)?;
    let custom_metadata = match host.copy(parts) {
        Ok(custom_metadata) => custom_metadata,
        // It is not the store that failed: the segment was cut while it was copied.
        Err(_) if !parts.files.is_intact() => {
            undo(segment, uploader, host)?;
            return Ok(ControlFlow::Break(()));
        }
        // Tried again under another id; expiration removes what this one left.
        Err(error) if error.kind() == Kind::Io => return Err(error),
        Err(error) => {
            run.failures = run.failures.saturating_add(1);
            // Why the copy failed is what has to be mended first.
            return Err(match undo(segment, uploader, host) {
                Ok(()) => error,
                Err(left) => error.context(format!("what it left was not removed ({left})")),
            });
        }
    };
    if custom_metadata.as_ref().is_some_and(|it| it.len() > uploader.custom_metadata_bytes_max) {
        run.failures = run.failures.saturating_add(1);
        run.must_cancel = true;
        // The store may need its own metadata to find the objects.
        let update = update(segment, uploader, custom_metadata, RemoteSegmentState::CopyFinished);
        undo(&segment.updated(&update), uploader, host)?;
        return Ok(ControlFlow::Break(()));
    }
    let state = RemoteSegmentState::CopyFinished;
    host.publish_update(update(segment, uploader, custom_metadata, state))?;
    Ok(ControlFlow::Continue(()))
}

/// Removes what an upload left.
fn undo(segment: &RemoteSegment, uploader: &Uploader, host: &mut dyn UploadHost) -> Result<()> {
    let custom = || segment.custom_metadata.clone();
    let started = RemoteSegmentState::DeleteStarted;
    host.publish_update(update(segment, uploader, custom(), started))?;
    host.delete_objects(segment)?;
    let finished = RemoteSegmentState::DeleteFinished;
    host.publish_update(update(segment, uploader, custom(), finished))
}

fn update(
    segment: &RemoteSegment,
    uploader: &Uploader,
    custom_metadata: Option<Vec<u8>>,
    state: RemoteSegmentState,
) -> RemoteSegmentUpdate {
    RemoteSegmentUpdate {
        id: segment.id.clone(),
        event_timestamp_ms: uploader.now_ms,
        custom_metadata,
        state,
        broker_id: uploader.broker_id,
    }
}

/// Stores the parts of a segment as objects of a target.
///
/// # Errors
/// What the target says; parts before the one that failed are there. `Conflict` when the log was
/// cut meanwhile.
pub fn put_parts(
    target: &dyn ObjectTarget,
    layout: &ObjectLayout,
    parts: &UploadParts,
) -> Result<()> {
    let segment = &parts.segment;
    parts.each(|part, bytes| {
        let name = layout.name(&segment.id, segment.start_offset, part);
        target.put(&name, &[bytes])?;
        if parts.files.is_intact() {
            return Ok(ControlFlow::Continue(()));
        }
        Err(Error::new(Kind::Conflict, "the segment was cut while it was uploaded"))
    })
}

/// Deletes all objects of a segment.
///
/// # Errors
/// The first one of the target; the others were asked to go.
pub fn delete_parts(
    target: &dyn ObjectTarget,
    layout: &ObjectLayout,
    segment: &RemoteSegment,
) -> Result<()> {
    let mut outcome = Ok(());
    for part in SegmentPart::ALL {
        let name = layout.name(&segment.id, segment.start_offset, part);
        outcome = outcome.and(target.delete(&name));
    }
    outcome
}

#[cfg(test)]
mod tests;
