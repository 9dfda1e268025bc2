//! How is a small file replaced so that a crash leaves the old one or the new one?

use std::path::Path;

use crate::error::Result;
use crate::io::{OpenMode, Storage};

/// Writes `bytes` beside the file, makes them durable, and gives them the file's name.
// spec: segments 2.1
pub(crate) fn replace(storage: &dyn Storage, dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let beside = dir.join(format!("{name}.tmp"));
    let file = storage.open(&beside, OpenMode::Create)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    drop(file);
    storage.rename(&beside, &dir.join(name))?;
    storage.sync_dir(dir)
}
