//! A producer snapshot: read, written again, and brought back as state.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::io::checksum::crc32c;
use siltstone::state::{ProducerEntry, ReplayState, Snapshot, write_snapshot};

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // With the checksum put right, so that the fuzzer gets behind it.
    let mut bytes = bytes.to_vec();
    if bytes.len() >= 6 {
        let sum = crc32c(&bytes[6..]).to_be_bytes();
        bytes[2..6].copy_from_slice(&sum);
        read(&bytes);
    }
});

fn read(bytes: &[u8]) {
    let Ok(snapshot) = Snapshot::read(bytes) else { return };
    let entries: Vec<ProducerEntry> = snapshot.iter().collect();
    assert_eq!(entries.len(), snapshot.len());
    let again = write_snapshot(&entries);
    let reread = Snapshot::read(&again).expect("our own");
    assert!(reread.iter().eq(entries.iter().copied()));
    let state = ReplayState::from_snapshot(&snapshot, 0, i64::MAX);
    let _ = (state.snapshot(), state.first_undecided_offset());
}
