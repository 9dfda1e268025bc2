//! Kafka's behaviour, row by row of its catalogue: facts from Kafka's own unit tests. A test cites
//! the rows that it proves, and checks every result of them.

mod loader;
mod local_log;
mod unified_log;
