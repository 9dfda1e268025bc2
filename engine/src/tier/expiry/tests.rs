use super::super::lineage::tests::entries;
use super::super::metadata_cache::tests::segment;
use super::*;
use RemoteSegmentState::{CopyFinished, CopyStarted, DeleteFinished, DeleteStarted};

/// A log and what is known of its remote segments; each of 1024 bytes.
struct Given {
    segments: Vec<RemoteSegment>,
    epochs: LeaderEpochs,
    log_start_offset: i64,
    log_end_offset: i64,
    only_local_bytes: u64,
    retention_bytes: i64,
    retention_ms: i64,
    now_ms: i64,
    copying: Option<u64>,
}

impl Given {
    fn new(segments: Vec<RemoteSegment>, epochs: &str) -> Self {
        let log_end_offset = segments.iter().map(|it| it.end_offset + 1).max().unwrap_or(0) + 10;
        Given {
            segments,
            epochs: LeaderEpochs::from_entries(&entries(epochs)).unwrap(),
            log_start_offset: 0,
            log_end_offset,
            only_local_bytes: 0,
            retention_bytes: -1,
            retention_ms: -1,
            now_ms: 1_000_000,
            copying: None,
        }
    }

    fn set(&mut self, id: u64, state: RemoteSegmentState) {
        let found = self.segments.iter_mut().find(|it| it.id.segment_id == Uuid::reserved(id));
        found.unwrap().state = state;
    }

    fn plan<T>(&self, see: impl FnOnce(&ExpiryPlan<'_>) -> T) -> T {
        let segments: Vec<_> = self.segments.iter().collect();
        let copying = self.copying.map(Uuid::reserved);
        see(&plan_expiry(&ExpiryInput {
            segments: &segments,
            epochs: &self.epochs,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            sizes: SizeRetention {
                retention_bytes: self.retention_bytes,
                local_retention_bytes: -1,
                only_local_bytes: self.only_local_bytes,
                local_bytes: self.only_local_bytes,
            },
            retention_ms: self.retention_ms,
            now_ms: self.now_ms,
            is_being_copied: &|id| copying == Some(id),
            all_valid: false,
        }))
    }

    /// The new log start and the segments that go, with their reasons.
    fn goes(&self) -> (Option<i64>, Vec<(u64, ExpiryReason)>) {
        self.plan(|plan| {
            assert!(plan.unreferenced.is_empty());
            let deletes = plan.deletes.iter().map(|(segment, reason)| (number(segment), *reason));
            (plan.new_log_start, deletes.collect())
        })
    }
}

fn number(segment: &RemoteSegment) -> u64 {
    u64::from_be_bytes(segment.id.segment_id.0[8..].try_into().unwrap())
}

fn finished(id: u64, start: i64, end: i64, epochs: &str) -> RemoteSegment {
    RemoteSegment { state: CopyFinished, ..segment(id, start, end, epochs) }
}

/// Segments of 100 records from 0 on, the first of number 1.
fn hundreds(count: u64, epochs: &str) -> Vec<RemoteSegment> {
    let all = LeaderEpochs::from_entries(&entries(epochs)).unwrap();
    (0..count)
        .map(|slot| {
            let start = i64::try_from(slot * 100).unwrap();
            RemoteSegment {
                leader_epochs: all.entries_in_range(start, start + 100),
                ..finished(slot + 1, start, start + 99, "0:0")
            }
        })
        .collect()
}

fn all(count: u64, reason: ExpiryReason) -> Vec<(u64, ExpiryReason)> {
    (1..=count).map(|id| (id, reason)).collect()
}

#[test]
fn everything_goes_where_nothing_may_stay() {
    // spec: tiered X1
    let mut given = Given::new(hundreds(2, "0:0"), "0:0");
    given.retention_bytes = 0;
    assert_eq!(given.goes(), (Some(200), all(2, ExpiryReason::Size)));
}

#[test]
fn a_segment_goes_when_its_youngest_record_is_older_than_the_retention() {
    // spec: tiered X2
    let mut given = Given::new(hundreds(2, "0:0"), "0:0");
    given.segments.iter_mut().for_each(|it| it.max_timestamp_ms = 5000);
    (given.retention_ms, given.now_ms) = (0, 5001);
    assert_eq!(given.goes(), (Some(200), all(2, ExpiryReason::Time)));
    given.now_ms = 5000;
    assert_eq!(given.goes(), (None, vec![]));
    assert_eq!(given.plan(|plan| plan.stop), ExpiryStop::Stays(Uuid::reserved(1)));
    // A clock before the retention expires nothing.
    (given.retention_ms, given.now_ms) = (6000, 5001);
    assert_eq!(given.goes(), (None, vec![]));
}

#[test]
fn as_much_goes_as_the_log_is_too_large() {
    // spec: tiered X3
    for deleted in [0, 1, 23, 50_u64] {
        let mut given = Given::new(hundreds(50, "0:0"), "0:0");
        given.only_local_bytes = 512;
        given.retention_bytes = i64::try_from((50 - deleted) * 1024 + 512).unwrap();
        let start = i64::try_from(deleted * 100).ok().filter(|start| *start > 0);
        assert_eq!(given.goes(), (start, all(deleted, ExpiryReason::Size)), "{deleted}");
    }
    // A segment larger than what is too much stays.
    let mut given = Given::new(hundreds(3, "0:0"), "0:0");
    given.retention_bytes = 2 * 1024 + 1;
    assert_eq!(given.goes(), (None, vec![]));
}

#[test]
fn segments_in_all_states_are_looked_at_in_order() {
    // spec: tiered X5
    let mut segments = hundreds(15, "0:0");
    for (slot, state) in
        [CopyStarted, DeleteFinished, DeleteStarted, CopyStarted].iter().enumerate()
    {
        segments[slot].state = *state;
    }
    // The second and third cover what the first and fourth leave.
    segments[1].end_offset = 199;
    segments[2].start_offset = 100;
    segments[2].leader_epochs = entries("0:100");
    segments[2].end_offset = 199;
    segments[3].start_offset = 200;
    segments[3].leader_epochs = entries("0:200");
    segments[3].end_offset = 299;
    let mut given = Given::new(segments, "0:0");
    given.retention_bytes = 10 * 1024;
    let first = vec![(1, ExpiryReason::Size), (3, ExpiryReason::Retry)];
    assert_eq!(given.goes(), (Some(100), first));
    given.segments.retain(|it| ![1, 3].contains(&number(it)));
    given.set(4, CopyFinished);
    given.log_start_offset = 100;
    let second = vec![(4, ExpiryReason::Size), (5, ExpiryReason::Size)];
    assert_eq!(given.goes(), (Some(500), second));
}

#[test]
fn a_copy_under_way_ends_the_scan() {
    // spec: tiered X6
    let mut given = Given::new(hundreds(3, "0:0"), "0:0");
    given.retention_bytes = 0;
    given.set(1, CopyStarted);
    given.copying = Some(1);
    assert_eq!(given.goes(), (None, vec![]));
    assert_eq!(given.plan(|plan| plan.stop), ExpiryStop::Copying(Uuid::reserved(1)));
    given.copying = None;
    given.set(1, CopyFinished);
    assert_eq!(given.goes(), (Some(300), all(3, ExpiryReason::Size)));
}

#[test]
fn segments_that_are_gone_change_nothing() {
    // spec: tiered X9
    let mut given = Given::new(hundreds(2, "0:0"), "0:0");
    given.retention_bytes = 0;
    given.retention_ms = 0;
    (1..=2).for_each(|id| given.set(id, DeleteFinished));
    assert_eq!(given.goes(), (None, vec![]));
    assert_eq!(given.plan(|plan| plan.stop), ExpiryStop::End);
}

#[test]
fn segments_of_many_epochs_go_once() {
    // spec: tiered-behaviours EX5
    let epochs = "0:0 1:20 3:50 4:100";
    let mut given = Given::new(hundreds(50, epochs), epochs);
    given.retention_ms = 1;
    given.segments.iter_mut().for_each(|it| it.max_timestamp_ms = given.now_ms - 2);
    assert_eq!(given.goes(), (Some(5000), all(50, ExpiryReason::Time)));
}

#[test]
fn a_log_that_is_all_in_remote_storage_is_expired_to_its_end() {
    let one = |id: u64, at: i64| finished(id, at, at, &format!("0:{at}"));
    let mut given = Given::new(vec![one(1, 0), one(2, 1), one(3, 2)], "0:0");
    given.retention_bytes = 1;
    given.only_local_bytes = 70;
    assert_eq!(given.goes(), (Some(3), all(3, ExpiryReason::Size)));
    given.epochs.truncate_from_start(3);
    assert_eq!(given.epochs.entries(), entries("0:3"));
}

#[test]
fn segments_before_the_log_start_go_and_the_one_that_holds_it_stays() {
    let mut given = Given::new(vec![finished(1, 0, 1, "0:0"), finished(2, 2, 3, "0:2")], "0:0");
    given.log_start_offset = 3;
    given.epochs.truncate_from_start(3);
    assert_eq!(given.epochs.entries(), entries("0:3"));
    assert_eq!(given.goes(), (None, vec![(1, ExpiryReason::LogStart)]));
    assert_eq!(given.plan(|plan| plan.stop), ExpiryStop::Stays(Uuid::reserved(2)));

    // Leadership moves at offset 5; records are deleted up to 7.
    given.segments.remove(0);
    given.segments.extend([finished(3, 4, 5, "0:4 1:5"), finished(4, 6, 7, "1:6")]);
    (given.log_start_offset, given.log_end_offset) = (7, 10);
    given.epochs = LeaderEpochs::from_entries(&entries("0:3 1:5")).unwrap();
    given.epochs.truncate_from_start(7);
    given.plan(|plan| {
        let deletes: Vec<_> = plan.deletes.iter().map(|(it, why)| (number(it), *why)).collect();
        assert_eq!(deletes, [(3, ExpiryReason::LogStart)]);
        let unreferenced: Vec<_> = plan.unreferenced.iter().map(|it| number(it)).collect();
        assert_eq!(unreferenced, [2]);
        assert_eq!((plan.new_log_start, plan.stop), (None, ExpiryStop::Stays(Uuid::reserved(4))));
    });
}

#[test]
fn a_segment_of_another_lineage_stays_and_does_not_end_the_scan() {
    // spec: tiered 6, "continue only if"
    let mut given = Given::new(hundreds(3, "0:0"), "0:0 2:150");
    given.retention_bytes = 0;
    let foreign = finished(9, 150, 250, "0:150");
    given.segments.insert(0, foreign);
    let (start, deletes) = given.goes();
    // Number 2 is foreign as well: it reaches beyond the end of epoch 0.
    assert_eq!((start, deletes), (Some(100), vec![(1, ExpiryReason::Size)]));
    assert_eq!(given.plan(|plan| plan.stop), ExpiryStop::End);
}

// Kafka deletes the four segments of epoch 0 within a second of leading and raises the log start
// to 285, on every replica.
#[test]
fn nothing_goes_for_being_older_than_epochs_that_were_lost() {
    // spec: tiered-faults T4
    let mut segments: Vec<_> = (0..4)
        .map(|slot| finished(slot + 1, 30 + 64 * i64::try_from(slot).unwrap(), 0, "0:30"))
        .collect();
    for segment in &mut segments {
        segment.end_offset = segment.start_offset + 63;
        segment.leader_epochs[0].start_offset = segment.start_offset;
    }
    segments.push(finished(5, 286, 349, "0:286 2:305"));
    for slot in 0..3 {
        let start = 350 + 72 * i64::from(slot);
        let id = u64::try_from(slot).unwrap() + 6;
        segments.push(finished(id, start, start + 71, &format!("2:{start}")));
    }
    let mut given = Given::new(segments, "2:565");
    (given.log_start_offset, given.log_end_offset) = (30, 605);
    assert_eq!(given.goes(), (None, vec![]));
    let first = EpochEntry { epoch: 2, start_offset: 565 };
    assert_eq!(given.plan(|plan| plan.epochs_incomplete), Some(first));
    // With the epochs as they should be they are all of the lineage.
    given.epochs = LeaderEpochs::from_entries(&entries("0:30 2:305")).unwrap();
    assert_eq!(given.goes(), (None, vec![]));
    assert_eq!(
        given.plan(|plan| (plan.epochs_incomplete, plan.stop)),
        (None, ExpiryStop::Stays(Uuid::reserved(1)))
    );
    // A log that begins where its epochs do has nothing of epoch 0 left.
    given.epochs = LeaderEpochs::from_entries(&entries("2:565")).unwrap();
    given.log_start_offset = 565;
    given.plan(|plan| {
        let unreferenced: Vec<_> = plan.unreferenced.iter().map(|it| number(it)).collect();
        assert_eq!(unreferenced, [1, 2, 3, 4]);
    });
}
