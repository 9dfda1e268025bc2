//! Walks over the bytes of a segment that stand in memory: what a host gets from one call, made of
//! the engine's own parts.

use std::hint::black_box;
use std::ops::ControlFlow;

use siltstone::record::batch::HEADER_SIZE;
use siltstone::record::scan::{ScannedBatch, Visitor, scan};
use siltstone::segment::rebuild::{IndexRebuild, IndexSettings};
use siltstone::state::{ProducerEvent, ReplayState};

use crate::Result;

/// Makes indexes, and what is known of producers where that is wanted.
struct Walk {
    indexes: IndexRebuild,
    producers: Option<ReplayState>,
}

impl Visitor for Walk {
    fn body_limit_bytes(&self) -> usize {
        HEADER_SIZE
    }

    fn batch(&mut self, batch: ScannedBatch<'_>) -> siltstone::Result<ControlFlow<()>> {
        if let Some(producers) = &mut self.producers
            && let Some(event) = ProducerEvent::of_batch(batch.header, None)
            && producers.apply(&event).is_err()
        {
            return Ok(ControlFlow::Break(()));
        }
        self.indexes.batch(batch.header, batch.position)?;
        Ok(ControlFlow::Continue(()))
    }
}

fn walk(mut bytes: &[u8], producers: Option<ReplayState>) -> Result<()> {
    let indexes = IndexRebuild::new(0, IndexSettings::default())?;
    let mut walk = Walk { indexes, producers };
    let end = scan(&mut bytes, 0, u64::MAX, &mut walk)?.position;
    if end != u64::try_from(bytes.len())? {
        return Err(format!("the walk ended at {end}").into());
    }
    black_box((walk.indexes.finish()?, walk.producers));
    Ok(())
}

/// All that recovery makes of a segment: offset index, time index and producers. There is no marker
/// in it that would end a transaction.
///
/// # Errors
/// When a batch is not what was written.
pub fn all(bytes: &[u8]) -> Result<()> {
    walk(bytes, Some(ReplayState::new()))
}

/// Its indexes alone.
///
/// # Errors
/// When a batch is not what was written.
pub fn indexes(bytes: &[u8]) -> Result<()> {
    walk(bytes, None)
}
