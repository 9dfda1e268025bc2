//! Links in a partition directory: followed for reading, written through, never replaced by a plain
//! file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool::run;

const FILES: [&str; 5] = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000005.snapshot",
    "leader-epoch-checkpoint",
];

/// Recovers `dir`, and gives the bytes of its files.
fn recovered(dir: &Path) -> Vec<Vec<u8>> {
    let outcome = run(["recover".as_ref(), dir.as_os_str()]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    FILES.iter().map(|name| fs::read(dir.join(name)).expect(name)).collect()
}

fn spoil(dir: &Path) {
    LogBuilder::new().batch(3).batch(2).raw(&[0; 70]).write_into(dir);
    fs::write(dir.join("00000000000000000000.index"), [9; 80]).expect("an index");
    // Large enough to be written beside and not over.
    fs::write(dir.join("00000000000000000000.timeindex"), vec![7; 40_000]).expect("an index");
    fs::write(dir.join("00000000000000000005.snapshot"), b"?").expect("a snapshot");
    fs::write(dir.join("leader-epoch-checkpoint"), b"?").expect("epochs");
}

#[test]
fn a_recovery_writes_through_links_and_keeps_them() {
    let home = tempfile::tempdir().expect("a directory");
    let (plain, elsewhere) = (home.path().join("plain-0"), home.path().join("elsewhere"));
    spoil(&plain);
    spoil(&elsewhere);
    let linked = home.path().join("linked-0");
    fs::create_dir(&linked).expect("a partition");
    for name in FILES {
        symlink(elsewhere.join(name), linked.join(name)).expect("a link");
    }
    assert_eq!(recovered(&linked), recovered(&plain));
    let others = fs::read_dir(&linked).expect("the partition").count();
    assert_eq!(others, FILES.len(), "something was left beside");
    assert_eq!(fs::read_dir(&elsewhere).expect("the other place").count(), FILES.len());
    for name in FILES {
        let kind = fs::symlink_metadata(linked.join(name)).expect(name).file_type();
        assert!(kind.is_symlink(), "{name} is no link any more");
    }
}

#[test]
fn a_partition_that_is_itself_a_link_is_recovered_where_it_is() {
    let home = tempfile::tempdir().expect("a directory");
    let elsewhere = home.path().join("elsewhere");
    spoil(&elsewhere);
    symlink(&elsewhere, home.path().join("linked-0")).expect("a link");
    let bytes = recovered(&home.path().join("linked-0"));
    assert!(fs::symlink_metadata(home.path().join("linked-0")).expect("it").is_symlink());
    assert_eq!(bytes[0], fs::read(elsewhere.join(FILES[0])).expect("the log"));
}
