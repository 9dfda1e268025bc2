//! What is the least that it takes to append to many files and have all of it durable? As in
//! [`limits`](crate::limits).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Result;

/// Appends a batch to each file and waits until all are durable, so many times: each of `at_once`
/// threads syncs its share of the files.
///
/// # Errors
/// When a file cannot be written or synced.
pub fn append_durably(
    files: &[File],
    batch: &[u8],
    mut position: u64,
    (turns, at_once): (usize, usize),
) -> Result<()> {
    let share = files.len().div_ceil(at_once.max(1)).max(1);
    let workers = files.chunks(share).len();
    let (begin, end) = (Barrier::new(workers + 1), Barrier::new(workers + 1));
    let is_broken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for part in files.chunks(share) {
            scope.spawn(|| {
                for _ in 0..turns {
                    begin.wait();
                    if part.iter().any(|file| file.sync_data().is_err()) {
                        is_broken.store(true, Ordering::Relaxed);
                    }
                    end.wait();
                }
            });
        }
        for _ in 0..turns {
            if files.iter().any(|file| file.write_all_at(batch, position).is_err()) {
                is_broken.store(true, Ordering::Relaxed);
            }
            position += u64::try_from(batch.len()).unwrap_or(0);
            begin.wait();
            end.wait();
        }
    });
    if is_broken.into_inner() { Err("a file was not made durable".into()) } else { Ok(()) }
}
