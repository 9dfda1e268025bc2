//! Where a walk finds that the log cannot stay whole: what is cut, and what is left to the operator.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::error::{Error, Kind, Result};
use crate::log::inventory::SegmentFiles;
use crate::log::recover::fold::{Fact, Trouble};
use crate::log::recover::plan::{Action, Cut, CutReason, CutSegment, Outcome, Refusal};
use crate::log::recover::walk::{Halt, Need, Walk};
use crate::problem::{Code, Problem, Severity};
use crate::record::scan::Stop;
use crate::segment::damage::{Damage, Survivors, survivors, whole_batches};
use crate::segment::{FileName, FileRole};
use crate::state::ProducerEvent;

impl Walk<'_> {
    /// The cut at damage. What lies behind it in later segments is counted.
    pub(super) fn damage_cut(
        &self,
        segment: &SegmentFiles,
        damage: &Damage,
        from_offset: i64,
    ) -> Result<Cut> {
        let mut found = damage.survivors;
        let behind = segment.base_offset.saturating_add(1);
        let later_segments = self.later(behind, from_offset, &mut found)?;
        Ok(Cut {
            segment: Some(CutSegment {
                base_offset: segment.base_offset,
                position: damage.position,
                cut_bytes: damage.end.saturating_sub(damage.position),
            }),
            from_offset,
            reason: CutReason::Damage(damage.code),
            detail: damage.detail.clone(),
            survivors: found,
            later_segments,
        })
    }

    /// The cut where the operator asked for it.
    pub(super) fn asked_cut(
        &self,
        segment: &SegmentFiles,
        position: u64,
        from_offset: i64,
    ) -> Result<Cut> {
        let file = self.open(segment)?;
        let size = file.metadata()?.size_bytes;
        let mut source = self.scanner.reader(&*file, size);
        let mut found = survivors(&mut source, position, segment.base_offset, i64::MIN)?;
        let behind = segment.base_offset.saturating_add(1);
        let later_segments = self.later(behind, from_offset, &mut found)?;
        Ok(Cut {
            segment: Some(CutSegment {
                base_offset: segment.base_offset,
                position,
                cut_bytes: size.saturating_sub(position),
            }),
            from_offset,
            reason: CutReason::Asked,
            detail: "the operator named this place".to_owned(),
            survivors: found,
            later_segments,
        })
    }

    /// The segments from a base on, and the whole batches in them.
    fn later(
        &self,
        from_base: i64,
        from_offset: i64,
        found: &mut Survivors,
    ) -> Result<Vec<(i64, u64)>> {
        let mut later = Vec::new();
        for next in self.inventory.segments.range(from_base..).map(|(_, segment)| segment) {
            let file = self.open(next)?;
            let size = file.metadata()?.size_bytes;
            let mut source = self.scanner.reader(&*file, size);
            let expected = from_offset.max(next.base_offset);
            let mut here = survivors(&mut source, 0, next.base_offset, expected)?;
            here.first_position = None;
            found.add(here);
            later.push((next.base_offset, size));
        }
        Ok(later)
    }

    /// Why a cut is not made, if it is not.
    pub(super) fn refuse_cut(&self, cut: &Cut) -> Option<Refusal> {
        let CutReason::Damage(code) = cut.reason else { return None };
        if self.options.truncate_to.is_some_and(|to| to <= cut.from_offset) {
            return None;
        }
        let place = self.place_of(cut);
        if code == Code::UnknownMagic {
            let reason = format!(
                "{place}: {}; a newer release may have written it. Name the place to cut with --truncate-to {}",
                cut.detail, cut.from_offset
            );
            return Some(Refusal { code, reason, loss: None });
        }
        if !cut.survivors.any() || self.options.allow_loss {
            return None;
        }
        let loss = cut.survivors.first_offset.zip(cut.survivors.end_offset);
        let what = match loss {
            Some((_, end)) => format!(
                "offsets {} to {} would be lost, {} among them",
                cut.from_offset,
                end.saturating_sub(1),
                whole_batches(cut.survivors.batches)
            ),
            None => "how much lies behind it cannot be told".to_owned(),
        };
        let reason = format!(
            "{place}: {}; {what}. Copy the partition from another replica, or cut it with --allow-loss",
            cut.detail
        );
        Some(Refusal {
            code,
            reason,
            loss: Some((cut.from_offset, loss.map_or(cut.from_offset, |(_, end)| end))),
        })
    }

    fn place_of(&self, cut: &Cut) -> String {
        cut.segment.as_ref().map_or_else(String::new, |segment| {
            format!(
                "{} at position {}, offset {}",
                FileName::live(segment.base_offset, FileRole::Log),
                segment.position,
                cut.from_offset
            )
        })
    }

    /// Writes the damage into the plan's findings.
    pub(super) fn report_cut(&mut self, segment: &SegmentFiles, cut: &Cut) {
        let CutReason::Damage(code) = cut.reason else { return };
        self.plan.problems.push(Problem {
            code,
            severity: Severity::Corrupt,
            file: segment.log.clone(),
            position: cut.segment.as_ref().map(|segment| segment.position),
            offset: Some(cut.from_offset),
            detail: cut.detail.clone(),
        });
    }

    /// Why a log whose offsets run backwards is left alone.
    pub(super) fn refuse_order(
        &self,
        segment: &SegmentFiles,
        trouble: &Trouble,
        next_offset: i64,
    ) -> Refusal {
        let (Trouble::Backwards { position, base_offset }
        | Trouble::Overlap { position, base_offset }) = *trouble
        else {
            return Refusal { code: Code::OffsetOrder, reason: String::new(), loss: None };
        };
        let why = if matches!(trouble, Trouble::Overlap { .. }) {
            "reaches into the next segment".to_owned()
        } else {
            format!("cannot follow offset {}", next_offset.saturating_sub(1))
        };
        let reason = format!(
            "{} at position {position}: the batch at offset {base_offset} {why}, and such a log cannot be indexed. \
             Name the place to cut with --truncate-to {next_offset}, or copy the partition from another replica",
            segment.log
        );
        Refusal { code: trouble.code().unwrap_or(Code::OffsetOrder), reason, loss: None }
    }

    /// Two segments that overlap.
    pub(super) fn overlap(&self, segment: &SegmentFiles) -> Halt {
        let reason = format!(
            "{}: begins at offset {}, but the segment before it reaches up to {}; copy the partition from another replica",
            segment.log,
            segment.base_offset,
            self.reached.saturating_sub(1)
        );
        Halt::Refused(Refusal { code: Code::SegmentOverlap, reason, loss: None })
    }

    /// The log ends before it starts: Kafka drops all of it.
    pub(super) fn start_beyond_end(&mut self, end: i64, log_start: i64) -> Result<Option<Halt>> {
        let detail =
            format!("the log start offset {log_start} lies behind the log end offset {end}");
        self.plan.problems.push(Problem {
            code: Code::LogStartBeyondEnd,
            severity: Severity::Corrupt,
            file: String::new(),
            position: None,
            offset: Some(log_start),
            detail: detail.clone(),
        });
        let first = self.inventory.segments.keys().next().copied().unwrap_or(log_start);
        let mut found = Survivors::default();
        let later_segments = self.later(i64::MIN, i64::MIN, &mut found)?;
        if found.any() && !self.options.allow_loss {
            let reason = format!(
                "{detail}; the offsets {first} to {} that are there would be dropped. Allow it with --allow-loss",
                end.saturating_sub(1)
            );
            let code = Code::LogStartBeyondEnd;
            return Ok(Some(Halt::Refused(Refusal { code, reason, loss: Some((first, end)) })));
        }
        self.plan.cut = Some(Cut {
            segment: None,
            from_offset: first,
            reason: CutReason::Damage(Code::LogStartBeyondEnd),
            detail,
            survivors: found,
            later_segments,
        });
        // What was to be made for those segments is not needed any more.
        let mut kept = Vec::new();
        for action in std::mem::take(&mut self.plan.actions) {
            match &action {
                Action::Write { name, staged, .. } => self.stage.forget(name, staged)?,
                Action::Shorten { .. } => {}
                Action::Remove { .. } | Action::Rename { .. } => kept.push(action),
            }
        }
        self.plan.actions = kept;
        Ok(None)
    }

    /// A log without segments begins with an empty one.
    pub(super) fn start_empty(&mut self, log_start: i64) -> Result<()> {
        for role in [FileRole::Log, FileRole::OffsetIndex, FileRole::TimeIndex] {
            let name = FileName::live(log_start, role).format();
            let staged = self.stage.put(&name, Vec::new())?;
            self.plan.actions.push(Action::Write {
                name,
                staged,
                why: "the first segment",
                in_place: false,
            });
        }
        self.epochs.clear();
        self.book.clear(&mut self.stage, log_start)
    }

    /// Where the log ends: behind the last batch of its last segment.
    pub(super) fn end_of_log(&mut self, last: i64, need: &Need) -> Result<ControlFlow<Halt, i64>> {
        let was_read = need.epochs
            || need.reindex.contains(&last)
            || need.tail_from.is_some_and(|from| last >= from);
        if was_read {
            return Ok(ControlFlow::Continue(self.reached.max(last)));
        }
        let inventory = self.inventory;
        let Some(segment) = inventory.segments.get(&last) else {
            return Ok(ControlFlow::Continue(last));
        };
        let (next, end) = self.next_offset_of(segment)?;
        if end.stop == Stop::End {
            return Ok(ControlFlow::Continue(next));
        }
        // Garbage at the end of a log that was stopped cleanly: Kafka could not load it.
        Ok(ControlFlow::Break(Halt::Again(Need { tail_from: Some(last), ..need.clone() })))
    }

    /// Brings the producer state to an offset, as a new state manager would.
    pub(super) fn rebuild_producers(
        &mut self,
        need: &Need,
        upto: i64,
        log_start: i64,
    ) -> Result<Option<Halt>> {
        let inventory = self.inventory;
        let (storage, scanner) = (self.storage, self.scanner);
        let bases = self.bases();
        let mut broken = None;
        let outcome =
            self.book.rebuild(&mut self.stage, &bases, log_start, upto, |replay, state| {
                let Some(segment) = inventory.segments.get(&replay.base_offset) else {
                    return Ok(());
                };
                let path = inventory.dir.join(&segment.log);
                let file = storage.open(&path, crate::io::OpenMode::Read)?;
                let size = file.metadata()?.size_bytes;
                let each = |fact: &Fact<'_>| {
                    if fact.header.base_offset >= replay.to_offset {
                        return ControlFlow::Break(());
                    }
                    if fact.header.last_offset() >= replay.from_offset
                        && let Some(event) = ProducerEvent::of_batch(fact.header, fact.control)
                    {
                        // What the state does not allow says nothing to it; the tail counts such batches.
                        let _ = state.apply(&event);
                    }
                    ControlFlow::Continue(())
                };
                let end = scanner.scan(&*file, size, 0, replay.base_offset, each)?;
                if end.stop == Stop::End || end.stop == Stop::Visitor {
                    return Ok(());
                }
                broken = Some(replay.base_offset);
                Err(Error::new(Kind::Conflict, "a trusted segment is damaged").in_file(&path))
            });
        match (outcome, broken) {
            (Ok(()), _) => Ok(None),
            // Seen before: then it is the damage at which the log was cut, and what lies before it was applied.
            (Err(_), Some(base)) if need.tail_from.is_none_or(|tail| tail > base) => {
                Ok(Some(Halt::Again(Need { tail_from: Some(base), ..need.clone() })))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The facts of the partition as it will be.
    pub(super) fn tell_outcome(&mut self, bases: &BTreeSet<i64>, start: i64, end: i64) {
        let producers = &self.book.state;
        let kept =
            self.inventory.segments.values().filter(|segment| bases.contains(&segment.base_offset));
        let log_bytes: u64 = kept.map(|segment| segment.log_size_bytes).sum();
        let cut = self.plan.cut.as_ref().and_then(|cut| cut.segment.as_ref());
        let outcome = &mut self.plan.outcome;
        *outcome = Outcome {
            log_start_offset: start,
            log_end_offset: end,
            last_stable_offset: producers.first_undecided_offset().unwrap_or(end).min(end),
            epochs: self.epochs.entries().to_vec(),
            producers: producers.producers().len(),
            segments: bases.len(),
            log_bytes: log_bytes.saturating_sub(cut.map_or(0, |cut| cut.cut_bytes)),
            ..outcome.clone()
        };
    }
}
