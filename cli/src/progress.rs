//! How far a long verb is: a bar on a terminal, a plain line now and then elsewhere; always on
//! standard error.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{format_bytes, format_span_ms};

/// Between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Work that is counted in bytes. Any thread may report to it.
#[derive(Debug)]
pub(crate) struct Progress {
    verb: &'static str,
    total_bytes: u64,
    done_bytes: AtomicU64,
    started: Instant,
    view: View,
}

#[derive(Debug)]
enum View {
    Hidden,
    Bar(ProgressBar),
    /// When the last line was printed.
    Lines(Mutex<Instant>),
}

impl Progress {
    /// Begins work over so many bytes. `verb` says what is done ("verified").
    pub(crate) fn start(verb: &'static str, total_bytes: u64, quiet: bool) -> Self {
        let started = Instant::now();
        let view = if quiet {
            View::Hidden
        } else if std::io::stderr().is_terminal() {
            View::Bar(bar(total_bytes))
        } else {
            View::Lines(Mutex::new(started))
        };
        Progress { verb, total_bytes, done_bytes: AtomicU64::new(0), started, view }
    }

    /// Says that so many more bytes are done.
    pub(crate) fn advance(&self, bytes: u64) {
        let done = self.done_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match &self.view {
            View::Hidden => {}
            View::Bar(bar) => bar.set_position(done),
            View::Lines(last) => {
                // A thread that finds another one printing has nothing to add.
                let Ok(mut last) = last.try_lock() else { return };
                if last.elapsed() >= LINE_INTERVAL {
                    *last = Instant::now();
                    let _ = writeln!(std::io::stderr(), "{}", self.line(done));
                }
            }
        }
    }

    /// Prints something else while the bar is out of the way.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.view {
            View::Bar(bar) => bar.suspend(print),
            View::Hidden | View::Lines(_) => print(),
        }
    }

    /// Ends it; the bar goes away.
    pub(crate) fn finish(&self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    /// `siltstone: verified 1.2 GiB of 4.8 GiB (25 %), 612 MiB/s, 6 s left`
    fn line(&self, done: u64) -> String {
        let elapsed_ms = self.started.elapsed().as_millis().max(1);
        let per_second = u128::from(done) * 1000 / elapsed_ms;
        let left = u128::from(self.total_bytes.saturating_sub(done));
        let percent = u128::from(done) * 100 / u128::from(self.total_bytes.max(1));
        let left_ms = (left * 1000).checked_div(per_second).and_then(|ms| i64::try_from(ms).ok());
        format!(
            "siltstone: {} {} of {} ({percent} %), {}/s, {} left",
            self.verb,
            format_bytes(done),
            format_bytes(self.total_bytes),
            format_bytes(u64::try_from(per_second).unwrap_or(u64::MAX)),
            left_ms.map_or_else(|| "-".to_owned(), format_span_ms),
        )
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn bar(total_bytes: u64) -> ProgressBar {
    let bar =
        ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr_with_hz(8));
    let template = "{bar:30} {percent:>3} %  {binary_bytes} of {binary_total_bytes}  \
                    {binary_bytes_per_sec}  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

impl siltstone::log::recover::Progress for Progress {
    fn bytes(&self, count: u64) {
        self.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_what_they_have_done() {
        let progress = Progress::start("verified", 4000, true);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| progress.advance(100)));
            }
        });
        let done = progress.done_bytes.load(Ordering::Relaxed);
        assert!(
            progress.line(done).starts_with("siltstone: verified 3.9 KiB of 3.9 KiB (100 %), ")
        );
    }

    #[test]
    fn work_of_no_bytes_has_a_line_too() {
        let progress = Progress::start("verified", 0, true);
        assert!(progress.line(0).ends_with("(0 %), 0 B/s, - left"), "{}", progress.line(0));
    }
}
