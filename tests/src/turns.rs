//! Lives of a log that chance picks: what is drawn, and what is done for it. Beside the log stands
//! its model.

use siltstone::io::SimDisk;

use crate::model::{Run, Step, config, remote_config};

/// One thing to do; numbers are taken relative to what the log holds then.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// What is done, of [`KINDS`].
    pub kind: u8,
    /// How, or where.
    pub number: u8,
}

/// Kinds of things to do.
pub const KINDS: u8 = 31;

/// What comes of a draw.
#[derive(Debug)]
enum Turn {
    Step(Step),
    /// The power goes, and spares what this seed says.
    Crash(u64),
}

fn turn(draw: Draw, run: &Run) -> Turn {
    let number = i64::from(draw.number);
    let producer = number % 4 + 1;
    let (start, end) = (run.model.start, run.model.end);
    // Often near the end, sometimes anywhere.
    let within =
        if number % 2 == 0 { end - (number / 2) % 8 } else { start + number % (end - start + 1) };
    let within = within.clamp(start, end);
    let open = run.log().with_producers(|state| {
        state.producer(producer).is_some_and(|producer| producer.in_transaction())
    });
    let is_open = open.expect("a log");
    Turn::Step(match draw.kind % KINDS {
        0..=6 => {
            Step::Append { batches: usize::from(draw.number % 3 + 1), producer: 0, txn: false }
        }
        // Producers 1 and 2 write transactions, 3 and 4 do not.
        7..=10 => Step::Append { batches: 1, producer, txn: producer <= 2 },
        11 if is_open => Step::End { producer, abort: draw.number.is_multiple_of(2) },
        11 => Step::Roll,
        12 => Step::Epoch(run.model.epoch + i32::from(draw.number % 2)),
        13 => Step::Roll,
        14 | 15 => Step::Flush,
        16 | 17 => Step::Truncate(within.max(run.model.local_start)),
        18 if draw.number < 40 => Step::StartAt(end + number),
        18 => Step::DeleteFiles,
        19 => Step::RaiseStart(within.min(run.model.high_watermark.max(start))),
        20 => Step::DeleteOld,
        21 => Step::Reopen,
        22 => Step::DeleteFiles,
        23 => Step::RetainBytes(number * 8),
        24 => Step::RetainFrom(within),
        25 | 26 => Step::Uploaded(within - 1),
        27 | 28 => Step::Lag(true),
        29 => Step::Lag(false),
        _ => return Turn::Crash(u64::from(draw.number)),
    })
}

/// Lives by draws, of a log with remote storage or without; it is held against its model after each
/// of them.
///
/// # Panics
///
/// When they differ.
pub fn live(draws: impl IntoIterator<Item = Draw>, has_remote: bool) {
    let config = if has_remote { remote_config() } else { config() };
    let mut run = Run::with(SimDisk::new(), config);
    run.open().expect("a new log");
    for (number, draw) in draws.into_iter().enumerate() {
        match turn(draw, &run) {
            Turn::Step(step) => {
                let when = format!("turn {number}, {step:?}");
                run.step(&step).unwrap_or_else(|error| panic!("{when}: {error}"));
                run.check_same(&when);
            }
            Turn::Crash(seed) => {
                let when = format!("turn {number}, power cut {seed}");
                run = run.after_crash(seed);
                run.open().unwrap_or_else(|error| panic!("{when}: {error}"));
                run.check_survived(&when);
                run.go_on();
            }
        }
    }
    run.step(&Step::Reopen).expect("a clean stop");
    run.check_same("at the end");
    run.log.take().expect("a log").close().expect("a clean stop");
    run.check_files("at the end");
}
