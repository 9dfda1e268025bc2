//! How much of the cluster one check looks at, and what comes of it.
//!
//! Everything at once has too many states to be run with each change. So one search has all events
//! with few records, others have more of everything but not all events, and random histories have
//! all of it. `.ci/long` runs the searches that take minutes.

use std::fmt;

use crate::rules::Broken;
use crate::search::{search, walk};
use crate::tiered::Tiered;

/// Which events there are, and how many.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    /// The last offset that is ever written, and one more.
    pub(crate) end_max: i64,
    /// The last leader epoch.
    pub(crate) epoch_max: i32,
    /// How many rare events a history may have: all of the following but retention, and leaders
    /// that change though nothing happened to them.
    pub(crate) faults: u8,
    /// A replica stops at any moment, also in the middle of a build.
    pub(crate) crashes: bool,
    /// A replica that stopped comes back with an empty disk.
    pub(crate) replaces: bool,
    /// The objects of a segment cannot be read.
    pub(crate) failed_reads: bool,
    /// Retention deletes remote segments.
    pub(crate) expires: bool,
    /// Somebody deletes all that is committed.
    pub(crate) deletes_records: bool,
    /// Remote storage is switched off and on.
    pub(crate) switches: bool,
    /// The answer to a fetch takes its time.
    pub(crate) slow_answers: bool,
    /// Empty followers start where their leader's uploads end, not at its local log.
    pub(crate) shortcut: bool,
}

/// Leaders change, and nothing else is rare.
const ELECTIONS: Scope = Scope {
    end_max: 3,
    epoch_max: 2,
    faults: 2,
    crashes: false,
    replaces: false,
    failed_reads: false,
    expires: false,
    deletes_records: false,
    switches: false,
    slow_answers: false,
    shortcut: true,
};

const CRASHES: Scope = Scope { crashes: true, failed_reads: true, ..ELECTIONS };

const REPLACES: Scope = Scope { crashes: true, replaces: true, ..ELECTIONS };

const DELETES: Scope = Scope { expires: true, deletes_records: true, ..ELECTIONS };

const SWITCHES: Scope = Scope { switches: true, slow_answers: true, ..ELECTIONS };

const ALL: Scope = Scope {
    crashes: true,
    replaces: true,
    failed_reads: true,
    switches: true,
    slow_answers: true,
    ..DELETES
};

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scope { end_max, epoch_max, faults, .. } = self;
        write!(f, "{end_max} records, {} epochs, {faults} rare events", epoch_max + 1)?;
        for (name, is_in) in [
            ("crashes", self.crashes),
            ("replaced disks", self.replaces),
            ("failed reads", self.failed_reads),
            ("retention", self.expires),
            ("deleted records", self.deletes_records),
            ("tiering switched", self.switches),
            ("slow answers", self.slow_answers),
            ("starts at the local log", !self.shortcut),
        ] {
            if is_in {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

/// The most states that a search looks at.
const STATES_MAX: usize = 10_000_000;

fn nothing_goes_wrong_in(scope: Scope) {
    let found = search(&Tiered::new(scope, Broken::Nothing, true), STATES_MAX);
    println!("{scope}: {} states", found.states);
    assert_eq!(found.failure, None, "{scope}");
}

#[test]
fn no_history_of_a_few_records_loses_a_committed_one_or_breaks_an_invariant() {
    // spec: follower-fetch 7; tiered-faults T4
    nothing_goes_wrong_in(Scope { end_max: 2, epoch_max: 1, ..ALL });
}

#[test]
fn no_crash_loses_a_committed_record() {
    // spec: follower-fetch 7; tiered-faults T4
    nothing_goes_wrong_in(Scope { epoch_max: 1, faults: 1, ..CRASHES });
}

#[test]
fn no_replica_that_comes_back_with_an_empty_disk_loses_a_committed_record() {
    // spec: follower-fetch 7; replication 4.4, 4.5
    nothing_goes_wrong_in(Scope { epoch_max: 1, ..REPLACES });
}

#[test]
fn neither_retention_nor_deleted_records_take_more_than_is_wanted() {
    // spec: follower-fetch 7
    nothing_goes_wrong_in(Scope { epoch_max: 1, faults: 1, ..DELETES });
}

#[test]
fn no_switch_of_tiering_and_no_late_answer_loses_a_committed_record() {
    // spec: follower-fetch 7
    nothing_goes_wrong_in(Scope { epoch_max: 1, ..SWITCHES });
}

#[test]
fn no_follower_that_starts_at_the_local_log_loses_a_committed_record() {
    // spec: follower-fetch 7; tiered-faults T4
    // Brokers of Kafka do so unless they are told otherwise.
    for scope in [
        Scope { end_max: 2, epoch_max: 1, ..ALL },
        Scope { epoch_max: 1, faults: 1, ..CRASHES },
        Scope { epoch_max: 1, faults: 1, ..DELETES },
        Scope { epoch_max: 1, ..SWITCHES },
    ] {
        nothing_goes_wrong_in(Scope { shortcut: false, ..scope });
    }
}

#[test]
#[ignore = "minutes even with optimisation: .ci/long runs it"]
fn no_history_loses_a_committed_record_or_breaks_an_invariant() {
    // spec: follower-fetch 7; tiered-faults T4
    let longer = Scope { end_max: 4, epoch_max: 1, ..CRASHES };
    let replaced = Scope { faults: 4, epoch_max: 1, ..REPLACES };
    for scope in [ALL, longer, Scope { faults: 3, ..CRASHES }, replaced] {
        nothing_goes_wrong_in(scope);
        nothing_goes_wrong_in(Scope { shortcut: false, ..scope });
    }
}

#[test]
fn no_random_history_of_many_events_goes_wrong() {
    // spec: follower-fetch 7; tiered-faults T4
    let scope = Scope { end_max: 8, epoch_max: 6, faults: 10, ..ALL };
    let models = [true, false].map(|shortcut| {
        let scope = Scope { shortcut, ..scope };
        Tiered::new(scope, Broken::Nothing, true)
    });
    let number =
        |name, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let seed: u64 = number("SILTSTONE_PROPERTY_SEED", 1);
    let mut events = 0;
    for walked in 0..number("SILTSTONE_PROPERTY_CASES", 300) {
        let model = if walked % 2 == 0 { &models[0] } else { &models[1] };
        let found = walk(model, seed.wrapping_mul(0x1_0000_0001).wrapping_add(walked), 120);
        events += found.states;
        assert_eq!(found.failure, None, "walk {walked} with seed {seed}");
    }
    println!("{scope}: {events} random events");
}

#[test]
fn every_rule_that_is_broken_is_found_out() {
    // spec: follower-fetch 7
    let reads = Scope { faults: 3, ..CRASHES };
    let answers = Scope { faults: 3, slow_answers: true, ..ELECTIONS };
    for (broken, scope, wrong) in [
        (Broken::Mark, CRASHES, "is lost"),
        (Broken::ReadBeforeDrop, reads, "is lost"),
        (Broken::UploadsAreCommitted, ELECTIONS, "is lost"),
        (Broken::DeletesAreUploaded, ELECTIONS, "is lost"),
        (Broken::SwitchedOffIsForgotten, SWITCHES, "is lost"),
        (Broken::SegmentReachesTheStart, ELECTIONS, "NoGapBelowStart"),
        (Broken::EpochsAreInstalled, ELECTIONS, "BuiltAsSaid"),
        (Broken::SnapshotIsInstalled, ELECTIONS, "no snapshot at"),
        (Broken::RulesKeepNothing, ELECTIONS, "two answers"),
        (Broken::StaleAnswersAreIgnored, answers, "a record of"),
        (Broken::HighWatermarkIsClamped, ELECTIONS, "OffsetsInOrder"),
        (Broken::RetryChangesNothing, CRASHES, "RetryChangesNothing"),
        (Broken::LocalStartIsMinded, ELECTIONS, "is lost"),
        (Broken::StartAtLogStart, DELETES, "never joins"),
        (Broken::LeadersAreInSync, ELECTIONS, "is lost"),
        (Broken::ReplacedIsOutOfSync, REPLACES, "is lost"),
    ] {
        let joins = broken == Broken::StartAtLogStart;
        let found = search(&Tiered::new(scope, broken, joins), STATES_MAX);
        let (what, history) = found
            .failure
            .unwrap_or_else(|| panic!("{broken:?}: nothing goes wrong in {} states", found.states));
        println!("{broken:?}: {what} after {} states: {}", found.states, history.join(", "));
        assert!(what.contains(wrong), "{broken:?}: {what} after {history:?}");
    }
}
