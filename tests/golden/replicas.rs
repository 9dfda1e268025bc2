//! The folders of a node are compared with what its metadata says.

use std::collections::HashSet;
use std::path::Path;

use siltstone::dir::metadata::{METADATA_FOLDER, MetadataImage, MetadataOptions, load_metadata};
use siltstone::dir::replicas::{Belonging, Stray, belonging, missing};
use siltstone::io::Disk;
use siltstone::state::meta::{MetaProperties, parse_partition_metadata};
use siltstone::uuid::Uuid;
use tempfile::TempDir;

use crate::metadata::archive;

/// A partition folder: topic, index, topic id, and the id of the log directory.
type Folder = (String, i32, Uuid, Uuid);

/// What a node's metadata says, its id and its partition folders.
fn node(state: &str) -> (MetadataImage, i32, Vec<Folder>) {
    let dir = TempDir::new().unwrap();
    archive().unpack(&format!("three-nodes/{state}"), dir.path());
    let folder = dir.path().join("metadata").join(METADATA_FOLDER);
    let loaded = load_metadata(&Disk::new(), &folder, &MetadataOptions::default()).unwrap();
    let mut folders = Vec::new();
    let mut node_id = None;
    for log_dir in ["d1", "d2"].map(|name| dir.path().join(name)) {
        let properties = std::fs::read(log_dir.join("meta.properties")).unwrap();
        let properties = MetaProperties::parse(&properties).unwrap();
        node_id = properties.node_id;
        folders.extend(partitions(&log_dir, properties.directory_id.unwrap()));
    }
    folders.sort();
    (loaded.image, node_id.unwrap(), folders)
}

fn partitions(log_dir: &Path, directory: Uuid) -> Vec<Folder> {
    let entries = std::fs::read_dir(log_dir).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let (topic, index) = name.rsplit_once('-').unwrap();
        let id = std::fs::read(entry.path().join("partition.metadata")).unwrap();
        let id = parse_partition_metadata(&id).unwrap();
        (topic.to_owned(), index.parse().unwrap(), id, directory)
    };
    folders.map(read).collect()
}

#[test]
fn every_folder_of_a_node_is_wanted_and_none_is_missing() {
    let mut unplaced = Vec::new();
    for state in ["n1-clean", "n2-clean", "n3-clean", "n1-killed", "n2-killed", "n3-killed"] {
        let (image, node_id, folders) = node(state);
        for (topic, index, id, directory) in &folders {
            match belonging(&image, node_id, topic, *index, Some(*id)) {
                Belonging::Wanted { directory: Some(assigned) } => {
                    assert_eq!(assigned, *directory, "{state} {topic}-{index}");
                }
                Belonging::Wanted { directory: None } => {
                    unplaced.push(format!("{state} {topic}-{index}"));
                }
                Belonging::Stray(reason) => panic!("{state} {topic}-{index}: {reason}"),
            }
        }
        assert_eq!(missing(&image, node_id, &names(&folders)), [], "{state}");
    }
    // Its broker was killed before it had told where it put the replica.
    assert_eq!(unplaced, ["n1-killed compacted-1"]);
}

#[test]
fn folders_that_the_metadata_does_not_know_are_stray() {
    let (image, node_id, folders) = node("n1-clean");
    let id = image.topic("tuned").unwrap().id;
    let other = Uuid([7; 16]);
    for (topic, index, topic_id, reason) in [
        ("tuned", 0, None, Stray::NoTopicId),
        ("tuned", 0, Some(other), Stray::NameReused),
        ("gone", 0, Some(other), Stray::UnknownTopicId),
        ("tuned", 99, Some(id), Stray::UnknownPartition),
        ("sxbst-xnxcxdx", 0, Some(image.topic("sxbst-xnxcxdx").unwrap().id), Stray::NotAReplica),
    ] {
        let verdict = belonging(&image, node_id, topic, index, topic_id);
        assert_eq!(verdict, Belonging::Stray(reason), "{topic}-{index}");
    }
    let mut found = names(&folders);
    found.remove(&("tuned", 1));
    assert_eq!(missing(&image, node_id, &found), [("tuned", 1)]);
}

fn names(folders: &[Folder]) -> HashSet<(&str, i32)> {
    folders.iter().map(|(topic, index, ..)| (topic.as_str(), *index)).collect()
}
