//! What does the log mean? Producers, snapshots, leader epochs and checkpoint files.
