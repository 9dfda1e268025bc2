//! `siltstone scenario`: what the rules of remote storage say of numbers that somebody wrote down.

mod answers;
mod follower;
mod input;
mod questions;
mod retention;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use siltstone::{Error, Kind, Result};

use crate::Outcome;
use crate::output::{print_json, stdout};
use crate::session::complain;
use crate::time::now_ms;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Decide about remote storage from numbers in a JSON file: what is uploaded, whose a remote
/// segment is, what retention deletes, where a new follower starts.
///
/// Nothing but the file is looked at. Which questions are answered is decided by the keys that it
/// has; what is missing has Kafka's default. Keys that no question was asked with are named on
/// stderr.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone scenario question.json
      the answers, one a line
  echo '{\"leader\": {\"local_log_start\": 200, \"log_end\": 500, \"highest_remote_offset\": 299}}' |
      siltstone scenario --json -
      where a new follower of that leader starts

Questions, and the keys that ask them:
  highest remote offset   epochs [[epoch,start]], remote [{id,start,end,epochs}], log_end
  lineage                 the same with log_start
  retention               remote [{..,size,state,max_timestamp}], retention_bytes, retention_ms
  local retention         retention_ms, retention_bytes, local_retention_ms, local_retention_bytes
  where a follower starts leader {log_start,local_log_start,log_end,highest_remote_offset},
                          follower {log_end}
  which remote segment    epochs, start_offset: the leader epoch of what is before it

Exit codes: 0 answered, 2 the file cannot be read, or asks nothing.")]
pub(crate) struct ScenarioArgs {
    /// The file with the numbers; `-` for standard input.
    #[arg(value_name = "FILE.json")]
    file: PathBuf,

    /// One JSON object on one line.
    #[arg(long)]
    json: bool,
}

/// Answers what the file asks.
pub(crate) fn run(args: &ScenarioArgs) -> std::io::Result<Outcome> {
    let read = read(&args.file).and_then(|bytes| answers::answer(&bytes, now_ms()));
    let (answers, unused) = match read {
        Ok(answered) => answered,
        Err(error) => {
            complain(&error.in_file(&args.file));
            return Ok(Outcome::CouldNotLook);
        }
    };
    for key in unused {
        let file = args.file.display();
        complain(&format_args!("{file}: no question was asked with the key {key}"));
    }
    let mut out = stdout();
    if args.json {
        let kind = ("type".to_owned(), Value::from("scenario"));
        let line = std::iter::once(kind).chain(answers).collect();
        print_json(&mut out, &Value::Object(line))?;
    } else {
        for (key, value) in &answers {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(out, "{}  {value}", key.replace('_', " "))?;
        }
    }
    out.flush()?;
    Ok(Outcome::Fine)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more tells a file that is too large from one that just fits.
    let mut take = |source: &mut dyn Read| source.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    let outcome = if path == Path::new("-") {
        take(&mut std::io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(|mut file| take(&mut file))
    };
    outcome.map_err(|error| Error::io("read", path, error))?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read <= FILE_BYTES_MAX) {
        return Ok(bytes);
    }
    let why = format!("larger than the {} MiB that a scenario may have", FILE_BYTES_MAX >> 20);
    Err(Error::new(Kind::Limit, why))
}

#[cfg(test)]
mod tests;
