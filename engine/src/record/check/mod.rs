//! Is every record of a batch what the header says?
//!
//! The scan proves that a batch has the bytes that were written. Whether a reader can make records
//! of them is another question: [`BatchChecker`] walks them all, compressed ones too, keeps none
//! and allocates nothing for each, and names the first fault.
//!
//! | code | what is wrong |
//! |---|---|
//! | `unknown_codec` | the attributes name a codec that does not exist |
//! | `codec` | the payload does not open as Kafka's reader would open it |
//! | `record_count` | there are more or fewer records than the header counts |
//! | `record` | the fields of a record do not add up |
//! | `record_offset_range` | a record's offset lies outside its batch, or does not rise |
//! | `max_timestamp_mismatch` | the header's largest timestamp is not that of the records |
//! | `control_record` | a control record of unknown version or type, or with a short key |

mod batch;
mod control;
mod fault;
pub(super) mod fields;
mod messages;
pub(super) mod window;

pub use batch::BatchChecker;
pub use fault::{BatchFault, CheckedBatch};

#[cfg(test)]
mod tests;
