//! How is an object read like a file, window by window?

use crate::error::{Error, Kind, Result};
use crate::io::Source;

use super::target::{ObjectTarget, get_exact};

/// A [`Source`] over an object, by ranged reads into one buffer.
#[derive(Debug)]
pub struct ObjectSource<'a> {
    target: &'a dyn ObjectTarget,
    name: &'a str,
    end: u64,
    window_bytes: usize,
    buffer: Vec<u8>,
    /// Where the buffer begins in the object.
    start: u64,
}

impl<'a> ObjectSource<'a> {
    /// Reads the object up to `end` (exclusive), which must be there, in windows of `window_bytes`
    /// or what a caller wants when that is more.
    #[must_use]
    pub fn new(target: &'a dyn ObjectTarget, name: &'a str, end: u64, window_bytes: usize) -> Self {
        ObjectSource { target, name, end, window_bytes, buffer: Vec::new(), start: 0 }
    }

    /// What is held of the bytes from `position` on.
    fn held(&self, position: u64) -> Option<&[u8]> {
        let skip = usize::try_from(position.checked_sub(self.start)?).ok()?;
        self.buffer.get(skip..)
    }
}

impl Source for ObjectSource<'_> {
    fn end(&self) -> u64 {
        self.end
    }

    fn window(&mut self, position: u64, wanted_bytes: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = wanted_bytes.min(left);
        if wanted == 0 {
            return Ok(self.held(position).unwrap_or_default());
        }
        if self.held(position).is_none_or(|held| held.len() < wanted) {
            let kept = self.held(position).unwrap_or_default().to_vec();
            let length = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
            let from = position.saturating_add(length(kept.len()));
            let size = length(wanted.max(self.window_bytes.min(left)));
            let to = position.saturating_add(size);
            let read = get_exact(self.target, self.name, from..to).map_err(|error| {
                // It was there when it was asked for its size.
                if error.kind() == Kind::OutOfRange {
                    let why = format!("{} became shorter than {} bytes", self.name, self.end);
                    return Error::new(Kind::Conflict, why).at_position(from);
                }
                error
            })?;
            self.buffer = if kept.is_empty() { read } else { [kept, read].concat() };
            self.start = position;
        }
        Ok(self.held(position).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::sync::Arc;

    use super::*;
    use crate::io::SimDisk;
    use crate::tier::faulty_target::{TargetFault, TargetOperation};
    use crate::tier::{FaultyTarget, LocalTarget, ObjectBytes};

    #[test]
    fn windows_are_the_bytes_of_the_object_in_any_order() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let store = FaultyTarget::new(Arc::new(LocalTarget::new(Arc::new(SimDisk::new()), "/")));
        store.put("a", &[ObjectBytes::Memory(&bytes)]).unwrap();
        let mut source = ObjectSource::new(&store, "a", 1000, 100);
        for (position, wanted) in
            [(0, 10), (50, 30), (50, 60), (149, 1), (10, 5), (900, 500), (990, 10), (0, 1000)]
        {
            let window = source.window(position, wanted).unwrap();
            let from = usize::try_from(position).unwrap();
            let least = wanted.min(1000 - from);
            assert!(window.len() >= least, "{position} {wanted}");
            assert_eq!(window, &bytes[from..from + window.len()], "{position} {wanted}");
        }
        assert!(source.window(1000, 10).unwrap().is_empty());
        assert!(source.window(u64::MAX, usize::MAX).unwrap().is_empty());
        // Windows that overlap fetch what is new alone; the last one read all.
        assert_eq!(store.count(TargetOperation::Get, "a"), 5);
    }

    #[test]
    fn what_is_not_the_object_is_an_error() {
        let store = FaultyTarget::new(Arc::new(LocalTarget::new(Arc::new(SimDisk::new()), "/")));
        store.put("a", &[ObjectBytes::Memory(&[0; 100])]).unwrap();
        let mut source = ObjectSource::new(&store, "a", 200, 1000);
        let error = source.window(50, 1).unwrap_err();
        assert_eq!((error.kind(), error.position()), (Kind::Conflict, Some(50)));
        let mut source = ObjectSource::new(&store, "a", 100, 10);
        for fault in [TargetFault::Shorter(1), TargetFault::Longer(1)] {
            store.fault_once(TargetOperation::Get, "a", fault);
            assert_eq!(source.window(0, 1).unwrap_err().kind(), Kind::Corrupt);
        }
        assert_eq!(source.window(0, 1).unwrap(), [0; 10]);
    }
}
