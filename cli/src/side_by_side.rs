//! Many things of one kind, done by more than one thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What `work` gives of each item, in their order, up to `threads` at a time; the caller's thread
/// is one of them.
pub(crate) fn side_by_side<T: Sync, U: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> U + Sync,
) -> Vec<U> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        // One at a time: they take unequally long.
        while let Some((number, item)) = next_of(&next, items) {
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

fn next_of<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    items.get(number).map(|item| (number, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_items_by_any_number_of_threads() {
        let items: Vec<usize> = (0..100).collect();
        let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
        for threads in [0, 1, 3, 200] {
            assert_eq!(side_by_side(threads, &items, |item| item * 2), expected, "{threads}");
        }
        assert!(side_by_side(4, &[], |item: &usize| *item).is_empty());
    }
}
