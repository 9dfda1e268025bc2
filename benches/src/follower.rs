//! Decisions of a follower: views and events of every kind, in an order that no branch predictor
//! learns.

use siltstone::replica::{
    EpochEnd, Event, FetchAnswer, FetchState, FollowerConfig, FollowerView, LeaderAnswers,
    OffsetAndEpoch, Phase, Request,
};
use siltstone::state::{EpochEntry, LeaderEpochs};

use crate::Result;

/// What decisions are made from.
#[derive(Debug)]
pub struct Decisions {
    epochs: LeaderEpochs,
    known: LeaderAnswers,
    /// Which kind of event comes when.
    order: Vec<u8>,
}

impl Decisions {
    /// A follower with 100 leader epochs, and `count` events.
    ///
    /// # Errors
    /// Never: the epochs are good.
    pub fn new(count: usize) -> Result<Self> {
        let entries =
            (0..100).map(|epoch| EpochEntry { epoch, start_offset: i64::from(epoch) * 1000 });
        let epochs = LeaderEpochs::from_entries(&entries.collect::<Vec<_>>())?;
        let at = |offset, epoch| Some(OffsetAndEpoch { offset, epoch: Some(epoch) });
        let known = LeaderAnswers {
            latest: Some(200_000),
            earliest: Some(0),
            earliest_local: at(150_000, 99),
            earliest_pending_upload: at(180_000, 99),
            latest_tiered: at(179_999, 99),
            epoch_end: Some(EpochEnd { asked: 98, epoch: 98, end_offset: 99_000 }),
        };
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            u8::try_from(random % 8).unwrap_or(0)
        };
        let order = (0..count).map(|_| next()).collect();
        Ok(Decisions { epochs, known, order })
    }

    /// The least that decisions take: each kind of event is looked up in a table.
    #[must_use]
    pub fn look_up(&self, table: &[u64; 8]) -> u64 {
        let answer = |kind: &u8| table.get(usize::from(*kind)).copied().unwrap_or(0);
        self.order.iter().fold(0, |seen, kind| std::hint::black_box(seen ^ answer(kind)))
    }

    /// Calls `take` with each view and event.
    pub fn each(&self, mut take: impl FnMut(&FollowerView<'_>, &Event<'_>)) {
        let state = FetchState {
            fetch_offset: 120_000,
            lag: Some(80_000),
            leader_epoch: 99,
            last_fetched_epoch: Some(99),
            phase: Phase::Fetching,
            delayed: false,
            tiered_start_failed: false,
        };
        let config =
            FollowerConfig { starts_at_tiered: true, remote_storage: true, compacted: false };
        let whole = FollowerView {
            log_start_offset: 0,
            local_log_start_offset: 90_000,
            log_end_offset: 120_000,
            high_watermark: 119_000,
            epochs: &self.epochs,
            config,
            state: Some(state),
        };
        let empty = FollowerView { log_end_offset: 0, ..whole };
        let request = Request { fetch_offset: 120_000, leader_epoch: 99 };
        let known = &self.known;
        let response = |answer| Event::Response { request, answer, known };
        let events = [
            (whole, response(FetchAnswer::Records { high_watermark: 1, log_start_offset: 0 })),
            (whole, Event::Appended { leader_high_watermark: 119_999, leader_log_start_offset: 5 }),
            (whole, response(FetchAnswer::Diverging { epoch: 57, end_offset: 57_500 })),
            (whole, response(FetchAnswer::OutOfRange)),
            (empty, response(FetchAnswer::OutOfRange)),
            (empty, response(FetchAnswer::MovedToTieredStorage)),
            (whole, response(FetchAnswer::Error(6))),
            (whole, Event::NewLeader { leader_epoch: 100, initial_offset: 120_000 }),
        ];
        for kind in &self.order {
            if let Some((view, event)) = events.get(usize::from(*kind)) {
                take(view, event);
            }
        }
    }
}
