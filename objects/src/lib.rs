//! Object stores over a network as an [`ObjectTarget`](siltstone::tier::ObjectTarget): S3 and what
//! speaks like it, Google Cloud Storage, Azure Blob Storage, and plain HTTP.
//!
//! The engine knows no network and no runtime; whoever wants to reach a store from it takes this
//! crate. Requests are made by the `object_store` crate on a runtime of one thread, which runs only
//! while a call waits for it. A call must not be made from within another runtime.

mod chunks;
mod connect;
mod disk;
mod failure;
mod options;
mod place;
mod store;
mod versions;

pub use disk::RemoteDisk;
pub use options::StoreOptions;
pub use place::Place;
pub use store::RemoteStore;
