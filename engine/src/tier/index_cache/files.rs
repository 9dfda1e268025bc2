//! Where do the cached files lie, what are they called, and how do they come there?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::io::{FileKind, OpenMode, Storage};
use crate::tier::indexes::{INDEX_BYTES_MAX, SegmentIndexes, check_part};
use crate::tier::layout::{ObjectLayout, SegmentPart};
use crate::tier::remote_segment::RemoteSegment;
use crate::tier::target::ObjectTarget;
use crate::uuid::Uuid;

/// The parts that are kept, in the order in which they are fetched.
pub(super) const PARTS: [SegmentPart; 3] =
    [SegmentPart::OffsetIndex, SegmentPart::TimeIndex, SegmentPart::TransactionIndex];

/// What a file that is being written ends with.
const UNFINISHED: &str = ".tmp";

/// What a file that is to be unlinked ends with.
const DELETED: &str = ".deleted";

/// What the files of a segment are called by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) start_offset: i64,
    pub(super) segment_id: Uuid,
}

impl Name {
    pub(super) fn of(segment: &RemoteSegment) -> Self {
        Name { start_offset: segment.start_offset, segment_id: segment.id.segment_id }
    }

    /// The name of one file.
    pub(super) fn file(self, part: SegmentPart) -> String {
        // spec: tiered 7
        format!("{}_{}{}", self.start_offset, self.segment_id, part.suffix())
    }

    /// What a file of this name is; `None` for a name that is not written here.
    pub(super) fn parse(file: &str) -> Option<(Name, SegmentPart)> {
        let part = PARTS.into_iter().find(|part| file.ends_with(part.suffix()))?;
        let (start, id) = file.strip_suffix(part.suffix())?.split_once('_')?;
        let start_offset = start.parse().ok().filter(|start| *start >= 0)?;
        let name = Name { start_offset, segment_id: Uuid::parse(id)? };
        (name.file(part) == file).then_some((name, part))
    }
}

/// The folder of the cache, and the store that its files come from.
#[derive(Debug)]
pub(super) struct Files {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    target: Arc<dyn ObjectTarget>,
    layout: ObjectLayout,
}

impl Files {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        dir: PathBuf,
        target: Arc<dyn ObjectTarget>,
        layout: ObjectLayout,
    ) -> Self {
        Files { storage, dir, target, layout }
    }

    /// Puts the folder in order: what is unfinished, deleted, incomplete or damaged goes. Gives
    /// the segments that are left and their bytes.
    pub(super) fn sweep(&self) -> Result<Vec<(Name, u64)>> {
        match self.storage.create_dir(&self.dir) {
            Err(error) if error.kind() != Kind::Conflict => return Err(error),
            _ => {}
        }
        let mut found: BTreeMap<Name, usize> = BTreeMap::new();
        for entry in self.storage.list(&self.dir)? {
            let Some(file) = entry.name.to_str().filter(|_| entry.kind == FileKind::File) else {
                continue;
            };
            if file.ends_with(UNFINISHED) || file.ends_with(DELETED) {
                self.unlink(&self.dir.join(file))?;
            } else if let Some((name, _)) = Name::parse(file) {
                *found.entry(name).or_default() += 1;
            }
        }
        let mut sound = Vec::new();
        for (name, count) in found {
            // spec: tiered 7, "start-up"
            let size_bytes = if count == PARTS.len() { self.checked_size(name)? } else { None };
            match size_bytes {
                Some(size_bytes) => sound.push((name, size_bytes)),
                None => self.remove(name)?,
            }
        }
        Ok(sound)
    }

    /// The bytes of all files of a segment; `None` when one is damaged.
    fn checked_size(&self, name: Name) -> Result<Option<u64>> {
        let mut size_bytes = 0_u64;
        for part in PARTS {
            let Some(bytes) = self.read_sound(name, part)? else { return Ok(None) };
            size_bytes = size_bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        }
        Ok(Some(size_bytes))
    }

    /// Loads the side files of a segment: those that lie here and are sound, and the others from
    /// the store, one after another. The first that fails is the last one asked for.
    pub(super) fn load(&self, segment: &RemoteSegment) -> Result<Arc<SegmentIndexes>> {
        let name = Name::of(segment);
        let load = |part| match self.read_sound(name, part)? {
            Some(bytes) => Ok(bytes),
            None => self.fetch(segment, part),
        };
        let offset_index = load(SegmentPart::OffsetIndex)?;
        let time_index = load(SegmentPart::TimeIndex)?;
        let transaction_index = load(SegmentPart::TransactionIndex)?;
        let start = name.start_offset;
        let indexes = SegmentIndexes::new(start, offset_index, time_index, transaction_index);
        Ok(Arc::new(indexes))
    }

    /// The bytes of a file that is there and sound.
    fn read_sound(&self, name: Name, part: SegmentPart) -> Result<Option<Vec<u8>>> {
        match self.storage.read(&self.dir.join(name.file(part)), INDEX_BYTES_MAX) {
            Ok(bytes) => {
                let is_sound = check_part(part, name.start_offset, &bytes).is_ok();
                Ok(Some(bytes).filter(|_| is_sound))
            }
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Limit) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Bytes of the files of a segment that lie here.
    pub(super) fn size_bytes(&self, name: Name) -> u64 {
        let size = |part| self.storage.metadata(&self.dir.join(name.file(part)));
        PARTS.into_iter().filter_map(|part| size(part).ok()).map(|it| it.size_bytes).sum()
    }

    /// Fetches a side file from the store, and keeps it when it is sound.
    fn fetch(&self, segment: &RemoteSegment, part: SegmentPart) -> Result<Vec<u8>> {
        let object = self.layout.name(&segment.id, segment.start_offset, part);
        // spec: tiered 7, "transaction index missing remotely"
        let is_optional = part == SegmentPart::TransactionIndex;
        let bytes = if is_optional && segment.is_txn_index_empty {
            Vec::new()
        } else {
            match self.target.get(&object, None, INDEX_BYTES_MAX) {
                Err(error) if is_optional && error.kind() == Kind::NotFound => Vec::new(),
                outcome => outcome.map_err(|error| error.context(format!("fetch {object}")))?,
            }
        };
        check_part(part, segment.start_offset, &bytes)
            .map_err(|error| Error::corrupt(error.to_string()).context(object))?;
        self.keep(&Name::of(segment).file(part), &bytes)?;
        Ok(bytes)
    }

    /// Writes a file beside its place and renames it. It is made durable first: zeros instead of
    /// bytes, as a power cut leaves them, would look like entries.
    fn keep(&self, file: &str, bytes: &[u8]) -> Result<()> {
        let beside = self.dir.join(format!("{file}{UNFINISHED}"));
        let written = self.storage.open(&beside, OpenMode::Create)?;
        written.write_at(bytes, 0)?;
        written.sync()?;
        drop(written);
        self.storage.rename(&beside, &self.dir.join(file))
    }

    /// Renames the files of a segment, so that they are no part of the cache. Gives their paths,
    /// and what the disk says of the first that it refuses.
    pub(super) fn set_aside(&self, name: Name) -> (Vec<PathBuf>, Result<()>) {
        let (mut paths, mut outcome) = (Vec::new(), Ok(()));
        for part in PARTS {
            let path = self.dir.join(name.file(part));
            let aside = self.dir.join(name.file(part) + DELETED);
            match self.storage.rename(&path, &aside) {
                Ok(()) => paths.push(aside),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        (paths, outcome)
    }

    /// Unlinks the files of a segment.
    pub(super) fn remove(&self, name: Name) -> Result<()> {
        PARTS.into_iter().try_for_each(|part| self.unlink(&self.dir.join(name.file(part))))
    }

    /// Unlinks a file that may be gone.
    pub(super) fn unlink(&self, path: &Path) -> Result<()> {
        match self.storage.remove_file(path) {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            other => other,
        }
    }
}
