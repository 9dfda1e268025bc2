//! May this producer write this batch? The producer state of a log that is written to.
//!
//! [`ProducerState`] knows more than a snapshot does: the last five batches of every producer,
//! by which a batch sent twice is recognised, transactions whose markers are not replicated yet,
//! and which transactions the coordinator was asked about. [`ReplayState`](super::ReplayState)
//! is the smaller one that recovery uses.

mod append;
mod entry;
mod packed;
mod refusal;
mod state;
#[cfg(test)]
mod tests;
mod transactions;
mod verification;

pub use append::{AppendOrigin, Completion, ProducerAppend, TransactionVersion};
pub use entry::{BatchMetadata, LiveProducer};
pub use refusal::{Reason, Refusal};
pub use state::{ProducerState, ProducerStateConfig};
pub use transactions::OffsetMetadata;
pub use verification::VerificationGuard;
