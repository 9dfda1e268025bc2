//! What is a replica told that is to be rebuilt from remote storage, and what came of it?
//!
//! The bulk call is [`build_aux_bulk`](super::build_aux_bulk); this is what it is told about each
//! partition, how the two objects are read and checked, and how it answers.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::layout::{ObjectLayout, SegmentPart};
use super::remote_segment::{RemoteSegment, RemoteSegmentState};
use super::target::ObjectTarget;
use crate::error::{Error, Kind};
use crate::log::Log;
use crate::log::bootstrap::{AuxFault, AuxObject, AuxState, AuxTarget};
use crate::state::LeaderEpochs;

/// The log that is to be rebuilt.
#[derive(Clone, Copy, Debug)]
pub enum AuxPlace<'a> {
    /// One that is open. Its readers go on with what they hold.
    Log(&'a Log),
    /// The directory of one that nobody has open; it is made when it is missing. The caller holds
    /// the lock of the log directory around it, whose checkpoints get the log's new lines.
    Dir(&'a Path),
}

/// One partition to be rebuilt.
#[derive(Clone, Copy, Debug)]
pub struct AuxJob<'a> {
    /// The log.
    pub place: AuxPlace<'a>,
    /// The remote segment behind which it will go on: the one that holds the offset before the one
    /// that the replica was to begin at.
    pub segment: &'a RemoteSegment,
    /// Where the leader's log starts.
    pub log_start_offset: i64,
}

/// What a rebuilt log has now.
#[derive(Clone, Debug)]
pub struct AuxInstalled {
    /// The offset to be fetched next: the end of the log, and its first local offset.
    pub next_offset: i64,
    /// Where the log starts.
    pub log_start_offset: i64,
    /// Its leader epochs.
    pub epochs: Arc<LeaderEpochs>,
    /// How many producers its snapshot has.
    pub producer_count: usize,
    /// Where the oldest transaction begins that was open at `next_offset`; its marker lies behind.
    pub first_open_offset: Option<i64>,
    /// Bytes of both objects.
    pub bytes_read: u64,
}

impl AuxInstalled {
    pub(super) fn of(state: &AuxState, bytes_read: u64) -> Self {
        AuxInstalled {
            next_offset: state.target().next_offset,
            log_start_offset: state.target().log_start_offset,
            epochs: Arc::clone(state.epochs()),
            producer_count: state.producer_count(),
            first_open_offset: state.first_open_offset(),
            bytes_read,
        }
    }
}

/// Why a log was not rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuxErrorKind {
    /// The log has no remote storage now. To be tried again.
    NotReady,
    /// The segment is none to begin behind: not uploaded to its end, or before the log's start.
    SegmentNotFound,
    /// An object is not what it has to be.
    Corrupt {
        /// Which one.
        object: AuxObject,
    },
    /// An object could not be read.
    Remote {
        /// Whether that may be otherwise the next time.
        retryable: bool,
    },
    /// What the local disk says, or that somebody else is at the log.
    Io,
}

/// A log that was not rebuilt. It is what it was; but after an `Io` error a log whose mark is in
/// its directory is settled, to what it was or to what it was to be, when it is opened again.
pub struct AuxError {
    kind: AuxErrorKind,
    error: Box<Error>,
}

/// What came of one partition.
pub type AuxResult<T> = Result<T, AuxError>;

impl AuxError {
    pub(super) fn new(kind: AuxErrorKind, error: Error) -> Self {
        AuxError { kind, error: Box::new(error) }
    }

    /// Of the local disk.
    pub(super) fn local(error: Error) -> Self {
        Self::new(AuxErrorKind::Io, error)
    }

    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> AuxErrorKind {
        self.kind
    }

    /// What happened.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl fmt::Display for AuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Debug for AuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.error)
    }
}

impl std::error::Error for AuxError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

/// Where the objects of a rebuild lie.
#[derive(Clone, Copy, Debug)]
pub struct AuxRemote<'a> {
    /// The object store.
    pub target: &'a dyn ObjectTarget,
    /// How objects are called there.
    pub layout: &'a ObjectLayout,
}

/// The bytes of both objects of a segment.
#[derive(Clone, Debug)]
pub(super) struct AuxObjects {
    pub(super) epochs: Arc<Vec<u8>>,
    pub(super) snapshot: Arc<Vec<u8>>,
}

impl AuxObjects {
    pub(super) fn bytes(&self) -> u64 {
        let bytes = self.epochs.len().saturating_add(self.snapshot.len());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Reads both.
    pub(super) fn read(
        remote: &AuxRemote<'_>,
        segment: &RemoteSegment,
        object_bytes_max: u64,
    ) -> AuxResult<Self> {
        let read = |part| {
            let name = remote.layout.name(&segment.id, segment.start_offset, part);
            let outcome = remote.target.get(&name, None, object_bytes_max);
            outcome.map(Arc::new).map_err(|error| {
                let retryable = is_retryable(error.kind());
                AuxError::new(AuxErrorKind::Remote { retryable }, error.context(name))
            })
        };
        Ok(AuxObjects {
            epochs: read(SegmentPart::LeaderEpochs)?,
            snapshot: read(SegmentPart::ProducerSnapshot)?,
        })
    }
}

/// An object that is not there may be on its way out, or an upload on its way in: the next time
/// another segment is found.
fn is_retryable(kind: Kind) -> bool {
    matches!(kind, Kind::Io | Kind::NotFound | Kind::Conflict | Kind::Corrupt | Kind::OutOfRange)
}

impl AuxJob<'_> {
    /// What the log would have: both objects are read and checked as for a rebuild, and nothing is
    /// written.
    ///
    /// # Errors
    /// Those of a rebuild before it writes.
    pub fn plan(&self, remote: &AuxRemote<'_>, object_bytes_max: u64) -> AuxResult<AuxInstalled> {
        // What cannot be is said before anything is fetched.
        self.target()?;
        let objects = AuxObjects::read(remote, self.segment, object_bytes_max)?;
        Ok(AuxInstalled::of(&self.check(&objects)?, objects.bytes()))
    }

    /// Where the log is to begin, if it can behind this segment.
    pub(super) fn target(&self) -> AuxResult<AuxTarget> {
        // spec: follower-fetch 5.3, K4 and K5
        let RemoteSegment { start_offset, end_offset, state, id, .. } = self.segment;
        let refuse = |why: String| {
            let error = Error::new(Kind::NotFound, why).context(id.partition.topic.clone());
            Err(AuxError::new(AuxErrorKind::SegmentNotFound, error))
        };
        if let Err(error) = self.segment.check() {
            return refuse(error.message().to_owned());
        }
        if *state != RemoteSegmentState::CopyFinished {
            return refuse(format!("the segment {start_offset}-{end_offset} is {}", state.name()));
        }
        let start = self.log_start_offset;
        if !(0..=*end_offset).contains(&start) {
            return refuse(format!(
                "the segment {start_offset}-{end_offset} lies before the start of the log, {start}"
            ));
        }
        let Some(next_offset) = end_offset.checked_add(1) else {
            return refuse(format!("no offset follows {end_offset}"));
        };
        let last_epoch = self.segment.leader_epochs.last().map_or(-1, |entry| entry.epoch);
        Ok(AuxTarget {
            log_start_offset: start,
            next_offset,
            last_epoch,
            topic_id: Some(id.partition.topic_id),
        })
    }

    /// Checks what was read.
    pub(super) fn check(&self, objects: &AuxObjects) -> AuxResult<AuxState> {
        let snapshot = Arc::clone(&objects.snapshot);
        AuxState::check(self.target()?, &objects.epochs, snapshot).map_err(|fault| {
            let AuxFault { object, error } = fault;
            let part = match object {
                AuxObject::LeaderEpochs => SegmentPart::LeaderEpochs,
                AuxObject::ProducerSnapshot => SegmentPart::ProducerSnapshot,
            };
            let segment = self.segment.start_offset;
            let error = error.context(format!("remote segment {segment}{}", part.suffix()));
            AuxError::new(AuxErrorKind::Corrupt { object }, error)
        })
    }
}
