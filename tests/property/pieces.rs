//! A segment that is read in pieces side by side is recovered as one that is read in one go.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use siltstone::log::recover::RecoverOptions;

use crate::logs::{Case, DIR, cases};
use crate::recovery::recover;
use crate::runner::check;

#[test]
fn pieces_side_by_side_give_the_plan_and_the_files_of_one_walk() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("three threads");
    let (tried, parted) = (AtomicU32::new(0), AtomicU32::new(0));
    let inputs = (cases(300), 64..900_u64, 2..8_usize);
    check(400, &inputs, |(case, piece_bytes, parallel)| {
        tried.fetch_add(1, Ordering::Relaxed);
        let is_parted = |bytes: &Vec<u8>| bytes.len() as u64 > piece_bytes;
        let logs = case.files().into_iter().filter(|(name, _)| name.ends_with(".log"));
        parted.fetch_add(
            u32::from(logs.map(|(_, log)| log).any(|log| is_parted(&log))),
            Ordering::Relaxed,
        );
        let options = RecoverOptions { piece_bytes, parallel, ..case.options() };
        pool.install(|| assert_same_as_one_walk(&case, &options));
    });
    let (tried, parted) = (tried.into_inner(), parted.into_inner());
    println!("{parted} of {tried} logs were read in pieces");
    assert!(parted * 2 > tried, "{parted} of {tried} logs were read in pieces");
}

fn assert_same_as_one_walk(case: &Case, options: &RecoverOptions) {
    let (one, other) = (case.disk(), case.disk());
    let (walked, _) = recover(&one, &case.options());
    let (pieced, _) = recover(&other, options);
    assert_eq!(walked, pieced, "the plans part");
    let files = |disk: &siltstone::io::SimDisk| disk.snapshot(Path::new(DIR)).expect("a partition");
    assert_eq!(files(&one).differences(&files(&other)), Vec::<String>::new());
}
