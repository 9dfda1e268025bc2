//! What is a PATH that was given: a file, a partition directory, or a log directory with many of
//! them?

use std::path::{Path, PathBuf};

use siltstone::io::{FileKind, Storage};
use siltstone::log::{FolderKind, FolderName};
use siltstone::segment::name::Parsed;
use siltstone::segment::{FileName, FileRole};
use siltstone::tier::SegmentPart;
use siltstone::tier::layout::parse_part;
use siltstone::{Error, Kind, Result};

/// Files that stand in a log directory and nowhere else.
const LOG_DIR_FILES: [&str; 6] = [
    "meta.properties",
    ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
];

/// Files that stand in a partition directory and nowhere else.
const PARTITION_FILES: [&str; 3] =
    ["partition.metadata", "leader-epoch-checkpoint", "quorum-state"];

/// What a PATH is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A single file.
    File {
        /// Where it is.
        path: PathBuf,
        /// What its name says that it holds.
        content: Content,
    },
    /// The directory of one partition.
    Partition(PathBuf),
    /// An entry of `log.dirs`.
    LogDir(PathBuf),
}

/// What a file holds, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A file of a segment. The base offset is 0 where the name has none.
    Segment(FileRole, i64),
    /// Bytes that an earlier recovery cut.
    Lost,
    /// `leader-epoch-checkpoint`.
    Epochs,
    /// A checkpoint of offsets by partition.
    Offsets,
    /// A snapshot of the KRaft metadata, or the records that it was bootstrapped with.
    MetadataSnapshot,
    /// A small file of lines: properties, topic id, clean-shutdown marker, quorum state.
    Text,
}

impl Target {
    /// Looks at the path, which must exist.
    pub(crate) fn classify(storage: &dyn Storage, path: &Path) -> Result<Target> {
        let path = &with_name_and_parent(path)?;
        match storage.metadata(path)?.kind {
            FileKind::Directory => classify_directory(storage, path),
            FileKind::File => {
                let content = Content::of_name(&file_name(path)).ok_or_else(|| {
                    let why = "not a file of a Kafka log by its name (.log, .index, .timeindex, \
                               .txnindex, .snapshot, or a checkpoint)";
                    Error::new(Kind::InvalidArgument, why).in_file(path)
                })?;
                Ok(Target::File { path: path.to_path_buf(), content })
            }
            FileKind::DanglingLink => {
                Err(Error::new(Kind::NotFound, "a symbolic link that leads nowhere").in_file(path))
            }
            FileKind::Other => {
                Err(Error::new(Kind::InvalidArgument, "neither a file nor a directory")
                    .in_file(path))
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Target::File { path, .. } | Target::Partition(path) | Target::LogDir(path) => path,
        }
    }
}

/// One partition directory among those that were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionDir {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its folder's name.
    pub(crate) name: String,
    /// What the name says; `None` for a directory that was given by itself and is called as it
    /// likes.
    pub(crate) folder: Option<FolderName>,
}

impl PartitionDir {
    /// The partition directory at `path`.
    pub(crate) fn at(path: &Path) -> Self {
        let name = file_name(path);
        let folder = FolderName::parse(&name);
        PartitionDir { path: path.to_path_buf(), name, folder }
    }

    /// The partition directories of a target, by name: of a log directory all that Kafka would
    /// know. A file has none.
    pub(crate) fn of_target(storage: &dyn Storage, target: &Target) -> Result<Vec<Self>> {
        let dir = match target {
            Target::File { .. } => return Ok(Vec::new()),
            Target::Partition(path) => return Ok(vec![PartitionDir::at(path)]),
            Target::LogDir(path) => path,
        };
        let folders = storage.list(dir)?.into_iter();
        let folders = folders.filter(|entry| entry.kind == FileKind::Directory);
        let all = folders.map(|entry| PartitionDir::at(&dir.join(entry.name)));
        Ok(all.filter(|partition| partition.folder.is_some()).collect())
    }

    /// Whether it is in use, as far as its name tells.
    pub(crate) fn is_live(&self) -> bool {
        self.folder.as_ref().is_none_or(|folder| folder.kind == FolderKind::Live)
    }
}

fn classify_directory(storage: &dyn Storage, path: &Path) -> Result<Target> {
    let entries = storage.list(path)?;
    let (mut partition_files, mut log_dir_files, mut folders) = (false, false, false);
    for entry in &entries {
        let name = entry.name.to_string_lossy();
        if entry.kind == FileKind::Directory {
            folders |= FolderName::parse(&name).is_some();
            continue;
        }
        log_dir_files |= LOG_DIR_FILES.contains(&name.as_ref());
        partition_files |= PARTITION_FILES.contains(&name.as_ref())
            || FileName::parse(&name) != Parsed::Other
            || matches!(Content::of_name(&name), Some(Content::Lost));
    }
    // A log directory may hold anything, a partition directory holds no folders of partitions.
    if log_dir_files || (folders && !partition_files) {
        return Ok(Target::LogDir(path.to_path_buf()));
    }
    if partition_files || FolderName::parse(&file_name(path)).is_some() {
        return Ok(Target::Partition(path.to_path_buf()));
    }
    let why = "neither a partition directory nor a log directory: no segments, no folders of \
               partitions, no meta.properties";
    Err(Error::new(Kind::InvalidArgument, why).in_file(path))
}

impl Content {
    /// What a file of this name holds; `None` for a name that is not of Kafka's or ours.
    pub(crate) fn of_name(name: &str) -> Option<Content> {
        match name {
            "leader-epoch-checkpoint" => return Some(Content::Epochs),
            "bootstrap.checkpoint" => return Some(Content::MetadataSnapshot),
            "meta.properties" | "partition.metadata" | ".kafka_cleanshutdown" | "quorum-state" => {
                return Some(Content::Text);
            }
            _ => {}
        }
        if let Some((start_offset, _, part)) = parse_part(name) {
            let role = match part {
                SegmentPart::Log => FileRole::Log,
                SegmentPart::OffsetIndex => FileRole::OffsetIndex,
                SegmentPart::TimeIndex => FileRole::TimeIndex,
                SegmentPart::TransactionIndex => FileRole::TxnIndex,
                SegmentPart::ProducerSnapshot => FileRole::Snapshot,
                SegmentPart::LeaderEpochs => return Some(Content::Epochs),
            };
            return Some(Content::Segment(role, start_offset));
        }
        if name.ends_with("-offset-checkpoint") {
            return Some(Content::Offsets);
        }
        let unmarked = name.strip_suffix(".deleted").or_else(|| name.strip_suffix(".part"));
        if unmarked.unwrap_or(name).ends_with(".checkpoint") {
            return Some(Content::MetadataSnapshot);
        }
        if name.contains(".log.lost") {
            return Some(Content::Lost);
        }
        match FileName::parse(name) {
            Parsed::Segment(file) => Some(Content::Segment(file.role, file.offset)),
            // A copy under another name: its suffix still says what it is.
            Parsed::Bad => FileRole::ALL
                .into_iter()
                .find(|role| name.ends_with(role.suffix()))
                .map(|role| Content::Segment(role, 0)),
            Parsed::Other => None,
        }
    }
}

/// The same path, written so that its name and the directory it is in can be read from it: a
/// partition's name tells its topic, and beside it are checkpoints and the broker's lock.
fn with_name_and_parent(path: &Path) -> Result<PathBuf> {
    if path.file_name().is_none() && !path.has_root() {
        // `.` and `..`
        return std::fs::canonicalize(path).map_err(|error| Error::io("find", path, error));
    }
    let is_bare = path.parent().is_some_and(|parent| parent.as_os_str().is_empty());
    Ok(if is_bare { Path::new(".").join(path) } else { path.to_path_buf() })
}

/// The last part of a path as text.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name() {
        let zero = "00000000000000000000";
        let uploaded = "00000000000000000089-y-tcbHSyS_K1aAUhhTCjAg";
        for (name, content) in [
            (format!("{zero}.log"), Content::Segment(FileRole::Log, 0)),
            ("00000000000000000042.log.swap".into(), Content::Segment(FileRole::Log, 42)),
            ("copy of it.log".into(), Content::Segment(FileRole::Log, 0)),
            (format!("{zero}.timeindex.deleted"), Content::Segment(FileRole::TimeIndex, 0)),
            (format!("{zero}.log.lost"), Content::Lost),
            (format!("{zero}.log.lost.1"), Content::Lost),
            ("00000000000000000100-0000000003.checkpoint".into(), Content::MetadataSnapshot),
            ("leader-epoch-checkpoint".into(), Content::Epochs),
            ("recovery-point-offset-checkpoint".into(), Content::Offsets),
            ("meta.properties".into(), Content::Text),
            (format!("{uploaded}.log"), Content::Segment(FileRole::Log, 89)),
            (format!("{uploaded}.index"), Content::Segment(FileRole::OffsetIndex, 89)),
            (format!("{uploaded}.txnindex"), Content::Segment(FileRole::TxnIndex, 89)),
            (format!("{uploaded}.snapshot"), Content::Segment(FileRole::Snapshot, 89)),
            (format!("{uploaded}.leader_epoch_checkpoint"), Content::Epochs),
        ] {
            assert_eq!(Content::of_name(&name), Some(content), "{name}");
        }
        for name in ["notes.txt", "", "log", "checkpoint"] {
            assert_eq!(Content::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn every_path_gets_a_name_and_a_parent() {
        let of = |path: &str| with_name_and_parent(Path::new(path)).unwrap();
        assert_eq!(of("orders-0"), Path::new("./orders-0"));
        assert_eq!(of("orders-0").parent(), Some(Path::new(".")));
        for path in ["a/b", "./b", "/b", "../b", "/"] {
            assert_eq!(of(path), Path::new(path));
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(of("."), here);
        assert_eq!(of(".."), here.parent().unwrap());
        assert!(with_name_and_parent(Path::new("")).is_err());
    }

    #[test]
    fn directories_are_told_apart_by_what_is_in_them() {
        let dir = std::env::temp_dir().join(format!("siltstone-target-{}", std::process::id()));
        let at = |parts: &str| dir.join(parts);
        std::fs::create_dir_all(at("data/orders-0")).unwrap();
        std::fs::create_dir_all(at("odd")).unwrap();
        std::fs::write(at("odd/00000000000000000000.log"), b"").unwrap();
        std::fs::create_dir_all(at("nothing")).unwrap();
        let disk = siltstone::io::Disk::new();
        let of = |parts: &str| Target::classify(&disk, &at(parts));
        assert_eq!(of("data").unwrap(), Target::LogDir(at("data")));
        assert_eq!(of("data/orders-0").unwrap(), Target::Partition(at("data/orders-0")));
        assert_eq!(of("odd").unwrap(), Target::Partition(at("odd")));
        assert_eq!(of("nothing").unwrap_err().kind(), Kind::InvalidArgument);
        assert_eq!(of("gone").unwrap_err().kind(), Kind::NotFound);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
