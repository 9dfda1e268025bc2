//! Writes what the fuzz targets begin with: pieces of the kits and the cases, one folder for each
//! target.
//!
//! ```text
//! cargo run --package siltstone-tests --example fuzz_seeds -- fuzz/corpus
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::record::batch::{BatchHeader, HEADER_SIZE};
use siltstone::record::codec::{Codec, Decompressor};
use siltstone::record::scan::{ScannedBatch, scan};
use siltstone::record::validate::set_last_offset;
use siltstone::record::{Records, legacy};
use siltstone::tier::{LocalTarget, ObjectLayout, ObjectTarget, RemoteInventory, SegmentPart};
use siltstone_tests::cases::cases;
use siltstone_tests::kits::{Kit, State};

/// Larger seeds slow the fuzzer down.
const SEED_SIZE_MAX: usize = 4096;

/// More seeds of a kind teach it little.
const SEEDS_OF_A_KIND: usize = 40;

fn main() {
    let target = std::env::args_os().nth(1).expect("the folder to write to");
    let mut seeds = Seeds { target: PathBuf::from(target), counts: BTreeMap::new() };
    for kit in Kit::all() {
        for state in kit.states() {
            if !state.name().contains("recovered") {
                from_state(&mut seeds, &state);
                from_remote(&mut seeds, &state);
            }
        }
    }
    for case in cases("verify") {
        let (dir, name) = case.unpack();
        from_case(&mut seeds, dir.path());
        from_partition(&mut seeds, &dir.path().join(name));
    }
    for (kind, count) in &seeds.counts {
        println!("{count:5} {kind}");
    }
}

struct Seeds {
    target: PathBuf,
    counts: BTreeMap<String, usize>,
}

impl Seeds {
    /// Writes a seed, unless there are enough of its kind.
    fn add(&mut self, target: &str, kind: &str, parts: &[&[u8]]) {
        let mut seed = parts.concat();
        seed.truncate(SEED_SIZE_MAX);
        let kind = format!("{target} {kind}");
        let count = self.counts.entry(kind).or_default();
        if *count < SEEDS_OF_A_KIND {
            *count += 1;
            let folder = self.target.join(target);
            fs::create_dir_all(&folder).expect("a new directory");
            let name = &siltstone_tests::sha256(&seed)[..16];
            fs::write(folder.join(name), seed).expect("room on the disk");
        }
    }
}

fn from_state(seeds: &mut Seeds, state: &State) {
    for partition in state.partitions() {
        seeds.add("name", "directory", &[partition.as_bytes()]);
        for file in state.files(&partition) {
            let bytes = state.read(&format!("data/{partition}/{file}")).expect("a file");
            from_file(seeds, &file, &bytes);
            if file.ends_with(".log") {
                from_log(seeds, &partition, &bytes);
            }
        }
    }
    for file in ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"] {
        if let Some(bytes) = state.read(&format!("data/{file}")) {
            seeds.add("checkpoint", file, &[&bytes]);
        }
    }
    let metadata = "__cluster_metadata-0/00000000000000000000.log";
    if let Some(bytes) = state.read(&format!("metadata/{metadata}")) {
        from_log(seeds, "__cluster_metadata-0", &bytes);
    }
}

/// The parts of uploaded segments, each behind its length.
fn from_remote(seeds: &mut Seeds, state: &State) {
    let unpacked = state.unpack();
    if !unpacked.remote().is_dir() {
        return;
    }
    let store = LocalTarget::new(Arc::new(Disk::new()), unpacked.remote());
    let layout = ObjectLayout::default();
    let inventory = RemoteInventory::list(&store, &layout).expect("a listing");
    for parts in inventory.segments() {
        let mut seed = Vec::new();
        for part in SegmentPart::ALL {
            let name = layout.name(&parts.id, parts.start_offset, part);
            let mut bytes = store.get(&name, None, 1 << 20).unwrap_or_default();
            // The others fit behind it.
            bytes.truncate(SEED_SIZE_MAX / 4);
            let size = u16::try_from(bytes.len()).expect("a small part");
            seed.extend(size.to_be_bytes());
            seed.extend(bytes);
            seeds.add("name", "object", &[name.as_bytes()]);
        }
        seeds.add("remote_segment", "uploaded", &[&seed]);
    }
}

fn from_case(seeds: &mut Seeds, dir: &Path) {
    for entry in fs::read_dir(dir).expect("a directory").filter_map(Result::ok) {
        let name = entry.file_name().display().to_string();
        if entry.path().is_dir() {
            seeds.add("name", "directory", &[name.as_bytes()]);
            from_case(seeds, &entry.path());
        } else if entry.path().is_file() {
            let bytes = fs::read(entry.path()).expect("a file");
            from_file(seeds, &name, &bytes);
            if name.ends_with(".log") {
                let damaged = &bytes[..bytes.len().min(SEED_SIZE_MAX)];
                seeds.add("batch", &format!("of cases {}", damaged.len() % 7), &[damaged]);
                from_log(seeds, "of cases", &bytes);
            }
        }
    }
}

/// A whole partition directory, with several ways to recover it.
fn from_partition(seeds: &mut Seeds, dir: &Path) {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory").filter_map(Result::ok) {
        if let Ok(bytes) = fs::read(entry.path()) {
            pack(&mut files, &entry.file_name().display().to_string(), &bytes);
        }
    }
    let kind = format!("of cases {}", files.len());
    for flags in [0, 1, 2, 2 + 32, 2 + 64] {
        seeds.add("recover", &kind, &[&[flags, 0, 0], &files]);
    }
    let tree = log_dir(dir);
    for flags in [0, 1, 2] {
        seeds.add("log_dir", &kind, &[&[flags, 0, 0], &tree]);
    }
}

/// A log directory that holds one partition and the checkpoint files that go with it.
fn log_dir(partition: &Path) -> Vec<u8> {
    let offsets = b"0\n1\norders 0 1\n";
    let mut files = vec![
        ("recovery-point-offset-checkpoint".to_owned(), offsets.to_vec()),
        ("log-start-offset-checkpoint".to_owned(), offsets.to_vec()),
        (".kafka_cleanshutdown".to_owned(), br#"{"version":0,"brokerEpoch":-1}"#.to_vec()),
    ];
    for entry in fs::read_dir(partition).expect("a directory").filter_map(Result::ok) {
        if let Ok(bytes) = fs::read(entry.path()) {
            files.push((format!("orders-0/{}", entry.file_name().display()), bytes));
        }
    }
    let mut packed = Vec::new();
    for (name, bytes) in files {
        pack(&mut packed, &name, &bytes);
    }
    packed
}

/// A file as the targets that take directories read it.
fn pack(packed: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    packed.push(u8::try_from(name.len()).expect("a short name"));
    packed.extend(name.as_bytes());
    let size = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    packed.extend(size.to_be_bytes());
    packed.extend(&bytes[..size.into()]);
}

/// Seeds that are a file as it is.
fn from_file(seeds: &mut Seeds, name: &str, bytes: &[u8]) {
    seeds.add("name", "file", &[name.as_bytes()]);
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    let base: i64 = stem.parse().unwrap_or_default();
    let target = (base + 20).to_be_bytes();
    let base = base.to_be_bytes();
    match suffix {
        "index" => seeds.add("offset_index", "", &[&base, &target, bytes]),
        "timeindex" => {
            let time = bytes.first_chunk::<8>().copied().unwrap_or_default();
            seeds.add("time_index", "", &[&base, &time, bytes]);
        }
        "txnindex" => seeds.add("txn_index", "", &[&base, &target, bytes]),
        "snapshot" => seeds.add("snapshot", "", &[bytes]),
        _ if name == "leader-epoch-checkpoint" => seeds.add("checkpoint", "epochs", &[bytes]),
        _ if name == "scenario.json" => seeds.add("scenario", "", &[bytes]),
        _ => {}
    }
}

/// A batch as its producer sent it, to be kept as it is, to be written anew, and with the time of
/// the append.
fn from_batch(seeds: &mut Seeds, kind: &str, header: &BatchHeader, bytes: &[u8]) {
    let mut sent = bytes.to_vec();
    set_last_offset(&mut sent, i64::from(header.last_offset_delta));
    let now = header.max_timestamp.to_be_bytes();
    let magic = header.magic.cast_unsigned() << 2;
    for [how, codec, limits] in
        [[1 + magic, 5, 3], [1 + 8, 3, 0], [1 + 32 + 8, 5, 0], [8, 2, 0], [1 + 16 + 8, 0, 1]]
    {
        let kind = format!("{kind} {how} {codec}");
        seeds.add("validate", &kind, &[&[how, codec, limits], &now, &sent]);
    }
}

/// Seeds from the batches of a log: some batches in a row, payloads, old entries, records of
/// Kafka's own topics.
fn from_log(seeds: &mut Seeds, partition: &str, log: &[u8]) {
    let mut decompressor = Decompressor::new();
    let mut visit = |batch: ScannedBatch<'_>| {
        let (header, bytes) = (batch.header, batch.bytes);
        let codec = Codec::from_id(header.codec_id()).unwrap_or_default();
        let position = batch.position as usize;
        let row = &log[position..log.len().min(position + SEED_SIZE_MAX)];
        let kind = format!("{} {} {}", header.magic, codec.as_str(), header.is_control());
        seeds.add("batch", &kind, &[row]);
        from_batch(seeds, &kind, header, bytes);
        let target = format!("codec_{}", codec.as_str());
        if header.magic < 2 {
            seeds.add("legacy", &kind, &[bytes]);
            let payload = legacy::parse_message(bytes).ok().and_then(|message| message.value);
            if let Some(payload) = payload.filter(|_| codec != Codec::None) {
                seeds.add(&target, &kind, &[&[header.magic.cast_unsigned()], payload]);
            }
            return Ok(ControlFlow::Continue(()));
        }
        let payload = &bytes[HEADER_SIZE.min(bytes.len())..];
        if codec != Codec::None {
            seeds.add(&target, &kind, &[&[2], payload]);
        }
        let opened = decompressor.decompress(codec, 2, payload, 1 << 20).unwrap_or_default();
        if partition.starts_with("__") {
            for record in Records::new(header, opened).map_while(Result::ok) {
                let key = record.key.unwrap_or_default();
                let size = [u8::try_from(key.len()).unwrap_or(u8::MAX)];
                let value = record.value.unwrap_or_default();
                seeds.add("payload", partition, &[&size, key, value]);
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let _ = scan(&mut &log[..], 0, u64::MAX, &mut visit);
}
