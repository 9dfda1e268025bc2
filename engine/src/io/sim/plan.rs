//! What does a test do to the simulated disk behind the engine's back? Faults, limits and files
//! that are just there.

use std::path::Path;
use std::sync::Arc;

use super::body::Body;
use super::disk::{SimDisk, find_or_create, io_error};
use super::faults::Operation;
use super::tree::{Content, directory};
use crate::error::Result;
use crate::io::{FileKind, Metadata};

impl SimDisk {
    /// Makes the power go at the n-th operation: it may be done or not, and fails, as does all that
    /// follows.
    pub fn crash_at(&self, number: u64) {
        self.state().faults.crash_at = Some(number);
    }

    /// Makes the power go at the n-th of the operations that change the disk or make changes
    /// durable.
    pub fn crash_at_change(&self, number: u64) {
        self.state().faults.crash_at_change = Some(number);
    }

    /// Makes the n-th operation fail once with this error number. A write does its first half, and
    /// a sync loses what it should have made durable, as Linux does.
    pub fn fail_at(&self, number: u64, errno: i32) {
        self.state().faults.fail_at.insert(number, errno);
    }

    /// Makes all changes from the n-th operation on fail with this error number: a full or a
    /// read-only disk.
    pub fn fail_changes_from(&self, number: u64, errno: i32) {
        self.state().faults.fail_changes_from = Some((number, errno));
    }

    /// Lets no operation fail any more, and as many files be open as there may be. What a sync has
    /// lost stays lost.
    pub fn mend(&self) {
        let mut state = self.state();
        state.faults.fail_at.clear();
        state.faults.fail_changes_from = None;
        state.open_files_max = usize::MAX;
    }

    /// Makes the n-th operation, if it is a sync, do nothing and say that all is well.
    pub fn lose_sync_at(&self, number: u64) {
        self.state().faults.lose_sync_at.insert(number);
    }

    /// Makes every sync do nothing and say that all is well.
    pub fn lose_syncs(&self) {
        self.state().faults.lose_syncs = true;
    }

    /// All operations so far.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        self.state().faults.log.clone()
    }

    /// How many operations there were.
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        u64::try_from(self.state().faults.log.len()).unwrap_or(u64::MAX)
    }

    /// How many of them changed the disk or made changes durable.
    #[must_use]
    pub fn change_count(&self) -> u64 {
        self.state().faults.change_count
    }

    /// Whether a planned cut has come.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state().faults.is_off
    }

    /// From now on, opening a file fails with "too many open files" when so many are open.
    pub fn limit_open_files(&self, count_max: usize) {
        self.state().open_files_max = count_max;
    }

    /// The most files that were open at once.
    #[must_use]
    pub fn open_files_peak(&self) -> usize {
        self.state().open_files_peak
    }

    /// Has another process hold the lock on a file, making the file when it is missing.
    pub fn hold_lock_elsewhere(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        let id = find_or_create(&mut state.tree, path).map_err(|e| io_error("lock", path, e))?;
        state.foreign_locks.insert(id);
        Ok(())
    }

    /// Makes everything durable, without counting as an operation.
    pub fn settle(&self) {
        self.state().tree.sync_all();
    }

    /// Puts a file in place, durably and without counting as an operation; missing directories are
    /// made.
    pub fn put(&self, path: &Path, bytes: Vec<u8>, like: Option<&Metadata>) -> Result<()> {
        self.put_content(path, Content::File(Body::of(Arc::new(bytes))), like)
    }

    /// Puts an empty directory in place, as [`SimDisk::put`] does with a file.
    pub fn put_dir(&self, path: &Path, like: Option<&Metadata>) -> Result<()> {
        self.put_content(path, directory(), like)
    }

    /// Puts something in place that cannot be opened: a pipe or a link that leads nowhere.
    pub fn put_other(&self, path: &Path, kind: FileKind) -> Result<()> {
        self.put_content(path, Content::Other(kind), None)
    }

    fn put_content(&self, path: &Path, content: Content, like: Option<&Metadata>) -> Result<()> {
        let error = |e| io_error("put", path, e);
        let tree = &mut self.state().tree;
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        for dir in above {
            if tree.find(dir).is_err() {
                tree.create(dir, directory()).map_err(error)?;
            }
        }
        let id = match tree.find(path) {
            Ok(id) if matches!(content, Content::File(_)) => {
                tree.body(id).map_err(error)?;
                tree.node_mut(id).map_err(error)?.content = content;
                id
            }
            Ok(id) => id,
            Err(_) => tree.create(path, content).map_err(error)?,
        };
        if let Some(like) = like {
            let node = tree.node_mut(id).map_err(error)?;
            let kind = node.metadata.kind;
            node.metadata = Metadata { kind, ..*like };
        }
        tree.sync_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;
    use crate::error::Kind;
    use crate::io::sim::{Entry, Snapshot};
    use crate::io::{File, OpenMode, Storage};

    const DIR: &str = "/logs";

    fn at(name: &str) -> PathBuf {
        Path::new(DIR).join(name)
    }

    /// A disk with a durable file `log` of 2048 ones.
    fn disk() -> SimDisk {
        let disk = SimDisk::new();
        disk.put(&at("log"), vec![1; 2048], None).unwrap();
        disk
    }

    fn write(disk: &SimDisk, name: &str, bytes: &[u8]) -> Result<Box<dyn File>> {
        let file = disk.open(&at(name), OpenMode::Create)?;
        file.write_at(bytes, 0)?;
        Ok(file)
    }

    /// Replaces a file as every small file is to be replaced.
    fn replace(disk: &SimDisk, with_syncs: bool) -> Result<()> {
        let file = write(disk, "log.tmp", &[2; 2048])?;
        if with_syncs {
            file.sync()?;
        }
        disk.rename(&at("log.tmp"), &at("log"))?;
        if with_syncs {
            disk.sync_dir(Path::new(DIR))?;
        }
        Ok(())
    }

    fn outcomes(disk: &SimDisk) -> BTreeSet<Vec<u8>> {
        (0..300)
            .map(|seed| disk.after_crash(seed).read(&at("log"), 1 << 20).unwrap_or_default())
            .collect()
    }

    #[test]
    fn a_rename_over_synced_bytes_leaves_the_old_or_the_new_at_every_cut() {
        let uncut = disk();
        replace(&uncut, true).unwrap();
        assert_eq!(uncut.operation_count(), 5);
        let mut all = BTreeSet::new();
        for number in 0..uncut.operation_count() {
            let disk = disk();
            disk.crash_at(number);
            let error = replace(&disk, true).unwrap_err();
            assert!(error.to_string().contains("the power is off"), "{error}");
            assert!(disk.is_off());
            assert!(disk.read(&at("log"), 1 << 20).is_err(), "all fails after a cut");
            all.extend(outcomes(&disk));
        }
        assert_eq!(all, BTreeSet::from([vec![1; 2048], vec![2; 2048]]));
        assert_eq!(outcomes(&uncut), BTreeSet::from([vec![2; 2048]]));
    }

    #[test]
    fn a_rename_over_bytes_that_were_not_synced_can_leave_neither() {
        let disk = disk();
        replace(&disk, false).unwrap();
        let seen = outcomes(&disk);
        for expected in [vec![], vec![0; 2048], vec![1; 2048], vec![2; 2048]] {
            assert!(seen.contains(&expected), "{:?}", expected.first());
        }
        assert!(seen.len() > 10);
    }

    #[test]
    fn a_lost_sync_is_noticed_only_after_the_cut() {
        let disk = disk();
        disk.lose_sync_at(2);
        replace(&disk, true).unwrap();
        assert!(outcomes(&disk).contains(&vec![0; 2048]));
        let disk = self::disk();
        disk.lose_syncs();
        replace(&disk, true).unwrap();
        disk.sync_filesystem(Path::new(DIR)).unwrap();
        assert!(outcomes(&disk).contains(&vec![1; 2048]));
    }

    #[test]
    fn a_planned_failure_comes_once_with_its_number() {
        let disk = disk();
        disk.fail_at(1, 28);
        let error = write(&disk, "new", &[3; 1000]).unwrap_err();
        assert_eq!((error.errno(), error.position()), (Some(28), Some(0)));
        assert_eq!(disk.read(&at("new"), 4096).unwrap(), [3; 500], "half of it was written");
        write(&disk, "new", &[3; 1000]).unwrap();
        let disk = self::disk();
        disk.fail_changes_from(0, 30);
        assert_eq!(write(&disk, "new", b"").unwrap_err().errno(), Some(30));
        assert_eq!(disk.create_dir(&at("d")).unwrap_err().errno(), Some(30));
        assert_eq!(disk.read(&at("log"), 4096).unwrap(), [1; 2048]);
    }

    #[test]
    fn names_survive_in_part_and_a_moved_file_never_twice() {
        let disk = disk();
        for number in 0..6 {
            write(&disk, &format!("new-{number}"), b"x").unwrap();
        }
        disk.create_dir(&at("d")).unwrap();
        disk.rename(&at("log"), &at("moved")).unwrap();
        disk.rename(&at("moved"), &at("d/moved")).unwrap();
        disk.remove_file(&at("new-0")).unwrap();
        let mut sets = BTreeSet::new();
        for seed in 0..300 {
            let left = disk.after_crash(seed).snapshot(Path::new(DIR)).unwrap();
            let names: BTreeSet<PathBuf> = left.entries.keys().cloned().collect();
            let places = ["log", "moved", "d/moved"];
            let found = places.iter().filter(|p| names.contains(Path::new(p))).count();
            assert!(found <= 1, "{names:?}");
            sets.insert(names);
        }
        assert!(sets.len() > 30, "{}", sets.len());
        let settled = disk.fork();
        settled.sync_filesystem(Path::new("/")).unwrap();
        let expected = disk.snapshot(Path::new(DIR)).unwrap();
        assert!(
            (0..50).all(|s| settled.after_crash(s).snapshot(Path::new(DIR)).unwrap() == expected)
        );
    }

    #[test]
    fn a_directory_that_was_not_synced_takes_its_files_with_it() {
        let disk = disk();
        disk.create_dir(&at("d")).unwrap();
        write(&disk, "d/file", b"x").unwrap().sync().unwrap();
        disk.sync_dir(&at("d")).unwrap();
        assert_eq!(disk.after_crash(0).list(&at("d")).unwrap_err().kind(), Kind::NotFound);
        disk.sync_dir(Path::new(DIR)).unwrap();
        assert_eq!(disk.after_crash(0).read(&at("d/file"), 9).unwrap(), b"x");
    }

    #[test]
    fn locks_are_held_once_and_gone_after_the_cut() {
        let disk = disk();
        let path = at(".lock");
        assert!(!disk.is_locked(&path).unwrap());
        let held = disk.lock(&path).unwrap();
        assert!(!disk.is_locked(&path).unwrap(), "our own is no other's");
        assert_eq!(disk.lock(&path).unwrap_err().kind(), Kind::Conflict);
        drop(held);
        drop(disk.lock(&path).unwrap());
        disk.hold_lock_elsewhere(&path).unwrap();
        assert!(disk.is_locked(&path).unwrap());
        assert_eq!(disk.lock(&path).unwrap_err().kind(), Kind::Conflict);
        assert!(!disk.after_crash(1).is_locked(&path).unwrap());
    }

    #[test]
    fn open_files_are_counted_and_limited() {
        let disk = disk();
        disk.limit_open_files(2);
        let first = disk.open(&at("log"), OpenMode::Read).unwrap();
        let second = disk.open(&at("log"), OpenMode::Read).unwrap();
        assert_eq!(disk.open(&at("log"), OpenMode::Read).unwrap_err().errno(), Some(24));
        assert_eq!(disk.read(&at("log"), 4096).unwrap_err().errno(), Some(24));
        drop((first, second));
        disk.open(&at("log"), OpenMode::Read).unwrap();
        assert_eq!(disk.open_files_peak(), 2);
    }

    #[test]
    fn the_log_says_what_was_done() {
        let disk = disk();
        replace(&disk, true).unwrap();
        let log: Vec<String> = disk.operations().iter().map(ToString::to_string).collect();
        assert_eq!(
            log,
            [
                "/logs/log.tmp: make or cut to nothing",
                "/logs/log.tmp: write 2048 bytes at 0",
                "/logs/log.tmp: sync",
                "/logs/log.tmp: rename to /logs/log",
                "/logs: sync directory",
            ]
        );
        disk.metadata(&at("log")).unwrap();
        assert_eq!((disk.operation_count(), disk.change_count()), (6, 5));
        let again = self::disk();
        again.crash_at_change(3);
        again.metadata(&at("log")).unwrap();
        assert!(replace(&again, true).is_err());
        assert_eq!(again.operation_count(), 5);
    }

    #[test]
    fn forks_and_crashes_share_nothing_with_their_origin() {
        let disk = disk();
        write(&disk, "log", &[5; 10]).unwrap();
        let (fork, crashed) = (disk.fork(), disk.after_crash(1));
        write(&disk, "log", &[6; 10]).unwrap();
        assert_eq!(fork.read(&at("log"), 10).unwrap(), [5; 10]);
        assert_eq!(crashed.read(&at("log"), 10).unwrap(), [5; 10]);
        assert_eq!(fork.after_crash(0).read(&at("log"), 4096).unwrap(), [1; 2048]);
        assert_eq!(crashed.after_crash(0).read(&at("log"), 10).unwrap(), [5; 10]);
    }

    #[test]
    fn a_real_directory_is_loaded_and_written_out_the_same() {
        let real = tempfile::tempdir().unwrap();
        std::fs::create_dir(real.path().join("d")).unwrap();
        std::fs::write(real.path().join("d/file"), [7; 3000]).unwrap();
        std::os::unix::fs::symlink("nowhere", real.path().join("dangling")).unwrap();
        let disk = SimDisk::new();
        disk.load(real.path(), Path::new(DIR)).unwrap();
        assert_eq!(disk.operation_count(), 0);
        let origin = Snapshot::read(&crate::io::Disk::new(), real.path()).unwrap();
        let loaded = disk.snapshot(Path::new(DIR)).unwrap();
        assert_eq!(loaded.differences(&origin), Vec::<String>::new());
        assert_eq!(Snapshot::read(&disk, Path::new(DIR)).unwrap(), origin);
        assert_eq!(disk.after_crash(0).snapshot(Path::new(DIR)).unwrap(), origin);
        let written = tempfile::tempdir().unwrap();
        loaded.write_out(written.path()).unwrap();
        let mut expected = origin.clone();
        expected.entries.remove(Path::new("dangling"));
        assert_eq!(Snapshot::read(&crate::io::Disk::new(), written.path()).unwrap(), expected);

        let mut other = expected.clone();
        other.entries.insert("d/file".into(), Entry::File(vec![7; 2999]));
        other.entries.insert("more".into(), Entry::Directory);
        let lines = expected.differences(&other);
        assert_eq!(
            lines,
            [
                "d/file: 3000 against 2999 bytes, the longer goes on",
                "more: nothing against directory"
            ]
        );
        assert!(disk.snapshot(Path::new("/nowhere")).is_err());
    }
}
