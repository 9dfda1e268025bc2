//! How is a log compacted, so that the last record of each key stays?
//!
//! ```text
//!                  first dirty d         end e     first uncleanable u
//!  | clean segments      | dirty segments |             | ... active |
//!                        |---- key map ---|             LSO, lag, active segment
//!  |------- groups, filtered one by one --|
//! ```
//!
//! A round fills a map with the last offset of each key from `d` on, until all is read or the map is
//! full, and then writes the segments up to there anew, as many at a time as fit into one. What comes
//! out replaces what went in by renames, each of which may be the last.
//!
//! The host owns the thread: [`Log::cleanable`](super::Log::cleanable) says what is due,
//! [`Log::begin_compaction`](super::Log::begin_compaction) gives a [`Compaction`] that does a bounded
//! piece of work with each step, off the writer's seat. The seat is taken for moments: at the begin,
//! and to swap each group. The line of `cleaner-offset-checkpoint` is the host's to keep: it goes in
//! with [`Log::cleanable`](super::Log::cleanable) and comes out with [`Compacted`]. The log
//! remembers it as [`Log::compacted_end_offset`](super::Log::compacted_end_offset), and lowers it
//! when it is cut.

mod cleaned;
mod cleaner;
mod digest;
mod fill;
mod groups;
mod key_map;
mod pass;
mod range;
mod replacement;
mod rounds;
mod rules;
mod sources;
mod transactions;

pub use cleaner::{Cleaner, CleanerOptions};
pub use pass::{Compacted, Compaction};
pub use range::{Cleanable, CleanableOffsets};
pub(super) use replacement::Replacements;
pub(super) use rounds::Rounds;
