//! How does the map of keys learn what is in the segments that were not compacted yet?

use std::ops::ControlFlow;

use super::digest::Digest;
use super::key_map::KeyMap;
use super::transactions::TransactionView;
use crate::error::Result;
use crate::record::BatchReader;
use crate::record::filter::fault;
use crate::record::scan::{ScannedBatch, Visitor};

const KEYS_AHEAD: usize = 32;

/// Puts the keys of batches into the map, up to the first record that has no room.
pub(super) struct Fill<'a> {
    pub(super) map: &'a mut KeyMap,
    pub(super) view: &'a mut TransactionView,
    pub(super) reader: &'a mut BatchReader,
    pub(super) first_dirty_offset: i64,
}

/// Keys that go into the map together.
#[derive(Default)]
struct Ahead {
    keys: [(Digest, i64); KEYS_AHEAD],
    count: usize,
}

impl Ahead {
    /// Takes one more; `false` when the map has no room for one of them.
    fn push(&mut self, map: &mut KeyMap, key: &[u8], offset: i64) -> bool {
        if let Some(slot) = self.keys.get_mut(self.count) {
            *slot = (map.digest(key), offset);
            self.count += 1;
        }
        self.count < KEYS_AHEAD || self.put(map)
    }

    /// Puts all of them into the map, in order, up to the first that has no room.
    fn put(&mut self, map: &mut KeyMap) -> bool {
        let keys = self.keys.get(..std::mem::take(&mut self.count)).unwrap_or_default();
        map.warm(keys.iter().map(|(digest, _)| *digest));
        for (digest, offset) in keys {
            if map.is_full() {
                return false;
            }
            map.put(*digest, *offset);
        }
        true
    }
}

impl Visitor for Fill<'_> {
    fn body_limit_bytes(&self) -> usize {
        usize::MAX
    }

    // spec: cleaner 4
    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        let header = batch.header;
        if header.is_control() {
            self.view.see_marker(header, batch.bytes);
        } else if !self.view.see_data(header) {
            let (map, first) = (&mut *self.map, self.first_dirty_offset);
            let mut ahead = Ahead::default();
            let mut has_room = true;
            let outcome = self.reader.read(header, batch.bytes, &mut |record| {
                if let Some(key) = record.key.filter(|_| record.offset >= first) {
                    has_room = ahead.push(map, key, record.offset);
                }
                if has_room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            // Where there is no room any more nobody looks at what comes behind.
            if !has_room || !ahead.put(map) {
                return Ok(ControlFlow::Break(()));
            }
            outcome.map_err(|error| fault(error).at_position(batch.position))?;
        }
        if header.last_offset() >= self.first_dirty_offset {
            self.map.read_up_to(header.last_offset());
        }
        Ok(ControlFlow::Continue(()))
    }
}
