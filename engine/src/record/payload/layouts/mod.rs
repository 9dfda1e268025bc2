//! What the messages look like, one text per topic.
//!
//! They are read once, at first use; a test reads all of them.

pub(super) mod control;
pub(super) mod metadata;
pub(super) mod offsets;
pub(super) mod protocol;
pub(super) mod remote;
pub(super) mod share;
pub(super) mod transactions;
