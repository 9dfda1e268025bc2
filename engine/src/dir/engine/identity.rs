//! Whose are these log directories? `meta.properties` says, and is made where it is missing.

use std::collections::BTreeMap;

use super::directory::{LogDir, is_disk_failure};
use super::options::Identity;
use crate::dir::files::META_FILE;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::replace::replace;
use crate::state::meta::MetaProperties;
use crate::uuid::Uuid;

/// More than the file has.
const BYTES_MAX: u64 = 64 << 10;

/// Checks `meta.properties` of every directory and gives the directories their ids. One whose file
/// cannot be read or written goes offline.
///
/// # Errors
/// `Conflict` when a directory belongs to another node or cluster than it should, or than another
/// directory, or when two have the same id.
pub(super) fn settle(
    storage: &dyn Storage,
    dirs: &mut [LogDir],
    identity: Option<&Identity>,
    now_ms: i64,
) -> Result<()> {
    // spec: segments 1.1
    let mut wanted = identity.cloned();
    let mut ids: BTreeMap<Uuid, usize> = BTreeMap::new();
    for (number, dir) in dirs.iter_mut().enumerate().filter(|(_, dir)| !dir.is_offline()) {
        let meta = match read(storage, dir) {
            Ok(meta) => meta,
            Err(error) => {
                dir.fail(&error);
                continue;
            }
        };
        if let Some(meta) = &meta {
            check(dir, meta, &mut wanted)?;
        }
        let settled = match meta {
            Some(meta) => Some(meta),
            None => identity.map(|identity| MetaProperties {
                version: 1,
                cluster_id: Some(identity.cluster_id.clone()),
                node_id: Some(identity.node_id),
                directory_id: None,
            }),
        };
        match settled.map(|meta| with_id(storage, dir, meta, now_ms)).transpose() {
            Ok(id) => dir.id = id,
            Err(error) if is_disk_failure(&error) => drop(dir.fail(&error)),
            Err(error) => return Err(error),
        }
        if let Some(id) = dir.id
            && ids.insert(id, number).is_some()
        {
            let message = format!("another log directory has the same directory.id {id}");
            return Err(Error::new(Kind::Conflict, message).in_file(&dir.path));
        }
    }
    Ok(())
}

fn read(storage: &dyn Storage, dir: &LogDir) -> Result<Option<MetaProperties>> {
    let path = dir.path.join(META_FILE);
    match storage.read(&path, BYTES_MAX) {
        Ok(bytes) => MetaProperties::parse(&bytes).map(Some).map_err(|error| error.in_file(&path)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What one directory says of cluster and node must be what all say.
fn check(dir: &LogDir, meta: &MetaProperties, wanted: &mut Option<Identity>) -> Result<()> {
    let conflict = |what: &str, found: &str, wanted: &str| {
        let message = format!("{what} is {found}, not {wanted}");
        Err(Error::new(Kind::Conflict, message).in_file(&dir.path.join(META_FILE)))
    };
    match (wanted.as_ref(), &meta.cluster_id, meta.node_id) {
        (Some(wanted), Some(found), _) if *found != wanted.cluster_id => {
            conflict("the cluster's id", found, &wanted.cluster_id)
        }
        (Some(wanted), _, Some(found)) if found != wanted.node_id => {
            conflict("the node's id", &found.to_string(), &wanted.node_id.to_string())
        }
        (None, Some(cluster_id), Some(node_id)) => {
            *wanted = Some(Identity { cluster_id: cluster_id.clone(), node_id });
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The id of a directory, which is written down when it has none yet.
fn with_id(storage: &dyn Storage, dir: &LogDir, meta: MetaProperties, now_ms: i64) -> Result<Uuid> {
    if let Some(id) = meta.directory_id {
        return Ok(id);
    }
    let id = Uuid::random();
    let meta = MetaProperties { directory_id: Some(id), ..meta };
    replace(storage, &dir.path, META_FILE, &meta.format(now_ms))?;
    Ok(id)
}
