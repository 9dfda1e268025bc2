//! Kafka's behaviour, row by row of its catalogue: facts from Kafka's own unit tests. A test cites
//! the rows that it proves, and checks every result of them.

mod cleaner;
mod compaction;
mod compaction_readers;
mod concurrency;
mod edges;
mod eligible_leaders;
mod follower_builds;
mod follower_rows;
mod list;
mod loader;
mod local_log;
mod manager;
mod many;
mod preallocation;
mod ranges;
mod replication;
mod segments;
mod side_files;
mod tiered_follower;
mod tiered_life;
mod tiered_list;
mod tiered_log;
mod tiered_reads;
mod tiered_rebuild;
mod together;
mod unified_log;
