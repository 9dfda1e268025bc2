//! One partition.

use std::ffi::c_char;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use engine::dir::settings::{Layers, Resolver};
use engine::io::{IoChoice, Storage, open_disk};
use engine::log::{AppendInfo, AppendScratch, FolderName, LeaderAppend, Log, OpenOptions};
use engine::record::validate::AppendOrigin;
use engine::segment::{LogMaps, OpenFiles};
use engine::state::ProducerStateConfig;
use engine::state::live::VerificationGuard;
use engine::uuid::Uuid;
use engine::{Error, Kind};

use crate::claim::Claim;
use crate::error::{CLOSED, CONFLICT, Failure, Outcome, SiltError, Status, guard, invalid};
use crate::handle::{Handle, Object, close, on, try_hold};
use crate::memory::{
    Growing, bytes_of, check_place, check_struct, fill, flags_of, items_of, items_of_mut, path,
    read_struct, text, u32_of, u64_of, write_if_wanted, write_plain, write_struct,
};
use crate::types::{Append, Appended, Config, Epoch, LogOptions, Offsets, Segment, TimeOffset};

/// What is behind a `silt_log_t`.
pub struct LogObject {
    /// Its own: an operation that waits finds it gone when the object is closed.
    pub log: Arc<OpenLog>,
    /// Memory of whoever appends as a leader.
    pub scratch: Mutex<AppendScratch>,
}

/// A log of an engine, or one that was opened by itself.
pub struct OpenLog {
    pub log: Arc<Log>,
    is_poisoned: AtomicBool,
    /// Of one that was opened by itself. Dropped behind the log: then others may open it.
    claim: Option<Claim>,
}

impl Deref for OpenLog {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl OpenLog {
    fn new(log: Arc<Log>, claim: Option<Claim>) -> Arc<Self> {
        Arc::new(OpenLog { log, is_poisoned: AtomicBool::new(false), claim })
    }

    /// Has its object of no more use than to be closed, as an operation on it panicked.
    pub fn poison(&self) {
        self.is_poisoned.store(true, Ordering::Relaxed);
    }

    fn stop(&self) -> Outcome<()> {
        let Some(claim) = &self.claim else {
            return Err(Failure::Call(CONFLICT, "an engine stops its logs itself"));
        };
        let outcome = self.log.close();
        if self.log.is_closed() {
            claim.release();
        }
        Ok(outcome?)
    }
}

/// More memory than that is given back behind the append that took it.
const SCRATCH_SIZE_MAX: usize = 1 << 20;

/// Gives back what an append has taken far above the usual.
pub fn shrink(scratch: &mut AppendScratch) {
    scratch.shrink_to(SCRATCH_SIZE_MAX);
}

impl Object for LogObject {
    const MAGIC: u64 = 0x7369_6c74_5f6c_6f67;

    fn is_poisoned(&self) -> bool {
        self.log.is_poisoned.load(Ordering::Relaxed)
    }
}

impl LogObject {
    /// A log of an engine.
    pub fn of_engine(log: Arc<Log>) -> Self {
        LogObject { log: OpenLog::new(log, None), scratch: Mutex::default() }
    }
}

/// Looks at the log of an object that was not stopped.
///
/// # Safety
/// That of [`Handle::get`].
pub unsafe fn open_log<'a>(log: *const Handle<LogObject>) -> Outcome<&'a LogObject> {
    // SAFETY: the caller's promise.
    let object = unsafe { Handle::get(log)? };
    check_open(object)?;
    Ok(object)
}

fn check_open(object: &LogObject) -> Outcome<()> {
    match object.log.is_closed() {
        true => Err(Failure::Call(CLOSED, "the log was stopped")),
        false => Ok(()),
    }
}

/// Runs a function on a log that was not stopped.
///
/// # Safety
/// That of [`on`].
pub unsafe fn on_log<'a>(
    log: *const Handle<LogObject>,
    err: *mut SiltError,
    body: impl FnOnce(&'a LogObject) -> Outcome<()>,
) -> Status {
    let body = |object: &'a LogObject| {
        check_open(object)?;
        body(object)
    };
    // SAFETY: the caller's promise.
    unsafe { on(log, err, body) }
}

/// A function of the header on a log that was not stopped: its parameters between the log and the
/// error, and what it does with the [`LogObject`].
macro_rules! log_function {
    (fn $name:ident($($arg:ident: $type:ty),*) |$it:ident| $body:expr) => {
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            log: *const crate::handle::Handle<crate::log::LogObject>,
            $($arg: $type,)*
            err: *mut crate::error::SiltError,
        ) -> crate::error::Status {
            let body = |$it: &crate::log::LogObject| $body;
            // SAFETY: an object of the caller's, and a struct of the header or NULL.
            unsafe { crate::log::on_log(log, err, body) }
        }
    };
}
pub(crate) use log_function;

const UNCLEAN: u32 = 1;
const KEEP_LOST: u32 = 2;
const MAP_SEALED: u32 = 4;

/// The disk of this machine, spoken to as chosen.
pub fn disk(io: u32) -> Outcome<Arc<dyn Storage>> {
    let choice = match io {
        0 => IoChoice::Auto,
        1 => IoChoice::Syscalls,
        2 => IoChoice::Uring,
        _ => return invalid("io is none of SILT_IO_"),
    };
    Ok(open_disk(choice)?.into())
}

/// Whether sealed segments are mapped: the flag, or nothing.
pub fn maps_of(flag: u32) -> LogMaps {
    if flag == 0 { LogMaps::Never } else { LogMaps::Sealed }
}

/// Settings in their text form.
///
/// # Safety
/// Each name and value is NULL or ends with a NUL.
pub unsafe fn pairs(configs: &[Config]) -> Outcome<Vec<(String, String)>> {
    let own = |it: *const c_char| {
        // SAFETY: the caller's promise.
        unsafe { text(it) }.map(str::to_owned)
    };
    configs.iter().map(|config| Ok((own(config.name)?, own(config.value)?))).collect()
}

/// # Safety
/// Arrays and texts of the options are as the header says.
unsafe fn open(dir: &Path, options: &LogOptions) -> Outcome<LogObject> {
    if options.flags & !(UNCLEAN | KEEP_LOST | MAP_SEALED) != 0 {
        return invalid("flags are none of SILT_LOG_");
    }
    let Some(FolderName { topic, .. }) = FolderName::of_dir(dir) else {
        let message = "the name is none of a partition's directory";
        return Err(Error::new(Kind::InvalidArgument, message).in_file(dir).into());
    };
    // SAFETY: the caller's array.
    let configs = unsafe { items_of(options.configs, u64::from(options.config_count))? };
    // SAFETY: the caller's texts.
    let layers = Layers { overrides: unsafe { pairs(configs)? }, ..Layers::default() };
    let config = Resolver::new(layers)?.topic(&topic, None)?.log_config(&topic, true);
    let topic_id = Uuid(options.topic_id);
    let defaults = OpenOptions::default();
    let open_files_max = match usize::try_from(options.open_files_max) {
        Ok(0) | Err(_) => defaults.open_files.count_max(),
        Ok(count) => count,
    };
    let open = OpenOptions {
        clean_shutdown: options.flags & UNCLEAN == 0,
        keep_lost: options.flags & KEEP_LOST != 0,
        recovery_point: options.recovery_point,
        log_start_offset: options.log_start_offset,
        topic_id: (topic_id != Uuid::ZERO).then_some(topic_id),
        open_files: OpenFiles::with_maps(open_files_max, maps_of(options.flags & MAP_SEALED)),
        now_ms: options.now_ms,
        producers: match options.producer_expiration_ms {
            0 => defaults.producers,
            after @ 1.. => {
                ProducerStateConfig { producer_id_expiration_ms: after, ..defaults.producers }
            }
            _ => return invalid("producer_expiration_ms is negative"),
        },
    };
    let storage = disk(options.io)?;
    let claim = Some(Claim::take(dir)?);
    let log = Arc::new(Log::open(storage, dir, config, &open)?);
    Ok(LogObject { log: OpenLog::new(log, claim), scratch: Mutex::default() })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_log_open(
    dir: *const c_char,
    options: *const LogOptions,
    log: *mut *mut Handle<LogObject>,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's text.
        let dir = PathBuf::from(unsafe { path(dir)? });
        let options = match options.is_null() {
            true => LogOptions::INIT,
            // SAFETY: a struct of the header.
            false => unsafe { read_struct(options)? },
        };
        check_place(log, "the place for the log is NULL or not aligned")?;
        // SAFETY: the caller's array and texts.
        let object = unsafe { open(&dir, &options)? };
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(log, Handle::give(object)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

log_function! {
    fn silt_log_stop() |it| it.log.stop()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_log_close(log: *mut Handle<LogObject>) {
    // SAFETY: an object of the caller's, which it gives back.
    unsafe { close(log) };
}

/// How a leader appends.
pub fn leader_append(append: &Append) -> Outcome<LeaderAppend> {
    let origin = match append.origin {
        0 => AppendOrigin::Client,
        1 => AppendOrigin::Coordinator,
        _ => return invalid("origin is none of SILT_ORIGIN_"),
    };
    let transaction_version = match i16::try_from(append.transaction_version) {
        Ok(0) => None,
        Ok(version @ 1..) => Some(version),
        _ => return invalid("transaction_version is no version"),
    };
    let Append { leader_epoch, now_ms, .. } = *append;
    let guard = VerificationGuard::from_number(append.verification);
    Ok(LeaderAppend { leader_epoch, origin, guard, transaction_version, now_ms })
}

/// What an append gives, as C sees it.
pub fn appended(info: &AppendInfo) -> Appended {
    let flags = [(info.is_duplicate, 1), (info.has_rolled, 2), (info.flush_is_due, 4)];
    Appended {
        struct_size: 0,
        flags: flags_of(&flags),
        first_offset: info.first_offset.unwrap_or(-1),
        last_offset: info.last_offset,
        max_timestamp_ms: info.max_timestamp_ms,
        log_append_time_ms: info.log_append_time_ms,
        log_start_offset: info.log_start_offset,
        size_bytes: info.size_bytes,
    }
}

log_function! {
    fn silt_log_append_leader(
        records: *mut u8,
        size_bytes: u64,
        append: *const Append,
        out: *mut Appended
    ) |it| {
        // SAFETY: the caller's bytes, which nobody else looks at meanwhile.
        let records = unsafe { items_of_mut(records, size_bytes)? };
        // SAFETY: a struct of the header.
        let append = leader_append(&unsafe { read_struct(append)? })?;
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let Some(mut scratch) = try_hold(&it.scratch) else {
            let message = "another thread is writing to this log";
            return Err(Error::new(Kind::Conflict, message).in_file(&it.log.dir()).into());
        };
        let outcome = it.log.append_as_leader(records, &append, &mut scratch);
        shrink(&mut scratch);
        let info = outcome?;
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &appended(&info)) }
    }
}

const EPOCH_BUMPS: u32 = 1;

log_function! {
    fn silt_log_start_verification(
        producer_id: i64,
        base_sequence: i32,
        producer_epoch: i32,
        flags: u32,
        now_ms: i64,
        verification: *mut u64
    ) |it| {
        if flags & !EPOCH_BUMPS != 0 {
            return invalid("flags are none of SILT_VERIFY_");
        }
        let Ok(epoch) = i16::try_from(producer_epoch) else {
            return invalid("producer_epoch is no epoch");
        };
        check_place(verification, "the place for the number is NULL or not aligned")?;
        let bumps = flags & EPOCH_BUMPS != 0;
        let log = &it.log;
        let guard = log.start_verification(producer_id, base_sequence, epoch, bumps, now_ms)?;
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(verification, guard.number()) }
    }
}

log_function! {
    fn silt_log_append_follower(
        records: *const u8,
        size_bytes: u64,
        leader_epoch: i32,
        now_ms: i64,
        out: *mut Appended
    ) |it| {
        // SAFETY: the caller's bytes.
        let records = unsafe { bytes_of(records, size_bytes)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let info = it.log.append_as_follower(records, leader_epoch, now_ms)?;
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &appended(&info)) }
    }
}

log_function! {
    fn silt_log_flush(now_ms: i64) |it| Ok(it.log.flush(true, now_ms)?)
}

log_function! {
    fn silt_log_roll(now_ms: i64, base_offset: *mut i64) |it| {
        let base = it.log.roll(now_ms)?;
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(base_offset, base) }
    }
}

log_function! {
    fn silt_log_truncate_to(offset: i64, now_ms: i64) |it| {
        Ok(it.log.truncate_to(offset, now_ms).map(drop)?)
    }
}

log_function! {
    fn silt_log_truncate_fully(offset: i64, log_start_offset: i64, now_ms: i64) |it| {
        let log_start = match log_start_offset {
            -1 => None,
            start if start < 0 => return invalid("log_start_offset is negative"),
            start => Some(start),
        };
        Ok(it.log.truncate_fully_and_start_at(offset, log_start, now_ms)?)
    }
}

log_function! {
    fn silt_log_offsets(out: *mut Offsets) |it| {
        let log = &it.log;
        let segments = log.segments();
        let offsets = Offsets {
            struct_size: 0,
            segment_count: u32_of(segments.count()),
            log_start_offset: log.log_start_offset(),
            local_log_start_offset: log.local_log_start_offset(),
            high_watermark: log.high_watermark(),
            last_stable_offset: log.last_stable_offset(),
            log_end_offset: log.log_end_offset(),
            recovery_point: log.recovery_point_to_save(),
            highest_remote_offset: log.highest_remote_offset(),
            size_bytes: segments.size_bytes(),
        };
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &offsets) }
    }
}

log_function! {
    fn silt_log_set_high_watermark(high_watermark: i64, set: *mut i64) |it| {
        let now = it.log.update_high_watermark(high_watermark)?;
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(set, now) }
    }
}

log_function! {
    fn silt_log_topic_id(topic_id: *mut u8) |it| {
        let Uuid(id) = it.log.topic_id().unwrap_or(Uuid::ZERO);
        // SAFETY: the caller's 16 bytes.
        let out = unsafe { items_of_mut(topic_id, u64_of(id.len()))? };
        out.copy_from_slice(&id);
        Ok(())
    }
}

log_function! {
    fn silt_log_set_highest_remote(offset: i64) |it| {
        if offset < 0 {
            return invalid("the offset is negative");
        }
        it.log.update_highest_remote_offset(offset);
        Ok(())
    }
}

log_function! {
    fn silt_log_expire_producers(now_ms: i64) |it| Ok(it.log.remove_expired_producers(now_ms)?)
}

log_function! {
    fn silt_log_advance_start(offset: i64) |it| {
        Ok(it.log.maybe_increment_log_start_offset(offset).map(drop)?)
    }
}

log_function! {
    fn silt_log_retain(now_ms: i64, removed: *mut u64) |it| {
        let count = it.log.delete_old_segments(now_ms)?;
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(removed, u64_of(count)) }
    }
}

log_function! {
    fn silt_log_delete_due_files(now_ms: i64, removed: *mut u64) |it| {
        let count = it.log.delete_due_files(now_ms)?;
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(removed, u64_of(count)) }
    }
}

log_function! {
    fn silt_log_segments(out: *mut Segment, capacity: u32, count: *mut u32) |it| {
        let segments = it.log.segments();
        let items = segments.iter().map(|segment| Segment {
            base_offset: segment.base_offset(),
            size_bytes: segment.size_bytes(),
            max_timestamp_ms: segment.known_max_timestamp().map_or(-1, |(time, _)| time),
            reserved: 0,
        });
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, items) }
    }
}

log_function! {
    fn silt_log_epochs(out: *mut Epoch, capacity: u32, count: *mut u32) |it| {
        let epochs = it.log.leader_epochs();
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, epochs.entries().iter().map(Epoch::from)) }
    }
}

log_function! {
    fn silt_log_epoch_end(epoch: i32, found: *mut i32, end_offset: *mut i64) |it| {
        let (epoch, end) = it.log.end_offset_for_epoch(epoch);
        // SAFETY: the caller's number.
        unsafe { write_plain(found, epoch)? };
        // SAFETY: the caller's number.
        unsafe { write_plain(end_offset, end) }
    }
}

log_function! {
    fn silt_log_assign_epoch(epoch: i32, start_offset: i64) |it| {
        Ok(it.log.assign_epoch_start(epoch, start_offset)?)
    }
}

log_function! {
    fn silt_log_offset_for_time(timestamp_ms: i64, out: *mut TimeOffset) |it| {
        let Some(found) = it.log.offset_for_timestamp(timestamp_ms)? else {
            let message = format!("no record has a timestamp of {timestamp_ms} or later");
            return Err(Error::new(Kind::NotFound, message).in_file(&it.log.dir()).into());
        };
        let found = TimeOffset {
            timestamp_ms: found.timestamp_ms,
            offset: found.offset,
            leader_epoch: found.leader_epoch.unwrap_or(-1),
            reserved: 0,
        };
        // SAFETY: the caller's struct.
        unsafe { write_plain(out, found) }
    }
}
