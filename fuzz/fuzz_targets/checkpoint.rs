//! Checkpoint files: offsets by partition, and leader epochs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::state::{LeaderEpochs, OffsetCheckpoint, checkpoint};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(offsets) = OffsetCheckpoint::parse(bytes) {
        let again = OffsetCheckpoint::parse(&offsets.format()).expect("our own");
        assert_eq!(again.entries(), offsets.entries());
    }
    if let Ok(entries) = checkpoint::parse_epochs(bytes) {
        let again = checkpoint::parse_epochs(&checkpoint::format_epochs(&entries));
        assert_eq!(again.expect("our own"), entries);
    }
    if let Ok(mut epochs) = LeaderEpochs::parse(bytes) {
        for entry in epochs.entries().to_vec() {
            let _ = epochs.epoch_for_offset(entry.start_offset);
            let _ = epochs.end_offset_for(entry.epoch, entry.start_offset);
        }
        if let Some(first) = epochs.earliest() {
            epochs.truncate_from_start(first.start_offset.saturating_add(1));
            epochs.truncate_from_end(first.start_offset.saturating_add(2));
        }
    }
});
