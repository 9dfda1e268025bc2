//! Replicas that are rebuilt from remote storage, and the producers that they load.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::state::checkpoint::format_epochs;
use siltstone::state::live::{ProducerState, ProducerStateConfig};
use siltstone::state::{EpochEntry, SnapshotSet, write_snapshot};
use siltstone::tier::{
    AuxJob, AuxLimits, AuxPlace, AuxRemote, LocalTarget, ObjectLayout, RemotePartition,
    RemoteSegment, RemoteSegmentId, RemoteSegmentState, SegmentPart, build_aux_bulk,
};
use siltstone::uuid::Uuid;
use siltstone_benches::rounds::{Timing, Watch};
use siltstone_benches::{Result, cache, state_limits};

use crate::bench::Bench;
use crate::table::{Goal, REBUILDS, Row, Unit};

const PARTITIONS: u64 = 1000;
/// Of how many at once it is told what one takes.
const COUNTS: [usize; 3] = [100, 300, 1000];
const PRODUCERS: u32 = 10_000;
const EPOCHS: i32 = 100;
/// Behind all offsets of the producers and epochs that are made.
const END: i64 = 1 << 40;
/// Repetitions of what takes less than a millisecond.
const TIMES: u32 = 200;
/// Of the disk's own rate, where that is below the goal.
const OF_LIMIT: f64 = 0.9;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    rows.extend(load(bench)?);
    let names = [1, 2].map(|threads| {
        let word = if threads == 1 { "thread" } else { "threads" };
        format!("rebuild 1,000 replicas of 10,000 producers, {threads} {word}")
    });
    let of_more = COUNTS.map(|count| (count, format!("{REBUILDS}{count}")));
    let mut all = names.iter().chain(of_more.iter().map(|(_, name)| name));
    if !all.any(|name| bench.wants(name)) {
        return Ok(rows);
    }
    let remote = Remote::make(bench)?;
    let count = f64::from(u32::try_from(remote.segments.len())?);
    let goals = [1500.0, 2800.0];
    for ((threads, name), goal) in (1..).zip(names).zip(goals) {
        if !bench.wants(&name) {
            continue;
        }
        let ours = bench.time_few_laps(|| {
            let watch = Watch::start();
            remote.rebuild(threads, usize::MAX)?;
            Ok(watch.stop())
        })?;
        let limit = remote.limit(bench, threads)?;
        let row =
            Row::timed(&name, Unit::Partitions, count, ours, Goal::FigureOrLimit(goal, OF_LIMIT));
        let kafka = bench.kafka.get(&format!("aux-{threads}"));
        rows.push(bench.told(row.with_limit(count, limit).with_kafka(kafka)));
    }
    for (count, name) in of_more {
        if !bench.wants(&name) {
            continue;
        }
        let count = count.min(remote.segments.len());
        let ours = bench.time_few_laps(|| {
            let watch = Watch::start();
            remote.rebuild(2, count)?;
            Ok(watch.stop())
        })?;
        let work = f64::from(u32::try_from(count)?);
        let row = Row::timed(&name, Unit::Microseconds, work, ours, Goal::Nothing);
        rows.push(bench.told(row));
    }
    Ok(rows)
}

/// From the bytes of a snapshot to the state that a log asks.
fn load(bench: &Bench) -> Result<Option<Row>> {
    let name = "load 10,000 producers into a log's state";
    if !bench.wants(name) {
        return Ok(None);
    }
    let bytes = write_snapshot(&siltstone_benches::state::producers(PRODUCERS));
    let config = ProducerStateConfig { producer_id_expiration_ms: i64::MAX, ..Default::default() };
    let ours = bench.time(|| {
        for _ in 0..TIMES {
            let mut state = ProducerState::new(config, SnapshotSet::new([END]));
            state.load_snapshot(END, black_box(&bytes), 0)?;
            black_box(&state);
        }
        Ok(())
    })?;
    let limit = bench.time(|| {
        for _ in 0..TIMES {
            black_box(state_limits::load_snapshot(black_box(&bytes))?);
        }
        Ok(())
    })?;
    let work = f64::from(PRODUCERS) * f64::from(TIMES);
    // 9,000 snapshots a second.
    let row = Row::timed(name, Unit::MillionProducers, work, ours, Goal::Figure(90.0));
    let kafka = bench.kafka.get("snapshot-load").map(|rate| rate / 1e6);
    Ok(Some(bench.told(row.with_limit(work, limit).with_kafka(kafka))))
}

/// What was uploaded of many partitions, and a directory for their replicas.
struct Remote {
    target: LocalTarget,
    layout: ObjectLayout,
    segments: Vec<RemoteSegment>,
    logs: PathBuf,
    copies: PathBuf,
}

impl Remote {
    fn make(bench: &Bench) -> Result<Self> {
        let home = bench.many_files().join("rebuild");
        let (root, logs, copies) = (home.join("remote"), home.join("logs"), home.join("copies"));
        for dir in [&root, &logs, &copies] {
            fs::create_dir_all(dir)?;
        }
        let layout = ObjectLayout::default();
        let snapshot = write_snapshot(&siltstone_benches::state::producers(PRODUCERS));
        let entries: Vec<EpochEntry> = (0..EPOCHS)
            .map(|epoch| EpochEntry { epoch, start_offset: i64::from(epoch) * 1000 })
            .collect();
        let epochs = format_epochs(&entries);
        let mut segments = Vec::new();
        for partition in 0..bench.scaled(PARTITIONS) {
            let segment = segment(i32::try_from(partition)?, &entries);
            for (part, bytes) in
                [(SegmentPart::ProducerSnapshot, &snapshot), (SegmentPart::LeaderEpochs, &epochs)]
            {
                let path = root.join(layout.name(&segment.id, segment.start_offset, part));
                fs::create_dir_all(path.parent().unwrap_or(&root))?;
                fs::write(path, bytes)?;
            }
            segments.push(segment);
        }
        let target = LocalTarget::new(Arc::new(Disk::new()), root);
        Ok(Remote { target, layout, segments, logs, copies })
    }

    /// At most so many of them.
    fn rebuild(&self, threads: usize, count_max: usize) -> Result<()> {
        let segments = self.segments.get(..count_max).unwrap_or(&self.segments);
        let dirs: Vec<PathBuf> = (segments.iter())
            .map(|it| self.logs.join(format!("orders-{}", it.id.partition.partition)))
            .collect();
        let jobs: Vec<AuxJob<'_>> = (dirs.iter().zip(segments))
            .map(|(dir, segment)| AuxJob {
                place: AuxPlace::Dir(dir),
                segment,
                log_start_offset: 0,
            })
            .collect();
        let remote = AuxRemote { target: &self.target, layout: &self.layout };
        let limits = AuxLimits { threads, ..AuxLimits::new(0) };
        for result in build_aux_bulk(&Disk::new(), &jobs, remote, &limits) {
            result?;
        }
        Ok(())
    }

    /// Reads both objects of each, writes their bytes over files that are there, and syncs the disk
    /// twice: what a durable rebuild cannot do without.
    fn limit(&self, bench: &Bench, threads: usize) -> Result<Timing> {
        let part = self.segments.len().div_ceil(threads.max(1));
        bench.time_few_laps(|| {
            let watch = Watch::start();
            std::thread::scope(|scope| {
                let workers: Vec<_> = (self.segments.chunks(part))
                    .map(|segments| scope.spawn(|| copy_all(self, segments).is_ok()))
                    .collect();
                let all = workers.into_iter().all(|it| it.join().is_ok_and(|copied| copied));
                if all { Ok(()) } else { Err("a copy has failed") }
            })?;
            cache::sync_all(&self.copies)?;
            cache::sync_all(&self.copies)?;
            Ok(watch.stop())
        })
    }
}

fn copy_all(remote: &Remote, segments: &[RemoteSegment]) -> Result<()> {
    for segment in segments {
        for part in [SegmentPart::ProducerSnapshot, SegmentPart::LeaderEpochs] {
            let name = remote.layout.name(&segment.id, segment.start_offset, part);
            let bytes = fs::read(remote.target.root().join(&name))?;
            write_new(&remote.copies.join(name.replace('/', "_")), &bytes)?;
        }
    }
    Ok(())
}

/// A new file in the place of the old, as a rebuild makes it.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("tmp");
    fs::File::create(&beside)?.write_all(bytes)?;
    Ok(fs::rename(&beside, path)?)
}

fn segment(partition: i32, epochs: &[EpochEntry]) -> RemoteSegment {
    let partition =
        RemotePartition { topic_id: Uuid::random(), topic: "orders".to_owned(), partition };
    RemoteSegment {
        id: RemoteSegmentId { partition, segment_id: Uuid::random() },
        start_offset: 0,
        end_offset: END - 1,
        max_timestamp_ms: 0,
        broker_id: 1,
        event_timestamp_ms: 0,
        size_bytes: 1,
        custom_metadata: None,
        state: RemoteSegmentState::CopyFinished,
        leader_epochs: epochs.to_vec(),
        is_txn_index_empty: true,
    }
}
