//! Batches that are appended again and again, as if there were no end of them.

use std::ops::Range;

use siltstone::record::batch::{BatchHeader, HEADER_SIZE};

use crate::Result;
use crate::batches::{Batches, Shape};
use crate::rounds::{Lap, Watch};

/// Bytes of a supply: more than the caches next to a core hold.
const SUPPLY_BYTES: usize = 4 << 20;

/// Batches of no idempotent producer, one behind the other in memory.
#[derive(Debug)]
pub struct Supply {
    bytes: Vec<u8>,
    /// Where each batch lies, and how many offsets it takes.
    places: Vec<(Range<usize>, i64)>,
}

/// What offsets the batches bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// Those that they get in the log: as a leader sends them to its followers.
    Given,
    /// From 0 in each batch: as producers send them.
    FromZero,
}

impl Supply {
    /// Batches of this shape; its producers are left out.
    ///
    /// # Errors
    /// When the codec fails.
    pub fn new(shape: Shape) -> Result<Self> {
        let mut batches = Batches::new(Shape { producers: 0, ..shape })?;
        let mut supply = Supply { bytes: Vec::new(), places: Vec::new() };
        while supply.bytes.len() < SUPPLY_BYTES {
            let (start, offset) = (supply.bytes.len(), batches.next_offset());
            batches.push(&mut supply.bytes)?;
            let count = batches.next_offset() - offset;
            supply.places.push((start..supply.bytes.len(), count));
        }
        Ok(supply)
    }

    /// All batches.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Groups of batches of at most `at_once` bytes, or of one batch.
    #[must_use]
    pub fn calls(&self, at_once: usize) -> Vec<Range<usize>> {
        let mut calls: Vec<Range<usize>> = Vec::new();
        for (place, _) in &self.places {
            match calls.last_mut() {
                Some(call) if place.end - call.start <= at_once => call.end = place.end,
                _ => calls.push(place.clone()),
            }
        }
        calls
    }

    /// Numbers the batches from `offset` on; gives the offset behind the last.
    ///
    /// # Errors
    /// When a batch lies outside of the supply, which cannot be.
    pub fn number(&mut self, mut offset: i64, offsets: Offsets) -> Result<i64> {
        for (place, count) in &self.places {
            let header = self.bytes.get_mut(place.clone()).ok_or("no such batch")?;
            let field = header.first_chunk_mut::<8>().ok_or("no header")?;
            *field = if offsets == Offsets::Given { offset } else { 0 }.to_be_bytes();
            offset += count;
        }
        Ok(offset)
    }

    /// Hands `append` groups of batches until it has taken `total` bytes. The numbering is not
    /// measured.
    ///
    /// # Errors
    /// Those of `append`.
    pub fn spend(
        &mut self,
        total: u64,
        at_once: usize,
        offsets: Offsets,
        mut append: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Lap> {
        let calls = self.calls(at_once);
        let size = u64::try_from(self.bytes.len())?;
        let (mut next, mut spent) = (0, 0);
        let mut whole = Lap { seconds: 0.0, waited: 0.0 };
        let mut waited_s = 0.0;
        while spent < total {
            next = self.number(next, offsets)?;
            let watch = Watch::start();
            for call in &calls {
                append(self.bytes.get_mut(call.clone()).ok_or("no such batches")?)?;
            }
            let lap = watch.stop();
            whole.seconds += lap.seconds;
            waited_s += lap.waited * lap.seconds;
            spent += size;
        }
        whole.waited = waited_s / whole.seconds.max(1e-9);
        Ok(whole)
    }

    /// What [`spend`](Self::spend) comes to when `total` bytes are wanted: whole rounds.
    #[must_use]
    pub fn spent(&self, total: u64) -> u64 {
        let size = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX).max(1);
        total.div_ceil(size) * size
    }

    /// The header of the first batch.
    #[must_use]
    pub fn first(&self) -> Option<BatchHeader> {
        BatchHeader::parse(self.bytes.get(..HEADER_SIZE)?)
    }
}
