//! One file alone: a log, one of its side files, a small file beside them.

use std::path::Path;

use super::epochs::EpochCheck;
use super::findings::Place;
use super::options::VerifyOptions;
use super::partition::{Walk, folder_name};
use super::report::PartitionReport;
use crate::bytes;
use crate::error::{Error, Kind, Result};
use crate::io::{OpenMode, Storage};
use crate::log::inventory::{EPOCH_FILE, Inventory, METADATA_FILE, SegmentFiles};
use crate::log::name::FolderName;
use crate::problem::{Code, Severity};
use crate::segment::name::Parsed;
use crate::segment::{FileName, FileRole};
use crate::state::meta::MetaProperties;
use crate::state::{OffsetCheckpoint, Snapshot};

/// Whose directory it is.
pub(crate) const META_FILE: &str = "meta.properties";
/// More than any small file has.
const SMALL_SIZE_MAX: u64 = 512 << 20;

/// Checks a single file: a `.log` by itself, an index against the log beside it, any other file in
/// itself.
///
/// # Errors
/// Those of the storage, [`Kind::InvalidArgument`] for a file that is none of Kafka's by its name,
/// and [`Kind::Cancelled`].
pub fn verify_file(
    storage: &dyn Storage,
    path: &Path,
    options: &VerifyOptions<'_>,
) -> Result<PartitionReport> {
    let name = folder_name(path);
    let dir = path.parent().unwrap_or(Path::new("."));
    let parsed = FileName::parse(&name);
    let role = FileRole::ALL.into_iter().find(|role| name.ends_with(role.suffix()));
    let mut report = match (parsed, role) {
        (Parsed::Segment(FileName { role: FileRole::Snapshot, .. }), _)
        | (Parsed::Bad, Some(FileRole::Snapshot)) => read_snapshot(storage, path, &name, options)?,
        (Parsed::Segment(file), _) => {
            check_beside_log(storage, dir, &name, (file.role, file.offset), options)?
        }
        (Parsed::Bad, Some(FileRole::Log)) => {
            // A copy under another name: only its first batch tells where it began.
            let base = first_offset(storage, path)?;
            check_beside_log(storage, dir, &name, (FileRole::Log, base), options)?
        }
        _ => check_small_file(storage, dir, path, &name, options)?,
    };
    report.path = path.to_path_buf();
    let folder = FolderName::parse(&folder_name(dir));
    report.topic_partition = folder.map(|folder| (folder.topic, folder.partition));
    Ok(report)
}

fn first_offset(storage: &dyn Storage, path: &Path) -> Result<i64> {
    let mut first = [0_u8; 8];
    storage.open(path, OpenMode::Read)?.read_at(&mut first, 0)?;
    Ok(bytes::get_i64(&first, 0).unwrap_or(0).max(0))
}

/// Walks one log and keeps what is said of the file that was asked about.
fn check_beside_log(
    storage: &dyn Storage,
    dir: &Path,
    name: &str,
    (role, base_offset): (FileRole, i64),
    options: &VerifyOptions<'_>,
) -> Result<PartitionReport> {
    let log = match role {
        FileRole::Log => name.to_owned(),
        _ => FileName::live(base_offset, FileRole::Log).format(),
    };
    let log_size_bytes = match storage.metadata(&dir.join(&log)) {
        Ok(metadata) => metadata.size_bytes,
        Err(error) if error.kind() == Kind::NotFound && role != FileRole::Log => {
            let mut walk = Walk::begin(storage, dir, &Inventory::default(), options);
            let detail = "an index file without its log file";
            let (code, severity) = (Code::OrphanIndex, Severity::Repairable);
            walk.findings.add(code, severity, name, Place::FILE, detail);
            return Ok(walk.finish());
        }
        Err(error) => return Err(error),
    };
    let mut files = SegmentFiles { base_offset, log, log_size_bytes, ..SegmentFiles::default() };
    match role {
        FileRole::OffsetIndex => files.offset_index = Some(name.to_owned()),
        FileRole::TimeIndex => files.time_index = Some(name.to_owned()),
        FileRole::TxnIndex => files.txn_index = Some(name.to_owned()),
        FileRole::Log | FileRole::Snapshot => {}
    }
    let mut inventory = Inventory { dir: dir.to_path_buf(), ..Inventory::default() };
    inventory.segments.insert(base_offset, files);
    let mut walk = Walk::begin(storage, dir, &inventory, options);
    walk.walk_segments(&inventory)?;
    let mut report = walk.finish();
    report.problems.retain(|problem| problem.file == name);
    Ok(report)
}

fn read_snapshot(
    storage: &dyn Storage,
    path: &Path,
    name: &str,
    options: &VerifyOptions<'_>,
) -> Result<PartitionReport> {
    let bytes = storage.read(path, SMALL_SIZE_MAX)?;
    let mut walk = Walk::begin(storage, path, &Inventory::default(), options);
    let producers = match Snapshot::read(&bytes) {
        Ok(snapshot) => snapshot.iter().collect(),
        Err(fault) => {
            let place = Place { position: u64::try_from(fault.position).ok(), offset: None };
            walk.findings.add(fault.code, Severity::Repairable, name, place, fault.detail);
            Vec::new()
        }
    };
    let mut report = walk.finish();
    report.producers = producers;
    Ok(report)
}

fn check_small_file(
    storage: &dyn Storage,
    dir: &Path,
    path: &Path,
    name: &str,
    options: &VerifyOptions<'_>,
) -> Result<PartitionReport> {
    let mut walk = Walk::begin(storage, path, &Inventory::default(), options);
    match name {
        EPOCH_FILE => {
            walk.dir = dir;
            walk.read_epochs();
            let epochs = std::mem::replace(&mut walk.epochs, EpochCheck::none());
            walk.report.epochs = epochs.finish(i64::MAX, false, &mut walk.findings);
        }
        METADATA_FILE => {
            walk.dir = dir;
            walk.check_metadata();
        }
        _ => {
            let fault = check_directory_file(name, &storage.read(path, SMALL_SIZE_MAX)?)
                .map_err(|error| error.in_file(path))?;
            if let Some(error) = fault {
                let (code, severity) = (Code::CheckpointFile, fault_severity(name));
                walk.findings.add(code, severity, name, Place::FILE, error.to_string());
            }
        }
    }
    Ok(walk.finish())
}

/// What is wrong with one of the small files of a log directory.
///
/// # Errors
/// [`Kind::InvalidArgument`] for a file that is none of them by its name.
pub(crate) fn check_directory_file(name: &str, bytes: &[u8]) -> Result<Option<Error>> {
    match name {
        META_FILE => Ok(MetaProperties::parse(bytes).err()),
        // That it exists is all that counts.
        ".kafka_cleanshutdown" => Ok(None),
        _ if name.ends_with("-offset-checkpoint") => Ok(OffsetCheckpoint::parse(bytes).err()),
        _ => Err(Error::new(Kind::InvalidArgument, "no file of a Kafka log by its name")),
    }
}

/// How bad it is that such a file cannot be understood: without its own name a broker does not
/// start; without a checkpoint it begins with zeros.
pub(crate) fn fault_severity(name: &str) -> Severity {
    if name == META_FILE { Severity::Corrupt } else { Severity::Repairable }
}
