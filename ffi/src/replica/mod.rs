//! What may a replica do? The engine's rules over plain structs.

mod controller;
mod follower;
mod leader;
mod sync;
pub mod types;
mod view;
