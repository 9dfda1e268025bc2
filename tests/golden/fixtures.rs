//! The test data itself: unpacked kits are the files that their expectations were made from.

use siltstone_tests::file_sums;
use siltstone_tests::kits::Kit;

#[test]
fn unpacked_partitions_are_the_files_that_kafka_was_asked_about() {
    let mut partitions = 0;
    for kit in Kit::all() {
        for state in kit.states() {
            let unpacked = state.unpack();
            for partition in state.partitions() {
                let label = format!("{} {partition}", state.label());
                let expectation = state.expectation(&partition).expect(&label);
                assert_eq!(expectation.now_ms, state.at_ms(), "{label}");
                assert_eq!(expectation.clean_shutdown_file, state.is_clean(), "{label}");
                let sums = file_sums(&unpacked.partition(&partition));
                assert_eq!(sums, expectation.raw.files, "{label}");
                partitions += 1;
            }
        }
    }
    assert_eq!(partitions, 536);
}
