//! How fast is siltstone beside Kafka's own classes and beside what the machine could do? All in
//! one run.
//!
//! ```text
//! cargo run --release -p siltstone-benches --bin compare [-- OPTIONS] [ROW...]
//!
//!   ROW...            only rows whose name holds one of these words; printed and not written
//!   --quick           small data and few rounds, to see that all runs; printed and not written
//!   --without-kafka   do not run Kafka's classes (they need Java 17, Maven and 2 GiB of memory)
//!   --work DIR        where the data is made (about 15 GiB; else in the temporary directory)
//! ```
//!
//! Without options the table replaces the one in docs/PERFORMANCE.md.

mod append;
mod bench;
mod compact;
mod expiry;
mod index;
mod kafka;
mod load;
mod locate;
mod memory;
mod open;
mod rebuild;
mod recover;
mod replica;
mod state;
mod table;
mod tier;
mod upload;
mod verify;

use std::path::PathBuf;

use siltstone_benches::{Result, machine};

use crate::bench::Bench;
use crate::table::Row;

fn main() -> Result<()> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    if let Some((open::MEMORY_OF, rest)) =
        all.split_first().map(|(word, rest)| (word.as_str(), rest))
    {
        return open::tell_memory(rest);
    }
    let mut bench = Bench::new(std::env::temp_dir().join("siltstone-compare"));
    let mut with_kafka = true;
    let mut args = all.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => bench.is_quick = true,
            "--without-kafka" => with_kafka = false,
            "--work" => {
                bench.work = args.next().map(PathBuf::from).ok_or("--work needs a folder")?
            }
            "--help" => {
                println!("see the head of benches/src/bin/compare/main.rs");
                return Ok(());
            }
            option if option.starts_with('-') => return Err(format!("unknown: {option}").into()),
            word => bench.words.push(word.to_owned()),
        }
    }
    // Left over from a run that was cut short.
    bench.clear_all()?;
    bench.clear()?;
    siltstone::io::map::guard_process()?;
    if with_kafka {
        bench.kafka = kafka::run(&bench)?;
    }
    let mut rows: Vec<Row> = Vec::new();
    for group in [
        recover::rows,
        verify::rows,
        state::rows,
        append::rows,
        locate::rows,
        index::rows,
        replica::rows,
        load::rows,
        rebuild::rows,
        upload::rows,
        expiry::rows,
        open::rows,
        memory::rows,
        compact::rows,
        tier::rows,
    ] {
        rows.extend(group(&bench)?);
        bench.clear()?;
    }
    bench.clear_all()?;
    let table = table::format(&rows, &bench.kafka.waited());
    println!("\n{table}");
    if bench.is_quick || !bench.words.is_empty() {
        return Ok(());
    }
    table::replace(&machine::describe()?, &table)
}
