//! Which replicas belong here, by the metadata log?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use siltstone::Result;
use siltstone::dir::metadata::{LoadedMetadata, MetadataOptions, find_metadata, load_metadata};

use super::listing::LogDir;
use crate::folder::FolderKind;
use crate::session::{Session, complain};

/// What the metadata log says about this node.
#[derive(Debug)]
pub(super) struct Assignments {
    pub(super) folder: PathBuf,
    pub(super) loaded: LoadedMetadata,
    pub(super) node_id: i32,
}

impl Assignments {
    /// Reads the metadata log, where it can be found and whole log directories of a known node are listed.
    pub(super) fn load(
        session: &Session,
        metadata: Option<&Path>,
        dirs: &[LogDir],
    ) -> Result<Option<Assignments>> {
        let whole: Vec<&LogDir> = dirs.iter().filter(|dir| dir.is_whole).collect();
        let node_id = whole.iter().find_map(|dir| dir.properties.as_ref()?.node_id);
        let Some(node_id) = node_id else { return Ok(None) };
        let places = match metadata {
            Some(dir) => vec![dir.to_path_buf()],
            None => whole.iter().map(|dir| dir.path.clone()).collect(),
        };
        let Some(folder) = find_metadata(session.storage(), &places) else {
            let missing = metadata.map(|dir| {
                siltstone::Error::new(siltstone::Kind::NotFound, "no metadata log there")
                    .in_file(dir)
            });
            return missing.map_or(Ok(None), Err);
        };
        let options = MetadataOptions { node_id: Some(node_id), ..MetadataOptions::default() };
        let loaded = load_metadata(session.storage(), &folder, &options)?;
        for warning in &loaded.warnings {
            complain(&format_args!("{}: {warning}", folder.display()));
        }
        Ok(Some(Assignments { folder, loaded, node_id }))
    }

    /// Notes at each partition in use whether it belongs here.
    // spec: kraft-metadata 7
    pub(super) fn annotate(&self, dirs: &mut [LogDir]) {
        for listed in dirs.iter_mut().flat_map(|dir| &mut dir.partitions) {
            let Some(parsed) = &listed.parsed else { continue };
            if parsed.kind != FolderKind::Live {
                continue;
            }
            let by_id = listed.topic_id.and_then(|id| self.loaded.image.topic_by_id(id));
            let by_name = self.loaded.image.topic(&parsed.topic);
            let note = match (by_id, by_name) {
                (Some(topic), _) => match topic.partitions.get(&parsed.partition) {
                    Some(partition) if partition.replicas.contains(&self.node_id) => continue,
                    Some(_) => format!("stray: node {} has no replica of it", self.node_id),
                    None => "stray: the topic has no such partition".to_owned(),
                },
                (None, Some(topic)) if listed.topic_id.is_some() => {
                    format!("stray: the topic of this name has another id now, {}", topic.id)
                }
                (None, Some(_)) => "stray: no topic id in partition.metadata".to_owned(),
                (None, None) => "stray: no such topic in the metadata".to_owned(),
            };
            listed.notes.push(note);
        }
    }

    /// Partitions that the metadata places on this node, and that no directory given has.
    pub(super) fn missing(&self, dirs: &[LogDir]) -> Vec<(String, i32)> {
        let here: BTreeSet<(&str, i32)> = dirs
            .iter()
            .flat_map(|dir| &dir.partitions)
            .filter_map(|listed| listed.parsed.as_ref())
            .filter(|parsed| matches!(parsed.kind, FolderKind::Live | FolderKind::Future))
            .map(|parsed| (parsed.topic.as_str(), parsed.partition))
            .collect();
        let topics = self.loaded.image.topics();
        let placed = topics.flat_map(|topic| {
            let partitions = topic.partitions.iter();
            let ours =
                partitions.filter(|(_, partition)| partition.replicas.contains(&self.node_id));
            ours.map(|(index, _)| (topic.name.as_str(), *index))
        });
        let missing = placed.filter(|placed| !here.contains(placed));
        missing.map(|(topic, partition)| (topic.to_owned(), partition)).collect()
    }
}
