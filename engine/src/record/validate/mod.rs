//! May these batches be appended, and at which offsets?
//!
//! Two steps, as a broker takes them. [`analyse`] looks at the batches as they came, before any
//! lock: frames, checksums, sizes, the order of offsets. [`Validator::validate_and_assign`] then
//! holds a producer's batch against the topic's rules and gives it its offsets, in the caller's own
//! bytes where that is possible.
//!
//! ```text
//!            codecs     magic          way
//!            none       the target's   in place: offset, leader epoch; time and checksum if needed
//!            none       older          written anew, record by record
//!            the same   2              in place, after a walk through the decompressed records
//!            otherwise                 written anew in the target's codec
//! ```
//!
//! No state: sequences, transactions and the order of epochs are judged by those who know them.
//! What is refused is refused with Kafka's error ([`ValidateErrorKind`]) and Kafka's list of
//! records ([`RejectedRecord`]).

mod analyse;
mod assign;
mod batches;
mod counters;
mod error;
mod messages;
mod options;
mod place;
mod produce;
mod rebuild;
mod rules;
mod step;
mod tally;
mod validated;
mod validator;
mod walk;

pub use analyse::{AnalyseOptions, Analysis, analyse};
pub use assign::{set_last_offset, set_leader_epoch, set_max_timestamp};
pub use batches::{BatchView, Batches, first_batch_size};
pub use counters::ValidationCounters;
pub use error::{RejectedRecord, Rejection, ValidateError, ValidateErrorKind};
pub use options::{AppendOrigin, TopicCompression, ValidateOptions};
pub use produce::check_produce_request;
pub use validated::{Placement, Validated, ValidationStats};
pub use validator::Validator;

#[cfg(test)]
mod tests;
