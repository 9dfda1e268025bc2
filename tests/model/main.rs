//! Model checks: every order of events of a small cluster, with the engine's own rules.
//!
//! | module | asks |
//! |---|---|
//! | `tiered` | do a leader, a follower and remote storage ever lose a committed record? |
//! | `replication` | does a replica that may lead ever lack a committed record? |
//!
//! Each model can have one rule broken on purpose, and must then find a history that goes wrong: a
//! check that cannot fail proves nothing. `SILTSTONE_MODEL_FAULTS` is how many rare events (a
//! crash, a change of leaders, a failed read) a history may have; more of them make the search
//! longer, and `.ci/long` asks for one more.

mod cluster;
mod events;
mod replication;
mod rules;
mod search;
mod tiered;
