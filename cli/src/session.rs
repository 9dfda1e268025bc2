//! What all verbs share in one run: the disk, the way files are read, and where messages go.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use siltstone::Result;
use siltstone::dir::files::LOCK_FILE;
use siltstone::io::{MapMode, Storage, open_disk};

use crate::settings::parse_setting;

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// How to talk to the disk: `auto` takes io_uring where it pays and the kernel allows it, else
    /// system calls.
    ///
    /// Both give the same bytes. Naming one is for comparing them, and for kernels on which one
    /// misbehaves; `uring` is an error where the kernel does not allow it.
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

    /// A setting of the object store that a URL names, such as
    /// aws_endpoint=http://localhost:9000.
    ///
    /// Address and credentials are taken from the environment as the store's own tools have them
    /// (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS,
    /// AZURE_STORAGE_ACCOUNT_NAME and so on); what is given here outweighs them. Everybody on the
    /// machine can see what is given here: leave secrets to the environment.
    #[arg(
        long,
        global = true,
        value_name = "KEY=VALUE",
        value_parser = parse_setting,
        help_heading = "Options of every verb"
    )]
    pub(crate) store_option: Vec<(String, String)>,

    /// No progress on standard error.
    #[arg(long, short, global = true, help_heading = "Options of every verb")]
    pub(crate) quiet: bool,
}

/// How to talk to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoChoice {
    #[default]
    Auto,
    Uring,
    Syscalls,
}

impl From<IoChoice> for siltstone::io::IoChoice {
    fn from(choice: IoChoice) -> Self {
        match choice {
            IoChoice::Auto => siltstone::io::IoChoice::Auto,
            IoChoice::Uring => siltstone::io::IoChoice::Uring,
            IoChoice::Syscalls => siltstone::io::IoChoice::Syscalls,
        }
    }
}

/// One run of the command line.
#[derive(Debug)]
pub(crate) struct Session {
    /// The disk.
    disk: Arc<dyn Storage>,
    /// Whether files are read through maps.
    pub(crate) maps: MapMode,
    /// Whether progress is not wanted.
    pub(crate) quiet: bool,
    /// Settings of object stores.
    pub(crate) store_settings: Vec<(String, String)>,
}

impl Session {
    /// Prepares the process: maps are guarded, so that a file that shrinks under one is an error
    /// and no signal.
    pub(crate) fn start(args: &SessionArgs) -> Result<Session> {
        let maps = match siltstone::io::map::guard_process() {
            Ok(()) => MapMode::Always,
            Err(_) => MapMode::Never,
        };
        let disk = open_disk(args.io.into())
            .map_err(|error| error.context("--io uring (or SILTSTONE_IO)"))?;
        let store_settings = args.store_option.clone();
        Ok(Session { disk: Arc::from(disk), maps, quiet: args.quiet, store_settings })
    }

    /// The disk for what keeps it.
    pub(crate) fn disk(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.disk)
    }

    /// Says that a broker runs on a log directory, to somebody who only plans to write there.
    pub(crate) fn point_out_broker(&self, dir: &Path) {
        if self.storage().is_locked(&dir.join(LOCK_FILE)).unwrap_or(false) {
            complain(&format_args!(
                "{}: a running broker holds this directory: stop it before this is done",
                dir.display()
            ));
        }
    }

    /// The disk as the engine takes it.
    pub(crate) fn storage(&self) -> &dyn Storage {
        &*self.disk
    }
}

/// Says on standard error what could not be done.
pub(crate) fn complain(error: &dyn Display) {
    // Nobody is left to tell when this fails, too.
    let _ = writeln!(std::io::stderr(), "siltstone: {error}");
}
