//! What a follower does next.

use std::hint::black_box;

use siltstone::replica::follower_step;
use siltstone_benches::Result;
use siltstone_benches::follower::Decisions;

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

/// Decisions of a round.
const DECISIONS: u32 = 1_000_000;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let name = "decision of a follower, one step";
    if !bench.wants(name) {
        return Ok(Vec::new());
    }
    let decisions = Decisions::new(usize::try_from(DECISIONS)?)?;
    let ours = bench.time(|| {
        decisions.each(|view, event| {
            black_box(follower_step(black_box(view), black_box(event)));
        });
        Ok(())
    })?;
    let table = [3, 1, 4, 1, 5, 9, 2, 6];
    let limit = bench.time(|| {
        black_box(decisions.look_up(black_box(&table)));
        Ok(())
    })?;
    let work = f64::from(DECISIONS);
    let row = Row::timed(name, Unit::Nanoseconds, work, ours, Goal::Figure(50.0));
    Ok(vec![bench.told(row.with_limit(work, limit))])
}
