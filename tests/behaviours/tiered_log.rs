//! A log with remote storage, and around it what a broker does: it uploads, expires and deletes by
//! the engine's own rules, and consumers read what comes of it.

use std::path::Path;
use std::sync::Arc;

use siltstone::Result;
use siltstone::io::SimDisk;
use siltstone::log::{FetchOptions, Isolation, Log, LogConfig};
use siltstone::record::BatchHeader;
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;
use siltstone::tier::expire::Writer;
use siltstone::tier::{
    DeleteLag, ExpiryHost, ExpiryInput, ExpiryRun, LocalTarget, LogUploads, MetadataCache,
    ObjectLayout, RemoteLogStart, RemoteMetadata, RemoteMetadataRecord, RemotePartition,
    RemoteSegment, RemoteSegmentId, RemoteSegmentUpdate, RemoteTasks, RemoteView, SizeRetention,
    TargetIndexes, UploadHost, UploadParts, UploadRun, Uploader, delete_partition, delete_parts,
    highest_remote, plan_expiry, put_parts, read_metadata_log, remote_log_start, remote_read,
    run_expiry, run_uploads,
};
use siltstone::uuid::Uuid;
use siltstone_tests::live::{TestLog, records};

/// The first record's timestamp.
pub(crate) const T: i64 = 1_700_000_000_000;

const WRITER: Writer = Writer { broker_id: 0, now_ms: T };

/// Remote storage as a broker knows it: the objects, and what the topic of remote metadata says.
pub(crate) struct Remote {
    pub(crate) target: LocalTarget,
    pub(crate) layout: ObjectLayout,
    pub(crate) cache: MetadataCache,
    /// What a broker would write into the topic of remote metadata.
    events: Vec<RemoteMetadataRecord>,
    partition: RemotePartition,
    /// First and last offsets of what was uploaded, and of what was deleted.
    pub(crate) uploaded: Vec<(i64, i64)>,
    pub(crate) deleted: Vec<(i64, i64)>,
    /// After so many deletions the task is cancelled.
    pub(crate) deletions_max: usize,
}

impl Remote {
    /// What a partition of the topic has in a store: nothing yet.
    pub(crate) fn new(partition: i32, store: &SimDisk) -> Self {
        let partition =
            RemotePartition { topic_id: Uuid::reserved(9), topic: "orders".into(), partition };
        let mut cache = MetadataCache::new(partition.clone());
        cache.mark_loaded();
        Remote {
            target: LocalTarget::new(Arc::new(store.clone()), "/"),
            layout: ObjectLayout::default(),
            cache,
            events: Vec::new(),
            partition,
            uploaded: Vec::new(),
            deleted: Vec::new(),
            deletions_max: usize::MAX,
        }
    }

    /// The last offset of a log that is uploaded.
    fn highest(&self, log: &Log) -> i64 {
        let of_epoch = |epoch| self.cache.highest_offset(epoch);
        let found = highest_remote(&log.leader_epochs(), log.log_end_offset(), of_epoch);
        found.map_or(-1, |it| it.offset)
    }

    /// Copies what is to be copied of a log.
    pub(crate) fn copy_of(&mut self, log: &Log) -> UploadRun {
        let uploads = LogUploads::of(log, self.highest(log), None);
        let uploader = Uploader { broker_id: WRITER.broker_id, now_ms: T, ..Uploader::default() };
        let mut run = UploadRun::default();
        run_uploads(log, &uploads, &uploader, self, &mut run).unwrap();
        run
    }

    pub(crate) fn view<T>(&self, log: &Log, see: impl FnOnce(&RemoteView<'_>) -> T) -> T {
        let Remote { target, layout, cache, .. } = self;
        let epochs = log.leader_epochs();
        see(&RemoteView {
            cache,
            epochs: &epochs,
            log_start_offset: log.log_start_offset(),
            log_end_offset: log.log_end_offset(),
            target,
            layout,
            indexes: &TargetIndexes { target, layout },
            local: log,
        })
    }

    /// Reads so many records of a log one at a time; gives their offsets, and how many came from
    /// remote storage.
    pub(crate) fn consume(&self, log: &Log, from: i64, count: usize) -> (Vec<i64>, usize) {
        let options = FetchOptions {
            max_bytes: 1,
            isolation: Isolation::HighWatermark,
            min_one_message: true,
        };
        let (mut offsets, mut remote) = (Vec::new(), 0);
        let mut offset = from;
        while offsets.len() < count {
            let bytes = if offset < log.local_log_start_offset() {
                remote += 1;
                self.view(log, |view| remote_read(view, offset, &options)).unwrap().bytes
            } else {
                log.read(offset, &options).unwrap().bytes
            };
            let header = BatchHeader::parse(&bytes).unwrap();
            offsets.push(header.base_offset);
            offset = header.next_offset();
        }
        (offsets, remote)
    }

    fn change(&mut self, update: RemoteSegmentUpdate) -> Result<()> {
        self.cache.update(&update)?;
        self.events.push(RemoteMetadataRecord::Update(update));
        Ok(())
    }

    fn delete(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.deleted.push((segment.start_offset, segment.end_offset));
        delete_parts(&self.target, &self.layout, segment)
    }
}

impl UploadHost for Remote {
    fn new_id(&mut self) -> RemoteSegmentId {
        let number = u64::try_from(self.events.len()).unwrap() + 1;
        RemoteSegmentId { partition: self.partition.clone(), segment_id: Uuid::reserved(number) }
    }

    fn publish(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.cache.add(segment.clone())?;
        self.events.push(RemoteMetadataRecord::Segment(segment.clone()));
        Ok(())
    }

    fn publish_update(&mut self, update: RemoteSegmentUpdate) -> Result<()> {
        self.change(update)
    }

    fn copy(&mut self, parts: &UploadParts) -> Result<Option<Vec<u8>>> {
        self.uploaded.push((parts.segment.start_offset, parts.segment.end_offset));
        put_parts(&self.target, &self.layout, parts)?;
        Ok(None)
    }

    fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.delete(segment)
    }

    fn admit(&mut self, _size_bytes: u64) -> bool {
        true
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The leader's task of expiration.
struct Expiration<'a> {
    remote: &'a mut Remote,
    /// None where the partition itself goes.
    log: Option<&'a Log>,
}

impl ExpiryHost for Expiration<'_> {
    fn raise_log_start(&mut self, offset: i64) -> Result<()> {
        self.log.expect("a log").maybe_increment_log_start_offset(offset).map(drop)
    }

    fn publish(&mut self, update: RemoteSegmentUpdate) -> Result<()> {
        self.remote.change(update)
    }

    fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.remote.delete(segment)
    }

    fn drop_indexes(&mut self, _segment: &RemoteSegment) {}

    fn is_cancelled(&self) -> bool {
        self.remote.deleted.len() >= self.remote.deletions_max
    }

    fn waits(&mut self, _lag: DeleteLag) {}
}

/// A log of single records, so many of them in a segment.
pub(crate) struct Tiered {
    pub(crate) log: TestLog,
    pub(crate) remote: Remote,
    pub(crate) is_leader: bool,
    /// What the last expiration found and did.
    pub(crate) expiry: ExpiryRun,
    per_segment: i64,
}

impl Tiered {
    /// A new log that keeps as little as it may on the local disk.
    pub(crate) fn new(per_segment: i64) -> Self {
        Tiered::of(0, &SimDisk::new(), per_segment)
    }

    /// One of the partitions of a topic, which share a store.
    pub(crate) fn of(partition: i32, store: &SimDisk, per_segment: i64) -> Self {
        let log = TestLog::with(|config| {
            config.remote_storage = true;
            config.local_retention_bytes = 1;
        });
        let remote = Remote::new(partition, store);
        Tiered { log, remote, is_leader: true, expiry: ExpiryRun::default(), per_segment }
    }

    /// Changes settings of the topic.
    pub(crate) fn set(&mut self, change: impl FnOnce(&mut LogConfig)) {
        change(&mut self.log.config);
        self.log.log().set_config(self.log.config.clone());
    }

    /// Appends one record as the leader of an epoch.
    pub(crate) fn produce(&mut self, epoch: i32) {
        let offset = self.log.log().log_end_offset();
        if offset > 0 && offset % self.per_segment == 0 {
            self.log.log().roll(self.log.now_ms).unwrap();
        }
        self.log.try_lead(&records(1).times(&[T + offset]), epoch).unwrap();
        self.log.replicate();
    }

    /// Runs the tasks that the broker has for the partition.
    pub(crate) fn settle(&mut self) {
        let (log, remote) = (self.log.log(), &mut self.remote);
        let config = log.config();
        let tasks = RemoteTasks::of(self.is_leader, config.remote_copy_disabled);
        let tasks = tasks.if_loaded(remote.cache.is_loaded());
        if config.remote_storage && tasks.copies {
            remote.copy_of(log);
        }
        if config.remote_storage && tasks.expires {
            self.expiry = expire(log, remote, &config, self.expiry.budget.all_valid);
        }
        if config.remote_storage && tasks.follows {
            log.update_highest_remote_offset(remote.highest(log));
        }
        log.delete_old_segments(self.log.now_ms).unwrap();
    }

    /// Copies whatever the tasks say.
    pub(crate) fn copy(&mut self) -> UploadRun {
        self.remote.copy_of(self.log.log())
    }

    /// Raises the log start as a deletion of records does; gives how many remote segments go.
    pub(crate) fn delete_records(&mut self, before: i64) -> usize {
        self.log.log().maybe_increment_log_start_offset(before).unwrap();
        let before = self.remote.deleted.len();
        self.settle();
        self.remote.deleted.len() - before
    }

    /// Deletes the segments in remote storage that begin before an offset.
    pub(crate) fn delete_remote(&mut self, before: i64) -> ExpiryRun {
        let all = self.remote.cache.list_all().into_iter();
        let all: Vec<RemoteSegment> =
            all.filter(|segment| segment.start_offset < before).cloned().collect();
        let mut run = ExpiryRun::default();
        let mut host = Expiration { remote: &mut self.remote, log: None };
        delete_partition(&all.iter().collect::<Vec<_>>(), WRITER, &mut host, &mut run).unwrap();
        run
    }

    /// Starts the log where remote storage says that it begins, as a new leader does.
    pub(crate) fn become_leader(&mut self) -> RemoteLogStart {
        let (log, cache) = (self.log.log(), &self.remote.cache);
        let first = |epoch| Some(cache.list(epoch).unwrap().first()?.start_offset);
        let local = log.local_log_start_offset();
        let start = remote_log_start(&log.leader_epochs(), log.log_start_offset(), local, first);
        if let RemoteLogStart::At(offset) = start {
            log.maybe_increment_log_start_offset(offset).unwrap();
        }
        start
    }

    pub(crate) fn with<T>(&self, see: impl FnOnce(&RemoteView<'_>) -> T) -> T {
        self.remote.view(self.log.log(), see)
    }

    /// As [`Remote::consume`].
    pub(crate) fn consume(&self, from: i64, count: usize) -> (Vec<i64>, usize) {
        self.remote.consume(self.log.log(), from, count)
    }

    /// Base offsets of the segments on the local disk.
    pub(crate) fn local(&self) -> Vec<i64> {
        self.log.log().segments().iter().map(|segment| segment.base_offset()).collect()
    }

    /// Epochs and their starts.
    pub(crate) fn epochs(&self) -> Vec<(i32, i64)> {
        let epochs = self.log.log().leader_epochs();
        epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
    }

    /// Stops and starts the broker.
    pub(crate) fn bounce(&mut self) {
        self.log.reopen();
        self.log.replicate();
        self.reload();
    }

    /// Forgets what is known of remote storage, and reads it from the topic.
    pub(crate) fn reload(&mut self) {
        let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
        for event in &self.remote.events {
            builder.append(0, None, Some(&event.encode().unwrap())).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        let (disk, dir) = (SimDisk::new(), Path::new("/__remote_log_metadata-0"));
        siltstone::io::Storage::create_dir(&disk, dir).unwrap();
        disk.put(&dir.join("00000000000000000000.log"), bytes, None).unwrap();
        let mut metadata = RemoteMetadata::new();
        let report = read_metadata_log(&disk, dir, &mut metadata).unwrap();
        assert!(report.refused.is_empty() && report.problems.is_empty());
        metadata.mark_loaded();
        self.remote.cache = metadata.partition(&self.remote.partition).unwrap().clone();
    }
}

fn expire(log: &Log, remote: &mut Remote, config: &LogConfig, all_valid: bool) -> ExpiryRun {
    let all: Vec<RemoteSegment> = remote.cache.list_all().into_iter().cloned().collect();
    let segments = log.segments();
    let highest = log.highest_remote_offset();
    let only_local = segments.iter().filter(|segment| segment.base_offset() >= highest);
    let epochs = log.leader_epochs();
    let listed: Vec<&RemoteSegment> = all.iter().collect();
    let plan = plan_expiry(&ExpiryInput {
        segments: &listed,
        epochs: &epochs,
        log_start_offset: log.log_start_offset(),
        log_end_offset: log.log_end_offset(),
        sizes: SizeRetention {
            retention_bytes: config.retention_bytes,
            local_retention_bytes: config.local_retention_bytes,
            only_local_bytes: only_local.map(|segment| segment.size_bytes()).sum(),
            local_bytes: log.size_bytes(),
        },
        retention_ms: config.retention_ms,
        now_ms: T,
        is_being_copied: &|_| false,
        all_valid,
    });
    let mut run = ExpiryRun::default();
    run_expiry(&plan, WRITER, &mut Expiration { remote, log: Some(log) }, &mut run).unwrap();
    run
}
