//! Prints batches and records as they are read.

use std::io::{BufWriter, StdoutLock, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use siltstone::problem::{Code, Problem};
use siltstone::record::codec::Codec;
use siltstone::record::scan::ScannedBatch;
use siltstone::record::{BatchHeader, Record, TimestampType};
use siltstone::{Error, log::LogReader};

use super::decode::{Decoded, Topic, decode};
use super::line::Line;
use super::shown::Shown;
use crate::Outcome;
use crate::output::format_bytes;
use crate::session::complain;
use crate::time::format_ms;

/// Standard output, and how it went so far.
#[derive(Debug)]
pub(super) struct Printer {
    pub(super) out: BufWriter<StdoutLock<'static>>,
    pub(super) is_json: bool,
    pub(super) is_full: bool,
    pub(super) line: Line,
    pub(super) outcome: Outcome,
    /// What went wrong with standard output.
    pub(super) error: Option<std::io::Error>,
    /// The partition whose files are printed, by its folder's name.
    pub(super) partition: String,
    /// Whose records they are.
    pub(super) topic: Topic,
    /// The log that a running broker writes to: its tail may be unfinished.
    pub(super) growing: Option<PathBuf>,
    /// Where the batch of the next records begins.
    pub(super) position: u64,
}

impl Printer {
    /// Keeps an error of standard output, and ends the reading with it.
    pub(super) fn keep(&mut self, outcome: std::io::Result<()>) -> ControlFlow<()> {
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error.get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Prints the line that was built.
    pub(super) fn print_line(&mut self) -> ControlFlow<()> {
        let outcome = self.out.write_all(self.line.end().as_bytes());
        self.keep(outcome)
    }

    /// Says what could not be read.
    pub(super) fn fail(&mut self, error: &Error) -> ControlFlow<()> {
        // What was printed so far stands in front of the complaint.
        let flushed = self.out.flush();
        complain(error);
        self.outcome = Outcome::CouldNotLook;
        self.keep(flushed)
    }

    /// Prints a problem of a file.
    pub(super) fn print_problem(&mut self, path: &Path, problem: &Problem) -> ControlFlow<()> {
        let is_growing = self.growing.as_deref() == Some(path)
            && matches!(problem.code, Code::TornBatch | Code::ZeroTail);
        if !is_growing {
            self.outcome = self.outcome.max(Outcome::Problems);
        }
        if self.is_json {
            self.line.begin(if is_growing { "unfinished" } else { "problem" });
            self.line.text("path", &path.to_string_lossy());
            self.line.text("code", problem.code.as_str());
            self.line.maybe("position", problem.position);
            self.line.maybe("offset", problem.offset);
            self.line.text("detail", &problem.detail);
            return self.print_line();
        }
        let outcome = if is_growing {
            writeln!(self.out, "unfinished (a broker is writing): {problem}")
        } else {
            writeln!(self.out, "PROBLEM: {}: {problem}", path.parent().unwrap_or(path).display())
        };
        self.keep(outcome)
    }

    fn print_batch(&mut self, batch: &ScannedBatch<'_>) -> std::io::Result<()> {
        let header = batch.header;
        let out = &mut self.out;
        write!(
            out,
            "batch {}..{} at {}: {}, ",
            header.base_offset,
            header.last_offset(),
            batch.position,
            format_bytes(u64::from(header.size_bytes))
        )?;
        if header.magic < 2 {
            write!(out, "magic {}, {}", header.magic, codec_name(header))?;
        } else {
            write!(
                out,
                "{} {}, {}, epoch {}",
                header.count,
                if header.count == 1 { "record" } else { "records" },
                codec_name(header),
                header.leader_epoch
            )?;
        }
        if header.max_timestamp >= 0 {
            write!(
                out,
                ", {} {}",
                time_name(header.timestamp_type()),
                format_ms(header.max_timestamp)
            )?;
        }
        if header.has_producer_id() {
            write!(
                out,
                ", producer {} epoch {} sequence {}..{}",
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence()
            )?;
        }
        for (is_set, name) in
            [(header.is_transactional(), "transactional"), (header.is_control(), "control")]
        {
            if is_set {
                write!(out, ", {name}")?;
            }
        }
        if let Some(horizon) = header.delete_horizon_ms() {
            write!(out, ", delete horizon {}", format_ms(horizon))?;
        }
        writeln!(out)
    }

    fn batch_line(&mut self, batch: &ScannedBatch<'_>) {
        let header = batch.header;
        let line = &mut self.line;
        line.begin("batch");
        line.text("partition", &self.partition);
        line.plain("position", batch.position);
        line.plain("size_bytes", header.size_bytes);
        line.plain("base_offset", header.base_offset);
        line.plain("last_offset", header.last_offset());
        line.maybe("records", (header.magic >= 2).then_some(header.count));
        line.plain("leader_epoch", header.leader_epoch);
        line.plain("magic", header.magic);
        line.plain("crc", header.crc);
        line.text("codec", codec_name(header));
        line.text("timestamp_type", time_name(header.timestamp_type()));
        line.plain("base_timestamp_ms", header.base_timestamp);
        line.plain("max_timestamp_ms", header.max_timestamp);
        line.plain("producer_id", header.producer_id);
        line.plain("producer_epoch", header.producer_epoch);
        line.plain("base_sequence", header.base_sequence);
        line.plain("last_sequence", header.last_sequence());
        line.plain("transactional", header.is_transactional());
        line.plain("control", header.is_control());
        line.maybe("delete_horizon_ms", header.delete_horizon_ms());
    }

    fn print_record(
        &mut self,
        record: &Record<'_>,
        decoded: Option<&Decoded>,
    ) -> std::io::Result<()> {
        let out = &mut self.out;
        let full = self.is_full;
        write!(out, "{:>12}  {}", record.offset, format_ms(record.timestamp_ms))?;
        if let Some(decoded) = decoded {
            if let Some(key) = decoded.key.as_ref().filter(|key| !key.text.is_empty()) {
                write!(out, "  {}", key.text)?;
            }
            write!(out, "  {}", decoded.value.text)?;
            if let Some(error) = &decoded.error {
                write!(out, "  PROBLEM: {error}")?;
            }
        } else {
            let (key, value) = (record.key, record.value);
            let (key, value) = (Shown { bytes: key, full }, Shown { bytes: value, full });
            write!(out, "  key {key}  value {value}")?;
        }
        for (at, (name, value)) in record.headers.enumerate() {
            let (name, value) = (Shown { bytes: Some(name), full }, Shown { bytes: value, full });
            write!(out, "{}{name}={value}", if at == 0 { "  headers " } else { ", " })?;
        }
        writeln!(out)
    }

    fn record_line(
        &mut self,
        header: &BatchHeader,
        record: &Record<'_>,
        decoded: Option<&Decoded>,
    ) {
        let line = &mut self.line;
        line.begin("record");
        line.text("partition", &self.partition);
        line.plain("offset", record.offset);
        line.plain("timestamp_ms", record.timestamp_ms);
        line.plain("batch_position", self.position);
        line.plain("producer_id", header.producer_id);
        line.plain("sequence", record.sequence);
        match decoded {
            None => {
                line.bytes("key", record.key);
                line.bytes("value", record.value);
            }
            Some(decoded) => {
                let key = decoded.key.as_ref().map_or("null", |key| key.json.as_str());
                line.json("decoded_key", key);
                line.json("decoded_value", &decoded.value.json);
                if let Some(error) = &decoded.error {
                    line.text("error", error);
                }
            }
        }
        line.pairs("headers", record.headers);
    }
}

impl LogReader for Printer {
    fn file(&mut self, path: &Path, base_offset: i64, size_bytes: u64) -> ControlFlow<()> {
        if self.is_json {
            self.line.begin("file");
            self.line.text("partition", &self.partition);
            self.line.text("path", &path.to_string_lossy());
            self.line.plain("base_offset", base_offset);
            self.line.plain("size_bytes", size_bytes);
            return self.print_line();
        }
        let size = format_bytes(size_bytes);
        let outcome = writeln!(self.out, "{}: {size}", path.display());
        self.keep(outcome)
    }

    fn batch(&mut self, batch: &ScannedBatch<'_>) -> ControlFlow<()> {
        self.position = batch.position;
        if self.is_json {
            self.batch_line(batch);
            return self.print_line();
        }
        let outcome = self.print_batch(batch);
        self.keep(outcome)
    }

    fn record(&mut self, header: &BatchHeader, record: &Record<'_>) -> ControlFlow<()> {
        let decoded = decode(self.topic, header, record);
        if decoded.as_ref().is_some_and(|decoded| decoded.error.is_some()) {
            self.outcome = self.outcome.max(Outcome::Problems);
        }
        if self.is_json {
            self.record_line(header, record, decoded.as_ref());
            return self.print_line();
        }
        let outcome = self.print_record(record, decoded.as_ref());
        self.keep(outcome)
    }

    fn problem(&mut self, path: &Path, problem: Problem) -> ControlFlow<()> {
        self.print_problem(path, &problem)
    }

    fn failed(&mut self, path: &Path, error: Error) -> ControlFlow<()> {
        self.fail(&error.in_file(path))
    }
}

fn codec_name(header: &BatchHeader) -> &'static str {
    Codec::from_id(header.codec_id()).map_or("unknown", Codec::as_str)
}

fn time_name(timestamp_type: TimestampType) -> &'static str {
    match timestamp_type {
        TimestampType::None => "none",
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}
