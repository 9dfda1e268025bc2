//! What is in a record batch?
