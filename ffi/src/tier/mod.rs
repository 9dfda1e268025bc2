//! Remote storage: what is to be uploaded, where a remote segment is read, what is said of one,
//! and how replicas are rebuilt from it.

mod direct;
mod eligible;
mod rebuild;
mod record;
pub mod types;
mod upload;
