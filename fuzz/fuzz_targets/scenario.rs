//! The files of `siltstone scenario`: every one gets answers or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The verb is a binary: its modules are taken in as they are.
#[path = "../../cli/src/scenario/answers.rs"]
mod answers;
#[path = "../../cli/src/scenario/follower.rs"]
mod follower;
#[path = "../../cli/src/scenario/input.rs"]
mod input;
#[path = "../../cli/src/scenario/questions.rs"]
mod questions;
#[path = "../../cli/src/scenario/retention.rs"]
mod retention;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((answers, _)) = answers::answer(bytes, 1_700_000_000_000) {
        assert!(!answers.is_empty());
    }
});
