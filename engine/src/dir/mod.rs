//! Whole log directories.

pub mod metadata;
pub mod pool;
pub mod recover;
pub mod replicas;
pub mod settings;
pub mod verify;
