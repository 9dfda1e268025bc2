//! How much memory does the recovery of a large directory hold at its peak?

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use siltstone::record::codec::Codec;
use siltstone_benches::Result;
use siltstone_benches::batches::Shape;
use siltstone_benches::segment::Segment;

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const MIB: f64 = 1_048_576.0;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let (many, large, live) = (
        "peak memory, 2,000 partitions x 3 segments",
        "peak memory, segments of 1 KiB and 64 KiB batches of 1 GiB each",
        "peak memory, 1,000,000 live producers in one partition",
    );
    if bench.wants(many) {
        let home = bench.with_partitions(|directory| {
            directory.kill_again()?;
            Ok(directory.home.clone())
        })?;
        rows.push(bench.told(row(many, &home, 256.0)?));
    }
    let logs = bench.work.join("logs");
    if bench.wants(large) {
        for (name, kibibytes) in [("small", 1), ("large", 64)] {
            let shape = Shape { batch_bytes: kibibytes << 10, codec: Codec::None, producers: 100 };
            remains(bench, &logs, name, shape)?;
        }
        rows.push(bench.told(row(large, &logs, 256.0)?));
        bench.clear()?;
    }
    if bench.wants(live) {
        let producers = bench.scaled(1_000_000);
        let count = usize::try_from(producers)?;
        let shape = Shape { batch_bytes: 256, codec: Codec::None, producers: count };
        remains(bench, &logs, "producers", shape)?;
        // 64 bytes a live producer come on top.
        let allowed = 256.0 + f64::from(u32::try_from(producers)?) * 64.0 / MIB;
        rows.push(bench.told(row(live, &logs, allowed)?));
    }
    Ok(rows)
}

/// A partition of which only the log is left.
fn remains(bench: &Bench, home: &Path, name: &str, shape: Shape) -> Result<()> {
    let segment = Segment::make(home, name, bench.scaled(1 << 30), shape)?;
    for entry in std::fs::read_dir(&segment.dir)? {
        let path = entry?.path();
        if path != segment.log {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn row(name: &str, logs: &Path, goal: f64) -> Result<Row> {
    let peak = peak_bytes(logs)?;
    Ok(Row::counted(name, Unit::Mebibytes, peak / MIB, Goal::Figure(goal)))
}

/// Runs the command line on the directory and watches its high-water mark, maps included.
fn peak_bytes(logs: &Path) -> Result<f64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--quiet", "--release", "--package", "siltstone-cli"];
    if !Command::new(cargo).args(build).current_dir(&root).status()?.success() {
        return Err("the command line cannot be built".into());
    }
    let program = std::env::current_exe()?.with_file_name("siltstone");
    let mut child = Command::new(program)
        .args(["recover", "--quiet", "--now-ms", "1700000000000"])
        .arg(logs)
        .stdout(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0_u32;
    let exit = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|mark| mark.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak_kib.max(mark.unwrap_or(0));
        if let Some(exit) = child.try_wait()? {
            break exit;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if !exit.success() {
        return Err(format!("siltstone recover: {exit}").into());
    }
    Ok(f64::from(peak_kib) * 1024.0)
}
