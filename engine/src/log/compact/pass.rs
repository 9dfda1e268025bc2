//! One round of compaction, a step at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cleaned::{Clean, CleanSegment, Cleaned, discard};
use super::cleaner::Cleaner;
use super::fill::Fill;
use super::groups::group;
use super::range::Cleanable;
use super::replacement::{Refused, changed};
use super::rounds::Round;
use super::rules::{CleanRules, Conditions, LastRecords};
use super::sources::{Piece, Source};
use super::transactions::TransactionView;
use crate::error::{Error, Kind, Result};
use crate::log::{Log, LogConfig, Segments};
use crate::record::filter::FilterTotals;

/// What a round has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Up to where, exclusive, the log is compacted: the new line of `cleaner-offset-checkpoint`.
    pub end_offset: i64,
    /// Whether the map of keys was full before everything was read: there is more to be done.
    pub is_map_full: bool,
    /// Keys in the map.
    pub key_count: usize,
    /// Segments that were replaced.
    pub segments_read: usize,
    /// Segments in their place.
    pub segments_written: usize,
    /// Records that were looked at, of batches that do not go as a whole.
    pub records_read: u64,
    /// Bytes of all batches.
    pub bytes_read: u64,
    /// Records that stayed.
    pub records_written: u64,
    /// Bytes of the batches that stayed.
    pub bytes_written: u64,
    /// Records without a key, which went.
    pub invalid_records: u64,
}

/// A round of compaction. Dropping it ends it at any time; groups that were replaced stay so, and
/// the checkpoint is to stay what it was.
#[derive(Debug)]
pub struct Compaction<'a> {
    log: &'a Log,
    cleaner: &'a mut Cleaner,
    config: LogConfig,
    round: Round<'a>,
    conditions: Conditions,
    first_dirty_offset: i64,
    /// How often the log had been cut.
    truncations: u64,
    view: TransactionView,
    stage: Stage,
    done: Compacted,
}

#[derive(Debug)]
enum Stage {
    /// The map is filled from these segments.
    Fill {
        sources: Vec<Source>,
        at: usize,
        position: u64,
    },
    /// The first of these groups comes next.
    Groups(VecDeque<Vec<Source>>),
    Clean(Box<Group>),
    /// A group is written, and is to take its place.
    Swap {
        new: CleanSegment,
        old: Vec<Source>,
        groups: VecDeque<Vec<Source>>,
    },
    Swapping {
        groups: VecDeque<Vec<Source>>,
    },
    Done,
    Abandoned,
}

/// A group that is being written anew.
#[derive(Debug)]
struct Group {
    sources: Vec<Source>,
    at: usize,
    /// Where to go on in the segment; `None` when it was not begun.
    position: Option<u64>,
    keeps_legacy_tombstones: bool,
    cleaned: Cleaned,
    /// The groups behind it.
    groups: VecDeque<Vec<Source>>,
}

impl Log {
    /// Compacts what `range` says, which [`cleanable`](Self::cleanable) gave, in one go. See
    /// [`begin_compaction`](Self::begin_compaction). Waits for whoever is writing to swap a group.
    ///
    /// # Errors
    /// Those of [`begin_compaction`](Self::begin_compaction) and of [`Compaction::step`].
    pub fn compact(
        &self,
        cleaner: &mut Cleaner,
        range: &Cleanable,
        now_ms: i64,
    ) -> Result<Compacted> {
        let mut compaction = self.begin_compaction(cleaner, range, now_ms)?;
        loop {
            match compaction.step() {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(error) if error.kind() == Kind::Conflict && !compaction.is_abandoned() => {
                    self.wait_for_turn()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins a round over what `range` says.
    ///
    /// Files that it has not finished are removed when it is dropped. Removing segments meanwhile
    /// and cutting what it goes by end it with `Conflict`; closing, deleting and renaming the log
    /// with `Cancelled`, and they wait for the step that is being done.
    ///
    /// # Errors
    /// `Conflict` when another thread is writing, while another round is under way, when the range
    /// reaches into the active segment, as it does once the log was cut, and when segments of it are
    /// removed meanwhile; `Cancelled` while [`pause_compaction`](Self::pause_compaction) holds;
    /// `InvalidArgument` for no range; what the disk says.
    pub fn begin_compaction<'a>(
        &'a self,
        cleaner: &'a mut Cleaner,
        range: &Cleanable,
        now_ms: i64,
    ) -> Result<Compaction<'a>> {
        let round = self.rounds.begin(self)?;
        self.complete_replacement()?;
        let (segments, truncations, last_records) = self.watch_cuts()?;
        let (first_dirty_offset, upper_bound) =
            (range.first_dirty_offset, range.first_uncleanable_offset);
        let message =
            |why| format!("offsets {first_dirty_offset} to {upper_bound} cannot be compacted{why}");
        if first_dirty_offset < 0 || first_dirty_offset > upper_bound {
            return Err(Error::new(Kind::InvalidArgument, message("")).in_file(&self.dir()));
        }
        if segments.last().is_none_or(|last| upper_bound > last.base_offset()) {
            // Sound when it was told, it is so no more once the log was cut.
            let message = message(": the active segment begins before");
            return Err(Error::new(Kind::Conflict, message).in_file(&self.dir()));
        }
        let config = LogConfig::clone(&self.config());
        let sources = Source::all(segments.values(first_dirty_offset, upper_bound)?);
        let clean = segments.values(0, first_dirty_offset)?.last().map(Source::new);
        let from_files = || {
            // spec: cleaner 3
            let legacy_horizon_ms = match &clean {
                Some(last) => {
                    last.modified_ms(&self.folder)?.wrapping_sub(config.delete_retention_ms)
                }
                None => 0,
            };
            let position = match sources.first() {
                Some(first) => first.segment.position_before(&self.folder, first_dirty_offset)?,
                None => 0,
            };
            let aborted = self.aborted_transactions(first_dirty_offset, upper_bound)?;
            Ok((legacy_horizon_ms, position, aborted))
        };
        let (legacy_horizon_ms, position, mut aborted) =
            from_files().map_err(|error| self.or_changed(error, clean.iter().chain(&sources)))?;
        let records_max = upper_bound.saturating_sub(first_dirty_offset);
        cleaner.map.restart(u64::try_from(records_max).unwrap_or(0))?;
        // What lies before was compacted: of each of its keys one record is left.
        cleaner.map.read_up_to(first_dirty_offset.saturating_sub(1));
        cleaner.filter.set_time(now_ms, config.delete_retention_ms);
        cleaner.out.clear();
        let mut view = TransactionView::default();
        // Reading may begin behind the marker of one that is over by then: Kafka takes what its
        // producer commits later for aborted, does not map it, and may lose a tombstone for good.
        aborted.retain(|txn| txn.last_offset >= first_dirty_offset);
        view.add(aborted);
        Ok(Compaction {
            log: self,
            cleaner,
            config,
            round,
            conditions: Conditions {
                now_ms,
                upper_bound,
                reach: upper_bound,
                decided_end: self.high_watermark(),
                legacy_horizon_ms,
                last_records,
            },
            first_dirty_offset,
            truncations,
            view,
            stage: Stage::Fill { sources, at: 0, position },
            done: Compacted::default(),
        })
    }

    /// An error of these segments; that the log was changed when it has them no more.
    fn or_changed<'a>(&self, error: Error, sources: impl IntoIterator<Item = &'a Source>) -> Error {
        let segments = self.segments();
        let is_current = sources.into_iter().all(|source| source.is_current(&segments));
        if is_current { error } else { changed(self) }
    }

    /// What the log is, and how often it had been cut: from now on the lowest cut is noted.
    fn watch_cuts(&self) -> Result<(Arc<Segments>, u64, LastRecords)> {
        // In the seat: a cut has come to its end, or is noted.
        let mut seat = self.take_seat_as_guest()?;
        let last_records = LastRecords::of(&self.ready(&mut seat)?.producers);
        let mut durable = self.durable();
        durable.lowest_cut = i64::MAX;
        Ok((self.segments(), durable.truncations, last_records))
    }
}

impl Compaction<'_> {
    /// Does some more of the round; gives what was done when it is over.
    ///
    /// # Errors
    /// `Conflict` from the swap of a group when another thread is writing, and what the disk says
    /// there: the same call can be made again, after an error of the disk once it is well. Any
    /// other error abandons the round, and the log is as it was but for groups that are done:
    /// `Cancelled` when it was ended, `Conflict` when its segments were removed or cut, `Corrupt`,
    /// `Unsupported`, `Limit` and `InvalidArgument` for batches that cannot be filtered, now or
    /// later.
    pub fn step(&mut self) -> Result<Option<Compacted>> {
        let rounds = &self.log.rounds;
        let _step = match self.round.step(rounds, self.log) {
            Ok(step) => step,
            Err(error) => {
                self.abandon();
                return Err(error);
            }
        };
        match self.advance() {
            Ok(()) if matches!(self.stage, Stage::Done) => Ok(Some(self.done)),
            Ok(()) => Ok(None),
            Err(error) if matches!(self.stage, Stage::Swap { .. } | Stage::Swapping { .. }) => {
                Err(error)
            }
            Err(error) => {
                let is_changed = error.kind() != Kind::Cancelled && !self.is_current();
                self.abandon();
                if is_changed {
                    return Err(changed(self.log));
                }
                Err(error.context("compact"))
            }
        }
    }

    /// Whether it was given up: no step does anything any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        matches!(self.stage, Stage::Abandoned)
    }

    /// Whether what the round goes by was cut.
    fn is_cut(&self) -> bool {
        self.log.durable().lowest_cut < self.conditions.reach
    }

    /// Whether the segments at hand are what they were, and what the round goes by.
    fn is_current(&self) -> bool {
        if self.is_cut() {
            return false;
        }
        let segments = self.log.segments();
        let sources = match &self.stage {
            Stage::Fill { sources, .. } => sources,
            Stage::Clean(group) => &group.sources,
            _ => return true,
        };
        sources.iter().all(|source| source.is_current(&segments))
    }

    fn abandon(&mut self) {
        let old = match std::mem::replace(&mut self.stage, Stage::Abandoned) {
            Stage::Clean(group) => group.sources,
            Stage::Swap { old, .. } => old,
            _ => return,
        };
        // Of a log that is closed, the files are those of whoever opens it next.
        if let Some(first) = old.first()
            && !self.log.is_closed.load(Ordering::Acquire)
        {
            discard(&self.log.folder, first.base_offset());
        }
    }

    fn advance(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.stage, Stage::Abandoned) {
            Stage::Fill { sources, at, position } => self.fill(sources, at, position),
            Stage::Groups(groups) => self.begin_group(groups),
            Stage::Clean(group) => {
                self.stage = Stage::Clean(group);
                self.clean()
            }
            Stage::Swap { new, old, groups } => self.swap(new, old, groups),
            Stage::Swapping { groups } => {
                self.stage = Stage::Swapping { groups };
                self.complete_swap()
            }
            Stage::Done => {
                self.stage = Stage::Done;
                Ok(())
            }
            Stage::Abandoned => {
                Err(Error::new(Kind::Cancelled, "this round of compaction was given up"))
            }
        }
    }

    fn pieces(&self) -> (u64, usize) {
        (self.cleaner.options.step_bytes.max(1), self.cleaner.options.io_buffer_bytes)
    }

    // spec: cleaner 4
    fn fill(&mut self, sources: Vec<Source>, at: usize, position: u64) -> Result<()> {
        let pieces = self.pieces();
        let Some(source) = sources.get(at) else { return self.make_groups() };
        let Cleaner { map, reader, .. } = &mut *self.cleaner;
        let mut fill =
            Fill { map, view: &mut self.view, reader, first_dirty_offset: self.first_dirty_offset };
        let piece = source.scan(&self.log.folder, position, pieces, &mut fill);
        let next = sources.get(at + 1).map_or(self.conditions.upper_bound, Source::base_offset);
        match piece {
            Ok(Piece::Paused(position)) => self.stage = Stage::Fill { sources, at, position },
            Ok(Piece::Ended) => {
                // Offsets that are missing at its end are not in the next segment either.
                self.cleaner.map.read_up_to(next.saturating_sub(1));
                self.stage = Stage::Fill { sources, at: at + 1, position: 0 };
            }
            Ok(Piece::Stopped) => {
                self.done.is_map_full = true;
                return self.make_groups();
            }
            Err(error) => {
                self.stage = Stage::Fill { sources, at, position };
                return Err(error);
            }
        }
        Ok(())
    }

    fn make_groups(&mut self) -> Result<()> {
        let latest = self.cleaner.map.latest_offset();
        self.done.end_offset = latest.saturating_add(1);
        self.conditions.reach = self.done.end_offset;
        if self.view.waits_for_commits() {
            let decided_end = self.conditions.decided_end;
            self.conditions.reach = decided_end.max(self.done.end_offset);
        }
        self.done.key_count = self.cleaner.map.key_count();
        self.view = TransactionView::default();
        let segments = self.log.segments();
        let segments = segments.values(0, self.done.end_offset)?;
        let settings = self.config.segment();
        let upper_bound = self.conditions.upper_bound;
        let sources = Source::all(segments);
        let groups = group(&self.log.folder, segments, &settings, upper_bound)
            .map_err(|error| self.log.or_changed(error, &sources))?;
        self.stage = Stage::Groups(groups);
        Ok(())
    }

    fn begin_group(&mut self, mut groups: VecDeque<Vec<Source>>) -> Result<()> {
        let Some(sources) = groups.pop_front() else {
            self.log.compacted(self.first_dirty_offset, self.done.end_offset, self.truncations);
            self.stage = Stage::Done;
            return Ok(());
        };
        if self.is_cut() {
            return Err(changed(self.log));
        }
        let base_offset = sources.first().map_or(0, Source::base_offset);
        let settings = self.config.segment();
        let now_ms = self.conditions.now_ms;
        let cleaned = Cleaned::create(&self.log.folder, base_offset, settings, now_ms)?;
        self.stage = Stage::Clean(Box::new(Group {
            sources,
            at: 0,
            position: None,
            keeps_legacy_tombstones: false,
            cleaned,
            groups,
        }));
        Ok(())
    }

    fn clean(&mut self) -> Result<()> {
        let pieces = self.pieces();
        let Stage::Clean(group) = &mut self.stage else { return Ok(()) };
        let Some(source) = group.sources.get(group.at) else { return self.finish_group() };
        let folder = &self.log.folder;
        if group.position.is_none() {
            // spec: cleaner 3
            let from = source.base_offset();
            let next = group.sources.get(group.at + 1).map(Source::base_offset);
            let upper_bound = match next {
                Some(next) => next,
                None => source.segment.read_end(folder)?.0,
            };
            let aborted = self.log.aborted_transactions(from, upper_bound)?;
            let markers_end = aborted.iter().map(|txn| txn.last_offset.saturating_add(1)).max();
            let reach = &mut self.conditions.reach;
            *reach = markers_end.map_or(*reach, |end| end.max(*reach));
            self.view.add(aborted);
            group.keeps_legacy_tombstones =
                source.modified_ms(folder)? > self.conditions.legacy_horizon_ms;
        }
        let position = *group.position.get_or_insert(0);
        let Cleaner { map, filter, out, options, .. } = &mut *self.cleaner;
        let mut totals = FilterTotals::default();
        let mut clean = Clean {
            cleaned: &mut group.cleaned,
            filter,
            rules: CleanRules::new(
                map,
                &mut self.view,
                &self.conditions,
                group.keeps_legacy_tombstones,
            ),
            out,
            out_bytes_max: options.io_buffer_bytes,
            totals: &mut totals,
        };
        let piece = source.scan(folder, position, pieces, &mut clean)?;
        clean.write_out()?;
        self.done.invalid_records += clean.rules.invalid_records;
        self.done.records_read += totals.records_read;
        self.done.bytes_read += totals.bytes_read;
        self.done.records_written += totals.records_retained;
        self.done.bytes_written += totals.bytes_retained;
        if let Piece::Paused(position) = piece {
            group.position = Some(position);
        } else {
            group.at += 1;
            group.position = None;
            self.cleaner.shrink();
        }
        Ok(())
    }

    fn finish_group(&mut self) -> Result<()> {
        let Stage::Clean(group) = std::mem::replace(&mut self.stage, Stage::Abandoned) else {
            return Ok(());
        };
        let Group { sources, cleaned, groups, .. } = *group;
        let modified_ms = match sources.last() {
            Some(last) => last.modified_ms(&self.log.folder),
            None => Ok(self.conditions.now_ms),
        };
        match modified_ms.and_then(|modified_ms| cleaned.finish(modified_ms)) {
            Ok(new) => {
                self.stage = Stage::Swap { new, old: sources, groups };
                Ok(())
            }
            Err(error) => {
                if let Some(first) = sources.first() {
                    discard(&self.log.folder, first.base_offset());
                }
                Err(self.log.or_changed(error, &sources))
            }
        }
    }

    fn swap(
        &mut self,
        new: CleanSegment,
        old: Vec<Source>,
        groups: VecDeque<Vec<Source>>,
    ) -> Result<()> {
        let count = old.len();
        // What takes the place of records that go must not be lost when they are not.
        let Conditions { reach, now_ms, .. } = self.conditions;
        if let Err(error) = self.log.flush_to(reach, false, now_ms) {
            self.stage = Stage::Swap { new, old, groups };
            return Err(error);
        }
        match self.log.begin_replacement((new, old), &self.conditions) {
            Ok(()) => {
                self.done.segments_read += count;
                self.done.segments_written += 1;
                self.stage = Stage::Swapping { groups };
                self.complete_swap()
            }
            Err(Refused { error, new, old, is_changed }) => {
                self.stage = Stage::Swap { new, old, groups };
                if is_changed {
                    self.abandon();
                }
                Err(error)
            }
        }
    }

    fn complete_swap(&mut self) -> Result<()> {
        self.log.complete_replacement()?;
        if let Stage::Swapping { groups } = std::mem::replace(&mut self.stage, Stage::Abandoned) {
            self.stage = Stage::Groups(groups);
        }
        Ok(())
    }
}

impl Drop for Compaction<'_> {
    fn drop(&mut self) {
        self.abandon();
    }
}
