//! siltstone: the storage engine for Kafka-format logs.
//!
//! Byte for byte what Apache Kafka 4.3.1 writes and reads: record batches, log segments, their
//! offset, time and transaction indexes, producer snapshots and leader epochs.
//!
//! The engine reads left to right; a module may use only what stands left of it:
//!
//! `io -> record -> index, state -> segment -> log -> dir -> tier -> replica`
//!
//! It keeps no thread, no global state and no log of its own; the host owns all three.

pub mod bytes;
pub mod error;
pub mod problem;
mod sync;
pub mod units;
pub mod uuid;

pub mod io;
pub mod record;

pub mod index;
pub mod state;

pub mod segment;

pub mod log;

pub mod dir;
pub mod tier;

pub mod replica;

pub use error::{Error, Kind, Result};

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
