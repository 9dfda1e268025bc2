//! What is called for each fetch or event takes no memory.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

use siltstone::replica::{
    Action, EpochEnd, Event, FetchAnswer, FetchState, FollowerConfig, FollowerView, LeaderAnswers,
    OffsetAndEpoch, Phase, Request, follower_step,
};
use siltstone::state::{EpochEntry, LeaderEpochs};

const END: i64 = 120_000;

fn known() -> LeaderAnswers {
    let at = |offset, epoch| Some(OffsetAndEpoch { offset, epoch: Some(epoch) });
    LeaderAnswers {
        latest: Some(200_000),
        earliest: Some(0),
        earliest_local: at(150_000, 99),
        earliest_pending_upload: at(180_000, 99),
        latest_tiered: at(179_999, 99),
        epoch_end: Some(EpochEnd { asked: 98, epoch: 98, end_offset: 99_000 }),
    }
}

/// An answer of each kind.
fn answers() -> [FetchAnswer; 5] {
    [
        FetchAnswer::Records { high_watermark: 1, log_start_offset: 0 },
        FetchAnswer::Diverging { epoch: 57, end_offset: 57_500 },
        FetchAnswer::OutOfRange,
        FetchAnswer::MovedToTieredStorage,
        FetchAnswer::Error(6),
    ]
}

#[test]
fn a_step_of_a_follower_takes_no_memory() {
    let entries = (0..100).map(|epoch| EpochEntry { epoch, start_offset: i64::from(epoch) * 1000 });
    let epochs = LeaderEpochs::from_entries(&entries.collect::<Vec<_>>()).expect("epochs");
    let (known, unknown) = (known(), LeaderAnswers::default());
    let (mut steps, mut kinds) = (0, HashSet::<Discriminant<Action>>::new());
    let mut step = |view: &FollowerView<'_>, event: &Event<'_>| {
        let mut action = None;
        let taken = allocation_counter::measure(|| action = Some(follower_step(view, event)));
        assert_eq!(taken.count_total, 0, "{event:?} gives {action:?}");
        steps += 1;
        kinds.extend(action.as_ref().map(discriminant));
    };
    for phase in [Phase::Fetching, Phase::Truncating] {
        for (end, starts_at_tiered) in [(END, true), (0, true), (END, false), (0, false)] {
            let state = FetchState {
                fetch_offset: end,
                lag: Some(80_000),
                leader_epoch: 99,
                last_fetched_epoch: Some(99),
                phase,
                delayed: false,
                tiered_start_failed: false,
            };
            let config =
                FollowerConfig { starts_at_tiered, remote_storage: true, compacted: false };
            let view = FollowerView {
                log_start_offset: 0,
                local_log_start_offset: end.min(90_000),
                log_end_offset: end,
                high_watermark: end,
                epochs: &epochs,
                config,
                state: Some(state),
            };
            let request = Request { fetch_offset: end, leader_epoch: 99 };
            for known in [&known, &unknown] {
                for answer in answers() {
                    step(&view, &Event::Response { request, answer, known });
                }
                for (epoch, end_offset) in [(57, 57_500), (99, END), (-1, -1)] {
                    step(&view, &Event::EpochEnd { leader_epoch: 99, epoch, end_offset, known });
                }
            }
            step(&view, &Event::Appended { leader_high_watermark: 1, leader_log_start_offset: 5 });
            step(&view, &Event::NewLeader { leader_epoch: 100, initial_offset: end });
        }
    }
    assert!(steps > 100 && kinds.len() > 4, "{steps} steps, {} kinds of action", kinds.len());
}
