//! How does the directory of a partition become sound again?
//!
//! Recovery reads what Kafka's loader would read and comes to the same files, in four steps that
//! never overlap:
//!
//! ```text
//! inventory -> analyse: scan, fold in offset order -> Plan -> prepare: new files beside the old -> commit: rename, cut, remove
//!              (reads only)                                   (nothing that Kafka looks at)
//! ```
//!
//! Segments before the recovery point are trusted, but for their small files, which are checked in
//! themselves; from the recovery point on (the *tail*) every batch is read, and indexes, snapshots
//! and epochs come from the batches. Analysis may find that it must read more; then it begins anew
//! with an earlier tail.

mod analyse;
mod apply;
mod fold;
mod options;
mod plan;
mod producers;
mod scanner;
mod split;
mod stage;
mod walk;
mod walk_cut;
mod walk_files;

pub use crate::log::progress::{Progress, Silent};
pub use analyse::analyse;
pub use apply::{commit, discard, prepare, retire};
pub use options::RecoverOptions;
pub use plan::{Action, Cut, CutReason, Outcome, Plan, Refusal};
