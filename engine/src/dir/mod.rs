//! Whole log directories.

pub mod engine;
pub mod files;
pub mod metadata;
pub mod pool;
pub mod recover;
pub mod replicas;
pub mod settings;
pub mod verify;
