//! A Kafka broker was killed, and one bit on its disk has turned: what is wrong, and how does its
//! log directory become fit to start?
//!
//! Works on a copy in a temporary directory of what a real Kafka 4.3.1 left behind; the copy goes
//! in the end.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use siltstone::dir::metadata::{MetadataOptions, find_metadata, load_metadata};
use siltstone::dir::recover::{
    DirRecoverOptions, PartitionDone, PartitionResult, PartitionSettings, recover_log_dir,
};
use siltstone::dir::settings::{Layers, Resolver};
use siltstone::dir::verify::{survey_log_dir, verify_partitions};
use siltstone::io::Disk;
use siltstone::log::VerifyOptions;
use siltstone::log::recover::{Plan, Silent};
use siltstone::segment::rebuild::IndexSettings;
use siltstone_tests::kits::Kit;

type Outcome = Result<(), Box<dyn Error>>;

/// The log that gets one wrong bit, and where: whole batches stand behind it.
const DAMAGED: (&str, u64) = ("txn-done-0/00000000000000000356.log", 2000);

fn main() -> Outcome {
    let state = Kit::open("txn").state("torn");
    let copy = state.unpack();
    let (data, now_ms) = (copy.data(), state.at_ms());
    turn_a_bit(&data.join(DAMAGED.0))?;
    println!("Kafka 4.3.1 was killed; the newest segments of its logs end in torn writes, and in");
    println!("{} one bit has turned.\nThis is a copy: {}\n", DAMAGED.0, data.display());

    println!("1. siltstone verify: every problem, nothing repaired");
    verify(&data, now_ms)?;
    println!(
        "\n2. siltstone recover: what is torn is cut, derived files are made anew, loss is refused"
    );
    recover(&data, &copy.metadata(), now_ms, false)?;
    println!("\n3. siltstone recover --allow-loss: the operator has decided; what is cut is kept");
    recover(&data, &copy.metadata(), now_ms, true)?;
    println!("\n4. siltstone recover, once more");
    recover(&data, &copy.metadata(), now_ms, true)?;
    println!("\n5. siltstone verify");
    verify(&data, now_ms)
}

fn turn_a_bit(log: &Path) -> Outcome {
    let mut bytes = fs::read(log)?;
    let byte = bytes.get_mut(usize::try_from(DAMAGED.1)?).ok_or("the log is shorter")?;
    *byte ^= 1;
    Ok(fs::write(log, bytes)?)
}

/// Prints the worst problem of each partition.
fn verify(data: &Path, now_ms: i64) -> Outcome {
    let disk = Disk::new();
    let survey = survey_log_dir(&disk, data)?;
    let options = VerifyOptions { now_ms, ..VerifyOptions::default() };
    verify_partitions(&disk, &survey.partitions, &options, 1, &|folder, report| match report {
        Err(error) => println!("   {}: {error}", folder.name),
        Ok(report) => {
            let verdict = report.verdict().as_str();
            let worst = report.problems.iter().max_by_key(|problem| problem.severity);
            match worst {
                None => println!("   {verdict:10} {}", folder.name),
                Some(problem) => println!("   {verdict:10} {}: {problem}", folder.name),
            }
        }
    })?;
    Ok(())
}

/// Prints what becomes of each partition.
fn recover(data: &Path, metadata: &Path, now_ms: i64, allow_loss: bool) -> Outcome {
    let disk = Disk::new();
    // The settings of the topics come from the metadata log of the same node.
    let folder = find_metadata(&disk, &[metadata.to_owned()]).ok_or("no metadata log")?;
    let cluster = load_metadata(&disk, &folder, &MetadataOptions::default())?.image;
    let resolver = Resolver::new(Layers::default())?;
    let settings = |topic: &str| match resolver.topic(topic, cluster.topic_configs(topic)) {
        Err(_) => PartitionSettings::default(),
        Ok(topic) => PartitionSettings {
            index: IndexSettings {
                interval_bytes: u64::from(topic.index_interval_bytes),
                max_size_bytes: usize::try_from(topic.segment_index_bytes).unwrap_or(usize::MAX),
            },
            remote_storage: topic.remote_storage,
        },
    };
    let changed = Mutex::new(0);
    let done = |done: PartitionDone<'_>| {
        let name = done.dir.file_name().unwrap_or_default().display().to_string();
        match done.result {
            PartitionResult::Sound(plan) if plan.is_empty() => return,
            PartitionResult::Sound(plan) => println!("   sound      {name}: {}", story(plan)),
            PartitionResult::Refused(plan) => {
                let reason = plan.refusal.as_ref().map_or("", |refusal| refusal.reason.as_str());
                println!("   refused    {name}: {reason}");
            }
            PartitionResult::Quarantined(..) => println!("   moved away {name}"),
            PartitionResult::Failed(error) => println!("   failed     {name}: {error}"),
        }
        if let Ok(mut changed) = changed.lock() {
            *changed += 1;
        }
    };
    let options =
        DirRecoverOptions { allow_loss, ..DirRecoverOptions::new(&settings, &done, now_ms) };
    let report = recover_log_dir(&disk, data, &options, &Silent)?;
    if changed.into_inner()? == 0 {
        println!("   nothing to do");
    }
    let marker = fs::read_to_string(data.join(".kafka_cleanshutdown"));
    match marker {
        Ok(marker) => println!("   {} sound; .kafka_cleanshutdown: {marker}", report.sound),
        Err(_) => {
            println!("   {} sound, {} refused: no clean marker", report.sound, report.refused)
        }
    }
    Ok(())
}

/// What was done to a partition, in one line.
fn story(plan: &Plan) -> String {
    let files = format!("{} small files changed", plan.actions.len());
    let Some(cut) = &plan.cut else { return files };
    let kept = if cut.survivors.any() && plan.keep_lost { ", kept as .log.lost" } else { "" };
    let bytes = cut.segment.map_or(0, |segment| segment.cut_bytes);
    format!("{bytes} bytes cut at offset {}{kept}; {files}", cut.from_offset)
}
