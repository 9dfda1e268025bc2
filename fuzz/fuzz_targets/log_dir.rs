//! Recovery of a whole log directory on the simulated disk: the clean marker stands there exactly
//! when every partition is sound, and a second recovery changes nothing then.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use siltstone::dir::recover::{DirRecoverOptions, DirReport, PartitionSettings, recover_log_dir};
use siltstone::io::SimDisk;
use siltstone::log::recover::{RecoverOptions, Silent};
use siltstone_fuzz::directory::Directory;

const DIR: &str = "/logs";
const MARKER: &str = "/logs/.kafka_cleanshutdown";

fuzz_target!(|bytes: &[u8]| {
    let directory = Directory::decode_tree(bytes);
    let disk = SimDisk::new();
    disk.put_dir(Path::new(DIR), None).expect("an empty disk");
    for (name, bytes) in directory.files {
        // A file cannot stand where a folder is, nor the other way round.
        let _ = disk.put(&Path::new(DIR).join(name), bytes, None);
    }
    let Ok(report) = recover(&disk, &directory.options) else { return };
    let after = disk.snapshot(Path::new(DIR)).expect("the directory");
    let is_marked = siltstone::io::Storage::metadata(&disk, Path::new(MARKER)).is_ok();
    assert_eq!(is_marked, report.is_clean, "{report:?}");
    if report.is_clean {
        assert_eq!((report.refused, report.failed), (0, 0), "{report:?}");
        recover(&disk, &directory.options).expect("what was sound a moment ago");
        let again = disk.snapshot(Path::new(DIR)).expect("the directory");
        assert_eq!(after.differences(&again), Vec::<String>::new(), "a second recovery");
    }
});

fn recover(disk: &SimDisk, told: &RecoverOptions) -> siltstone::Result<DirReport> {
    let settings =
        |_: &str| PartitionSettings { index: told.index, remote_storage: told.remote_storage };
    let options = DirRecoverOptions {
        all: told.all,
        allow_loss: told.allow_loss,
        discard_lost: told.discard_lost,
        clean_shutdown: told.clean_shutdown,
        producer_expiration_ms: told.producer_expiration_ms,
        ..DirRecoverOptions::new(&settings, &|_| {}, told.now_ms)
    };
    recover_log_dir(disk, Path::new(DIR), &options, &Silent)
}
