//! Damaged inputs and their right answers.

use siltstone_tests::cases::{cases, check};

#[test]
fn every_damaged_input_has_its_right_answer() {
    let mut failed = Vec::new();
    let cases = cases("verify");
    for case in &cases {
        let wrong = check(case, &["--allow-loss"]);
        if !wrong.is_empty() {
            failed.push(format!("{} {}: {}", case.id(), case.kind(), wrong.join("; ")));
        }
    }
    println!("{} passed, {} failed", cases.len() - failed.len(), failed.len());
    assert!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}
