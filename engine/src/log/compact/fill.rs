//! How does the map of keys learn what is in the segments that were not compacted yet?

use std::ops::ControlFlow;

use super::key_map::KeyMap;
use super::transactions::TransactionView;
use crate::error::Result;
use crate::record::BatchReader;
use crate::record::filter::fault;
use crate::record::scan::{ScannedBatch, Visitor};

/// Puts the keys of batches into the map, up to the first record that has no room.
pub(super) struct Fill<'a> {
    pub(super) map: &'a mut KeyMap,
    pub(super) view: &'a mut TransactionView,
    pub(super) reader: &'a mut BatchReader,
    pub(super) first_dirty_offset: i64,
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
            let mut has_room = true;
            let (map, first) = (&mut *self.map, self.first_dirty_offset);
            self.reader
                .read(header, batch.bytes, &mut |record| {
                    if let Some(key) = record.key.filter(|_| record.offset >= first) {
                        if map.is_full() {
                            has_room = false;
                            return ControlFlow::Break(());
                        }
                        map.put(key, record.offset);
                    }
                    ControlFlow::Continue(())
                })
                .map_err(|error| fault(error).at_position(batch.position))?;
            if !has_room {
                return Ok(ControlFlow::Break(()));
            }
        }
        if header.last_offset() >= self.first_dirty_offset {
            self.map.read_up_to(header.last_offset());
        }
        Ok(ControlFlow::Continue(()))
    }
}
