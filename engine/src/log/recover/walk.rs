//! One walk over a partition: first what is trusted, then the tail.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::error::{Kind, Result};
use crate::io::{File, Metadata, OpenMode, Storage};
use crate::log::inventory::{Inventory, SegmentFiles};
use crate::log::progress::Progress;
use crate::log::recover::fold::Trouble;
use crate::log::recover::options::RecoverOptions;
use crate::log::recover::plan::{Action, Plan, Refusal, Split};
use crate::log::recover::producers::ProducerBook;
use crate::log::recover::scanner::Scanner;
use crate::log::recover::stage::{Stage, Staged};
use crate::record::scan::ScanEnd;
use crate::segment::damage::Damage;
use crate::segment::rebuild::RebuiltIndexes;
use crate::state::LeaderEpochs;

/// A larger index is wrong by its size alone.
pub(super) const INDEX_BYTES_MAX: u64 = 2_147_483_647;

/// What a walk must read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Need {
    /// The segments from here on are read with their producers.
    pub tail_from: Option<i64>,
    /// From here on, indexes become what recovery makes them; before, they stay when they are right.
    pub reset_from: Option<i64>,
    /// Trusted segments whose batches must be read all the same.
    pub reindex: BTreeSet<i64>,
    /// The small files of all trusted segments were looked at.
    pub is_looked_at: bool,
    /// Epochs must come from the batches of all segments.
    pub epochs: bool,
}

impl Need {
    /// Whether the indexes of a segment become what recovery makes them, right or not.
    pub fn resets(&self, base_offset: i64) -> bool {
        self.reset_from.is_some_and(|from| base_offset >= from)
    }
}

/// What the small files of a trusted segment ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing.
    Sound,
    /// An index must be made anew from the batches.
    Reindex,
    /// The segment must be recovered, with its producers.
    Recover,
}

/// How a walk ended.
pub(super) enum Step {
    /// With a plan.
    Done(Box<Plan>),
    /// It must begin anew and read this.
    Again(Need),
}

/// Why a walk cannot go on as it is.
pub(super) enum Halt {
    /// More must be read.
    Again(Need),
    /// The partition is left as it is.
    Refused(Refusal),
}

/// One walk over a partition.
pub(super) struct Walk<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) inventory: &'a Inventory,
    pub(super) options: &'a RecoverOptions,
    pub(super) scanner: Scanner<'a>,
    pub(super) stage: Stage<'a>,
    pub(super) book: ProducerBook<'a>,
    pub(super) epochs: LeaderEpochs,
    /// Set when the epochs that were read begin behind a batch that was read.
    pub(super) epoch_untold: bool,
    /// The offset that the log has reached.
    pub(super) reached: i64,
    pub(super) plan: Plan,
    /// Bases of the segments, as long as none is cut.
    bases: Rc<BTreeSet<i64>>,
}

/// What the scan of one segment gave.
pub(super) struct Scanned {
    pub end: ScanEnd,
    pub damage: Option<Damage>,
    pub trouble: Option<Trouble>,
    /// Where the segment must be split.
    pub parts: Vec<(i64, u64)>,
    pub indexes: Option<RebuiltIndexes>,
    pub txn_index: Vec<u8>,
    pub abort_markers: u64,
    pub epoch_differs: bool,
    pub next_offset: i64,
    /// Whether the index that is there fits the batches.
    pub right: Right,
}

/// Which side files are right as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Right {
    pub offset_index: bool,
    pub time_index: bool,
}

impl<'a> Walk<'a> {
    pub fn new(
        storage: &'a dyn Storage,
        inventory: &'a Inventory,
        options: &'a RecoverOptions,
        progress: &'a dyn Progress,
        epochs: Option<LeaderEpochs>,
    ) -> Result<Self> {
        let like = owner_of(storage, inventory)?;
        Ok(Walk {
            storage,
            inventory,
            options,
            scanner: Scanner {
                progress,
                piece_bytes: options.piece_bytes,
                parallel: options.parallel,
                map_mode: options.map_mode,
            },
            stage: Stage::new(storage, &inventory.dir, options.stage_bytes, like),
            book: ProducerBook::new(
                storage,
                &inventory.dir,
                &inventory.snapshots,
                options.now_ms,
                options.producer_expiration_ms,
            ),
            epochs: epochs.unwrap_or_default(),
            epoch_untold: false,
            reached: i64::MIN,
            bases: Rc::new(inventory.segments.keys().copied().collect()),
            plan: Plan {
                dir: inventory.dir.clone(),
                keep_lost: !options.discard_lost,
                like,
                ..Plan::default()
            },
        })
    }

    /// Reads what is needed and makes the plan.
    pub fn run(mut self, need: &Need) -> Result<Step> {
        match self.walk(need)? {
            None if self.plan.split.is_some() => {
                // What else is to be done shows when the parts are there.
                self.drop_staged()?;
                self.plan.cut = None;
                Ok(Step::Done(Box::new(self.plan)))
            }
            None => Ok(Step::Done(Box::new(self.finish()?))),
            Some(Halt::Again(more)) => {
                self.drop_staged()?;
                Ok(Step::Again(more))
            }
            Some(Halt::Refused(refusal)) => {
                self.drop_staged()?;
                self.plan.actions.clear();
                (self.plan.cut, self.plan.split) = (None, None);
                self.plan.refusal = Some(refusal);
                Ok(Step::Done(Box::new(self.plan)))
            }
        }
    }

    fn walk(&mut self, need: &Need) -> Result<Option<Halt>> {
        let inventory = self.inventory;
        for name in &inventory.remove {
            self.plan.actions.push(Action::Remove { name: name.clone(), why: "left over" });
        }
        for (from, to) in &inventory.rename {
            self.plan.actions.push(Action::Rename { from: from.clone(), to: to.clone() });
        }
        let tail_from = need.tail_from.unwrap_or(i64::MAX);
        if let Some(more) = self.look_at_all(need, tail_from)? {
            return Ok(Some(Halt::Again(more)));
        }
        for segment in inventory.segments.range(..tail_from).map(|(_, segment)| segment) {
            if let Some(halt) = self.trusted(segment, need)? {
                return Ok(Some(halt));
            }
        }
        for segment in inventory.segments.range(tail_from..).map(|(_, segment)| segment) {
            if let Some(halt) = self.recover(segment, need)? {
                return Ok(Some(halt));
            }
            if self.plan.cut.is_some() {
                break;
            }
        }
        self.load(need)
    }

    /// What the small files of all segments before the tail ask for, at once: however many ask, the
    /// walk begins anew once. `None` when they ask for nothing.
    fn look_at_all(&mut self, need: &Need, tail_from: i64) -> Result<Option<Need>> {
        if need.is_looked_at || need.epochs {
            return Ok(None);
        }
        let mut more = Need { is_looked_at: true, ..need.clone() };
        let inventory = self.inventory;
        for (base, segment) in inventory.segments.range(..tail_from) {
            match self.look_at_indexes(segment)? {
                Look::Sound => {}
                Look::Reindex => {
                    more.reindex.insert(*base);
                }
                // All behind it is recovered with it.
                Look::Recover => {
                    more.tail_from = Some(*base);
                    break;
                }
            }
        }
        let asks = (&more.reindex, more.tail_from) != (&need.reindex, need.tail_from);
        Ok(asks.then_some(more))
    }

    /// A segment before the tail: its batches are read only where that is needed.
    fn trusted(&mut self, segment: &SegmentFiles, need: &Need) -> Result<Option<Halt>> {
        let base = segment.base_offset;
        if !need.reindex.contains(&base) && !need.epochs {
            return Ok(None);
        }
        if self.reached > base {
            return Ok(Some(self.overlap(segment)));
        }
        self.reached = base;
        let scanned = self.scan(segment, need, false)?;
        let aborts_told = self.aborts_told(segment)?;
        if scanned.damage.is_some()
            || scanned.trouble.is_some()
            || !scanned.parts.is_empty()
            || aborts_told != Some(scanned.abort_markers)
        {
            // Only a walk with producers can say what that means.
            let mut more = need.clone();
            more.tail_from = Some(base);
            return Ok(Some(Halt::Again(more)));
        }
        if scanned.epoch_differs && !need.epochs {
            return Ok(Some(Halt::Again(Need { epochs: true, ..need.clone() })));
        }
        self.reached = scanned.next_offset;
        self.place_indexes(segment, &scanned, false)?;
        Ok(None)
    }

    /// A segment of the tail: Kafka's recovery of a segment.
    fn recover(&mut self, segment: &SegmentFiles, need: &Need) -> Result<Option<Halt>> {
        // spec: segments 5, recoverSegment
        let base = segment.base_offset;
        if self.reached > base {
            return Ok(Some(self.overlap(segment)));
        }
        self.reached = base;
        if let Some(halt) = self.rebuild_producers(need, base, self.options.log_start_offset)? {
            return Ok(Some(halt));
        }
        let reset = need.resets(base);
        let scanned = self.scan(segment, need, true)?;
        if scanned.epoch_differs && !need.epochs {
            return Ok(Some(Halt::Again(Need { epochs: true, ..need.clone() })));
        }
        if !scanned.parts.is_empty() && self.plan.split.is_none() {
            let parts = std::iter::once((base, 0)).chain(scanned.parts.iter().copied()).collect();
            self.plan.split = Some(Split { base_offset: base, parts });
        }
        match &scanned.trouble {
            Some(Trouble::Asked { position }) => {
                let cut = self.asked_cut(segment, *position, scanned.next_offset)?;
                self.plan.cut = Some(cut);
            }
            Some(trouble) => {
                if self.options.truncate_to.is_none_or(|to| to > scanned.next_offset) {
                    return Ok(Some(Halt::Refused(self.refuse_order(
                        segment,
                        trouble,
                        scanned.next_offset,
                    ))));
                }
                let cut = self.asked_cut(segment, scanned.end.position, scanned.next_offset)?;
                self.plan.cut = Some(cut);
            }
            None => {}
        }
        if let Some(damage) = &scanned.damage
            && self.plan.cut.is_none()
        {
            let cut = self.damage_cut(segment, damage, scanned.next_offset)?;
            if let Some(refusal) = self.refuse_cut(&cut) {
                self.report_cut(segment, &cut);
                return Ok(Some(Halt::Refused(refusal)));
            }
            self.report_cut(segment, &cut);
            self.plan.cut = Some(cut);
        }
        self.reached = scanned.next_offset;
        self.place_indexes(segment, &scanned, reset)?;
        self.place_txn_index(segment, &scanned.txn_index, reset)?;
        self.book.advanced(&mut self.stage, scanned.next_offset)?;
        Ok(None)
    }

    /// What the loader does once the segments are what they are: the end of the log, its start, snapshots and epochs.
    fn load(&mut self, need: &Need) -> Result<Option<Halt>> {
        let log_start = self.options.log_start_offset;
        let mut bases = (*self.bases()).clone();
        let end = match bases.last() {
            None => None,
            Some(last) => match self.end_of_log(*last, need)? {
                ControlFlow::Continue(end) => Some(end),
                ControlFlow::Break(halt) => return Ok(Some(halt)),
            },
        };
        let end = match end {
            Some(end) if end < log_start => {
                if let Some(halt) = self.start_beyond_end(end, log_start)? {
                    return Ok(Some(halt));
                }
                bases.clear();
                None
            }
            other => other,
        };
        let end = match end {
            Some(end) => end,
            None => {
                self.start_empty(log_start)?;
                bases.insert(log_start);
                log_start
            }
        };
        let start = match bases.first() {
            Some(first) if !self.options.remote_storage => log_start.max(*first),
            _ => log_start,
        };
        self.book.remove_stray(&mut self.stage, &bases)?;
        self.reached = end;
        if let Some(halt) = self.rebuild_producers(need, end, start)? {
            return Ok(Some(halt));
        }
        // The one that was spared is of no use beside one at the end. Kafka removes it when it loads
        // the log the next time; a second recovery may change nothing.
        self.book.remove_stray(&mut self.stage, &bases)?;
        if let Some(halt) = self.place_epochs(need, end)? {
            return Ok(Some(halt));
        }
        self.tell_outcome(&bases, start, end);
        Ok(None)
    }

    /// Bases of the segments that stay.
    pub(super) fn bases(&self) -> Rc<BTreeSet<i64>> {
        match &self.plan.cut {
            None => Rc::clone(&self.bases),
            Some(cut) => {
                Rc::new(self.bases.iter().copied().filter(|base| cut.keeps(*base)).collect())
            }
        }
    }

    /// Puts snapshots into the plan and gives it.
    fn finish(self) -> Result<Plan> {
        let Walk { mut plan, book, inventory, .. } = self;
        plan.problems.extend(book.problems.iter().cloned());
        let snapshots = book.finish(plan.outcome.log_start_offset);
        plan.retire = snapshots.retire;
        for name in snapshots.remove {
            plan.actions
                .push(Action::Remove { name, why: "belongs to no segment, or behind the end" });
        }
        for (name, staged) in snapshots.write {
            let why = "producer state";
            plan.actions.push(Action::Write { name, staged, why, in_place: false });
        }
        // Files that an earlier run was killed over; one that is written again takes its name.
        for name in &inventory.half_written {
            let again = plan.actions.iter().any(|action| match action {
                // One that is written over needs no file beside it.
                Action::Write { staged: Staged::Memory(_), in_place: true, .. } => false,
                Action::Write { name: target, .. } => name.strip_suffix(".tmp") == Some(target),
                _ => false,
            });
            if !again {
                plan.actions.push(Action::Remove { name: name.clone(), why: "half written" });
            }
        }
        Ok(plan)
    }

    /// Forgets new files; what an interrupted operation left stays in the plan.
    fn drop_staged(&mut self) -> Result<()> {
        for action in &self.plan.actions {
            if let Action::Write { name, staged, .. } = action {
                self.stage.forget(name, staged)?;
            }
        }
        let is_leftover =
            |action: &Action| matches!(action, Action::Remove { .. } | Action::Rename { .. });
        self.plan.actions.retain(is_leftover);
        self.book.drop_written(&mut self.stage)
    }

    pub(super) fn open(&self, segment: &SegmentFiles) -> Result<Box<dyn File>> {
        self.storage.open(&self.inventory.dir.join(&segment.log), OpenMode::Read)
    }
}

/// Owner and mode for new files: those of a log beside them.
fn owner_of(storage: &dyn Storage, inventory: &Inventory) -> Result<Option<Metadata>> {
    let Some(segment) = inventory.segments.values().next_back() else { return Ok(None) };
    match storage.metadata(&inventory.dir.join(&segment.log)) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
