//! One `.log` with its side files.
