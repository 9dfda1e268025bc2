//! Recovery of a whole directory of small partitions, all of them unclean.

use siltstone::io::MapMode;
use siltstone_benches::directory::Directory;
use siltstone_benches::rounds::Watch;
use siltstone_benches::{Result, limits};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const SEGMENTS: usize = 3;
const PARTITIONS: u64 = 2000;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let partitions = usize::try_from(bench.scaled(PARTITIONS))?;
    for (threads, goal) in [(1, 2500.0), (2, 5000.0)] {
        let word = if threads == 1 { "thread" } else { "threads" };
        let name = format!("recover 2,000 partitions x 3 segments, {threads} {word}");
        if !bench.wants(&name) {
            continue;
        }
        let mut directory = Directory::make(&bench.work.join("logs"), partitions, SEGMENTS)?;
        let ours = bench.time_laps(|| {
            directory.kill_again()?;
            let watch = Watch::start();
            directory.recover(threads, MapMode::Always)?;
            Ok(watch.stop())
        })?;
        let folders: Vec<_> = directory.folders().collect();
        let snapshot = directory.made_at_the_end().to_owned();
        let active = directory.active().to_owned();
        let limit = bench.time_laps(|| {
            directory.kill_again()?;
            let watch = Watch::start();
            limits::recover_folders(&directory.home, &folders, threads, &snapshot, &active)?;
            Ok(watch.stop())
        })?;
        let work = f64::from(u32::try_from(partitions)?);
        let kafka = bench.kafka.get(&format!("load-{threads}"));
        let row = Row::timed(&name, Unit::Partitions, work, ours, Goal::Figure(goal));
        rows.push(bench.told(row.with_limit(work, limit).with_kafka(kafka)));
        bench.clear()?;
    }
    Ok(rows)
}
