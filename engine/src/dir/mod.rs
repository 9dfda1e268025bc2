//! Whole log directories.

pub mod metadata;
pub mod replicas;
pub mod settings;
