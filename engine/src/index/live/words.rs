//! Where do entries stand that one thread adds while others search them?
//!
//! In words that never move: those that were there at first lie in one piece, what comes later goes
//! to blocks of which each is twice as large as the one before. So there is nothing to copy, to
//! swap or to wait for, and memory follows what is really there.

use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU64, Ordering};

/// Words of the first block behind those that were there at first. Even, so that no entry of two
/// words is torn.
const FIRST_BLOCK: usize = if cfg!(loom) { 2 } else { 512 };

/// Blocks enough for 2^32 words.
const BLOCKS: usize = 24;

/// Words that grow at their end.
#[derive(Debug)]
pub(super) struct Words {
    first: Box<[AtomicU64]>,
    more: [OnceLock<Box<[AtomicU64]>>; BLOCKS],
}

impl Words {
    pub(super) fn new(first: impl Iterator<Item = u64>) -> Self {
        Words {
            first: first.map(AtomicU64::new).collect(),
            more: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// A word; 0 where none was ever written.
    #[inline]
    pub(super) fn get(&self, at: usize) -> u64 {
        let word = match self.first.get(at) {
            Some(word) => Some(word),
            None => self.later(at),
        };
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline]
    fn later(&self, at: usize) -> Option<&AtomicU64> {
        let (block, at) = place(at - self.first.len());
        self.more.get(block)?.get()?.get(at)
    }

    /// Writes a word, and makes its block if it is the first of it. Says whether there was room.
    /// One thread at a time.
    pub(super) fn set(&self, at: usize, value: u64) -> bool {
        if let Some(word) = self.first.get(at) {
            word.store(value, Ordering::Relaxed);
            return true;
        }
        let (block, at) = place(at - self.first.len());
        let Some(slot) = self.more.get(block) else { return false };
        let words = slot.get_or_init(|| {
            let size = FIRST_BLOCK << block;
            (0..size).map(|_| AtomicU64::new(0)).collect()
        });
        match words.get(at) {
            Some(word) => {
                word.store(value, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }
}

/// The block of the word with this number behind the first ones, and its place there.
#[inline]
fn place(number: usize) -> (usize, usize) {
    let blocks = (number / FIRST_BLOCK + 1).ilog2();
    let block = usize::try_from(blocks).unwrap_or(BLOCKS);
    (block, number - FIRST_BLOCK * ((1 << block) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_place_of_its_own() {
        for first in [0, 1, 700] {
            let words = Words::new((0..first).map(|at| at * 3));
            let first = usize::try_from(first).unwrap();
            for at in first..20_000 {
                assert_eq!(words.get(at), 0);
                assert!(words.set(at, u64::try_from(at * 3).unwrap()));
            }
            assert!((0..20_000).all(|at| words.get(at) == u64::try_from(at * 3).unwrap()));
            assert!(words.set(5, 1));
            assert_eq!((words.get(4), words.get(5), words.get(6)), (12, 1, 18));
        }
    }

    #[test]
    fn blocks_lie_one_behind_the_other() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(FIRST_BLOCK - 1), (0, FIRST_BLOCK - 1));
        assert_eq!(place(FIRST_BLOCK), (1, 0));
        assert_eq!(place(3 * FIRST_BLOCK - 1), (1, 2 * FIRST_BLOCK - 1));
        assert_eq!(place(3 * FIRST_BLOCK), (2, 0));
        let words = Words::new(std::iter::empty());
        assert!(!words.set(FIRST_BLOCK << BLOCKS, 1));
        assert_eq!(words.get(FIRST_BLOCK << BLOCKS), 0);
    }
}
