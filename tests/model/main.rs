//! Model checks: every order of events of a small cluster, with the engine's own rules.
//!
//! | module | asks |
//! |---|---|
//! | `scopes` | do a leader, a follower and remote storage ever lose a committed record? |
//! | `replication` | does a replica that may lead ever lack a committed record? |
//!
//! Each model can have one rule broken on purpose, and must then find a history that goes wrong: a
//! check that cannot fail proves nothing. Each search prints how many states there are.
//!
//! `.ci/long` runs the searches that take minutes. `SILTSTONE_MODEL_FAULTS` is how many rare events
//! a history of `replication` may have; `SILTSTONE_PROPERTY_SEED` and `SILTSTONE_PROPERTY_CASES`
//! choose other random histories and more of them.

mod cluster;
mod events;
mod replication;
mod rules;
mod scopes;
mod search;
mod tiered;
