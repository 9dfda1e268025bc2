//! How does a file leave the page cache, so that it is read from the device again?

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::Result;

/// Writes what is dirty of a file and drops its pages.
///
/// # Errors
/// When the system refuses.
pub fn evict(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Says that a file will be read from front to back.
///
/// # Errors
/// When the system refuses.
pub fn will_read_in_order(file: &File) -> Result<()> {
    Ok(fadvise(file, 0, None, Advice::Sequential)?)
}

/// Makes everything written to the file system of `path` durable.
///
/// # Errors
/// When the system refuses.
pub fn sync_all(path: &Path) -> Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}
