//! The constants and small arithmetic that Kafka's format shares between all its files.

/// "No timestamp" in a batch, an index or a snapshot.
pub const NO_TIMESTAMP: i64 = -1;
/// "No producer id" in a batch.
pub const NO_PRODUCER_ID: i64 = -1;
/// "No producer epoch" in a batch or a producer entry.
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// "No sequence" in a batch or a producer entry.
pub const NO_SEQUENCE: i32 = -1;
/// "No coordinator epoch" in a producer entry.
pub const NO_COORDINATOR_EPOCH: i32 = -1;
/// "No leader epoch" in a batch.
pub const NO_LEADER_EPOCH: i32 = -1;

/// The largest offset that a segment with this base can address, inclusive.
#[must_use]
pub fn last_addressable_offset(base_offset: i64) -> i64 {
    base_offset.saturating_add(i64::from(i32::MAX))
}

/// Whether `offset` can be stored relative to `base_offset` in an index.
#[must_use]
pub fn is_addressable(base_offset: i64, offset: i64) -> bool {
    offset.checked_sub(base_offset).is_some_and(|delta| (0..=i64::from(i32::MAX)).contains(&delta))
}

/// The producer sequence `count` after `sequence`; sequences wrap to 0 and are never negative.
#[must_use]
pub fn increment_sequence(sequence: i32, count: i32) -> i32 {
    // spec: producer-state A1.1
    if sequence > i32::MAX.wrapping_sub(count) {
        count.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1)
    } else {
        sequence.wrapping_add(count)
    }
}

/// The producer sequence `count` before `sequence`.
#[must_use]
pub fn decrement_sequence(sequence: i32, count: i32) -> i32 {
    // spec: producer-state A1.1
    if sequence < count {
        i32::MAX.wrapping_sub(count.wrapping_sub(sequence)).wrapping_add(1)
    } else {
        sequence.wrapping_sub(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_successor_of_the_largest_sequence_is_zero() {
        assert_eq!(increment_sequence(i32::MAX, 1), 0);
        assert_eq!(increment_sequence(2_147_483_646, 3), 1);
        assert_eq!(decrement_sequence(0, 1), i32::MAX);
        assert_eq!(decrement_sequence(1, 3), 2_147_483_646);
    }

    #[test]
    fn the_last_addressable_offset_is_base_plus_i32_max() {
        assert!(is_addressable(1000, 1000 + i64::from(i32::MAX)));
        assert!(!is_addressable(1000, 1001 + i64::from(i32::MAX)));
        assert!(!is_addressable(1000, 999));
        assert!(!is_addressable(i64::MIN, i64::MAX));
    }
}
