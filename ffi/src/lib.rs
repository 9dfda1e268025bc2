//! The C ABI of siltstone.
//!
//! This crate translates between C and the engine and holds no logic of its own. It exports nothing
//! yet: the functions come together with `include/siltstone.h`.
