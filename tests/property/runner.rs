//! Runs a property on made-up inputs: the same ones each time, unless the environment asks for
//! others.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

const SEED: &str = "SILTSTONE_PROPERTY_SEED";
const CASES: &str = "SILTSTONE_PROPERTY_CASES";

/// Holds `property`, which panics where it does not hold, against so many inputs.
///
/// # Panics
///
/// With the seed and the smallest input found for which it does not hold.
pub fn check<S: Strategy>(cases: u32, inputs: &S, property: impl Fn(S::Value)) {
    let (seed, cases) = (number(SEED).unwrap_or(1), number(CASES).unwrap_or(cases));
    println!("{cases} cases from {SEED}={seed}");
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let outcome = TestRunner::new_with_rng(config, rng).run(inputs, |input| {
        property(input);
        Ok::<(), TestCaseError>(())
    });
    if let Err(error) = outcome {
        panic!("{SEED}={seed} {CASES}={cases}: {error}");
    }
}

fn number(variable: &str) -> Option<u32> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}
