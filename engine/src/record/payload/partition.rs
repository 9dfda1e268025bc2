//! Which partition of an internal topic does a group or transaction live in?

/// The partition of `__consumer_offsets` for a group, of `__transaction_state` for a transactional
/// id, of `__share_group_state` for `GROUP:TOPIC_ID:PARTITION`; 0 when there are no partitions.
#[must_use]
pub fn coordinator_partition(id: &str, partitions: u32) -> u32 {
    // spec: internal-topics 1. Java's hash of a text, and of it the absolute value.
    let hash = id
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    // Kafka quirk: the smallest number has no absolute value and counts as 0.
    let positive = hash.checked_abs().unwrap_or(0).unsigned_abs();
    positive.checked_rem(partitions).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_java() {
        assert_eq!(coordinator_partition("", 50), 0);
        assert_eq!(coordinator_partition("a", 50), 97 % 50);
        assert_eq!(coordinator_partition("tx-1", 50), 3_572_520 % 50);
        assert_eq!(coordinator_partition("my-group", 50), 1_906_497_762 % 50);
        assert_eq!(coordinator_partition("a", 0), 0);
    }

    #[test]
    fn the_smallest_hash_counts_as_zero() {
        // Its hash is -2147483648.
        assert_eq!(coordinator_partition("polygenelubricants", 50), 0);
    }

    #[test]
    fn characters_beyond_16_bits_count_as_two() {
        let pair = (0xd83d_u32 * 31 + 0xde00) % 1000;
        assert_eq!(coordinator_partition("😀", 1000), pair);
    }

    #[test]
    fn a_negative_hash_loses_its_sign_and_not_its_top_bit() {
        assert_eq!(coordinator_partition("zzzzzz", 50), 685_785_664 % 50);
    }
}
