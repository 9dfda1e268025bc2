//! Who hears how far a long call is, and may end it?

use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

use engine::Error;
use engine::log::progress::Progress;

use crate::error::{Failure, Outcome};

/// `silt_progress_fn`.
pub type ProgressFn = Option<unsafe extern "C" fn(*mut c_void, u64, u64) -> i32>;

/// How often the function is called where others do the work.
const PAUSE: Duration = Duration::from_millis(20);

/// The bytes that are done and those that there are, and whether to go on.
#[derive(Default)]
struct Count {
    done_bytes: AtomicU64,
    total_bytes: AtomicU64,
    is_over: AtomicBool,
}

impl Progress for Count {
    fn bytes(&self, count: u64) {
        self.done_bytes.fetch_add(count, Ordering::Relaxed);
    }

    fn expect(&self, count: u64) {
        self.total_bytes.fetch_add(count, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Runs `work` and calls the caller's function meanwhile, on its thread. What it answers to
/// end the work is kept in the error. `total_bytes` is what is known before the work begins.
///
/// # Safety
/// The function is one that may be called with this context.
pub unsafe fn with_progress<T: Send>(
    function: ProgressFn,
    ctx: *mut c_void,
    total_bytes: u64,
    work: impl FnOnce(&dyn Progress) -> engine::Result<T> + Send,
) -> Outcome<T> {
    let count = Count { total_bytes: AtomicU64::new(total_bytes), ..Count::default() };
    let Some(function) = function else { return Ok(work(&count)?) };
    let answer = AtomicI32::new(0);
    let tell = || {
        let done_bytes = count.done_bytes.load(Ordering::Relaxed);
        let total_bytes = count.total_bytes.load(Ordering::Relaxed);
        if count.is_cancelled() {
            return;
        }
        // SAFETY: the caller's function, on its thread.
        let value = unsafe { function(ctx, done_bytes, total_bytes.max(done_bytes)) };
        if value != 0 {
            answer.store(value, Ordering::Relaxed);
            count.is_over.store(true, Ordering::Relaxed);
        }
    };
    tell();
    let first = answer.load(Ordering::Relaxed);
    if first != 0 {
        return Err(Failure::Cancelled(first));
    }
    let result = scope(|scope| {
        let (done, wait) = channel::<()>();
        let run = || {
            let result = work(&count);
            drop(done);
            result
        };
        let worker = Builder::new()
            .spawn_scoped(scope, run)
            .map_err(|error| Error::io("start a thread for", Path::new("the call"), error))?;
        while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(PAUSE) {
            tell();
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match answer.into_inner() {
        0 => Ok(result?),
        value => Err(Failure::Cancelled(value)),
    }
}
