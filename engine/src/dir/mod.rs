//! Whole log directories.

pub mod metadata;
