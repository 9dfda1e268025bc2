//! What is to be read once, so that questions to the [columns](super::columns) open no file later?

use std::sync::Arc;

use super::columns::UNKNOWN_TIMESTAMP_MS;
use super::log::Log;
use crate::error::{Kind, Result};

impl Log {
    /// Reads the largest timestamps of the sealed segments where they are not known: after a log
    /// was opened, since opening leaves that out. To be called by the host, from any thread, before
    /// it asks for what goes by time. Segments that are rolled later are known.
    ///
    /// # Errors
    /// `Conflict` while another thread is writing: what was read is kept, and the same call can be
    /// made again. `Closed`, and what the disk says.
    pub fn learn_timestamps(&self) -> Result<()> {
        let segments = self.segments();
        let timestamps = segments.columns().max_timestamps_ms();
        let sealed = segments.iter().zip(timestamps).take(segments.count().saturating_sub(1));
        let mut is_unknown = false;
        for (segment, timestamp_ms) in sealed {
            if *timestamp_ms != UNKNOWN_TIMESTAMP_MS {
                continue;
            }
            is_unknown = true;
            match segment.max_timestamp(&self.folder) {
                // Deleted or replaced meanwhile.
                Err(error) if error.kind() == Kind::NotFound => {}
                other => drop(other?),
            }
        }
        if is_unknown {
            let mut seat = self.take_seat()?;
            self.ready(&mut seat)?;
            self.segments.store(Arc::new(self.segments.load().refreshed()));
        }
        Ok(())
    }
}
