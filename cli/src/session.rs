//! What all verbs share in one run: the disk, the way files are read, and where messages go.

use std::fmt::Display;
use std::io::Write;

use clap::{Args, ValueEnum};
use siltstone::Result;
use siltstone::io::{Disk, MapMode, Storage};

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// How to talk to the disk: `auto` takes io_uring where the kernel allows it, else system calls.
    ///
    /// Both give the same bytes. Naming one is for comparing them, and for kernels on which one misbehaves.
    #[arg(
        long,
        global = true,
        env = "SILTSTONE_IO",
        value_enum,
        default_value = "auto",
        hide_env_values = true,
        help_heading = "Options of every verb"
    )]
    pub(crate) io: IoChoice,

    /// No progress on standard error.
    #[arg(long, short, global = true, help_heading = "Options of every verb")]
    pub(crate) quiet: bool,
}

/// How to talk to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoChoice {
    /// io_uring where the kernel allows it, else system calls.
    #[default]
    Auto,
    /// io_uring; an error where it is not allowed.
    Uring,
    /// Plain system calls.
    Syscalls,
}

/// One run of the command line.
#[derive(Debug)]
pub(crate) struct Session {
    /// The disk.
    pub(crate) disk: Disk,
    /// Whether files are read through maps.
    pub(crate) maps: MapMode,
    /// Whether progress is not wanted.
    pub(crate) quiet: bool,
}

impl Session {
    /// Prepares the process: maps are guarded, so that a file that shrinks under one is an error and no signal.
    pub(crate) fn start(args: &SessionArgs) -> Result<Session> {
        let maps = match siltstone::io::map::guard_process() {
            Ok(()) => MapMode::Always,
            Err(_) => MapMode::Never,
        };
        Ok(Session { disk: Disk::new(), maps, quiet: args.quiet })
    }

    /// The disk as the engine takes it.
    pub(crate) fn storage(&self) -> &dyn Storage {
        &self.disk
    }
}

/// Says on standard error what could not be done.
pub(crate) fn complain(error: &dyn Display) {
    // Nobody is left to tell when this fails, too.
    let _ = writeln!(std::io::stderr(), "siltstone: {error}");
}
