//! How much of a log waits to go to remote storage? The two metrics of Kafka.

/// What waits to be uploaded, the active segment left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadLag {
    /// Bytes of segments.
    pub size_bytes: u64,
    /// Segments.
    pub segments: u64,
}

/// The lag of a log whose segments, bases rising, are given as base offset and size in bytes. Those
/// count that start at `highest_remote_offset` (-1: nothing is uploaded) or behind it.
pub fn upload_lag(
    segments: impl DoubleEndedIterator<Item = (i64, u64)>,
    highest_remote_offset: i64,
) -> UploadLag {
    // spec: tiered 2.5
    let mut lag = UploadLag::default();
    let mut is_active = true;
    for (_, size_bytes) in segments.rev().take_while(|(base, _)| *base >= highest_remote_offset) {
        if std::mem::take(&mut is_active) {
            continue;
        }
        lag.size_bytes = lag.size_bytes.saturating_add(size_bytes);
        lag.segments = lag.segments.saturating_add(1);
    }
    lag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_segment_waits_for_nothing() {
        // spec: tiered 2.5
        let lag = |segments: &[(i64, u64)], highest| {
            let UploadLag { size_bytes, segments } = upload_lag(segments.iter().copied(), highest);
            (size_bytes, segments)
        };
        assert_eq!(lag(&[(100, 100)], 99), (0, 0));
        assert_eq!(lag(&[(0, 100), (100, 100), (200, 100)], -1), (200, 2));
        assert_eq!(lag(&[(100, 100)], 150), (0, 0), "after a leader change");
        assert_eq!(lag(&[(0, 7), (100, 50), (200, 100)], 99), (50, 1));
        assert_eq!(lag(&[], -1), (0, 0));
    }
}
