//! Which uploaded logs may hold what is wanted?
//!
//! Uploads of a partition may overlap, after a leader change or a copy that was begun anew: where
//! one begins does not tell where the one before it ends. Its parts do.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use siltstone::Result;
use siltstone::tier::layout::{parse_part, parse_partition};
use siltstone::tier::{ObjectLayout, RemoteInventory, RemoteParts, read_remote_segments};
use siltstone::uuid::Uuid;

use crate::location;
use crate::remote::READERS;
use crate::session::Session;
use crate::target::file_name;

/// Those of the uploaded logs in `dir`, by start offset, that may hold some of the offsets.
pub(super) fn wanted<'a>(
    session: &Session,
    dir: &Path,
    logs: &'a [(i64, PathBuf)],
    offsets: &Range<i64>,
) -> Vec<&'a Path> {
    let begin_before = logs.partition_point(|(start, _)| *start < offsets.end);
    let logs = logs.get(..begin_before).unwrap_or_default();
    // The rest is in the last log that begins at the first offset or before it, and in those behind
    // it, unless uploads overlap.
    let sure = logs.partition_point(|(start, _)| *start <= offsets.start).saturating_sub(1);
    let (doubtful, sure) = logs.split_at(sure);
    // What cannot be found out here is told where the log itself is read.
    let ends = match doubtful {
        [] => HashMap::new(),
        _ => ends(session, dir, doubtful).unwrap_or_default(),
    };
    let may_reach = |(_, path): &&(i64, PathBuf)| {
        let end = id_of(path).and_then(|id| ends.get(&id));
        end.is_none_or(|end| *end >= offsets.start)
    };
    doubtful.iter().filter(may_reach).chain(sure).map(|(_, path)| &**path).collect()
}

/// The last offsets of uploads, as far as their parts tell.
fn ends(session: &Session, dir: &Path, logs: &[(i64, PathBuf)]) -> Result<HashMap<Uuid, i64>> {
    let Some(partition) = parse_partition(&file_name(dir)) else { return Ok(HashMap::new()) };
    let above = match dir.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let (target, layout) = (location::objects(session, above)?, ObjectLayout::with_prefix(""));
    let parts = RemoteInventory::list_partition(&*target, &layout, &partition)?;
    let asked: HashSet<Uuid> = logs.iter().filter_map(|(_, path)| id_of(path)).collect();
    let parts: Vec<&RemoteParts> =
        parts.iter().filter(|parts| asked.contains(&parts.id.segment_id)).collect();
    let read = read_remote_segments(&*target, &layout, &parts, READERS);
    let told = read.into_iter().filter_map(|segment| segment.ok().flatten());
    Ok(told.map(|segment| (segment.id.segment_id, segment.end_offset)).collect())
}

/// The id in the name of an uploaded log.
fn id_of(path: &Path) -> Option<Uuid> {
    parse_part(&file_name(path)).map(|(_, id, _)| id)
}
