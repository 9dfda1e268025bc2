//! Recovery of a whole directory of small partitions, all of them unclean.

use siltstone::io::MapMode;
use siltstone_benches::directory::Directory;
use siltstone_benches::rounds::{Timing, Watch};
use siltstone_benches::{Result, dir_limits};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (threads, goal) in [(1, 2500.0), (2, 5000.0)] {
        let word = if threads == 1 { "thread" } else { "threads" };
        let name = format!("recover 2,000 partitions x 3 segments, {threads} {word}");
        if !bench.wants(&name) {
            continue;
        }
        let (count, ours, limit) = bench.with_partitions(|directory| {
            let count = f64::from(u32::try_from(directory.partitions)?);
            Ok((count, ours(bench, directory, threads)?, limit(bench, directory, threads)?))
        })?;
        let kafka = bench.kafka.get(&format!("load-{threads}"));
        let row = Row::timed(&name, Unit::Partitions, count, ours, Goal::Figure(goal));
        rows.push(bench.told(row.with_limit(count, limit).with_kafka(kafka)));
    }
    Ok(rows)
}

fn ours(bench: &Bench, directory: &mut Directory, threads: usize) -> Result<Timing> {
    bench.time_few_laps(|| {
        directory.kill_again()?;
        let watch = Watch::start();
        directory.recover(threads, MapMode::Always)?;
        Ok(watch.stop())
    })
}

fn limit(bench: &Bench, directory: &mut Directory, threads: usize) -> Result<Timing> {
    let folders: Vec<_> = directory.folders().collect();
    let snapshot = directory.made_at_the_end().to_owned();
    let active = directory.active().to_owned();
    bench.time_few_laps(|| {
        directory.kill_again()?;
        let watch = Watch::start();
        dir_limits::recover_folders(&directory.home, &folders, threads, &snapshot, &active)?;
        Ok(watch.stop())
    })
}
