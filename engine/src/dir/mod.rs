//! Whole log directories.

pub mod metadata;
pub mod settings;
