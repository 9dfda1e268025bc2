use super::super::byte_range::tests as byte_range;
use super::super::byte_range::tests::given;
use super::super::formats::APACHE_KAFKA_V1;
use super::super::indexes::IndexSource;
use super::super::local_target::LocalTarget;
use super::super::metadata_cache::MetadataCache;
use super::super::metadata_cache::tests::{finished, segment, update};
use super::super::remote_segment::RemoteSegmentState;
use super::super::target::{ObjectBytes, ObjectTarget};
use super::super::test_store::number;
use super::super::view::NoLocalSegments;
use super::*;
use crate::error::{Error, Kind};
use crate::io::SimDisk;
use crate::state::LeaderEpochs;
use std::sync::Arc;

/// A batch of which a reader looks at the header alone.
fn fake_batch(base_offset: i64, last_offset: i64, size_bytes: usize) -> Vec<u8> {
    let mut batch = vec![0; size_bytes];
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[8..12].copy_from_slice(&i32::try_from(size_bytes - 12).unwrap().to_be_bytes());
    batch[16] = 2;
    let delta = i32::try_from(last_offset - base_offset).unwrap();
    batch[23..27].copy_from_slice(&delta.to_be_bytes());
    batch
}

/// The segment of the vectors and one behind it, with their logs.
struct Given {
    target: LocalTarget,
    layout: ObjectLayout,
    cache: MetadataCache,
    epochs: LeaderEpochs,
    indexes: Vec<Arc<SegmentIndexes>>,
    log_start_offset: i64,
    local_log_start_offset: i64,
    high_watermark: i64,
    last_stable_offset: i64,
    stored_format: &'static str,
    request: DirectRequest<'static>,
}

impl IndexSource for Vec<Arc<SegmentIndexes>> {
    fn indexes(&self, segment: &RemoteSegment) -> Result<Arc<SegmentIndexes>> {
        let found = self.iter().find(|it| it.base_offset() == segment.start_offset);
        found.map(Arc::clone).ok_or_else(|| Error::corrupt("no side files"))
    }
}

/// What came of a request.
#[derive(Debug, PartialEq)]
enum Outcome {
    At { segment: u64, begin: u64, end: u64 },
    Empty,
    Fallback(DirectFallback),
}

fn at(begin: u64, end: u64) -> Outcome {
    Outcome::At { segment: 1, begin, end }
}

impl Given {
    /// Segment 1 as in the vectors; segment 2 with the offsets 200 to 299 in 1000 bytes.
    fn new() -> Self {
        let (first, indexes) = given();
        let second = RemoteSegment { size_bytes: 1000, ..segment(2, 200, 299, "0:200") };
        let batches = [
            fake_batch(0, 24, 2000),
            fake_batch(25, 39, 2000),
            fake_batch(40, 49, 4000),
            fake_batch(50, 99, 4000),
            fake_batch(100, 149, 2000),
            fake_batch(150, 199, 2000),
        ];
        let given = Given {
            target: LocalTarget::new(Arc::new(SimDisk::new()), "/"),
            layout: ObjectLayout::default(),
            cache: finished(vec![first, second]),
            epochs: LeaderEpochs::from_entries(&super::super::lineage::tests::entries("0:0"))
                .unwrap(),
            indexes: vec![Arc::new(indexes), Arc::new(no_indexes())],
            log_start_offset: 0,
            local_log_start_offset: 300,
            high_watermark: 1000,
            last_stable_offset: 1000,
            stored_format: APACHE_KAFKA_V1,
            request: DirectRequest {
                offset: 0,
                max_bytes: u64::MAX,
                isolation: Isolation::HighWatermark,
                wants_location: true,
                is_consumer: true,
                formats: &[APACHE_KAFKA_V1],
            },
        };
        given.log(1, &batches.concat());
        given.log(2, &fake_batch(200, 299, 1000));
        given
    }

    fn log(&self, id: u64, bytes: &[u8]) {
        let all = self.cache.list_all();
        let segment = all.into_iter().find(|it| number(it) == id).unwrap();
        let name = SegmentLocations::of(&self.layout, segment).log;
        self.target.put(&name, &[ObjectBytes::Memory(bytes)]).unwrap();
    }

    fn answer<T>(&self, see: impl FnOnce(DirectAnswer<'_>) -> T) -> T {
        let remote = RemoteView {
            cache: &self.cache,
            epochs: &self.epochs,
            log_start_offset: self.log_start_offset,
            log_end_offset: 2000,
            target: &self.target,
            layout: &self.layout,
            indexes: &self.indexes,
            local: &NoLocalSegments,
        };
        let view = DirectView {
            remote,
            local_log_start_offset: self.local_log_start_offset,
            high_watermark: self.high_watermark,
            last_stable_offset: self.last_stable_offset,
            stored_format: self.stored_format,
        };
        let answer = plan_direct_read(&self.request, &view).unwrap();
        // Memory that is used again gets the same transactions, and nothing of the last ones.
        let old =
            AbortedTxn { producer_id: 9, first_offset: 8, last_offset: 9, last_stable_offset: 9 };
        let mut aborted = vec![old; 3];
        let mut into = plan_direct_read_into(&self.request, &view, &mut aborted).unwrap();
        if let DirectAnswer::Read(read) = &mut into {
            assert!(read.aborted.is_empty());
            read.aborted.clone_from(&aborted);
        }
        assert_eq!(into, answer);
        see(answer)
    }

    fn outcome(&self) -> Outcome {
        self.answer(|answer| match answer {
            DirectAnswer::Read(read) => Outcome::At {
                segment: number(read.segment),
                begin: read.range.begin,
                end: read.range.end,
            },
            DirectAnswer::Empty => Outcome::Empty,
            DirectAnswer::Fallback(why) => Outcome::Fallback(why),
        })
    }

    fn read(&mut self, offset: i64, max_bytes: u64) -> Outcome {
        (self.request.offset, self.request.max_bytes) = (offset, max_bytes);
        self.outcome()
    }
}

fn no_indexes() -> SegmentIndexes {
    SegmentIndexes::new(200, Vec::new(), Vec::new(), Vec::new())
}

const INF: u64 = u64::MAX;

#[test]
fn a_consumer_is_told_where_the_bytes_are() {
    // spec: tiered D1, D2, D3, D8
    let mut given = Given::new();
    assert_eq!(given.read(0, INF), at(0, 16000));
    assert_eq!(given.read(60, INF), at(4000, 16000));
    assert_eq!(given.read(60, 3000), at(4000, 8000));
    assert_eq!(given.read(199, 1), at(12000, 16000));
}

#[test]
fn a_reader_of_committed_data_stops_at_the_last_stable_offset() {
    // spec: tiered D5, D7
    let mut given = Given::new();
    (given.request.isolation, given.last_stable_offset) = (Isolation::Committed, 100);
    assert_eq!(given.read(0, INF), at(0, 12000));
    assert_eq!(given.read(120, INF), Outcome::Empty);
    assert_eq!(given.read(100, INF), Outcome::Empty);
    assert_eq!(given.read(99, INF), at(8000, 12000));
    // The high watermark bounds all readers.
    (given.request.isolation, given.high_watermark) = (Isolation::HighWatermark, 100);
    assert_eq!(given.read(0, INF), at(0, 12000));
    assert_eq!(given.read(100, INF), Outcome::Empty);
    (given.request.isolation, given.high_watermark) = (Isolation::Committed, 50);
    assert_eq!(given.read(0, INF), at(0, 8000));
}

#[test]
fn the_normal_path_answers_where_no_location_may_be_given() {
    // spec: tiered D9; tiered 9.1, "when is a location given"
    let fallback = |change: &dyn Fn(&mut Given)| {
        let mut given = Given::new();
        change(&mut given);
        given.outcome()
    };
    let because = Outcome::Fallback;
    let formats = fallback(&|given| given.request.formats = &["X"]);
    assert_eq!(formats, because(DirectFallback::NoCommonFormat));
    let formats = fallback(&|given| given.request.formats = &[]);
    assert_eq!(formats, because(DirectFallback::NoCommonFormat));
    let not_asked = fallback(&|given| given.request.wants_location = false);
    assert_eq!(not_asked, because(DirectFallback::NotRequested));
    let follower = fallback(&|given| given.request.is_consumer = false);
    assert_eq!(follower, because(DirectFallback::NotConsumer));
    let before = fallback(&|given| given.log_start_offset = 1);
    assert_eq!(before, because(DirectFallback::BeforeLogStart));
    let local = fallback(&|given| given.local_log_start_offset = 0);
    assert_eq!(local, because(DirectFallback::Local));
    let going = fallback(&|given| {
        given.cache.update(&update(1, RemoteSegmentState::DeleteStarted)).unwrap();
    });
    assert_eq!(going, because(DirectFallback::NoSegment));
    let foreign = fallback(&|given| {
        given.epochs =
            LeaderEpochs::from_entries(&super::super::lineage::tests::entries("0:0 1:150"))
                .unwrap();
    });
    assert_eq!(foreign, because(DirectFallback::NoSegment));
}

#[test]
fn an_answer_carries_what_the_client_needs() {
    // spec: tiered 9.1, "deletion race", "next segment", "format names"
    let mut given = Given::new();
    given.stored_format = "ApachKafkaV1";
    given.answer(|answer| {
        let DirectAnswer::Read(read) = answer else { panic!("{answer:?}") };
        assert_eq!((read.format, read.next_offset), (APACHE_KAFKA_V1, 200));
        assert_eq!(
            (read.segment.event_timestamp_ms, read.segment.state),
            (5, RemoteSegmentState::CopyFinished)
        );
        assert_eq!(read.range.last_position(), 15999);
        assert!(read.aborted.is_empty());
        let locations = SegmentLocations::of(&ObjectLayout::default(), read.segment);
        assert!(locations.log.ends_with(".log") && locations.offset_index.ends_with(".index"));
        assert!(locations.producer_snapshot.ends_with(".snapshot"));
        assert_eq!(locations.transaction_index, None);
        let with = RemoteSegment { is_txn_index_empty: false, ..read.segment.clone() };
        let locations = SegmentLocations::of(&ObjectLayout::default(), &with);
        assert!(locations.transaction_index.unwrap().ends_with(".txnindex"));
    });
}

#[test]
fn the_next_segment_is_named_where_one_has_no_batch_at_the_offset() {
    // spec: tiered 9.1, "compaction holes"
    let mut given = Given::new();
    let batches = [
        fake_batch(0, 39, 4000),
        fake_batch(40, 49, 4000),
        fake_batch(50, 99, 4000),
        fake_batch(100, 149, 4000),
    ];
    given.log(1, &batches.concat());
    assert_eq!(given.read(149, INF), at(12000, 16000));
    for offset in [150, 199] {
        let next = Outcome::At { segment: 2, begin: 0, end: 1000 };
        assert_eq!(given.read(offset, INF), next, "{offset}");
    }
    // The log is looked into once.
    given.log(1, &[]);
    assert_eq!(given.read(150, INF), Outcome::At { segment: 2, begin: 0, end: 1000 });
    // What lies behind is not to be seen yet, or not in remote storage.
    given.high_watermark = 200;
    assert_eq!(given.read(150, INF), Outcome::Empty);
    given.high_watermark = 1000;
    given.cache.update(&update(2, RemoteSegmentState::DeleteStarted)).unwrap();
    assert_eq!(given.read(150, INF), Outcome::Fallback(DirectFallback::NoSegment));
}

#[test]
fn an_index_whose_last_entry_lies_does_not_hide_the_last_batches() {
    // The next segment was named, and the client went past offsets 150 to 199.
    let mut given = Given::new();
    for position in [1, 12001, 15990, 16000, 90_000] {
        let lying = byte_range::indexes(&[(49, 4000), (99, 8000), (149, position)]);
        given.indexes[0] = Arc::new(lying);
        let found = given.read(199, INF);
        assert!(matches!(found, Outcome::At { segment: 1, .. }), "{position}: {found:?}");
    }
}

#[test]
fn aborted_transactions_are_those_up_to_the_end_of_the_range() {
    // spec: tiered 9.1, "aborted list"
    let txn = |producer_id, first_offset, last_offset| AbortedTxn {
        producer_id,
        first_offset,
        last_offset,
        last_stable_offset: first_offset,
    };
    let (a, b, c) = (txn(1, 30, 45), txn(2, 10, 90), txn(3, 120, 130));
    let (segment, indexes) = given();
    let mut given = Given::new();
    given.cache = finished(vec![RemoteSegment { is_txn_index_empty: false, ..segment }]);
    let bytes = |entries: &[AbortedTxn]| entries.iter().flat_map(AbortedTxn::encode).collect();
    let offsets: Vec<u8> = indexes
        .offset_entries()
        .iter()
        .flat_map(|entry| {
            [i32::try_from(entry.offset).unwrap().to_be_bytes(), entry.position.to_be_bytes()]
                .concat()
        })
        .collect();
    given.indexes = vec![Arc::new(SegmentIndexes::new(0, offsets, vec![], bytes(&[a, b, c])))];
    given.request.isolation = Isolation::Committed;
    let aborted = |given: &mut Given, offset, max_bytes| {
        (given.request.offset, given.request.max_bytes) = (offset, max_bytes);
        given.answer(|answer| match answer {
            DirectAnswer::Read(read) => read.aborted,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(aborted(&mut given, 0, INF), [b, a, c]);
    assert_eq!(aborted(&mut given, 0, 1), [b, a]);
    assert_eq!(aborted(&mut given, 60, 1), [b]);
    assert_eq!(aborted(&mut given, 95, INF), [c]);
    given.request.isolation = Isolation::HighWatermark;
    assert_eq!(aborted(&mut given, 0, INF), []);
}

#[test]
fn headers_of_a_range_are_listed_without_their_records() {
    // spec: tiered 9.1, "share groups"
    let given = Given::new();
    let remote = RemoteView {
        cache: &given.cache,
        epochs: &given.epochs,
        log_start_offset: 0,
        log_end_offset: 2000,
        target: &given.target,
        layout: &given.layout,
        indexes: &given.indexes,
        local: &NoLocalSegments,
    };
    let segment = remote.segment_at(0).unwrap();
    let list = |range| {
        let headers = super::super::batch_headers(&remote, segment, range).unwrap();
        let ends = headers.into_iter().map(|(header, at)| (header.last_offset(), at));
        ends.collect::<Vec<_>>()
    };
    assert_eq!(list(4000..12000), [(49, 4000), (99, 8000)]);
    assert_eq!(list(12000..16000), [(149, 12000), (199, 14000)]);
    assert_eq!(list(0..1), [(24, 0)]);
    assert_eq!(list(0..0), []);
    assert_eq!(list(16000..16000), []);
    // A log that ends within the range is not what the range was made of: what is missing is not
    // passed over.
    for range in [16000..17000, 12000..16001] {
        let error = super::super::batch_headers(&remote, segment, range.clone()).unwrap_err();
        assert_eq!((error.kind(), error.position()), (Kind::Corrupt, Some(16000)), "{range:?}");
    }
}
