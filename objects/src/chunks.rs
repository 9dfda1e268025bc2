//! How are the bytes of an upload cut into parts of bounded size?

use siltstone::tier::ObjectBytes;
use siltstone::{Error, Kind, Result};

/// So many parts a store takes; a few fewer, to be on the safe side.
const PARTS_MAX: u64 = 9_900;

/// The bytes of some files and some memory, a part at a time.
pub(crate) struct Chunks<'a> {
    sources: &'a [ObjectBytes<'a>],
    part_bytes: usize,
    /// Which source is next, and how far it was read.
    next: usize,
    done: u64,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(sources: &'a [ObjectBytes<'a>], part_bytes: usize) -> Self {
        let least = usize::try_from(total(sources).div_ceil(PARTS_MAX)).unwrap_or(usize::MAX);
        Chunks { sources, part_bytes: part_bytes.max(least).max(1), next: 0, done: 0 }
    }

    /// Whether there is but one part.
    pub(crate) fn is_single(&self) -> bool {
        usize::try_from(total(self.sources)).is_ok_and(|total| total <= self.part_bytes)
    }

    /// The next part; the last one is shorter as a rule. `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut part = Vec::new();
        while part.len() < self.part_bytes {
            let Some(source) = self.sources.get(self.next) else { break };
            let room = self.part_bytes - part.len();
            let left = size(source).saturating_sub(self.done);
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(room);
            if wanted == 0 {
                (self.next, self.done) = (self.next + 1, 0);
                continue;
            }
            append(source, self.done, wanted, &mut part)?;
            self.done = self.done.saturating_add(u64::try_from(wanted).unwrap_or(u64::MAX));
        }
        Ok(Some(part).filter(|part| !part.is_empty()))
    }
}

/// Bytes of all sources.
fn total(sources: &[ObjectBytes<'_>]) -> u64 {
    sources.iter().map(size).fold(0, u64::saturating_add)
}

fn size(source: &ObjectBytes<'_>) -> u64 {
    match source {
        ObjectBytes::Memory(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        ObjectBytes::File { size_bytes, .. } => *size_bytes,
    }
}

/// Appends `wanted` bytes of a source from `from` on.
fn append(source: &ObjectBytes<'_>, from: u64, wanted: usize, part: &mut Vec<u8>) -> Result<()> {
    match source {
        ObjectBytes::Memory(bytes) => {
            let rest = usize::try_from(from).ok().and_then(|from| bytes.get(from..));
            part.extend(rest.unwrap_or_default().iter().take(wanted));
            Ok(())
        }
        ObjectBytes::File { file, position, .. } => {
            let held = part.len();
            part.resize(held.saturating_add(wanted), 0);
            let room = part.get_mut(held..).unwrap_or_default();
            let at = position.saturating_add(from);
            if file.read_at(room, at)? < wanted {
                let why = "the file ends before the bytes that were to be uploaded";
                return Err(Error::new(Kind::OutOfRange, why).in_file(file.path()).at_position(at));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use siltstone::io::{OpenMode, SimDisk, Storage};

    use super::*;

    fn parts(sources: &[ObjectBytes<'_>], part_bytes: usize) -> Vec<String> {
        let mut chunks = Chunks::new(sources, part_bytes);
        let mut parts = Vec::new();
        while let Some(part) = chunks.next().unwrap() {
            parts.push(String::from_utf8(part).unwrap());
        }
        parts
    }

    #[test]
    fn parts_are_full_but_for_the_last() {
        let disk = SimDisk::new();
        let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
        file.write_at(b"0123456789", 0).unwrap();
        let sources = [
            ObjectBytes::Memory(b"ab"),
            ObjectBytes::Memory(b""),
            ObjectBytes::File { file: &*file, position: 2, size_bytes: 7 },
            ObjectBytes::File { file: &*file, position: 0, size_bytes: 0 },
            ObjectBytes::Memory(b"xyz"),
        ];
        assert_eq!(parts(&sources, 5), ["ab234", "5678x", "yz"]);
        assert_eq!(parts(&sources, 12), ["ab2345678xyz"]);
        assert_eq!(parts(&sources, 1).len(), 12);
        assert_eq!(parts(&[], 5), Vec::<String>::new());
        assert!(Chunks::new(&sources, 12).is_single() && !Chunks::new(&sources, 11).is_single());
        let beyond = [ObjectBytes::File { file: &*file, position: 5, size_bytes: 6 }];
        let error = Chunks::new(&beyond, 100).next().unwrap_err();
        assert_eq!((error.kind(), error.position()), (Kind::OutOfRange, Some(5)));
    }

    #[test]
    fn a_huge_object_has_larger_parts_and_not_more_of_them() {
        let disk = SimDisk::new();
        let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
        let huge = [ObjectBytes::File { file: &*file, position: 0, size_bytes: 1 << 40 }];
        assert!(Chunks::new(&huge, 8 << 20).part_bytes > 100 << 20);
    }
}
