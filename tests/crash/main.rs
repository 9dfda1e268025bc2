//! Crash tests: recovery is cut at every operation, on a simulated disk that loses what was not
//! made durable, and must come to the same end when it is started again.
//!
//! | module | asks |
//! |---|---|
//! | `cuts` | the power goes, or the process is killed, at every operation |
//! | `engine` | the same while logs are made, moved, deleted and closed, and checkpoints written |
//! | `faults` | every operation fails once: a full disk, an I/O error, too many open files, no permission |
//! | `live` | a log that is written to: the same for its whole life |
//! | `many` | many logs that are written to in one call: the same |
//! | `compaction` | a log that is compacted: the same |
//! | `indexes` | indexes that were written but not synced |
//! | `rounds` | a node that compacts: the same, with what it says of how far it came |
//! | `rebuilds` | logs that are rebuilt from remote storage: the same |
//! | `restarts` | what a killed process left and needs no recovery |
//! | `killed` | a process that writes to a log is killed, on a real file system |
//! | `directories` | which directories are recovered |
//!
//! Run with `--nocapture` to see how many operations each recovery has and at how many it was cut.

mod compaction;
mod cuts;
mod directories;
mod engine;
mod faults;
mod indexes;
mod killed;
mod live;
mod many;
mod rebuilds;
mod restarts;
mod rounds;
mod scenario;

/// Two tests for each directory, so that they run side by side.
macro_rules! for_each_directory {
    ($($name:ident)*) => {
        mod cut_at_every_operation {
            $(#[test] fn $name() { crate::cuts::check(&crate::directories::$name()); })*
        }
        mod fault_at_every_operation {
            $(#[test] fn $name() { crate::faults::check(&crate::directories::$name()); })*
        }
    };
}

for_each_directory! {
    torn_tails
    damage_in_the_middle
    damage_in_the_middle_not_kept
    an_earlier_loss_stays
    indexes_missing_and_wrong
    swaps_in_place
    split_interrupted_early
    overflow
    overflow_before_damage
    overflow_beside_leftovers
    epochs_and_snapshots_wrong
    transactions
    snapshot_at_the_first_base
    start_beyond_end
    empty_folders
    large_side_files
    stopped_cleanly
    stopped_cleanly_with_a_bad_index
    stopped_cleanly_and_torn
    refused_beside_torn
    quarantine
    quarantine_after_a_clean_stop
    kit_torn
    kit_with_bad_checksums
    kit_transactions
    lone_partition
    lone_partition_cut_where_asked
}
