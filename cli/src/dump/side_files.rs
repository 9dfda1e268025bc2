//! Prints the files beside the logs: indexes, producer snapshots, leader epochs, checkpoints.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use siltstone::index::{OffsetEntries, TimeEntries, TxnEntries};
use siltstone::io::{File, OpenMode, Storage};
use siltstone::problem::{Code, Problem, Severity};
use siltstone::segment::FileRole;
use siltstone::state::checkpoint::parse_epochs;
use siltstone::state::{OffsetCheckpoint, Snapshot};
use siltstone::{Error, Kind, Result};

use super::printer::Printer;
use super::shown::Printable;
use crate::output::format_bytes;
use crate::time::format_ms;

/// No small file is larger; a snapshot of 20 million producers would be.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of an index that are read at a time: whole entries of every kind (8, 12 and 34 bytes).
const CHUNK_BYTES: usize = 408 * 160;

type Flow = Result<ControlFlow<()>>;

/// Prints an index.
pub(super) fn index(
    storage: &dyn Storage,
    path: &Path,
    role: FileRole,
    base_offset: i64,
    printer: &mut Printer,
) -> Flow {
    let file = storage.open(path, OpenMode::Read)?;
    let size = file.metadata()?.size_bytes;
    let entry_size = match role {
        FileRole::OffsetIndex => siltstone::index::offset::ENTRY_SIZE,
        FileRole::TimeIndex => siltstone::index::time::ENTRY_SIZE,
        _ => siltstone::index::txn::ENTRY_SIZE,
    };
    if begin(printer, path, size).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let walk = IndexWalk { role, base_offset, entry_size };
    let flow = walk.print(&*file, printer)?;
    let stray = size % u64::try_from(entry_size).unwrap_or(1);
    if flow.is_break() || stray == 0 {
        return Ok(flow);
    }
    let code = if role == FileRole::TxnIndex { Code::TxnindexSize } else { Code::IndexSize };
    let detail = format!("{stray} bytes are too few for an entry of {entry_size}");
    Ok(printer.print_problem(path, &problem(path, code, Some(size - stray), detail)))
}

struct IndexWalk {
    role: FileRole,
    base_offset: i64,
    entry_size: usize,
}

impl IndexWalk {
    /// Prints the entries; slots of zeros are counted, and printed only where an entry follows.
    fn print(&self, file: &dyn File, printer: &mut Printer) -> Flow {
        let mut buffer = vec![0; CHUNK_BYTES];
        let (mut position, mut slot, mut zeros) = (0_u64, 0_u64, 0_u64);
        loop {
            let read = file.read_at(&mut buffer, position)?;
            let chunk = buffer.get(..read).unwrap_or_default();
            for entry in chunk.chunks_exact(self.entry_size) {
                // The first slot may be that of a single record at the base offset: zeros, too.
                if slot > 0 && entry.iter().all(|byte| *byte == 0) {
                    zeros += 1;
                } else {
                    for unused in slot - zeros..slot {
                        let zero = vec![0; self.entry_size];
                        if self.print_entry(unused, &zero, printer).is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    zeros = 0;
                    if self.print_entry(slot, entry, printer).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                slot += 1;
            }
            position = position.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            if read < CHUNK_BYTES {
                return Ok(print_zeros(zeros, printer));
            }
        }
    }

    fn print_entry(&self, slot: u64, entry: &[u8], printer: &mut Printer) -> ControlFlow<()> {
        let line = &mut printer.line;
        line.begin(match self.role {
            FileRole::OffsetIndex => "index_entry",
            FileRole::TimeIndex => "timeindex_entry",
            _ => "txnindex_entry",
        });
        line.plain("slot", slot);
        let text = match self.role {
            FileRole::OffsetIndex => {
                let entries = OffsetEntries::new(entry, self.base_offset);
                let Some(entry) = entries.get(0) else { return ControlFlow::Continue(()) };
                line.plain("offset", entry.offset);
                line.plain("position", entry.position);
                format!("offset {:>12}  position {:>12}", entry.offset, entry.position)
            }
            FileRole::TimeIndex => {
                let entries = TimeEntries::new(entry, self.base_offset);
                let Some(entry) = entries.get(0) else { return ControlFlow::Continue(()) };
                line.plain("timestamp_ms", entry.timestamp_ms);
                line.plain("offset", entry.offset);
                format!("{}  offset {:>12}", format_ms(entry.timestamp_ms), entry.offset)
            }
            _ => {
                let entries = TxnEntries::new(entry);
                let (Some(txn), Some(version)) = (entries.get(0), entries.version(0)) else {
                    return ControlFlow::Continue(());
                };
                line.plain("version", version);
                line.plain("producer_id", txn.producer_id);
                line.plain("first_offset", txn.first_offset);
                line.plain("last_offset", txn.last_offset);
                line.plain("last_stable_offset", txn.last_stable_offset);
                format!(
                    "producer {:>12}  aborted {}..{}  last stable offset {}{}",
                    txn.producer_id,
                    txn.first_offset,
                    txn.last_offset,
                    txn.last_stable_offset,
                    if version == 0 { String::new() } else { format!("  version {version}") },
                )
            }
        };
        if printer.is_json {
            return printer.print_line();
        }
        let outcome = writeln!(printer.out, "{slot:>8}  {text}");
        printer.keep(outcome)
    }
}

fn print_zeros(zeros: u64, printer: &mut Printer) -> ControlFlow<()> {
    if zeros == 0 {
        return ControlFlow::Continue(());
    }
    if printer.is_json {
        printer.line.begin("unused");
        printer.line.plain("slots", zeros);
        return printer.print_line();
    }
    let outcome = writeln!(printer.out, "          {zeros} unused slots (zeros) at the end");
    printer.keep(outcome)
}

/// Prints a producer snapshot.
pub(super) fn snapshot(storage: &dyn Storage, path: &Path, printer: &mut Printer) -> Flow {
    let bytes = storage.read(path, FILE_BYTES_MAX)?;
    if begin(printer, path, u64::try_from(bytes.len()).unwrap_or(u64::MAX)).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let snapshot = match Snapshot::read(&bytes) {
        Ok(snapshot) => snapshot,
        Err(fault) => {
            let position = u64::try_from(fault.position).ok();
            let problem = problem(path, fault.code, position, fault.detail);
            return Ok(printer.print_problem(path, &problem));
        }
    };
    for entry in snapshot.iter() {
        let open = entry.in_transaction().then_some(entry.txn_first_offset);
        let flow = if printer.is_json {
            let line = &mut printer.line;
            line.begin("producer");
            line.plain("producer_id", entry.producer_id);
            line.plain("producer_epoch", entry.producer_epoch);
            line.plain("last_sequence", entry.last_sequence);
            line.plain("last_offset", entry.last_offset);
            line.plain("offset_delta", entry.offset_delta);
            line.plain("last_timestamp_ms", entry.last_timestamp);
            line.plain("coordinator_epoch", entry.coordinator_epoch);
            line.maybe("txn_first_offset", open);
            printer.print_line()
        } else {
            let outcome = writeln!(
                printer.out,
                "producer {:>12}  epoch {:>5}  last sequence {:>10}  last offset {:>12}  {}{}",
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_offset,
                format_ms(entry.last_timestamp),
                open.map_or_else(String::new, |first| format!("  open transaction from {first}")),
            );
            printer.keep(outcome)
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Prints a leader epoch checkpoint.
pub(super) fn epochs(storage: &dyn Storage, path: &Path, printer: &mut Printer) -> Flow {
    let Some(bytes) = small(storage, path, printer)? else { return Ok(ControlFlow::Break(())) };
    let entries = match parse_epochs(&bytes) {
        Ok(entries) => entries,
        Err(error) => return Ok(malformed(path, Code::EpochFile, &error, printer)),
    };
    for entry in entries {
        let flow = if printer.is_json {
            printer.line.begin("epoch");
            printer.line.plain("epoch", entry.epoch);
            printer.line.plain("start_offset", entry.start_offset);
            printer.print_line()
        } else {
            let (epoch, start) = (entry.epoch, entry.start_offset);
            let outcome = writeln!(printer.out, "epoch {epoch:>8}  from offset {start:>12}");
            printer.keep(outcome)
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Prints a checkpoint of offsets.
pub(super) fn offsets(storage: &dyn Storage, path: &Path, printer: &mut Printer) -> Flow {
    let Some(bytes) = small(storage, path, printer)? else { return Ok(ControlFlow::Break(())) };
    // A broker makes the file before it has anything to say.
    if bytes.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let checkpoint = match OffsetCheckpoint::parse(&bytes) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return Ok(malformed(path, Code::CheckpointFile, &error, printer)),
    };
    for entry in checkpoint.entries() {
        let flow = if printer.is_json {
            printer.line.begin("offset");
            printer.line.text("topic", &entry.topic);
            printer.line.plain("partition", entry.partition);
            printer.line.plain("offset", entry.offset);
            printer.print_line()
        } else {
            let (offset, topic) = (entry.offset, Printable(&entry.topic));
            let outcome = writeln!(printer.out, "{offset:>12}  {topic}-{}", entry.partition);
            printer.keep(outcome)
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Prints a small file of lines as it is.
pub(super) fn text(storage: &dyn Storage, path: &Path, printer: &mut Printer) -> Flow {
    let Some(bytes) = small(storage, path, printer)? else { return Ok(ControlFlow::Break(())) };
    let text = String::from_utf8_lossy(&bytes);
    for line in text.lines() {
        let flow = if printer.is_json {
            printer.line.begin("line");
            printer.line.text("text", line);
            printer.print_line()
        } else {
            let outcome = writeln!(printer.out, "{}", Printable(line));
            printer.keep(outcome)
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Reads a small file and prints its name; `None` when standard output is gone.
fn small(storage: &dyn Storage, path: &Path, printer: &mut Printer) -> Result<Option<Vec<u8>>> {
    let bytes = storage.read(path, FILE_BYTES_MAX)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    Ok(begin(printer, path, size).is_continue().then_some(bytes))
}

fn begin(printer: &mut Printer, path: &Path, size_bytes: u64) -> ControlFlow<()> {
    if printer.is_json {
        printer.line.begin("file");
        printer.line.text("partition", &printer.partition);
        printer.line.text("path", &path.to_string_lossy());
        printer.line.plain("size_bytes", size_bytes);
        return printer.print_line();
    }
    let outcome = writeln!(printer.out, "{}: {}", path.display(), format_bytes(size_bytes));
    printer.keep(outcome)
}

fn malformed(path: &Path, code: Code, error: &Error, printer: &mut Printer) -> ControlFlow<()> {
    if !matches!(error.kind(), Kind::Corrupt | Kind::Unsupported) {
        return printer.fail(error);
    }
    let problem = problem(path, code, error.position(), error.message().to_owned());
    printer.print_problem(path, &problem)
}

fn problem(path: &Path, code: Code, position: Option<u64>, detail: String) -> Problem {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Problem { code, severity: Severity::Repairable, file, position, offset: None, detail }
}
