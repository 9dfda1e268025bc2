//! Log directories that nobody has open: what is there, is it sound, make it fit to start.

mod object;
pub mod progress;
mod recover;
mod scan;
pub mod types;
mod verify;
