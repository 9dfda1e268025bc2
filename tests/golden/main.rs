//! Golden tests: what is read equals what Kafka's own classes read from the same bytes.

mod fixtures;
mod metadata;
mod payload;
