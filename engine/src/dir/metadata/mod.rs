//! What does this node know of its cluster? Reads the KRaft metadata log and its snapshots: topics
//! with ids and configs, partitions, brokers and their settings. It never writes.
//!
//! [`find_metadata`] finds the log, [`load_metadata`] reads it into a [`MetadataImage`].

mod apply;
mod files;
mod image;
mod load;
mod replay;

pub use files::{METADATA_FOLDER, find_metadata};
pub use image::{
    Broker, BrokerConfigs, ConfigResource, Configs, DIRECTORY_LOST, DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED, Listener, MetadataImage, Partition, Topic, Voter, VoterEndpoint,
    is_reserved_directory, metadata_version_name,
};
pub use load::{LoadedMetadata, MetadataOptions, load_metadata};

#[cfg(test)]
mod tests;
