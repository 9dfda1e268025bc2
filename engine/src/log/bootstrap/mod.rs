//! How does a replica begin behind what remote storage holds?
//!
//! A replica that has nothing, or nothing of use, takes over the leader epochs and the producers
//! that were uploaded with a remote segment, and goes on, empty, behind that segment. Kafka drops
//! the log first and fetches then; whatever fails in between leaves a log that looks sound and has
//! forgotten what lies before it. Here everything is fetched and checked first ([`AuxState`]), and
//! then takes three steps, each of which is made durable for many partitions at once:
//!
//! | step | what it leaves |
//! |---|---|
//! | `stage` | new files beside the old, and the mark that says what they are |
//! | `put_in_place` | the old log gone, the new files under their names |
//! | `clear` | the mark gone |
//!
//! A mark that is found when a log is opened is an install that was interrupted. It is
//! [settled](settle) before anything else is looked at: carried out where the new files are whole,
//! else the log is what it was.
// spec: follower-fetch 5.3, tiered-faults T4

mod live;
mod mark;
mod settle;
mod stage;
mod state;

pub use live::AuxStaged;
pub use mark::MARK_FILE;
pub(crate) use mark::is_staged_name;
pub use settle::{Interrupted, Settled, settle};
pub use stage::{clear, put_in_place, stage};
pub use state::{AuxFault, AuxObject, AuxState, AuxTarget};
