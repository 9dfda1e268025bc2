//! Which replicas belong here, by the metadata log?

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use siltstone::Result;
use siltstone::dir::files::CLEAN_SHUTDOWN_FILE;
use siltstone::dir::metadata::{LoadedMetadata, MetadataOptions, find_metadata, load_metadata};
use siltstone::dir::replicas::{Belonging, belonging, missing};
use siltstone::state::meta::parse_clean_shutdown;

use super::listing::{LogDir, read_if_there};
use crate::session::{Session, complain};
use crate::settings::NO_METADATA;

/// What the metadata log says about this node.
#[derive(Debug)]
pub(super) struct Assignments {
    pub(super) folder: PathBuf,
    pub(super) loaded: LoadedMetadata,
    pub(super) node_id: i32,
}

impl Assignments {
    /// Reads the metadata log, where it can be found and whole log directories of a known node are
    /// listed.
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
                siltstone::Error::new(siltstone::Kind::NotFound, NO_METADATA).in_file(dir)
            });
            return missing.map_or(Ok(None), Err);
        };
        // What the broker had heard of when it stopped cleanly is committed.
        let markers = whole.iter().filter(|dir| dir.is_clean);
        let broker_epoch = markers
            .filter_map(|dir| read_if_there(session, &dir.path.join(CLEAN_SHUTDOWN_FILE)))
            .find_map(|bytes| parse_clean_shutdown(&bytes));
        let options =
            MetadataOptions { node_id: Some(node_id), broker_epoch, ..MetadataOptions::default() };
        let loaded = load_metadata(session.storage(), &folder, &options)?;
        for warning in &loaded.warnings {
            complain(&format_args!("{}: {warning}", folder.display()));
        }
        Ok(Some(Assignments { folder, loaded, node_id }))
    }

    /// Notes at each partition in use whether it belongs here, where all of the metadata is known.
    pub(super) fn annotate(&self, dirs: &mut [LogDir]) {
        if !self.loaded.is_whole {
            return;
        }
        for dir in dirs {
            let here = dir.properties.as_ref().and_then(|properties| properties.directory_id);
            for listed in &mut dir.partitions {
                let Some(parsed) = listed.parsed.as_ref().filter(|_| listed.kind() == "live")
                else {
                    continue;
                };
                let (topic, index) = (&parsed.topic, parsed.partition);
                match belonging(&self.loaded.image, self.node_id, topic, index, listed.topic_id) {
                    Belonging::Stray(why) => {
                        listed.notes.push(format!("stray by the metadata: {why}"))
                    }
                    Belonging::Wanted { directory: Some(wanted) }
                        if here.is_some_and(|here| here != wanted) =>
                    {
                        listed.notes.push(format!("the metadata places it in directory {wanted}"));
                    }
                    Belonging::Wanted { .. } => {}
                }
            }
        }
    }

    /// Partitions that the metadata places on this node, and that no directory given has.
    pub(super) fn missing(&self, dirs: &[LogDir]) -> Vec<(String, i32)> {
        if !self.loaded.is_whole {
            return Vec::new();
        }
        let folders = dirs.iter().flat_map(|dir| &dir.partitions);
        let here: HashSet<(&str, i32)> = folders
            .filter(|listed| matches!(listed.kind(), "live" | "future"))
            .filter_map(|listed| listed.parsed.as_ref())
            .map(|parsed| (parsed.topic.as_str(), parsed.partition))
            .collect();
        // The names are borrowed from the image, as the engine wants them.
        let image = &self.loaded.image;
        let known = image.topics().flat_map(|topic| {
            let name = topic.name.as_str();
            topic.partitions.keys().map(move |index| (name, *index))
        });
        let found = known.filter(|partition| here.contains(partition)).collect();
        let missing = missing(image, self.node_id, &found).into_iter();
        missing.map(|(topic, index)| (topic.to_owned(), index)).collect()
    }
}
