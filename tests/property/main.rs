//! Properties: what must hold of every log, tried on logs that are made up.
//!
//! | module | asks |
//! |---|---|
//! | `pieces` | is a segment recovered from pieces side by side as it is in one go? |
//! | `paths` | do io_uring, plain system calls and maps recover to the same bytes? |
//! | `again` | does a second recovery change nothing? |
//! | `damage` | does every prefix and every flipped bit of a small segment get a verdict? |
//! | `compaction` | does a log say the same of every key, however it is compacted? |
//! | `live` | does a log that is written to hold what was appended, whatever happens? |
//!
//! `SILTSTONE_PROPERTY_SEED` and `SILTSTONE_PROPERTY_CASES` choose other logs and more of them; a
//! failure prints the smallest log that shows it, and the seed.

mod again;
mod compaction;
mod damage;
mod live;
mod logs;
mod paths;
mod pieces;
mod recovery;
mod runner;
