//! The log directories of a running broker.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::dir::engine::{
    CheckpointFile, DueWork, Engine, EngineOptions, Identity, NewLog, WorkKind,
};
use engine::dir::metadata::Configs;
use engine::dir::settings::{Layers, Resolver, check_topic_names};
use engine::log::progress::Progress;
use engine::log::{Log, LogConfig};
use engine::uuid::Uuid;
use engine::{Error, Kind};

use crate::dir::progress::with_progress;
use crate::error::{CLOSED, Failure, Outcome, SiltError, Status, guard, invalid};
use crate::handle::{Handle, Object, close, on};
use crate::log::{LogObject, disk, maps_of, pairs};
use crate::memory::{
    check_place, check_struct, fill, items_of, items_of_mut, path, read_struct, text, threads_of,
    u32_of, write_if_wanted, write_plain, write_struct, write_text,
};
use crate::types::{
    Config, EngineOptions as COptions, EnginePartition, EngineStats, NewLog as CNewLog,
    TopicConfig, Work,
};

/// What is behind a `silt_engine_t`.
pub struct EngineObject {
    /// What was handed out and neither run nor given back. It borrows the engine, so it stands
    /// before it: fields go in their order.
    work: Mutex<BTreeMap<u64, DueWork<'static>>>,
    next_work: AtomicU64,
    is_stopped: AtomicBool,
    settings: Settings,
    engine: Arc<Engine>,
}

impl Object for EngineObject {
    const MAGIC: u64 = 0x7369_6c74_5f65_6e67;
}

impl EngineObject {
    fn work(&self) -> MutexGuard<'_, BTreeMap<u64, DueWork<'static>>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self, now_ms: i64) -> Vec<DueWork<'static>> {
        // SAFETY: the engine stays where it is as long as its object is there, and the work goes
        // before it: when it is run, when it is stopped, and with the object.
        let engine: &'static Engine = unsafe { &*Arc::as_ptr(&self.engine) };
        engine.due_work(now_ms)
    }
}

/// What is set for all logs, and for those of a topic above it.
struct Settings {
    broker: Resolver,
    /// By topic, as they were given last.
    topics: Mutex<BTreeMap<String, Configs>>,
}

impl Settings {
    /// The settings of a topic with these configs.
    fn resolve(&self, topic: &str, configs: Option<&Configs>) -> engine::Result<LogConfig> {
        Ok(self.broker.topic(topic, configs)?.log_config(topic, true))
    }

    fn topics(&self) -> MutexGuard<'_, BTreeMap<String, Configs>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of a log that is there when the engine is opened.
    fn of_topic(&self, topic: &str) -> LogConfig {
        // All of them were asked for when the engine was opened.
        self.resolve(topic, self.topics().get(topic)).unwrap_or_default()
    }

    /// Those of a log that is made with `given` above what its topic has.
    fn of_new_log(
        &self,
        topic: &str,
        of_topic: Option<&Configs>,
        given: Configs,
    ) -> engine::Result<LogConfig> {
        check_topic_names(&given)?;
        let mut configs = of_topic.cloned().unwrap_or_default();
        configs.extend(given);
        self.resolve(topic, Some(&configs))
    }
}

const KEEP_LOST: u32 = 2;
const MAP_SEALED: u32 = 4;
const NEW_REPLICA: u32 = 1;
const FUTURE: u32 = 2;

/// The settings that an engine is opened with, each of them good.
///
/// # Safety
/// Arrays and texts of the options are as the header says.
unsafe fn settings(options: &COptions) -> Outcome<Settings> {
    // SAFETY: the caller's array.
    let configs = unsafe { items_of(options.configs, u64::from(options.config_count))? };
    // SAFETY: the caller's array.
    let given = unsafe { items_of(options.topic_configs, u64::from(options.topic_config_count))? };
    // SAFETY: the caller's texts.
    let server_properties = unsafe { pairs(configs)? }.into_iter().collect();
    let mut topics: BTreeMap<String, Configs> = BTreeMap::new();
    for TopicConfig { topic, name, value } in given {
        // SAFETY: the caller's text.
        let topic = unsafe { text(*topic)? };
        // SAFETY: the caller's texts.
        let pair = unsafe { pairs(&[Config { name: *name, value: *value }])? };
        topics.entry(topic.to_owned()).or_default().extend(pair);
    }
    let broker = Resolver::new(Layers { server_properties, ..Layers::default() })?;
    broker.topic("", None)?;
    for (topic, configs) in &topics {
        broker.topic(topic, Some(configs))?;
    }
    Ok(Settings { broker, topics: Mutex::new(topics) })
}

/// # Safety
/// Arrays and texts of the options are as the header says.
unsafe fn open(dirs: &[PathBuf], options: &COptions) -> Outcome<EngineObject> {
    if options.flags & !(KEEP_LOST | MAP_SEALED) != 0 {
        return invalid("flags are none of SILT_ENGINE_");
    }
    // SAFETY: the caller's promise.
    let settings = unsafe { settings(options)? };
    let broker = settings.broker.broker()?;
    let config = |topic: &str| settings.of_topic(topic);
    let mut open = EngineOptions::new(&config, options.now_ms);
    let identity = match options.cluster_id.is_null() {
        true => None,
        false => {
            // SAFETY: the caller's text.
            let cluster_id = unsafe { text(options.cluster_id)? }.to_owned();
            Some(Identity { cluster_id, node_id: options.node_id })
        }
    };
    open.identity = identity.as_ref();
    open.keep_lost = options.flags & KEEP_LOST != 0;
    open.threads = threads_of(options.threads)?;
    open.maps = maps_of(options.flags & MAP_SEALED);
    if options.open_files_max != 0 {
        open.open_files_max = usize::try_from(options.open_files_max).unwrap_or(usize::MAX);
    }
    open.producers.producer_id_expiration_ms = broker.producer_id_expiration_ms;
    open.producers.transaction_timeout_max_ms = broker.transaction_max_timeout_ms;
    let storage = disk(options.io)?;
    let is_heard = options.progress.is_some();
    let load = |progress: &dyn Progress| {
        Engine::open(
            storage,
            dirs,
            &EngineOptions { progress: is_heard.then_some(progress), ..open },
        )
    };
    // SAFETY: the caller's function.
    let loaded = unsafe { with_progress(options.progress, options.progress_ctx, 0, load) };
    let (engine, _report) = loaded?;
    Ok(EngineObject {
        work: Mutex::default(),
        next_work: AtomicU64::new(1),
        is_stopped: AtomicBool::new(false),
        settings,
        engine: Arc::new(engine),
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_engine_open(
    dirs: *const *const c_char,
    dir_count: u32,
    options: *const COptions,
    engine: *mut *mut Handle<EngineObject>,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's array.
        let dirs = unsafe { items_of(dirs, u64::from(dir_count))? };
        // SAFETY: the caller's texts.
        let dirs = dirs.iter().map(|dir| Ok(unsafe { path(*dir)? }.to_path_buf()));
        let dirs: Vec<PathBuf> = dirs.collect::<Outcome<_>>()?;
        // SAFETY: a struct of the header.
        let options = unsafe { read_struct(options)? };
        check_place(engine, "the place for the engine is NULL or not aligned")?;
        // SAFETY: the caller's arrays and texts.
        let object = unsafe { open(&dirs, &options)? };
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(engine, Handle::give(object)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_engine_close(engine: *mut Handle<EngineObject>) {
    // SAFETY: an object of the caller's, which it gives back.
    unsafe { close(engine) };
}

/// A function of the header on an engine that was not stopped.
macro_rules! engine_function {
    (fn $name:ident($($arg:ident: $type:ty),*) |$it:ident| $body:expr) => {
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            engine: *const Handle<EngineObject>,
            $($arg: $type,)*
            err: *mut SiltError,
        ) -> Status {
            let body = |$it: &EngineObject| {
                if $it.is_stopped.load(Ordering::Acquire) {
                    return Err(Failure::Call(CLOSED, "the engine was stopped"));
                }
                $body
            };
            // SAFETY: an object of the caller's, and a struct of the header or NULL.
            unsafe { on(engine, err, body) }
        }
    };
}

const NO_PLACE: &str = "the place for the log is NULL or not aligned";

/// Gives the caller a log that outlives the engine's interest in it.
///
/// # Safety
/// `to` is NULL or points to a pointer.
unsafe fn give(log: Arc<Log>, to: *mut *mut Handle<LogObject>) -> Outcome<()> {
    check_place(to, NO_PLACE)?;
    // SAFETY: not NULL, and aligned.
    unsafe { write_plain(to, Handle::give(LogObject::of_engine(log))) }
}

fn not_here(what: &str, topic: &str, partition: i32) -> Failure {
    Error::new(Kind::NotFound, format!("no {what} of {topic}-{partition} is here")).into()
}

engine_function! {
    fn silt_engine_log(
        topic: *const c_char,
        partition: i32,
        log: *mut *mut Handle<LogObject>
    ) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        let found = it.engine.log(topic, partition)?;
        let found = found.ok_or_else(|| not_here("log", topic, partition))?;
        // SAFETY: the caller's pointer.
        unsafe { give(found, log) }
    }
}

engine_function! {
    fn silt_engine_future_log(
        topic: *const c_char,
        partition: i32,
        log: *mut *mut Handle<LogObject>
    ) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        let found = it.engine.future_log(topic, partition)?;
        let found = found.ok_or_else(|| not_here("future log", topic, partition))?;
        // SAFETY: the caller's pointer.
        unsafe { give(found, log) }
    }
}

engine_function! {
    fn silt_engine_create_log(
        topic: *const c_char,
        partition: i32,
        new_log: *const CNewLog,
        log: *mut *mut Handle<LogObject>
    ) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        // SAFETY: a struct of the header.
        let wanted = unsafe { read_struct(new_log)? };
        if wanted.flags & !(NEW_REPLICA | FUTURE) != 0 {
            return invalid("flags are none of SILT_NEW_LOG_");
        }
        // SAFETY: the caller's array.
        let configs = unsafe { items_of(wanted.configs, u64::from(wanted.config_count))? };
        // SAFETY: the caller's texts.
        let configs = unsafe { pairs(configs)? }.into_iter().collect();
        let preferred = match wanted.dir.is_null() {
            true => None,
            // SAFETY: the caller's text.
            false => Some(unsafe { path(wanted.dir)? }.to_path_buf()),
        };
        let topic_id = Uuid(wanted.topic_id);
        // Held until the log is there: settings that come meanwhile are given to it, too.
        let topics = it.settings.topics();
        let new = NewLog {
            config: it.settings.of_new_log(topic, topics.get(topic), configs)?,
            topic_id: (topic_id != Uuid::ZERO).then_some(topic_id),
            is_new: wanted.flags & NEW_REPLICA != 0,
            is_future: wanted.flags & FUTURE != 0,
            preferred,
            assigned: None,
            now_ms: wanted.now_ms,
        };
        check_place(log, NO_PLACE)?;
        let made = it.engine.get_or_create(topic, partition, &new)?;
        drop(topics);
        // SAFETY: the caller's pointer.
        unsafe { give(made, log) }
    }
}

engine_function! {
    fn silt_engine_delete_log(topic: *const c_char, partition: i32, now_ms: i64) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        Ok(it.engine.delete(topic, partition, now_ms)?)
    }
}

engine_function! {
    fn silt_engine_delete_future(topic: *const c_char, partition: i32, now_ms: i64) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        Ok(it.engine.delete_future(topic, partition, now_ms)?)
    }
}

engine_function! {
    fn silt_engine_replace_log(topic: *const c_char, partition: i32, now_ms: i64) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        Ok(it.engine.replace_current_with_future(topic, partition, now_ms)?)
    }
}

engine_function! {
    fn silt_engine_mark_stray(topic: *const c_char, partition: i32, now_ms: i64) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        Ok(it.engine.mark_stray(topic, partition, now_ms)?)
    }
}

engine_function! {
    fn silt_engine_take_offline(dir: *const c_char) |it| {
        // SAFETY: the caller's text.
        let dir = unsafe { path(dir)? };
        let why = Error::new(Kind::Io, "the host took the log directory offline");
        match it.engine.take_offline(dir, &why) {
            true => Ok(()),
            false => {
                let message = "no log directory of this path is online";
                Err(Error::new(Kind::NotFound, message).in_file(dir).into())
            }
        }
    }
}

engine_function! {
    fn silt_engine_set_config(
        topic: *const c_char,
        configs: *const Config,
        config_count: u32
    ) |it| {
        // SAFETY: the caller's text.
        let topic = unsafe { text(topic)? };
        // SAFETY: the caller's array.
        let configs = unsafe { items_of(configs, u64::from(config_count))? };
        // SAFETY: the caller's texts.
        let configs: Configs = unsafe { pairs(configs)? }.into_iter().collect();
        check_topic_names(&configs)?;
        let config = it.settings.resolve(topic, Some(&configs))?;
        // Held, so that of two calls the one whose configs are kept is the one that counts.
        let mut topics = it.settings.topics();
        it.engine.set_config(topic, &config);
        topics.insert(topic.to_owned(), configs);
        Ok(())
    }
}

engine_function! {
    fn silt_engine_partitions(out: *mut EnginePartition, capacity: u32, count: *mut u32) |it| {
        let logs = it.engine.logs();
        let items = logs.iter().map(|(topic, partition, _)| {
            let mut told = EnginePartition { topic: [0; 252], partition: *partition };
            write_text(&mut told.topic, format_args!("{topic}"));
            told
        });
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, items) }
    }
}

/// `SILT_WORK_`.
fn kind_of(kind: WorkKind) -> u32 {
    match kind {
        WorkKind::Flush => 1,
        WorkKind::DeleteFiles => 2,
        WorkKind::DeleteFolder => 3,
        WorkKind::Retention => 4,
        WorkKind::ExpireProducers => 5,
        WorkKind::Compact => 6,
        WorkKind::Checkpoint(CheckpointFile::RecoveryPoints) => 7,
        WorkKind::Checkpoint(CheckpointFile::LogStarts) => 8,
        WorkKind::Checkpoint(CheckpointFile::HighWatermarks) => 9,
        WorkKind::Checkpoint(CheckpointFile::CompactedEnds) => 10,
    }
}

engine_function! {
    fn silt_engine_due(now_ms: i64, out: *mut Work, capacity: u32, count: *mut u32) |it| {
        // SAFETY: the caller's array.
        let slots = unsafe { items_of_mut(out, u64::from(capacity))? };
        check_place(count, "the place for the count is NULL or not aligned")?;
        let mut given = 0;
        let mut held = it.work();
        // What does not fit goes, and is due again.
        for (slot, work) in slots.iter_mut().zip(it.due(now_ms)) {
            let id = it.next_work.fetch_add(1, Ordering::Relaxed);
            *slot = Work { id, kind: kind_of(work.kind()), reserved: 0 };
            held.insert(id, work);
            given += 1;
        }
        // SAFETY: the caller's number.
        unsafe { write_plain(count, given) }
    }
}

/// Takes back work that was handed out.
fn taken(it: &EngineObject, id: u64) -> Outcome<DueWork<'static>> {
    let none = || Error::new(Kind::NotFound, "no such work was handed out");
    Ok(it.work().remove(&id).ok_or_else(none)?)
}

engine_function! {
    fn silt_engine_run(work: u64, now_ms: i64) |it| {
        let work = taken(it, work)?;
        Ok(it.engine.run(&work, now_ms)?)
    }
}

engine_function! {
    fn silt_engine_drop_work(work: u64) |it| taken(it, work).map(drop)
}

engine_function! {
    fn silt_engine_checkpoint() |it| {
        let mut outcome = Ok(());
        for file in CheckpointFile::ALL {
            outcome = outcome.and(it.engine.checkpoint(file));
        }
        Ok(outcome?)
    }
}

engine_function! {
    fn silt_engine_stats(out: *mut EngineStats) |it| {
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let found = it.engine.counters();
        let stats = EngineStats {
            struct_size: 0,
            reserved: 0,
            logs: found.logs,
            future_logs: found.future_logs,
            shut_logs: found.shut_logs,
            failed_logs: found.failed_logs,
            uncleanable_logs: found.uncleanable_logs,
            offline_dirs: found.offline_dirs,
            segments: found.segments,
            size_bytes: found.size_bytes,
            dirty_bytes: found.dirty_bytes,
            open_segments: found.open_segments,
            open_files: found.open_files,
            waiting_folders: found.waiting_folders,
            previous_broker_epoch: it.engine.previous_broker_epoch().unwrap_or(-1),
        };
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &stats) }
    }
}

engine_function! {
    fn silt_engine_stop(broker_epoch: i64, threads: u32, clean_dirs: *mut u32) |it| {
        let threads = threads_of(threads)?;
        // Before the stop, which cannot be made again.
        if !clean_dirs.is_aligned() {
            return invalid("a result is not aligned");
        }
        if it.is_stopped.swap(true, Ordering::AcqRel) {
            return Err(Failure::Call(CLOSED, "the engine was stopped"));
        }
        it.work().clear();
        let report = it.engine.close(broker_epoch, threads);
        let clean = report.dirs.iter().filter(|dir| dir.is_clean).count();
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(clean_dirs, u32_of(clean))? };
        match report.dirs.into_iter().flat_map(|dir| dir.errors).next() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}
