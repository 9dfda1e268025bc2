//! One `.log` with its side files: their names, what is wrong with a log, and its indexes made
//! anew.

pub mod damage;
pub mod name;
pub mod rebuild;

pub use name::{FileName, FileRole, FileState};
