//! What is named by a URL: a PATH, or the objects of `--remote`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::io::{FileKind, Storage};
use siltstone::tier::layout::parse_part;
use siltstone::tier::{LocalTarget, ObjectTarget, SegmentPart};
use siltstone::{Error, Kind, Result};
use siltstone_objects::{Place, RemoteDisk, RemoteStore, StoreOptions};

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
        let place = match Named::find(path)? {
            Named::Local(path) => return Ok(Location { store: None, path }),
            Named::Stored(place) => place,
        };
        let root = place.root();
        let store = open_store(session, &root)?;
        let root = PathBuf::from(root.shown());
        let path = if place.path().is_empty() { root.clone() } else { root.join(place.path()) };
        Ok(Location { store: Some(RemoteDisk::new(Arc::new(store), root)), path })
    }
}

/// The objects below a folder or URL, such as `/mnt/remote` or `s3://bucket/folder`.
///
/// # Errors
/// `InvalidArgument` as for a [`Location`] and for what is no folder; what the disk says. A store
/// is not asked yet.
pub(crate) fn objects(session: &Session, path: &Path) -> Result<Arc<dyn ObjectTarget>> {
    let dir = match Named::find(path)? {
        Named::Stored(place) => return Ok(Arc::new(open_store(session, &place)?)),
        Named::Local(dir) => dir,
    };
    if session.storage().metadata(&dir)?.kind != FileKind::Directory {
        return Err(Error::new(Kind::InvalidArgument, "no folder").in_file(&dir));
    }
    Ok(Arc::new(LocalTarget::new(session.disk(), dir)))
}

/// Whether what a path or URL names is in a store.
pub(crate) fn is_stored(path: &Path) -> bool {
    matches!(Named::find(path), Ok(Named::Stored(_)))
}

/// What a path or URL names.
enum Named {
    /// Something on this machine's disk.
    Local(PathBuf),
    /// Something in a store.
    Stored(Place),
}

impl Named {
    fn find(path: &Path) -> Result<Named> {
        let Some(text) = path.to_str().filter(|text| has_scheme(text)) else {
            return Ok(Named::Local(path.to_path_buf()));
        };
        let place = Place::parse(text)?;
        Ok(place.local_path().map_or(Named::Stored(place), Named::Local))
    }
}

/// Whether a text is meant as a URL, be it of a store that is known or not.
fn has_scheme(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn open_store(session: &Session, place: &Place) -> Result<RemoteStore> {
    let settings = session.store_settings.clone();
    RemoteStore::open(place, StoreOptions { settings, ..StoreOptions::default() })
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
