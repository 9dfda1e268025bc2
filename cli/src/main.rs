//! `siltstone`: look at, check and repair the log directories of a Kafka broker.
//!
//! Every verb stands in a file of its own, with its arguments and a `run` that gives the exit code;
//! what it says about the bytes comes from the engine. Standard output is the result, standard
//! error is progress and errors.

mod completions;
mod diff;
mod dump;
mod given;
mod location;
mod ls;
mod output;
mod plan_uploads;
mod progress;
mod rebuild_aux;
mod recover;
mod remote;
mod report;
mod scenario;
mod session;
mod settings;
mod side_by_side;
mod stat;
mod target;
mod time;
mod txns;
mod verify;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::session::{Session, SessionArgs};

/// Look at, check and repair the log directories of a Kafka broker.
///
/// PATH is always a file of a partition, a partition directory (such as /var/lib/kafka/orders-0), a
/// log directory (an entry of log.dirs), or several of them. Only `recover` and `rebuild-aux`
/// write; every other verb only reads, and works beside a running broker and on read-only media.
///
/// Exit codes: 0 nothing wrong, 1 problems found, 2 could not look (bad arguments, too). The result
/// goes to standard output, progress and errors to standard error.
#[derive(Debug, Parser)]
#[command(name = "siltstone", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    session: SessionArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Verify(verify::VerifyArgs),
    Recover(Box<recover::RecoverArgs>),
    RebuildAux(rebuild_aux::RebuildAuxArgs),
    Ls(ls::LsArgs),
    Dump(dump::DumpArgs),
    Stat(stat::StatArgs),
    Txns(txns::TxnsArgs),
    Diff(diff::DiffArgs),
    Scenario(scenario::ScenarioArgs),
    PlanUploads(Box<plan_uploads::PlanUploadsArgs>),
    Completions(completions::CompletionsArgs),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let session = match Session::start(&arguments.session) {
        Ok(session) => session,
        Err(error) => {
            session::complain(&error);
            return Outcome::CouldNotLook.into();
        }
    };
    match run(&arguments.verb, &session) {
        Ok(outcome) => outcome.into(),
        // Whoever read our output has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            session::complain(&format_args!("standard output: {error}"));
            Outcome::CouldNotLook.into()
        }
    }
}

/// Runs the verb; an error is one of standard output alone.
fn run(verb: &Verb, session: &Session) -> std::io::Result<Outcome> {
    let outcome = match verb {
        Verb::Verify(args) => verify::run(args, session)?,
        Verb::Recover(args) => recover::run(args, session)?,
        Verb::RebuildAux(args) => rebuild_aux::run(args, session)?,
        Verb::Ls(args) => ls::run(args, session)?,
        Verb::Dump(args) => dump::run(args, session)?,
        Verb::Stat(args) => stat::run(args, session)?,
        Verb::Txns(args) => txns::run(args, session)?,
        Verb::Diff(args) => diff::run(args, session)?,
        Verb::Scenario(args) => scenario::run(args)?,
        Verb::PlanUploads(args) => plan_uploads::run(args, session)?,
        Verb::Completions(args) => completions::run(args)?,
    };
    std::io::stdout().flush()?;
    Ok(outcome)
}

/// How it ended, in the order of what outweighs what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing is wrong.
    #[default]
    Fine,
    /// Problems were found.
    Problems,
    /// Something could not be looked at.
    CouldNotLook,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(match outcome {
            Outcome::Fine => 0,
            Outcome::Problems => 1,
            Outcome::CouldNotLook => 2,
        })
    }
}
