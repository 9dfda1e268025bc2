//! How long does something take on a machine that others use, too?
//!
//! A round knows how long its thread waited for a core, and the rounds that waited least are kept.
//! Nothing is taken off: what counts is the time by the clock. Work on several threads is judged by
//! the first thread alone.

use std::time::Instant;

use crate::Result;

/// Rounds that waited less than this share of their time count as undisturbed.
const UNDISTURBED: f64 = 0.02;
/// No more rounds than wanted are run once this many seconds have passed.
const PATIENCE_S: f64 = 12.0;

/// Runs from its start to its stop.
#[derive(Debug)]
pub struct Watch {
    waited_ns: u64,
    started: Instant,
}

impl Watch {
    /// Starts.
    #[must_use]
    pub fn start() -> Self {
        Watch { waited_ns: waited_ns(), started: Instant::now() }
    }

    /// What has passed.
    #[must_use]
    pub fn stop(self) -> Lap {
        let whole_s = self.started.elapsed().as_secs_f64();
        let waited_s = std::time::Duration::from_nanos(waited_ns() - self.waited_ns).as_secs_f64();
        Lap { seconds: whole_s, waited: waited_s / whole_s.max(1e-9) }
    }
}

/// One measured stretch.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    /// What it took.
    pub seconds: f64,
    /// The share of it that the thread waited for a core.
    pub waited: f64,
}

/// What a thing took, over several rounds.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The median in seconds.
    pub median_s: f64,
    /// The shortest.
    pub min_s: f64,
    /// The longest.
    pub max_s: f64,
    /// The largest share of a round in which its thread waited for a core.
    pub waited: f64,
}

/// Runs `round` once to warm up, then up to three times as often as wanted, until enough rounds
/// were undisturbed.
///
/// # Errors
/// Those of `round`.
pub fn rounds(wanted: usize, mut round: impl FnMut() -> Result<Lap>) -> Result<Timing> {
    round()?;
    let begun = Instant::now();
    let mut laps: Vec<Lap> = Vec::new();
    while laps.len() < wanted * 3 {
        let enough = laps.iter().filter(|lap| lap.waited < UNDISTURBED).count() >= wanted;
        if enough || (laps.len() >= wanted && begun.elapsed().as_secs_f64() > PATIENCE_S) {
            break;
        }
        laps.push(round()?);
    }
    Ok(Timing::of(laps, wanted))
}

/// Runs `round` once to warm up and then as often as wanted: work that takes seconds to put back,
/// or that several threads do.
///
/// # Errors
/// Those of `round`.
pub fn few_rounds(wanted: usize, mut round: impl FnMut() -> Result<Lap>) -> Result<Timing> {
    round()?;
    let laps: Result<Vec<Lap>> = (0..wanted).map(|_| round()).collect();
    Ok(Timing::of(laps?, wanted))
}

impl Timing {
    /// Of the `wanted` laps that waited least.
    #[must_use]
    pub fn of(mut laps: Vec<Lap>, wanted: usize) -> Self {
        laps.sort_by(|a, b| a.waited.total_cmp(&b.waited));
        laps.truncate(wanted);
        let waited = laps.last().map_or(0.0, |lap| lap.waited);
        laps.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let at = |slot: usize| laps.get(slot).map_or(f64::NAN, |lap| lap.seconds);
        Timing {
            median_s: at(laps.len() / 2),
            min_s: at(0),
            max_s: at(laps.len().saturating_sub(1)),
            waited,
        }
    }
}

/// How long this thread has waited on a run queue since it began.
fn waited_ns() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
