//! The C ABI of siltstone: `include/siltstone.h`, which is the manual, in the order of its
//! sections.
//!
//! This crate translates between C and the engine and holds no logic of its own. Each function is
//! one guarded body: a panic becomes `SILT_E_BUG` and never reaches the caller. Pointers are
//! checked for NULL; that they point to what the header says is the caller's promise, and the
//! reason why every function here is unsafe.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)]

mod bytes;
mod claim;
mod dir;
mod engine;
mod error;
mod fork;
mod handle;
mod index;
mod library;
mod log;
mod many;
mod memory;
mod read;
mod replica;
mod ring;
mod state;
mod tier;
mod types;
