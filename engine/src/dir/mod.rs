//! Whole log directories.
