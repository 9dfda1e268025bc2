//! A real S3 API.

use std::path::Path;
use std::sync::Arc;

use siltstone::Kind;
use siltstone::io::{Disk, OpenMode, SimDisk, Storage};
use siltstone::tier::{LocalTarget, ObjectBytes, ObjectLayout, ObjectTarget, RemoteInventory};
use siltstone_objects::{Place, RemoteStore, StoreOptions};
use siltstone_tests::kits::Kit;
use siltstone_tests::moto::Moto;

/// A folder of a new bucket.
fn store(moto: &Moto, part_bytes: usize) -> RemoteStore {
    let settings = moto.environment().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let options = StoreOptions { part_bytes, settings: settings.into(), ..StoreOptions::default() };
    let place = Place::parse(&format!("s3://{}/some/folder", moto.bucket())).unwrap();
    RemoteStore::open(&place, options).unwrap()
}

fn names(store: &dyn ObjectTarget, prefix: &str) -> Vec<String> {
    store.list(prefix).unwrap().into_iter().map(|object| object.name).collect()
}

#[test]
fn objects_are_found_under_the_names_they_were_put_under() {
    let Some(moto) = Moto::get() else { return };
    let store = store(moto, 8 << 20);
    assert_eq!(names(&store, ""), Vec::<String>::new());
    for name in ["a/b/c.log", "a/b-1", "a/b.x", "z z/ü#?&=+%.log"] {
        store.put(name, &[ObjectBytes::Memory(b"be"), ObjectBytes::Memory(b"gin")]).unwrap();
        assert_eq!(store.get(name, None, 5).unwrap(), b"begin");
        assert_eq!(
            (store.size(name).unwrap(), store.get(name, Some(1..3), 2).unwrap()),
            (5, b"eg".into())
        );
    }
    assert_eq!(names(&store, ""), ["a/b-1", "a/b.x", "a/b/c.log", "z z/ü#?&=+%.log"]);
    assert_eq!(names(&store, "a/b"), ["a/b-1", "a/b.x", "a/b/c.log"]);
    assert_eq!(names(&store, "a/b/"), ["a/b/c.log"]);
    store.put("a/b-1", &[]).unwrap();
    assert_eq!((store.get("a/b-1", None, 5).unwrap(), store.size("a/b-1").unwrap()), (vec![], 0));
    store.delete("a/b-1").unwrap();
    store.delete("a/b-1").unwrap();
    assert_eq!(store.get("a/b-1", None, 5).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(store.get("a/b.x", Some(3..6), 5).unwrap_err().kind(), Kind::OutOfRange);
    assert_eq!(store.get("a/b.x", Some(9..12), 5).unwrap_err().kind(), Kind::OutOfRange);
    assert_eq!(store.get("a/b.x", None, 4).unwrap_err().kind(), Kind::Limit);
}

#[test]
fn a_large_object_goes_up_in_parts() {
    let Some(moto) = Moto::get() else { return };
    let store = store(moto, 5 << 20);
    let disk = SimDisk::new();
    let file = disk.open(Path::new("/log"), OpenMode::Create).unwrap();
    let bytes: Vec<u8> = (0_u32..).flat_map(u32::to_be_bytes).take(12_000_000).collect();
    file.write_at(&bytes, 0).unwrap();
    let range = ObjectBytes::File { file: &*file, position: 5, size_bytes: 11_000_000 };
    store.put("a.log", &[ObjectBytes::Memory(b"head"), range]).unwrap();
    assert_eq!(store.size("a.log").unwrap(), 11_000_004);
    let expected = [&b"head"[..], &bytes[5..11_000_005]].concat();
    assert!(store.get("a.log", None, 1 << 30).unwrap() == expected);
    let middle = 5_242_870..5_242_900;
    let found = store.get("a.log", Some(5_242_870..5_242_900), 30).unwrap();
    assert_eq!(found, &expected[middle]);
    // A file that is too short leaves no object.
    let range = ObjectBytes::File { file: &*file, position: 0, size_bytes: 13_000_000 };
    assert_eq!(store.put("b.log", &[range]).unwrap_err().kind(), Kind::OutOfRange);
    assert_eq!(names(&store, ""), ["a.log"]);
}

#[test]
fn a_bucket_or_credentials_that_are_not_there_are_errors() {
    let Some(moto) = Moto::get() else { return };
    let settings = moto.environment().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let options = StoreOptions { settings: settings.into(), ..StoreOptions::default() };
    let place = Place::parse("s3://no-such-bucket/x").unwrap();
    let store = RemoteStore::open(&place, options.clone()).unwrap();
    let error = store.list("").unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    let error = store.get("a", None, 1).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.to_string().starts_with("read s3://no-such-bucket/x/a: "), "{error}");
    let settings = vec![("no_such_setting".to_owned(), "1".to_owned())];
    let error = RemoteStore::open(&place, StoreOptions { settings, ..options }).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
}

#[test]
fn an_object_that_is_replaced_between_two_reads_is_noticed() {
    let Some(moto) = Moto::get() else { return };
    let one = store(moto, 8 << 20);
    let settings = moto.environment().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let options = StoreOptions { settings: settings.into(), ..StoreOptions::default() };
    let shown = format!("{one:?}");
    let url = shown.split('"').nth(1).unwrap();
    let other = RemoteStore::open(&Place::parse(url).unwrap(), options).unwrap();
    one.put("a", &[ObjectBytes::Memory(b"0123")]).unwrap();
    assert_eq!(one.get("a", Some(0..2), 2).unwrap(), b"01");
    other.put("a", &[ObjectBytes::Memory(b"abcd")]).unwrap();
    assert_eq!(one.get("a", Some(2..4), 2).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(one.get("a", Some(2..4), 2).unwrap(), b"cd");
    // One's own is expected.
    one.put("a", &[ObjectBytes::Memory(b"efgh")]).unwrap();
    assert_eq!(one.get("a", Some(2..4), 2).unwrap(), b"gh");
}

#[test]
fn a_bucket_tells_of_its_segments_what_the_folder_tells() {
    let Some(moto) = Moto::get() else { return };
    let store = store(moto, 8 << 20);
    let unpacked = Kit::open("tiered").state("clean").unpack();
    let (folder, layout) =
        (LocalTarget::new(Arc::new(Disk::new()), unpacked.remote()), ObjectLayout::default());
    for object in folder.list("").unwrap() {
        let bytes = folder.get(&object.name, None, 1 << 20).unwrap();
        store.put(&object.name, &[ObjectBytes::Memory(&bytes)]).unwrap();
    }
    let expected = RemoteInventory::list(&folder, &layout).unwrap();
    let found = RemoteInventory::list(&store, &layout).unwrap();
    assert_eq!(found, expected);
    let segments = found.read_segments(&store, &layout).unwrap();
    assert_eq!(segments, expected.read_segments(&folder, &layout).unwrap());
    assert!(segments.len() > 5);
}
