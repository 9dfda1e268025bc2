//! May more bytes be copied now? One rate for all partitions of a broker (KIP-956).

use std::collections::VecDeque;

/// The rate at which segments are copied, over the last windows. The host waits, the quota counts.
#[derive(Clone, Debug)]
pub struct CopyQuota {
    bytes_per_second_max: u64,
    window_ms: i64,
    windows_max: usize,
    /// When each window began, and its bytes.
    windows: VecDeque<(i64, u64)>,
}

impl CopyQuota {
    /// A quota over so many windows of so many milliseconds each (`…quota.window.num` and
    /// `…quota.window.size.seconds`: 11 of a second); both are at least 1.
    #[must_use]
    pub fn new(bytes_per_second_max: u64, windows: usize, window_ms: i64) -> Self {
        CopyQuota {
            bytes_per_second_max,
            window_ms: window_ms.max(1),
            windows_max: windows.max(1),
            windows: VecDeque::new(),
        }
    }

    /// Counts bytes, before they are copied.
    pub fn record(&mut self, size_bytes: u64, now_ms: i64) {
        self.forget(now_ms);
        match self.windows.back_mut() {
            Some((begin, bytes)) if now_ms.saturating_sub(*begin) < self.window_ms => {
                *bytes = bytes.saturating_add(size_bytes);
            }
            _ => self.windows.push_back((now_ms, size_bytes)),
        }
    }

    /// For how many milliseconds nothing more may be copied, if nothing is: 0 for none. Bytes whose
    /// windows are all over no longer count, which may end the wait before.
    pub fn throttle_ms(&mut self, now_ms: i64) -> i64 {
        // spec: tiered 2.3
        self.forget(now_ms);
        let bytes = self.windows.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
        let elapsed = u128::try_from(self.elapsed_ms(now_ms)).unwrap_or(1).max(1);
        let limit = u128::from(self.bytes_per_second_max);
        if u128::from(bytes) * 1000 <= limit * elapsed {
            return 0;
        }
        // So long until the same bytes are spread over enough time.
        let needed = (u128::from(bytes) * 1000).div_ceil(limit.max(1));
        i64::try_from(needed.saturating_sub(elapsed)).unwrap_or(i64::MAX)
    }

    /// The time that the rate is of: at least all windows but the one that has just begun, so that
    /// the first bytes after a pause are no burst.
    fn elapsed_ms(&self, now_ms: i64) -> i64 {
        let first = self.windows.front().map_or(now_ms, |(begin, _)| *begin);
        let windows = i64::try_from(self.windows_max).unwrap_or(i64::MAX).saturating_sub(1);
        now_ms.saturating_sub(first).max(windows.saturating_mul(self.window_ms)).max(1)
    }

    /// Forgets the windows that are too old to count.
    fn forget(&mut self, now_ms: i64) {
        let span = i64::try_from(self.windows_max).unwrap_or(i64::MAX);
        let oldest = now_ms.saturating_sub(span.saturating_mul(self.window_ms));
        while self.windows.front().is_some_and(|(begin, _)| *begin <= oldest) {
            self.windows.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_rate_waits_until_it_is_spread() {
        let mut quota = CopyQuota::new(1000, 11, 1000);
        assert_eq!(quota.throttle_ms(0), 0);
        quota.record(10_000, 0);
        assert_eq!(quota.throttle_ms(0), 0, "ten seconds' worth in ten seconds");
        quota.record(1, 0);
        assert!(quota.throttle_ms(0) > 0);
        assert_eq!(quota.throttle_ms(10_001), 0);
    }

    #[test]
    fn old_windows_do_not_count() {
        let mut quota = CopyQuota::new(1000, 11, 1000);
        quota.record(1 << 40, 0);
        let wait = quota.throttle_ms(0);
        assert!(wait > 1_000_000, "{wait}");
        assert!(quota.throttle_ms(10_999) > 0);
        assert_eq!(quota.throttle_ms(11_000), 0);
    }

    #[test]
    fn an_unlimited_rate_never_waits_and_none_always_does() {
        let mut quota = CopyQuota::new(u64::MAX, 11, 1000);
        quota.record(u64::MAX, 5);
        assert_eq!(quota.throttle_ms(5), 0);
        let mut quota = CopyQuota::new(0, 1, 0);
        quota.record(1, 5);
        assert!(quota.throttle_ms(5) > 0);
    }
}
