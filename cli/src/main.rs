//! `siltstone`: look at, check and repair the log directories of a Kafka broker.

fn main() {}
