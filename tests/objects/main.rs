//! Object stores over a network: a real S3 API, and servers that fail and lie.

mod clouds;
mod hostile;
mod s3;
mod server;
