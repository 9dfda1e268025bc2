//! How do expired segments go? The order that loses nothing, with the host's own calls.

use super::expiry::ExpiryPlan;
use super::remote_segment::{RemoteSegment, RemoteSegmentState, RemoteSegmentUpdate};
use super::size_budget::SizeBudget;
use crate::error::{Kind, Result};

/// What waits to be deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteLag {
    /// Bytes of `.log` parts.
    pub size_bytes: u64,
    /// Segments.
    pub segments: u64,
}

/// What the removal of segments needs from whoever runs it.
pub trait ExpiryHost {
    /// Raises the log start, durably enough that no reader is promised the records before it.
    ///
    /// # Errors
    /// Nothing is deleted then.
    fn raise_log_start(&mut self, offset: i64) -> Result<()>;

    /// Publishes a change of a segment's state, and waits until it can be seen.
    ///
    /// # Errors
    /// The run ends.
    fn publish(&mut self, update: RemoteSegmentUpdate) -> Result<()>;

    /// Deletes all objects of a segment.
    ///
    /// # Errors
    /// `Io` for what may succeed when it is tried again; the run ends in any case.
    fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()>;

    /// Forgets the side files of a segment that are cached.
    fn drop_indexes(&mut self, segment: &RemoteSegment);

    /// Whether the task was cancelled: asked before each segment.
    fn is_cancelled(&self) -> bool;

    /// Is told what still waits, before each segment and at the end.
    fn waits(&mut self, lag: DeleteLag);
}

/// What a run did.
#[derive(Debug, Default)]
pub struct ExpiryRun {
    /// How often objects were asked to be deleted.
    pub requests: u64,
    /// How often that failed in a way that trying again does not help.
    pub failures: u64,
    /// Segments that are gone.
    pub deleted: u64,
    /// Whether it was cancelled before its end.
    pub was_cancelled: bool,
    /// The sizes as the plan found them, for the metrics and the next plan; as if nothing were
    /// known once the run is cancelled.
    pub budget: SizeBudget,
}

/// Who writes the updates, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The broker's id.
    pub broker_id: i32,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
}

impl Writer {
    fn update(self, segment: &RemoteSegment, state: RemoteSegmentState) -> RemoteSegmentUpdate {
        RemoteSegmentUpdate {
            id: segment.id.clone(),
            event_timestamp_ms: self.now_ms,
            custom_metadata: segment.custom_metadata.clone(),
            state,
            broker_id: self.broker_id,
        }
    }
}

/// Does what a plan says: raises the log start, and then deletes one segment after the other.
///
/// `run` tells what was done also when it fails. A segment whose removal began and did not end is
/// listed as such and comes again with the next plan.
///
/// # Errors
/// The first one of the host.
pub fn run_expiry(
    plan: &ExpiryPlan<'_>,
    writer: Writer,
    host: &mut dyn ExpiryHost,
    run: &mut ExpiryRun,
) -> Result<()> {
    // spec: tiered 6
    run.budget = plan.budget;
    if let Some(offset) = plan.new_log_start {
        host.raise_log_start(offset)?;
    }
    let planned = plan.deletes.iter().map(|(segment, _)| *segment);
    let segments: Vec<&RemoteSegment> = planned.chain(plan.unreferenced.iter().copied()).collect();
    let mut lag = lag_of(&segments);
    for segment in segments {
        if host.is_cancelled() {
            run.was_cancelled = true;
            run.budget = SizeBudget::default();
            return Ok(());
        }
        host.waits(lag);
        host.publish(writer.update(segment, RemoteSegmentState::DeleteStarted))?;
        delete_objects(segment, host, run)?;
        host.drop_indexes(segment);
        host.publish(writer.update(segment, RemoteSegmentState::DeleteFinished))?;
        run.deleted = run.deleted.saturating_add(1);
        lag.size_bytes = lag.size_bytes.saturating_sub(segment.log_size_bytes());
        lag.segments = lag.segments.saturating_sub(1);
    }
    host.waits(lag);
    Ok(())
}

/// Deletes all of a partition: it goes, or its remote storage was switched off for good. Every
/// segment is said to go before the first one does.
///
/// # Errors
/// The first one of the host; what is left is said to go.
pub fn delete_partition(
    segments: &[&RemoteSegment],
    writer: Writer,
    host: &mut dyn ExpiryHost,
    run: &mut ExpiryRun,
) -> Result<()> {
    // spec: tiered 6, "Partition/topic deletion"
    for segment in segments {
        host.publish(writer.update(segment, RemoteSegmentState::DeleteStarted))?;
    }
    for segment in segments {
        delete_objects(segment, host, run)?;
    }
    for segment in segments {
        host.drop_indexes(segment);
    }
    for segment in segments {
        host.publish(writer.update(segment, RemoteSegmentState::DeleteFinished))?;
        run.deleted = run.deleted.saturating_add(1);
    }
    Ok(())
}

fn delete_objects(
    segment: &RemoteSegment,
    host: &mut dyn ExpiryHost,
    run: &mut ExpiryRun,
) -> Result<()> {
    run.requests = run.requests.saturating_add(1);
    host.delete_objects(segment).inspect_err(|error| {
        if error.kind() != Kind::Io {
            run.failures = run.failures.saturating_add(1);
        }
    })
}

fn lag_of(segments: &[&RemoteSegment]) -> DeleteLag {
    DeleteLag {
        size_bytes: segments.iter().map(|segment| segment.log_size_bytes()).sum(),
        segments: u64::try_from(segments.len()).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::super::expiry::{ExpiryInput, plan_expiry};
    use super::super::lineage::tests::entries;
    use super::super::metadata_cache::tests::{finished, segment};
    use super::super::metadata_cache::{Applied, MetadataCache};
    use super::super::size_budget::SizeRetention;
    use super::*;
    use crate::error::Error;
    use crate::state::LeaderEpochs;
    use RemoteSegmentState::{DeleteFinished, DeleteStarted};

    /// A leader of one partition.
    struct Leader {
        cache: MetadataCache,
        log_start_offset: i64,
        retention_ms: i64,
        host: Host,
    }

    #[derive(Default)]
    struct Host {
        raised: Vec<i64>,
        deleted: Vec<i64>,
        published: Vec<RemoteSegmentUpdate>,
        dropped: Vec<i64>,
        lags: Vec<(u64, u64)>,
        cancel_after: Option<usize>,
        fail: Option<Kind>,
    }

    impl ExpiryHost for Host {
        fn raise_log_start(&mut self, offset: i64) -> Result<()> {
            assert!(self.deleted.is_empty() && self.published.is_empty());
            self.raised.push(offset);
            Ok(())
        }

        fn publish(&mut self, update: RemoteSegmentUpdate) -> Result<()> {
            self.published.push(update);
            Ok(())
        }

        fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()> {
            if let Some(kind) = self.fail {
                return Err(Error::new(kind, "no"));
            }
            self.deleted.push(segment.start_offset);
            Ok(())
        }

        fn drop_indexes(&mut self, segment: &RemoteSegment) {
            self.dropped.push(segment.start_offset);
        }

        fn is_cancelled(&self) -> bool {
            self.cancel_after.is_some_and(|count| self.deleted.len() >= count)
        }

        fn waits(&mut self, lag: DeleteLag) {
            self.lags.push((lag.size_bytes, lag.segments));
        }
    }

    const WRITER: Writer = Writer { broker_id: 3, now_ms: 9 };

    impl Leader {
        /// Two segments of 100 records.
        fn new(retention_ms: i64) -> Self {
            let segments = vec![segment(1, 0, 99, "0:0"), segment(2, 100, 199, "0:100")];
            let host = Host::default();
            Leader { cache: finished(segments), log_start_offset: 0, retention_ms, host }
        }

        /// One run of the task, with what became of it.
        fn run(&mut self) -> (ExpiryRun, Option<Kind>) {
            let epochs = LeaderEpochs::from_entries(&entries("0:0")).unwrap();
            let segments = self.cache.list_all();
            let plan = plan_expiry(&ExpiryInput {
                segments: &segments,
                epochs: &epochs,
                log_start_offset: self.log_start_offset,
                log_end_offset: 300,
                sizes: SizeRetention {
                    retention_bytes: -1,
                    local_retention_bytes: -1,
                    only_local_bytes: 0,
                    local_bytes: 0,
                },
                retention_ms: self.retention_ms,
                now_ms: 1000,
                is_being_copied: &|_| false,
                all_valid: false,
            });
            let (mut run, host) = (ExpiryRun::default(), &mut self.host);
            (host.published, host.deleted) = (Vec::new(), Vec::new());
            let outcome = run_expiry(&plan, WRITER, host, &mut run);
            self.log_start_offset = host.raised.last().copied().unwrap_or(0);
            for update in &host.published {
                assert_eq!(self.cache.update(update).unwrap(), Applied::Done);
            }
            (run, outcome.err().map(|error| error.kind()))
        }
    }

    #[test]
    fn a_run_that_is_cancelled_is_finished_by_the_next() {
        // spec: tiered-behaviours EX1
        let mut leader = Leader::new(0);
        leader.host.cancel_after = Some(1);
        let (run, failed) = leader.run();
        assert_eq!((failed, run.was_cancelled, run.deleted), (None, true, 1));
        assert_eq!((leader.log_start_offset, &leader.host.deleted), (200, &vec![0]));
        leader.host.cancel_after = None;
        let (run, failed) = leader.run();
        assert_eq!((failed, run.was_cancelled, run.deleted), (None, false, 1));
        assert_eq!((leader.log_start_offset, &leader.host.deleted), (200, &vec![100]));
        assert!(leader.cache.list_all().is_empty());
    }

    #[test]
    fn a_removal_that_fails_comes_again() {
        // spec: tiered-behaviours EX2, EX3. Only the first segment is old enough.
        for (kind, failures) in [(Kind::InvalidArgument, 1), (Kind::Io, 0)] {
            let mut leader = Leader::new(850);
            leader.host.fail = Some(kind);
            let (run, failed) = leader.run();
            assert_eq!((failed, run.requests, run.failures), (Some(kind), 1, failures));
            assert_eq!(leader.log_start_offset, 100);
            let states: Vec<_> = leader.cache.list_all().iter().map(|it| it.state).collect();
            assert_eq!(states, [DeleteStarted, RemoteSegmentState::CopyFinished]);
            let (run, failed) = leader.run();
            assert_eq!((failed, run.requests, run.failures), (Some(kind), 1, failures));
            leader.host.fail = None;
            let (run, failed) = leader.run();
            assert_eq!((failed, run.deleted, &leader.host.deleted), (None, 1, &vec![0]));
            assert_eq!(leader.log_start_offset, 100);
        }
    }

    #[test]
    fn what_waits_is_told_before_each_segment() {
        // spec: tiered-behaviours EX18
        let mut leader = Leader::new(0);
        leader.run();
        assert_eq!(leader.host.lags, [(2048, 2), (1024, 1), (0, 0)]);
    }

    #[test]
    fn each_state_is_published_around_the_removal() {
        let mut leader = Leader::new(0);
        leader.run();
        let published: Vec<_> =
            leader.host.published.iter().map(|it| (it.state, it.broker_id)).collect();
        assert_eq!(
            published,
            [DeleteStarted, DeleteFinished, DeleteStarted, DeleteFinished].map(|state| (state, 3))
        );
        assert_eq!(leader.host.dropped, [0, 100]);
    }

    #[test]
    fn a_partition_that_goes_leaves_nothing_behind() {
        for _partition in 0..2 {
            let mut leader = Leader::new(-1);
            let mut run = ExpiryRun::default();
            let all = leader.cache.list_all();
            delete_partition(&all, WRITER, &mut leader.host, &mut run).unwrap();
            assert_eq!((run.requests, run.deleted, run.failures), (2, 2, 0));
            let states: Vec<_> = leader.host.published.iter().map(|it| it.state).collect();
            assert_eq!(states, [DeleteStarted, DeleteStarted, DeleteFinished, DeleteFinished]);
            for update in &leader.host.published {
                assert_eq!(leader.cache.update(update).unwrap(), Applied::Done);
            }
            assert!(leader.cache.list_all().is_empty());
        }
    }

    #[test]
    fn a_task_that_was_cancelled_deletes_nothing() {
        let mut leader = Leader::new(0);
        leader.host.cancel_after = Some(0);
        let (run, failed) = leader.run();
        assert_eq!((failed, run.requests, run.was_cancelled), (None, 0, true));
        assert!(leader.host.published.is_empty() && leader.host.deleted.is_empty());
        assert!(leader.host.lags.is_empty());
    }
}
