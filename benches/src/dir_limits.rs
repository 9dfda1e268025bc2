//! What is the least that recovering or loading a directory of many partitions takes? As in
//! [`limits`](crate::limits).

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crc_fast::crc32_iscsi;

use crate::Result;
use crate::limits::{i64_at, u32_at};

/// Does to every folder what its recovery cannot leave out: list it, read its logs, check them,
/// write a snapshot beside and put it in place, write over the time index, cut the offset index.
/// Folders are made durable by the hundred.
///
/// # Errors
/// When a folder is not what was made.
pub fn recover_folders(
    home: &Path,
    folders: &[PathBuf],
    threads: usize,
    snapshot: &str,
    active: &str,
) -> Result<()> {
    for group in folders.chunks(256) {
        let share = group.len().div_ceil(threads.max(1));
        each(group, share, &|folder| prepare(folder, snapshot))?;
        crate::cache::sync_all(home)?;
        each(group, share, &|folder| commit(folder, snapshot, active))?;
        crate::cache::sync_all(home)?;
    }
    Ok(())
}

/// Does to every folder what opening it cannot leave out when it was stopped cleanly: list it, ask
/// for the sizes of its logs and indexes, read its small files whole, and of the active segment
/// open the log and read the ends of the indexes.
///
/// # Errors
/// When a folder is not what was made.
pub fn load_folders(
    folders: &[PathBuf],
    threads: usize,
    snapshot: &str,
    active: &str,
) -> Result<()> {
    let share = folders.len().div_ceil(threads.max(1));
    each(folders, share, &|folder| load(folder, snapshot, active))
}

fn load(folder: &Path, snapshot: &str, active: &str) -> std::io::Result<()> {
    let (mut sizes, mut small) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".log") || name.ends_with("index") {
            sizes += entry.metadata()?.len();
        } else if !name.ends_with(".snapshot") || name == snapshot {
            small += fs::read(entry.path())?.len();
        }
    }
    black_box((sizes, small));
    for suffix in ["log", "index", "timeindex"] {
        let file = File::open(folder.join(format!("{active}.{suffix}")))?;
        let size = file.metadata()?.len();
        let mut last = [0; 12];
        if suffix != "log" && size >= 12 {
            file.read_exact_at(&mut last, size - 12)?;
        }
        black_box(last);
    }
    Ok(())
}

type Step<'a> = &'a (dyn Fn(&Path) -> std::io::Result<()> + Sync);

fn each(group: &[PathBuf], share: usize, step: Step<'_>) -> Result<()> {
    if share >= group.len() {
        return Ok(group.iter().try_for_each(|folder| step(folder))?);
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = group
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().try_for_each(|folder| step(folder))))
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

fn prepare(folder: &Path, snapshot: &str) -> std::io::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let mut producers: HashMap<i64, u32> = HashMap::new();
    let mut buffer = vec![0; 64 << 10];
    for name in names.iter().filter(|name| name.ends_with(".log")) {
        let file = File::open(folder.join(name))?;
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        buffer.resize(size, 0);
        file.read_exact_at(&mut buffer, 0)?;
        let mut rest = buffer.as_slice();
        while let Some(batch) = u32_at(rest, 8)
            .and_then(|size| rest.split_at_checked(usize::try_from(size).ok()?.saturating_add(12)))
        {
            let computed = crc32_iscsi(batch.0.get(21..).unwrap_or_default());
            if let (Some(id), true) = (i64_at(batch.0, 43), u32_at(batch.0, 17) == Some(computed)) {
                producers.insert(id, u32_at(batch.0, 53).unwrap_or(0));
            }
            rest = batch.1;
        }
    }
    black_box(&producers);
    for name in
        names.iter().filter(|name| name.ends_with("-checkpoint") || name.ends_with(".metadata"))
    {
        black_box(fs::read(folder.join(name))?);
    }
    fs::write(folder.join(format!("{snapshot}.tmp")), [7; 470])?;
    Ok(())
}

fn commit(folder: &Path, snapshot: &str, active: &str) -> std::io::Result<()> {
    fs::rename(folder.join(format!("{snapshot}.tmp")), folder.join(snapshot))?;
    let times = OpenOptions::new().write(true).open(folder.join(format!("{active}.timeindex")))?;
    times.write_all_at(&[7; 96], 0)?;
    times.set_len(96)?;
    OpenOptions::new().write(true).open(folder.join(format!("{active}.index")))?.set_len(64)
}
