//! How is a segment split whose offsets reach too far for its indexes?

use std::path::Path;

use crate::error::{Error, Result};
use crate::io::{File, Metadata, OpenMode, Storage};
use crate::log::recover::plan::Split;
use crate::segment::{FileName, FileRole, FileState};

/// Bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Writes the parts of a segment as complete swaps, which the next inventory puts in its place.
pub(super) fn write_parts(
    storage: &dyn Storage,
    dir: &Path,
    log: &str,
    split: &Split,
    like: Option<&Metadata>,
) -> Result<()> {
    // spec: segments 4.7 and 4.8. All parts are whole before the first becomes a swap, and the last
    // one becomes it first: a crash in between leaves a `.cleaned` at or below every swap, and
    // then the original counts.
    let source = storage.open(&dir.join(log), OpenMode::Read)?;
    let size = source.metadata()?.size_bytes;
    let name =
        |base: i64, state| dir.join(FileName { offset: base, role: FileRole::Log, state }.format());
    for (part, (base, from)) in split.parts.iter().enumerate() {
        let to = split.parts.get(part.saturating_add(1)).map_or(size, |next| next.1);
        let path = name(*base, FileState::Cleaned);
        let target = storage.open(&path, OpenMode::Create)?;
        copy(&*source, *from, to, &*target)?;
        if let Some(like) = like {
            storage.set_owner(&path, like)?;
        }
        target.sync()?;
    }
    storage.sync_dir(dir)?;
    for (base, _) in split.parts.iter().rev() {
        storage.rename(&name(*base, FileState::Cleaned), &name(*base, FileState::Swap))?;
        // The order is what makes it safe, so it must be the order on disk, too.
        storage.sync_dir(dir)?;
    }
    Ok(())
}

/// Copies the bytes `from..to` of one file to the start of another.
pub(super) fn copy(source: &dyn File, from: u64, to: u64, target: &dyn File) -> Result<()> {
    let mut buffer = vec![0_u8; COPY_BYTES];
    let mut at = from;
    while at < to {
        let wanted = usize::try_from(to - at).unwrap_or(COPY_BYTES).min(COPY_BYTES);
        let piece = buffer.get_mut(..wanted).unwrap_or_default();
        let read = source.read_at(piece, at)?;
        let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else {
            return Err(Error::corrupt("the file became shorter while it was copied")
                .in_file(source.path())
                .at_position(at));
        };
        target.write_at(piece, at - from)?;
        at = at.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
    }
    Ok(())
}
