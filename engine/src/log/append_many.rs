//! How is written to many logs in one call, or many times to one?
//!
//! ```text
//! check each request ->  round: seats, offsets, checks ->  one submission  -> publish, log by log
//! (no seat is taken)     (each log takes what it can)      to the kernel      ^
//!                               ^------------ what still waits ---------------|
//! ```
//!
//! Of what waits for one log, batches that nothing stands between go out as one write: they get
//! offsets one behind the other, and either all of them are in the log or none. Whatever is not so
//! plain (a duplicate, a transaction, a roll, a write that fails) makes the log take one request a
//! round. A log whose write fails is as it was before, and the others do not notice.

use std::sync::Arc;

use super::append::{AppendInfo, Begun, FinalBatches, Fitting};
use super::append_error::AppendError;
use super::append_leader::{AppendScratch, LeaderAppend, placed_mut, put_offset};
use super::log::{Log, Writer};
use super::producers::ProducerChecks;
use super::seat::Seat;
use crate::error::{Error, Kind};
use crate::io::{File, FileWrite};
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::validate::{
    AnalyseOptions, Analysis, AppendOrigin, BatchView, Placement, Validated, analyse,
};
use crate::state::ProducerState;

/// How records are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendAs {
    /// As [`Log::append_as_leader`] does.
    Leader(LeaderAppend),
    /// As [`Log::append_as_follower`] does.
    Follower {
        /// The epoch of the leader that was asked for them.
        leader_epoch: i32,
        /// The clock, in milliseconds since 1970.
        now_ms: i64,
    },
}

/// Records for one of many logs.
#[derive(Debug)]
pub struct AppendRequest<'a> {
    /// The log.
    pub log: &'a Log,
    /// The records. As a leader's they get their offsets here; those of a request that fails are as
    /// they were.
    pub records: &'a mut [u8],
    /// How they are appended.
    pub append: AppendAs,
}

/// Appends to many logs: each request by itself as [`Log::append_as_leader`] or
/// [`Log::append_as_follower`] does, those of one log in their order, but what goes into the files
/// of all logs is handed to the disk at once ([`Storage::write_files`](crate::io::Storage)), and
/// what waits for one log is one write where that is possible.
///
/// There is an answer for each request, in order; one that is refused or fails keeps out no other,
/// but for a follower: behind records that were not appended, later ones for the same log would
/// leave a gap, and fail with `Conflict`.
///
/// The seats of all logs are taken meanwhile: another thread that wants to write to one of them is
/// turned away as long as this takes, and where another thread has one, the requests for that log
/// fail with `Conflict`.
pub fn append_many(
    requests: &mut [AppendRequest<'_>],
    scratch: &mut AppendScratch,
) -> Vec<Result<AppendInfo, AppendError>> {
    scratch.clear();
    let mut items: Vec<Item> =
        requests.iter_mut().map(|request| Item::check(request, scratch)).collect();
    // A leader's request that is refused already does not stand between others.
    let matters = |(at, (item, request)): (usize, (&Item, &AppendRequest<'_>))| {
        (item.answer.is_none() || request.append.is_follower()).then_some(at)
    };
    let mut order: Vec<usize> =
        items.iter().zip(&*requests).enumerate().filter_map(matters).collect();
    let log_of = |at: &usize| requests.get(*at).map(|request| request.log);
    let address_of = |at: &usize| log_of(at).map(std::ptr::from_ref);
    // Stable: requests of one log stay in their order.
    order.sort_by_key(address_of);
    let mut queues: Vec<Queue<'_, '_>> = order
        .chunk_by(|one, other| address_of(one) == address_of(other))
        .filter_map(|waiting| {
            let log = log_of(waiting.first()?)?;
            Some(Queue { log, waiting, is_one_by_one: false, has_gap: false })
        })
        .collect();
    // Not in the order of addresses, which are others in every run.
    queues.sort_by_key(|queue| queue.waiting.first().copied());
    loop {
        queues.iter_mut().for_each(|queue| queue.pass_answered(requests, &mut items));
        queues.retain(|queue| !queue.waiting.is_empty());
        if queues.is_empty() {
            break;
        }
        play_round(requests, &mut items, &mut queues, scratch);
    }
    requests.iter_mut().zip(items).map(|(request, item)| item.answer(request)).collect()
}

/// A request, as far as it came.
struct Item {
    checked: Option<Checked>,
    /// The bytes as they came, where they are changed in place.
    before: Option<[u8; HEADER_SIZE]>,
    answer: Option<Result<AppendInfo, AppendError>>,
}

/// Records that are good in themselves.
enum Checked {
    Leader(Validated),
    Follower(Analysis),
}

/// What waits for one log, as numbers of requests.
struct Queue<'a, 'o> {
    log: &'a Log,
    waiting: &'o [usize],
    is_one_by_one: bool,
    /// A follower's records were not appended: later ones would not follow the log.
    has_gap: bool,
}

/// A log that takes requests in this round: the first that wait, and their number.
struct Turn<'a> {
    queue: usize,
    count: usize,
    log: &'a Log,
    seat: Seat<'a>,
}

/// A log that is ready for the bytes of its requests.
struct Ready<'a, 'r> {
    turn: Turn<'a>,
    batches: FinalBatches<'r>,
    parts: Vec<&'r [u8]>,
    fitting: Fitting,
    file: Arc<dyn File>,
    position: u64,
}

/// What came of a turn: an answer to its one request, or to all of them; without one, they are to
/// be taken one by one.
type TurnOutcome = Option<Result<AppendInfo, AppendError>>;

fn play_round<'a>(
    requests: &mut [AppendRequest<'a>],
    items: &mut [Item],
    queues: &mut [Queue<'a, '_>],
    scratch: &mut AppendScratch,
) {
    let mut turns = Vec::with_capacity(queues.len());
    for (number, queue) in queues.iter_mut().enumerate() {
        let count = queue.run_length(requests);
        match queue.take_seat(count, requests, items, scratch) {
            Ok(seat) => turns.push(Turn { queue: number, count, log: queue.log, seat }),
            Err(error) => queue.answer_first(items, Err(error)),
        }
    }
    let requests: &[AppendRequest<'a>] = requests;
    let mut ready = Vec::with_capacity(turns.len());
    for turn in turns {
        let Some(queue) = queues.get_mut(turn.queue) else { continue };
        match turn.begin(queue, requests, items, scratch.rebuilt()) {
            Ok(one) => ready.push(one),
            Err(Some(answer)) => queue.answer_first(items, answer),
            Err(None) => queue.is_one_by_one = true,
        }
    }
    let Some(storage) = ready.first().map(|ready| ready.turn.log.folder.storage()) else { return };
    let writes: Vec<FileWrite<'_>> = ready.iter().map(Ready::write).collect();
    let mut outcomes = storage.write_files(&writes).into_iter();
    drop(writes);
    for one in ready {
        let Some(queue) = queues.get_mut(one.turn.queue) else { continue };
        let untold = || Err(Error::new(Kind::Io, "the disk does not tell what became of a write"));
        one.end(outcomes.next().unwrap_or_else(untold), queue, items);
    }
}

impl Item {
    /// Holds the records of a request against the rules, without a look at what is in the log.
    fn check(request: &mut AppendRequest<'_>, scratch: &mut AppendScratch) -> Self {
        let before = request.records.first_chunk::<HEADER_SIZE>().copied();
        let checked = match &request.append {
            AppendAs::Leader(append) => request
                .log
                .validate(request.records, append, scratch)
                .map(|validated| validated.map(Checked::Leader)),
            AppendAs::Follower { leader_epoch, .. } => {
                analyse(request.records, &AnalyseOptions::follower(*leader_epoch))
                    .map(|analysis| (analysis.valid_bytes > 0).then_some(analysis))
                    .map(|analysis| analysis.map(Checked::Follower))
                    .map_err(AppendError::from)
            }
        };
        let answered = |answer| Item { checked: None, before: None, answer: Some(answer) };
        match checked {
            Ok(Some(checked)) => {
                let before = before.filter(|_| checked.is_changed_in_place());
                Item { checked: Some(checked), before, answer: None }
            }
            Ok(None) => answered(Ok(request.log.nothing_appended())),
            Err(error) => answered(Err(error)),
        }
    }

    fn validated(&self) -> Option<&Validated> {
        match &self.checked {
            Some(Checked::Leader(validated)) => Some(validated),
            _ => None,
        }
    }

    /// The answer, once no seat is taken any more; the records of a request that failed are then
    /// what they were.
    fn answer(self, request: &mut AppendRequest<'_>) -> Result<AppendInfo, AppendError> {
        let answer = self.answer.unwrap_or_else(|| Ok(request.log.nothing_appended()));
        if answer.is_ok() {
            request.log.save_epochs_later();
        } else if let (Some(header), Some(before)) =
            (request.records.first_chunk_mut(), self.before)
        {
            *header = before;
        }
        answer
    }
}

impl Checked {
    fn is_changed_in_place(&self) -> bool {
        match self {
            Checked::Leader(validated) => matches!(validated.placement, Placement::InPlace(_)),
            Checked::Follower(_) => false,
        }
    }
}

impl AppendAs {
    /// Whether several of these may be one write.
    fn is_for_groups(&self) -> bool {
        matches!(self, AppendAs::Leader(append) if append.origin == AppendOrigin::Client)
    }

    fn is_follower(&self) -> bool {
        matches!(self, AppendAs::Follower { .. })
    }

    fn checks(&self) -> ProducerChecks {
        match self {
            AppendAs::Leader(append) => append.checks(),
            AppendAs::Follower { .. } => ProducerChecks::of(AppendOrigin::Replication),
        }
    }

    fn now_ms(&self) -> i64 {
        match self {
            AppendAs::Leader(append) => append.now_ms,
            AppendAs::Follower { now_ms, .. } => *now_ms,
        }
    }
}

impl<'a> Queue<'a, '_> {
    /// How many of the first that wait may be appended together.
    fn run_length(&self, requests: &[AppendRequest<'_>]) -> usize {
        let append_of = |at: &usize| requests.get(*at).map(|request| request.append);
        let first = self.waiting.first().and_then(append_of);
        if self.is_one_by_one || !first.is_some_and(|append| append.is_for_groups()) {
            return 1;
        }
        self.waiting.iter().take_while(|at| append_of(at) == first).count()
    }

    /// Goes on to the first request without an answer.
    fn pass_answered(&mut self, requests: &[AppendRequest<'_>], items: &mut [Item]) {
        while let Some((first, rest)) = self.waiting.split_first() {
            let (Some(request), Some(item)) = (requests.get(*first), items.get_mut(*first)) else {
                return;
            };
            let is_follower = request.append.is_follower();
            if item.answer.is_none() && is_follower && self.has_gap {
                let message = "the records before these were not appended";
                let error = Error::new(Kind::Conflict, message).in_file(&self.log.dir());
                item.answer = Some(Err(error.into()));
            }
            match &item.answer {
                None => return,
                Some(answer) => self.has_gap |= is_follower && answer.is_err(),
            }
            self.waiting = rest;
        }
    }

    /// Takes the writer's seat, and gives the batches of a leader their offsets.
    fn take_seat(
        &self,
        count: usize,
        requests: &mut [AppendRequest<'_>],
        items: &[Item],
        scratch: &mut AppendScratch,
    ) -> Result<Seat<'a>, AppendError> {
        let mut seat = self.log.take_seat()?;
        self.log.ready(&mut seat)?;
        let mut next = self.log.log_end_offset();
        for at in self.waiting.iter().take(count) {
            let (Some(request), Some(item)) = (requests.get_mut(*at), items.get(*at)) else {
                continue;
            };
            if let Some(validated) = item.validated() {
                let bytes = placed_mut(validated, request.records, scratch.rebuilt_mut());
                next = put_offset(bytes, next)?.next_offset();
            }
        }
        Ok(seat)
    }

    fn answer_first(&self, items: &mut [Item], answer: Result<AppendInfo, AppendError>) {
        if let Some(item) = self.waiting.first().and_then(|first| items.get_mut(*first)) {
            item.answer = Some(answer);
        }
    }
}

impl<'a> Turn<'a> {
    /// Checks the requests against the log and makes ready for their bytes.
    fn begin<'r>(
        mut self,
        queue: &Queue<'a, '_>,
        requests: &'r [AppendRequest<'a>],
        items: &[Item],
        rebuilt: &'r [u8],
    ) -> Result<Ready<'a, 'r>, TurnOutcome> {
        let is_group = self.count > 1;
        // What a group is refused for says nothing of each request in it.
        let refused = |error: AppendError| (!is_group).then_some(Err(error));
        let numbers = queue.waiting.get(..self.count).unwrap_or_default();
        let first = numbers.first().and_then(|at| requests.get(*at)).ok_or(None)?;
        let batches = batches_of(numbers, requests, items, rebuilt).map_err(refused)?;
        let log = self.log;
        let writer = self.seat.writer().map_err(|error| refused(error.into()))?;
        let now_ms = first.append.now_ms();
        if is_group && !is_plain(log, writer, &batches, now_ms) {
            return Err(None);
        }
        let begun = log.begin_append(writer, &batches, &first.append.checks(), now_ms);
        let fitting = match begun.map_err(refused)? {
            Begun::Fits(fitting) => fitting,
            Begun::Duplicate(info) => {
                let validated = numbers.first().and_then(|at| items.get(*at)?.validated());
                let info = validated.map_or(info, |validated| info.of_leader(validated));
                return Err((!is_group).then_some(Ok(info)));
            }
        };
        match writer.active.begin_write(&log.folder) {
            Ok((file, position)) => {
                let parts = batches.parts();
                Ok(Ready { turn: self, batches, parts, fitting, file, position })
            }
            Err(error) => match log.end_append(writer, &batches, fitting, Err(error)) {
                Err(error) => Err(refused(error)),
                Ok(_) => Err(None),
            },
        }
    }
}

impl Ready<'_, '_> {
    fn write(&self) -> FileWrite<'_> {
        FileWrite { file: &*self.file, parts: &self.parts, position: self.position }
    }

    /// Lets readers see what was written, and answers.
    fn end(self, written: crate::Result<()>, queue: &mut Queue<'_, '_>, items: &mut [Item]) {
        let Turn { count, log, mut seat, .. } = self.turn;
        let outcome = seat.writer().map_err(AppendError::from).and_then(|writer| {
            let written = writer.active.end_write(&log.folder, written);
            log.end_append(writer, &self.batches, self.fitting, written)
        });
        drop(seat);
        if outcome.is_err() && count > 1 {
            queue.is_one_by_one = true;
            return;
        }
        let whole = match outcome {
            Ok(whole) => whole,
            Err(error) => return queue.answer_first(items, Err(error)),
        };
        let views = if count > 1 { self.batches.views() } else { &[] };
        for (number, at) in queue.waiting.iter().take(count).enumerate() {
            let Some(item) = items.get_mut(*at) else { continue };
            let mut info = whole;
            if let Some(BatchView { header, .. }) = views.get(number) {
                info.first_offset = Some(header.base_offset);
                info.last_offset = header.last_offset();
                info.max_timestamp_ms = header.max_timestamp;
                info.size_bytes = u64::from(header.size_bytes);
            }
            if let Some(validated) = item.validated() {
                info = info.of_leader(validated);
            }
            item.answer = Some(Ok(info));
        }
    }
}

/// The batches of some requests, as they are to be written.
fn batches_of<'r>(
    numbers: &[usize],
    requests: &'r [AppendRequest<'_>],
    items: &[Item],
    rebuilt: &'r [u8],
) -> Result<FinalBatches<'r>, AppendError> {
    let none = || AppendError::from(Error::corrupt("a batch that was checked is not there"));
    let mut views = Vec::with_capacity(numbers.len());
    for at in numbers {
        let (request, item) = requests.get(*at).zip(items.get(*at)).ok_or_else(none)?;
        match item.checked.as_ref().ok_or_else(none)? {
            Checked::Leader(validated) => {
                let bytes = validated.bytes(request.records, rebuilt);
                let header = BatchHeader::parse(bytes).ok_or_else(none)?;
                views.push(BatchView { header, bytes });
            }
            Checked::Follower(analysis) => {
                return FinalBatches::of(request.records, analysis)?.ok_or_else(none);
            }
        }
    }
    FinalBatches::apart(views).ok_or_else(none)
}

/// Whether nothing stands between batches: no transaction, no batch that makes the log roll,
/// wherever among them it stands, and none that shows what another one is to be held against.
fn is_plain(log: &Log, writer: &mut Writer, batches: &FinalBatches<'_>, now_ms: i64) -> bool {
    let is_special = |view: &BatchView<'_>| {
        let header = &view.header;
        header.magic < 2 || header.is_transactional() || header.is_control()
    };
    let settings = log.config.load().segment();
    let params = batches.roll_params(now_ms);
    // The first batch of a segment says from when on its time counts.
    !batches.views().iter().any(is_special)
        && !has_newcomer_twice(&writer.producers, batches.views())
        && writer.active.size_bytes() > 0
        && writer.active.touch_indexes(&log.folder, &settings).is_ok()
        && writer.active.has_index_room(batches.views().len())
        && matches!(writer.active.should_roll(&log.folder, &settings, &params), Ok(false))
}

/// Whether a producer of whom nothing is known has several batches. In one append they are not held
/// against each other, and the later ones may be the first sent again, or leave a gap.
fn has_newcomer_twice(producers: &ProducerState, views: &[BatchView<'_>]) -> bool {
    let ids = views.iter().filter(|view| view.header.has_producer_id());
    let ids = ids.map(|view| view.header.producer_id);
    let mut newcomers: Vec<i64> = ids.filter(|id| !producers.knows(*id)).collect();
    newcomers.sort_unstable();
    newcomers.windows(2).any(|pair| matches!(pair, [one, other] if one == other))
}
