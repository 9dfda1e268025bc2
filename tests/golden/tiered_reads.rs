//! What is read of remote segments is what Kafka reads of the same segments on its disk, and from
//! remote to local segments nothing is lost and no aborted record is shown.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use siltstone::index::AbortedTxn;
use siltstone::io::Disk;
use siltstone::log::{FetchOptions, Isolation, Log};
use siltstone::record::BatchHeader;
use siltstone::record::control::{Control, parse_control};
use siltstone::tier::{
    LocalTarget, MetadataCache, ObjectLayout, RemoteMetadata, RemoteSegmentState, RemoteTimestamp,
    RemoteView, TargetIndexes, read_metadata_log, remote_offset_for_timestamp, remote_read,
};
use siltstone_tests::expect::{Expectation, Loaded};
use siltstone_tests::kits::{Kit, State, Unpacked};

use crate::live_reads;

const METADATA: &str = "__remote_log_metadata-0";

/// A partition with its remote segments.
struct Tiered {
    label: String,
    unpacked: Arc<Unpacked>,
    partition: String,
    expectation: Expectation,
    log: Log,
    cache: MetadataCache,
}

impl Tiered {
    /// Those of all states that have remote segments and can be loaded. In those that begin with
    /// "bare" the epochs before the first local segment are lost, and Kafka's new transaction
    /// indexes do not know where transactions began.
    fn all() -> Vec<Tiered> {
        let states = Kit::open("tiered").states();
        let known = states.iter().filter(|state| !state.name().starts_with("bare"));
        known.flat_map(Tiered::of_state).collect()
    }

    /// Those of the states that Kafka left itself: the others have the same remote segments.
    fn undamaged() -> Vec<Tiered> {
        let kit = Kit::open("tiered");
        ["clean", "unclean"].into_iter().flat_map(|it| Tiered::of_state(&kit.state(it))).collect()
    }

    fn of_state(state: &State) -> Vec<Tiered> {
        let unpacked = Arc::new(state.unpack());
        if !unpacked.partition(METADATA).is_dir() || !unpacked.remote().is_dir() {
            return Vec::new();
        }
        let mut metadata = RemoteMetadata::new();
        let dir = unpacked.partition(METADATA);
        let report = read_metadata_log(&Disk::new(), &dir, &mut metadata).unwrap();
        assert!(report.refused.is_empty() && report.dropped.is_empty(), "{}", state.label());
        metadata.mark_loaded();
        let mut found = Vec::new();
        for name in state.partitions().into_iter().filter(|name| name.starts_with("tier-")) {
            let Some(expectation) = state.expectation(&name) else { continue };
            if expectation.loaded.ok().is_none() {
                continue;
            }
            let caches = metadata.find(name.strip_suffix("-0").unwrap(), 0);
            assert_eq!(caches.len(), 1, "{name}");
            let log = live_reads::open(state, &unpacked.partition(&name), &expectation);
            log.update_high_watermark(log.log_end_offset()).unwrap();
            found.push(Tiered {
                label: format!("{} {name}", state.label()),
                unpacked: Arc::clone(&unpacked),
                partition: name,
                expectation,
                log,
                cache: caches[0].clone(),
            });
        }
        found
    }

    fn loaded(&self) -> &Loaded {
        self.expectation.loaded.ok().unwrap()
    }

    fn with<T>(&self, see: impl FnOnce(&RemoteView<'_>) -> T) -> T {
        let target = LocalTarget::new(Arc::new(Disk::new()), self.unpacked.remote());
        let layout = ObjectLayout::default();
        see(&RemoteView {
            cache: &self.cache,
            epochs: &self.log.leader_epochs(),
            log_start_offset: self.log_start(),
            log_end_offset: self.log.log_end_offset(),
            target: &target,
            layout: &layout,
            indexes: &TargetIndexes { target: &target, layout: &layout },
            local: &self.log,
        })
    }

    fn log_start(&self) -> i64 {
        self.expectation.log_start_offset_checkpoint.unwrap_or(0)
    }
}

#[test]
fn remote_segments_are_read_as_kafka_reads_its_own() {
    let (mut compared, mut with_aborted) = (0, 0);
    for tiered in Tiered::all() {
        tiered.with(|view| {
            for row in &tiered.loaded().log_read {
                let Some(base) = row.get(3).and_then(Value::as_i64) else { continue };
                let offset = row[0].as_i64().unwrap();
                // Where the local log was cut, so that not all of the segment is decided, Kafka
                // reads less of it.
                let decided = tiered.log.last_stable_offset();
                let is_same = view
                    .segment_at(offset)
                    .is_some_and(|it| it.start_offset == base && it.end_offset < decided);
                if !is_same {
                    continue;
                }
                let isolation = match row[2].as_str().unwrap() {
                    "TXN_COMMITTED" => Isolation::Committed,
                    _ => Isolation::LogEnd,
                };
                let max_bytes = u32::try_from(row[1].as_u64().unwrap()).unwrap();
                let options = FetchOptions { max_bytes, isolation, min_one_message: true };
                let read = remote_read(view, offset, &options).unwrap();
                let place = read.place.unwrap();
                let ids = |list: &Vec<AbortedTxn>| {
                    list.iter().map(|it| (it.producer_id, it.first_offset)).collect::<Vec<_>>()
                };
                let aborted = read.aborted.as_ref().map(ids);
                let got =
                    json!([place.segment_start_offset, place.position, read.bytes.len(), aborted]);
                let what = format!("{}: {row:?}", tiered.label);
                assert_eq!(got, in_order(&row[3..]), "{what}");
                let file = tiered.unpacked.partition(&tiered.partition);
                let local = fs::read(file.join(format!("{base:020}.log"))).unwrap();
                let from = usize::try_from(place.position).unwrap();
                assert_eq!(read.bytes, local[from..from + read.bytes.len()], "{what}");
                compared += 1;
                with_aborted += usize::from(aborted.is_some_and(|list| !list.is_empty()));
            }
        });
    }
    println!("{compared} reads, {with_aborted} with aborted transactions");
    assert!(compared > 100 && with_aborted > 10, "{compared} {with_aborted}");
}

/// A row with its aborted transactions in our order: Kafka promises none.
fn in_order(row: &[Value]) -> Value {
    let mut row = row.to_vec();
    if let Some(Value::Array(aborted)) = row.last_mut() {
        aborted.sort_by_key(|it| (it[1].as_i64(), it[0].as_i64()));
        aborted.dedup();
    }
    Value::Array(row)
}

#[test]
fn timestamps_are_answered_as_kafka_answers_them() {
    let mut compared = 0;
    for tiered in Tiered::all() {
        tiered.with(|view| {
            for segment in &tiered.loaded().segments {
                let base = segment.base_offset;
                if view.segment_at(base).is_none_or(|it| it.start_offset != base) {
                    continue;
                }
                for row in segment.find_offset_by_timestamp.iter().filter(|row| row.len() == 5) {
                    let (target, from) = (row[0].unwrap(), row[1].unwrap().max(base));
                    let answer = remote_offset_for_timestamp(view, target, from, None).unwrap();
                    let RemoteTimestamp::Found(Some(found)) = answer else { panic!("{row:?}") };
                    let epoch = found.leader_epoch.map(i64::from);
                    let got = [Some(found.timestamp_ms), Some(found.offset), epoch];
                    assert_eq!(got, row[2..], "{} {base} {row:?}", tiered.label);
                    compared += 1;
                }
            }
        });
    }
    println!("{compared} timestamps");
    assert!(compared > 100, "{compared}");
}

/// A batch of the whole log: base and last offset, producer, and whether a transaction of it was
/// aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    last_offset: i64,
    producer_id: i64,
    is_control: bool,
    is_aborted: bool,
}

fn headers(bytes: &[u8]) -> Vec<(BatchHeader, &[u8])> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while let Some(header) = BatchHeader::parse(rest) {
        let size = usize::try_from(header.size_bytes).unwrap();
        let Some(batch) = rest.get(..size) else { break };
        found.push((header, batch));
        rest = &rest[size..];
    }
    found
}

/// What a reader should know of every batch, by base offset, found without an index: the marker
/// behind a batch decides. Reads on from remote to local segments.
fn facts(tiered: &Tiered, view: &RemoteView<'_>) -> BTreeMap<i64, Fact> {
    let mut all = Vec::new();
    let mut offset = tiered.log_start();
    let options =
        FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true };
    while offset < tiered.log.log_end_offset() {
        let bytes = match view.segment_at(offset) {
            Some(_) => remote_read(view, offset, &options).unwrap().bytes,
            None => tiered.log.read(offset, &options).unwrap().bytes,
        };
        for (header, batch) in headers(&bytes) {
            assert!(header.base_offset <= offset, "{}: a hole at {offset}", tiered.label);
            let control = header.is_control().then(|| parse_control(&header, batch));
            let is_abort = matches!(control, Some(Control::End(end)) if end.is_abort);
            offset = header.next_offset();
            all.push((header, is_abort));
        }
    }
    let mut facts = BTreeMap::new();
    // From the back: the next marker of its producer decides.
    let mut next_marker: BTreeMap<i64, bool> = BTreeMap::new();
    for (header, is_abort) in all.into_iter().rev() {
        if header.is_control() {
            next_marker.insert(header.producer_id, is_abort);
        }
        let decided = next_marker.get(&header.producer_id).copied();
        let fact = Fact {
            last_offset: header.last_offset(),
            producer_id: header.producer_id,
            is_control: header.is_control(),
            is_aborted: header.is_transactional() && decided == Some(true),
        };
        facts.insert(header.base_offset, fact);
    }
    facts
}

#[test]
fn readers_of_committed_data_see_no_aborted_record_across_the_seam() {
    let (mut reads, mut hidden) = (0, 0);
    for tiered in Tiered::undamaged() {
        tiered.with(|view| {
            let facts = facts(&tiered, view);
            let segments = view.cache.list_all();
            let copied = RemoteSegmentState::CopyFinished;
            assert!(segments.iter().all(|it| it.state == copied), "{}", tiered.label);
            for offset in facts.keys().copied().filter(|at| *at >= tiered.log_start()) {
                if view.segment_at(offset).is_none() {
                    continue;
                }
                for max_bytes in [1, 5000, 200_000] {
                    let isolation = Isolation::Committed;
                    let options = FetchOptions { max_bytes, isolation, min_one_message: true };
                    let read = remote_read(view, offset, &options).unwrap();
                    let aborted = read.aborted.unwrap();
                    let keys: Vec<_> =
                        aborted.iter().map(|it| (it.first_offset, it.producer_id)).collect();
                    assert!(keys.is_sorted_by(|one, next| one < next), "{}", tiered.label);
                    for (header, _) in headers(&read.bytes) {
                        let fact = facts[&header.base_offset];
                        let is_listed = aborted.iter().any(|it| {
                            it.producer_id == fact.producer_id
                                && it.first_offset <= header.base_offset
                                && header.base_offset <= it.last_offset
                        });
                        let is_shown = !fact.is_control && !is_listed;
                        let may_be_shown = !fact.is_control && !fact.is_aborted;
                        let at = header.base_offset;
                        assert_eq!(is_shown, may_be_shown, "{} {at} from {offset}", tiered.label);
                        hidden += usize::from(fact.is_aborted && !fact.is_control);
                    }
                    reads += 1;
                }
            }
        });
    }
    println!("{reads} reads hide {hidden} aborted batches");
    assert!(reads > 1000 && hidden > 1000, "{reads} {hidden}");
}
