//! Which remote segments may go, of ever more.

use std::hint::black_box;

use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{ExpiryInput, RemoteSegment, SizeRetention, plan_expiry};
use siltstone_benches::Result;
use siltstone_benches::remote::{OFFSETS, finished};

use crate::bench::Bench;
use crate::table::{EXPIRY, Goal, Row, Unit};
use crate::upload::GROWS;

const MAX_TIMESTAMP_MS: i64 = 1_700_000_000_000;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in GROWS {
        let name = format!("{EXPIRY}{count}");
        if bench.wants(&name) {
            rows.push(bench.told(plan(bench, &name, count)?));
        }
    }
    Ok(rows)
}

/// A plan by time and by size in which half of the segments go.
fn plan(bench: &Bench, name: &str, count: i64) -> Result<Row> {
    let segments: Vec<RemoteSegment> =
        (0..count).map(|number| finished(number * OFFSETS, MAX_TIMESTAMP_MS + number)).collect();
    let all: Vec<&RemoteSegment> = segments.iter().collect();
    let epochs = LeaderEpochs::from_entries(&[EpochEntry { epoch: 0, start_offset: 0 }])?;
    let input = ExpiryInput {
        segments: &all,
        epochs: &epochs,
        log_start_offset: 0,
        log_end_offset: count * OFFSETS,
        sizes: SizeRetention {
            retention_bytes: i64::MAX,
            local_retention_bytes: -1,
            only_local_bytes: 0,
            local_bytes: 0,
        },
        retention_ms: 1,
        now_ms: MAX_TIMESTAMP_MS + count / 2 + 1,
        is_being_copied: &|_| false,
        all_valid: false,
    };
    let times = (100_000 / count).max(1);
    let ours = bench.time(|| {
        for _ in 0..times {
            let deletes = plan_expiry(black_box(&input)).deletes.len();
            if i64::try_from(deletes)? != count / 2 {
                return Err(format!("{deletes} of {count} segments go").into());
            }
        }
        Ok(())
    })?;
    // Sizes are summed up, and timestamps looked at up to the first segment that stays.
    let limit = bench.time(|| {
        for _ in 0..times {
            black_box(all.iter().map(|segment| i64::from(segment.size_bytes)).sum::<i64>());
            let goes = |segment: &&&RemoteSegment| segment.max_timestamp_ms < input.now_ms - 1;
            black_box(all.iter().take_while(goes).copied().collect::<Vec<_>>());
        }
        Ok(())
    })?;
    let work = f64::from(u32::try_from(count * times)?);
    let row = Row::timed(name, Unit::Nanoseconds, work, ours, Goal::Nothing);
    Ok(row.with_limit(work, limit))
}
