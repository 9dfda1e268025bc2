//! Do all disks do the same? The same operations, chosen at random, on each of them.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::error::{Kind, Result};
use crate::io::sim::Snapshot;
use crate::io::{Disk, File, FileKind, FileWrite, OpenMode, RingDisk, SimDisk, Storage};

/// One operation. Paths and files are chosen by number.
#[derive(Clone, Debug)]
enum Step {
    Open(usize, OpenMode),
    Close(usize),
    Write(usize, usize, u64),
    WriteParts(usize, Vec<usize>, u64),
    WriteAll(Vec<usize>, u64),
    Read(usize, usize, u64),
    SetSize(usize, u64),
    SizeOf(usize),
    Sync(usize),
    SyncAll,
    Metadata(usize),
    List(usize),
    Rename(usize, usize),
    Remove(usize),
    RemoveDir(usize),
    CreateDir(usize),
    SyncDir(usize),
    ReadWhole(usize, u64),
    Lock(usize),
    IsLocked(usize),
}

/// Two open files may be one and the same: what is written to both at once must not overlap.
const WRITE_ALL_STRIDE: usize = 3000;

const PATHS: [&str; 9] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x", "missing/x"];

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    let file = || 0..4_usize;
    let size = || prop_oneof![0..20_usize, 400..1200_usize, Just(100_000)];
    let position = || prop_oneof![0..2000_u64, Just(u64::MAX), Just(1 << 63), Just((1 << 63) + 77)];
    let sizes = || prop::collection::vec(prop_oneof![1 => Just(0), 3 => size()], 0..6);
    let small = || prop::collection::vec(0..WRITE_ALL_STRIDE / 6, 0..6);
    let mode = prop_oneof![
        Just(OpenMode::Read),
        Just(OpenMode::ReadWrite),
        Just(OpenMode::Rewrite),
        Just(OpenMode::Create),
        Just(OpenMode::CreateNew),
    ];
    prop_oneof![
        4 => (path(), mode).prop_map(|(path, mode)| Step::Open(path, mode)),
        1 => file().prop_map(Step::Close),
        4 => (file(), size(), position()).prop_map(|(f, size, at)| Step::Write(f, size, at)),
        2 => (file(), sizes(), position()).prop_map(|(f, sizes, at)| {
            Step::WriteParts(f, sizes, at)
        }),
        2 => (small(), position()).prop_map(|(sizes, at)| Step::WriteAll(sizes, at)),
        4 => (file(), size(), position()).prop_map(|(f, size, at)| Step::Read(f, size, at)),
        1 => (file(), position()).prop_map(|(f, size)| Step::SetSize(f, size)),
        1 => file().prop_map(Step::SizeOf),
        1 => file().prop_map(Step::Sync),
        1 => Just(Step::SyncAll),
        2 => path().prop_map(Step::Metadata),
        2 => path().prop_map(Step::List),
        3 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => path().prop_map(Step::Remove),
        1 => path().prop_map(Step::RemoveDir),
        3 => path().prop_map(Step::CreateDir),
        1 => path().prop_map(Step::SyncDir),
        2 => (path(), 0..2000_u64).prop_map(|(path, limit)| Step::ReadWhole(path, limit)),
        1 => path().prop_map(Step::Lock),
        1 => path().prop_map(Step::IsLocked),
    ]
}

/// A disk under test, its root and the files that are open on it.
struct Subject {
    storage: Box<dyn Storage>,
    root: PathBuf,
    files: Vec<Box<dyn File>>,
}

impl Subject {
    fn new(storage: impl Storage + 'static, root: &Path) -> Self {
        Subject { storage: Box::new(storage), root: root.to_path_buf(), files: Vec::new() }
    }

    /// Does a step and tells what came of it, without what is of this disk alone.
    fn run(&mut self, step: &Step, number: usize) -> String {
        outcome(self.attempt(step, number))
    }

    fn attempt(&mut self, step: &Step, number: usize) -> Result<String> {
        let path = |path: &usize| self.root.join(PATHS[*path]);
        let storage = &*self.storage;
        let told = match step {
            Step::Open(at, mode) => {
                let file = storage.open(&path(at), *mode)?;
                assert_eq!(file.path(), path(at));
                self.files.insert(0, file);
                self.files.truncate(4);
                String::new()
            }
            Step::Close(file) if *file < self.files.len() => {
                self.files.remove(*file);
                String::new()
            }
            Step::Metadata(at) => {
                let found = storage.metadata(&path(at))?;
                let size = (found.kind == FileKind::File).then_some(found.size_bytes);
                format!("{:?} {size:?}", found.kind)
            }
            Step::List(at) => {
                let names = storage.list(&path(at))?;
                let sized = storage.list_with_metadata(&path(at))?;
                for (entry, metadata) in &sized {
                    assert_eq!(*metadata, storage.metadata(&path(at).join(&entry.name))?);
                }
                assert_eq!(sized.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>(), names);
                format!("{names:?}")
            }
            Step::Rename(from, to) => told(storage.rename(&path(from), &path(to))?),
            Step::Remove(at) => told(storage.remove_file(&path(at))?),
            Step::RemoveDir(at) => told(storage.remove_dir(&path(at))?),
            Step::CreateDir(at) => told(storage.create_dir(&path(at))?),
            Step::SyncDir(at) => told(storage.sync_dir(&path(at))?),
            Step::ReadWhole(at, limit) => format!("{:?}", storage.read(&path(at), *limit)?),
            Step::IsLocked(at) => format!("{}", storage.is_locked(&path(at))?),
            Step::Lock(at) => {
                let lock = storage.lock(&path(at))?;
                assert!(!storage.is_locked(&path(at))?);
                assert_eq!(storage.lock(&path(at)).unwrap_err().kind(), Kind::Conflict);
                drop(lock);
                String::new()
            }
            Step::SyncAll => {
                let files: Vec<&dyn File> = self.files.iter().map(|file| &**file).collect();
                format!("{:?}", storage.sync_files(&files))
            }
            Step::WriteAll(sizes, at) => {
                let bytes = parts(sizes, number);
                let parts: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
                let positions = (0..).step_by(WRITE_ALL_STRIDE);
                let writes: Vec<FileWrite<'_>> = positions
                    .zip(self.files.iter().enumerate())
                    .map(|(ahead, (n, file))| {
                        let parts = parts.get(n..).unwrap_or_default();
                        FileWrite { file: &**file, parts, position: at.saturating_add(ahead) }
                    })
                    .collect();
                let outcomes: Vec<String> = storage
                    .write_files(&writes)
                    .into_iter()
                    .map(|done| outcome(done.map(told)))
                    .collect();
                format!("{outcomes:?}")
            }
            on_file => self.attempt_on_file(on_file, number)?,
        };
        Ok(told)
    }

    fn attempt_on_file(&self, step: &Step, number: usize) -> Result<String> {
        let (Step::Write(file, ..)
        | Step::WriteParts(file, ..)
        | Step::Read(file, ..)
        | Step::SetSize(file, _)
        | Step::SizeOf(file)
        | Step::Sync(file)) = step
        else {
            return Ok(String::new());
        };
        let Some(file) = self.files.get(*file) else { return Ok(String::new()) };
        match step {
            Step::Write(_, size, at) => {
                file.write_at(&vec![u8::try_from(number % 251).unwrap(); *size], *at)?;
            }
            Step::WriteParts(_, sizes, at) => {
                let bytes = parts(sizes, number);
                let parts: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
                file.write_parts_at(&parts, *at)?;
            }
            Step::Read(_, size, at) => {
                let mut buffer = vec![255; *size];
                let count = file.read_at(&mut buffer, *at)?;
                return Ok(format!("{count} {buffer:?}"));
            }
            Step::SetSize(_, size) => file.set_size(*size)?,
            Step::SizeOf(_) => return Ok(format!("{}", file.metadata()?.size_bytes)),
            _ => file.sync()?,
        }
        Ok(String::new())
    }
}

fn told((): ()) -> String {
    "done".to_owned()
}

/// What came of something, without what is of one disk alone.
fn outcome(outcome: Result<impl std::fmt::Display>) -> String {
    match outcome {
        Ok(told) => told.to_string(),
        Err(e) => format!("{:?} {:?} at {:?}", e.kind(), e.errno(), e.position()),
    }
}

/// Parts of these sizes, each of other bytes.
fn parts(sizes: &[usize], number: usize) -> Vec<Vec<u8>> {
    let byte = |n: usize| u8::try_from((number + n) % 251).unwrap();
    sizes.iter().enumerate().map(|(n, size)| vec![byte(n); *size]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn all_disks_do_the_same(steps in prop::collection::vec(step(), 1..60)) {
        let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let simulated = SimDisk::new();
        simulated.put_dir(Path::new("/root"), None).unwrap();
        let mut subjects = vec![
            Subject::new(Disk::new(), dirs[0].path()),
            Subject::new(RingDisk::auto(), dirs[1].path()),
            Subject::new(simulated, Path::new("/root")),
        ];
        if let Ok(ring) = RingDisk::forced() {
            subjects.push(Subject::new(ring, dirs[2].path()));
        }
        for (number, step) in steps.iter().enumerate() {
            let told: Vec<String> = subjects.iter_mut().map(|s| s.run(step, number)).collect();
            for (which, other) in told.iter().enumerate() {
                prop_assert_eq!(&told[0], other, "disk {} at {}: {:?}", which, number, step);
            }
        }
        let trees: Vec<Snapshot> = subjects
            .iter()
            .map(|subject| Snapshot::read(&*subject.storage, &subject.root).unwrap())
            .collect();
        for other in &trees {
            prop_assert_eq!(trees[0].differences(other), Vec::<String>::new());
        }
    }
}
