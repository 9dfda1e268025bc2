//! What does one piece of a log say about producers, whatever came before it?
//!
//! Recovery reads pieces in parallel and none knows the state at its start. A
//! [`SegmentSummary`] folds the events of a piece into one effect a producer and the begins and
//! ends of transactions in order, so that applying it costs what the piece has of producers and
//! transactions, not of batches.
//!
//! One thing cannot be known: whether a producer has a transaction open at the start. Until the
//! piece itself tells (by a marker, or by a transactional batch), data outside of transactions
//! counts only if there is none.

use super::event::{CompletedTransaction, EventKind, ProducerEvent, ReplayFault, ReplayProblem};
use super::id_map::{IdMap, Identified};
use super::producer::LastBatch;
use super::replay::ReplayState;
use crate::units::{NO_PRODUCER_EPOCH, NO_TIMESTAMP};

/// The producer events of one piece of a log.
#[derive(Clone, Debug)]
pub struct SegmentSummary {
    /// In the order of their first event, which is the order in which they become known.
    effects: IdMap<Effect>,
    steps: Vec<Step>,
    problems: Problems,
    events: u64,
}

/// The problems met when a [`SegmentSummary`] was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProblems {
    /// The first of them.
    pub first: ReplayProblem,
    /// How many batches had one.
    pub count: u64,
}

/// What a piece does to one producer, but for its transactions.
#[derive(Clone, Debug)]
struct Effect {
    producer_id: i64,
    transaction: Transaction,
    /// Data outside of transactions before the piece tells of one.
    unless_open: Option<PlainRun>,
    /// What the rest of the piece does.
    change: Option<Change>,
}

/// Whether a producer has a transaction open, as far as a piece tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    Untold,
    Open,
    Closed,
}

/// Data batches outside of transactions, of which the last one counts.
#[derive(Clone, Copy, Debug)]
struct PlainRun {
    first: Numbered,
    count: u64,
    epoch: i16,
    batch: LastBatch,
    timestamp: i64,
}

/// The change of an entry by batches that follow each other.
#[derive(Clone, Copy, Debug)]
struct Change {
    epoch: i16,
    batch: NewestBatch,
    timestamp: i64,
    coordinator_epoch: Option<i32>,
}

impl Change {
    /// What there is to change before anything is known of it.
    const NONE: Change = Change {
        epoch: NO_PRODUCER_EPOCH,
        batch: NewestBatch::KeptWithinEpoch,
        timestamp: NO_TIMESTAMP,
        coordinator_epoch: None,
    };
}

/// What becomes of the newest batch that is known.
#[derive(Clone, Copy, Debug)]
enum NewestBatch {
    /// It stays if it was written with the epoch of the change; there were only markers.
    KeptWithinEpoch,
    Replaced(LastBatch),
    Forgotten,
}

/// A batch that begins or ends a transaction.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin { producer_id: i64, first_offset: i64 },
    End { producer_id: i64, marker_offset: i64, abort: bool },
}

/// A problem and which event of the piece has it.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u64,
    problem: ReplayProblem,
}

#[derive(Clone, Copy, Debug, Default)]
struct Problems {
    first: Option<Numbered>,
    count: u64,
}

impl Identified for Effect {
    #[inline]
    fn producer_id(&self) -> i64 {
        self.producer_id
    }
}

impl Default for SegmentSummary {
    fn default() -> Self {
        Self::new()
    }
}

impl SegmentSummary {
    /// A piece without events.
    #[must_use]
    pub fn new() -> Self {
        SegmentSummary {
            effects: IdMap::new(),
            steps: Vec::new(),
            problems: Problems::default(),
            events: 0,
        }
    }

    /// Whether no event was pushed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Takes the next event of the piece.
    #[inline]
    pub fn push(&mut self, event: &ProducerEvent) {
        let number = self.events;
        self.events += 1;
        let batch = match event.last_batch() {
            Ok(batch) => batch,
            Err(fault) => return self.problems.add(Numbered::new(number, event, fault), 1),
        };
        let ProducerEvent { producer_id, base_offset, .. } = *event;
        let slot = self.effects.slot_or_insert_with(producer_id, || Effect::new(producer_id));
        let effect = self.effects.at_mut(slot);
        match event.kind {
            EventKind::Data { transactional: true } => {
                if effect.transaction != Transaction::Open {
                    self.steps.push(Step::Begin { producer_id, first_offset: base_offset });
                }
                effect.transaction = Transaction::Open;
                effect.take_batch(event, batch);
            }
            EventKind::Data { transactional: false } => match effect.transaction {
                Transaction::Closed => effect.take_batch(event, batch),
                Transaction::Untold => effect.take_unless_open(event, batch, number),
                Transaction::Open => {
                    let fault = ReplayFault::NotTransactional;
                    self.problems.add(Numbered::new(number, event, fault), 1);
                }
            },
            EventKind::Marker { abort, coordinator_epoch, timestamp } => {
                if effect.transaction != Transaction::Closed {
                    self.steps.push(Step::End { producer_id, marker_offset: base_offset, abort });
                }
                effect.transaction = Transaction::Closed;
                effect.take_marker(event.producer_epoch, coordinator_epoch, timestamp);
            }
            EventKind::EmptyControl => {}
        }
    }
}

impl Effect {
    fn new(producer_id: i64) -> Self {
        Effect { producer_id, transaction: Transaction::Untold, unless_open: None, change: None }
    }

    #[inline]
    fn take_batch(&mut self, event: &ProducerEvent, batch: LastBatch) {
        let change = self.change.get_or_insert(Change::NONE);
        change.epoch = event.producer_epoch;
        change.batch = NewestBatch::Replaced(batch);
        change.timestamp = event.max_timestamp;
    }

    #[inline]
    fn take_unless_open(&mut self, event: &ProducerEvent, batch: LastBatch, number: u64) {
        let ProducerEvent { producer_epoch, max_timestamp, .. } = *event;
        match &mut self.unless_open {
            Some(run) => {
                run.count += 1;
                run.epoch = producer_epoch;
                run.batch = batch;
                run.timestamp = max_timestamp;
            }
            None => {
                self.unless_open = Some(PlainRun {
                    first: Numbered::new(number, event, ReplayFault::NotTransactional),
                    count: 1,
                    epoch: producer_epoch,
                    batch,
                    timestamp: max_timestamp,
                });
            }
        }
    }

    fn take_marker(&mut self, epoch: i16, coordinator_epoch: i32, timestamp: i64) {
        let batch = match self.change {
            None => NewestBatch::KeptWithinEpoch,
            Some(change) if change.epoch == epoch => change.batch,
            Some(_) => NewestBatch::Forgotten,
        };
        let coordinator_epoch = Some(coordinator_epoch);
        self.change = Some(Change { epoch, batch, timestamp, coordinator_epoch });
    }
}

impl Numbered {
    #[cold]
    fn new(number: u64, event: &ProducerEvent, fault: ReplayFault) -> Self {
        Numbered { number, problem: event.problem(fault) }
    }
}

impl Problems {
    #[cold]
    fn add(&mut self, problem: Numbered, count: u64) {
        self.count += count;
        if self.first.is_none_or(|first| problem.number < first.number) {
            self.first = Some(problem);
        }
    }
}

impl ReplayState {
    /// Applies a piece of the log: the state, the completed transactions and their order are
    /// those of applying its events one by one. Gives the problems, if there were any.
    pub fn apply_summary(
        &mut self,
        summary: &SegmentSummary,
        mut completed: impl FnMut(CompletedTransaction),
    ) -> Option<ReplayProblems> {
        let mut problems = summary.problems;
        for effect in summary.effects.items() {
            let entry = self.entry(effect.producer_id);
            let Some(run) = effect.unless_open else { continue };
            if entry.in_transaction() {
                problems.add(run.first, run.count);
            } else {
                entry.take_batch(run.epoch, run.batch, run.timestamp);
            }
        }
        for step in &summary.steps {
            match *step {
                Step::Begin { producer_id, first_offset } => {
                    self.begin_transaction(producer_id, first_offset);
                }
                Step::End { producer_id, marker_offset, abort } => {
                    self.end_transaction(producer_id, marker_offset, abort).map(&mut completed);
                }
            }
        }
        for effect in summary.effects.items() {
            if let Some(change) = effect.change {
                self.apply_change(effect.producer_id, change);
            }
        }
        let first = problems.first?.problem;
        Some(ReplayProblems { first, count: problems.count })
    }

    fn apply_change(&mut self, producer_id: i64, change: Change) {
        let entry = self.entry(producer_id);
        match change.batch {
            NewestBatch::Replaced(batch) => {
                entry.take_batch(change.epoch, batch, change.timestamp);
            }
            NewestBatch::KeptWithinEpoch if entry.producer_epoch == change.epoch => {}
            NewestBatch::KeptWithinEpoch | NewestBatch::Forgotten => entry.forget_batch(),
        }
        entry.producer_epoch = change.epoch;
        entry.last_timestamp = change.timestamp;
        if let Some(coordinator_epoch) = change.coordinator_epoch {
            entry.coordinator_epoch = coordinator_epoch;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::state::replay::tests::{any_events, data, marker, txn};

    /// State, completed transactions and problems of one way to apply events.
    #[derive(Debug, PartialEq)]
    struct Outcome {
        snapshot: Vec<u8>,
        known: Vec<i64>,
        ongoing: Vec<(i64, i64)>,
        completed: Vec<CompletedTransaction>,
        problems: Option<ReplayProblems>,
    }

    fn outcome(
        state: &ReplayState,
        completed: Vec<CompletedTransaction>,
        problems: Option<ReplayProblems>,
    ) -> Outcome {
        let known = state.producers().entries().iter().map(|entry| entry.producer_id).collect();
        let ongoing = state.ongoing().collect();
        Outcome { snapshot: state.snapshot(), known, ongoing, completed, problems }
    }

    fn count(problems: &mut Option<ReplayProblems>, more: ReplayProblems) {
        match problems {
            Some(problems) => problems.count += more.count,
            None => *problems = Some(more),
        }
    }

    fn one_by_one(events: &[ProducerEvent]) -> Outcome {
        let mut state = ReplayState::new();
        let (mut completed, mut problems) = (Vec::new(), None);
        for event in events {
            match state.apply(event) {
                Ok(done) => completed.extend(done),
                Err(first) => count(&mut problems, ReplayProblems { first, count: 1 }),
            }
        }
        outcome(&state, completed, problems)
    }

    fn by_pieces<'a>(pieces: impl IntoIterator<Item = &'a [ProducerEvent]>) -> Outcome {
        let mut state = ReplayState::new();
        let (mut completed, mut problems) = (Vec::new(), None);
        for piece in pieces {
            let mut summary = SegmentSummary::new();
            piece.iter().for_each(|event| summary.push(event));
            if let Some(more) = state.apply_summary(&summary, |done| completed.push(done)) {
                count(&mut problems, more);
            }
        }
        outcome(&state, completed, problems)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

        #[test]
        fn pieces_do_what_their_events_do(
            events in any_events(),
            cuts in prop::collection::vec(0..60_usize, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(events.len())).collect();
            cuts.extend([0, events.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &events[cut[0]..cut[1]]);
            prop_assert_eq!(by_pieces(pieces), one_by_one(&events));
        }
    }

    fn assert_alike(before: &[ProducerEvent], piece: &[ProducerEvent]) -> Outcome {
        let events = [before, piece].concat();
        let whole = one_by_one(&events);
        assert_eq!(by_pieces([before, piece]), whole);
        assert_eq!(by_pieces([&events[..]]), whole);
        whole
    }

    #[test]
    fn a_transaction_may_cross_the_border() {
        let found = assert_alike(
            &[txn(1, 0, 0, 0), txn(2, 0, 0, 1)],
            &[txn(1, 0, 1, 2), marker(1, 0, 3, true), txn(1, 0, 2, 4)],
        );
        assert_eq!(
            found.completed,
            [CompletedTransaction {
                producer_id: 1,
                first_offset: 0,
                last_offset: 3,
                last_stable_offset: 1,
                aborted: true
            }]
        );
        assert_eq!(found.ongoing, [(1, 2), (4, 1)]);
    }

    #[test]
    fn plain_data_counts_only_without_a_transaction_from_before() {
        let plain = [data(1, 0, 1, 1), data(1, 0, 2, 2), marker(1, 0, 3, false)];
        assert_eq!(assert_alike(&[data(1, 0, 0, 0)], &plain).problems, None);
        let problems = assert_alike(&[txn(1, 0, 0, 0)], &plain).problems.unwrap();
        assert_eq!((problems.first.base_offset, problems.count), (1, 2));
    }

    #[test]
    fn the_newest_batch_survives_markers_of_its_epoch_only() {
        for (first, second, kept) in [(0, 0, true), (1, 1, false), (0, 1, false), (1, 0, false)] {
            let before = [data(1, 0, 0, 0)];
            let markers = [marker(1, first, 1, false), marker(1, second, 2, false)];
            let found = assert_alike(&before, &markers);
            let snapshot = crate::state::Snapshot::read(&found.snapshot).unwrap();
            assert_eq!(snapshot.iter().next().unwrap().has_batch(), kept);
        }
    }

    #[test]
    fn its_size_is_that_of_producers_and_transactions_not_of_batches() {
        let mut summary = SegmentSummary::new();
        (0..1000).for_each(|i| summary.push(&data(i % 3, 0, 0, i)));
        (1000..2000).for_each(|i| summary.push(&txn(i % 3, 0, 0, i)));
        (2000..2003).for_each(|i| summary.push(&marker(i % 3, 0, i, true)));
        (2003..3000).for_each(|i| summary.push(&data(i % 3, 0, 0, i)));
        assert_eq!((summary.effects.len(), summary.steps.len()), (3, 6));
        assert!(!summary.is_empty() && SegmentSummary::new().is_empty());
    }
}
