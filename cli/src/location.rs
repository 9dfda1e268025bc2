//! PATHs that are URLs: what lies in an object store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::Result;
use siltstone::io::Storage;
use siltstone::tier::SegmentPart;
use siltstone::tier::layout::parse_part;
use siltstone_objects::{Place, RemoteDisk, RemoteStore, StoreOptions, is_url};

use crate::session::Session;

/// Where something is that an operator named.
#[derive(Debug)]
pub(crate) struct Location {
    /// The store that it is in; `None` for this machine's disk.
    pub(crate) store: Option<RemoteDisk>,
    /// Its path; in a store that is its URL.
    pub(crate) path: PathBuf,
}

impl Location {
    /// Finds out where a PATH is. Nothing is asked of a store yet.
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that names no store, and for settings it does not take.
    pub(crate) fn find(session: &Session, path: &Path) -> Result<Location> {
        let Some(text) = path.to_str().filter(|text| is_url(text)) else {
            return Ok(Location { store: None, path: path.to_path_buf() });
        };
        let place = Place::parse(text)?;
        if let Some(path) = place.local_path() {
            return Ok(Location { store: None, path });
        }
        let root = place.root();
        let settings = session.store_settings.clone();
        let options = StoreOptions { settings, ..StoreOptions::default() };
        let store = RemoteStore::open(&root, options)?;
        let root = PathBuf::from(root.shown());
        let path = if place.path().is_empty() { root.clone() } else { root.join(place.path()) };
        Ok(Location { store: Some(RemoteDisk::new(Arc::new(store), root)), path })
    }
}

/// The logs of uploaded segments in a directory, with their start offsets, which rise. A directory
/// of a broker has none.
pub(crate) fn logs(storage: &dyn Storage, dir: &Path) -> Result<Vec<(i64, PathBuf)>> {
    let entries = storage.list(dir)?.into_iter();
    let mut logs: Vec<(i64, PathBuf)> = entries
        .filter_map(|entry| match parse_part(entry.name.to_str()?)? {
            (start_offset, _, SegmentPart::Log) => Some((start_offset, dir.join(&entry.name))),
            _ => None,
        })
        .collect();
    logs.sort();
    Ok(logs)
}
