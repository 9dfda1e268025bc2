//! `siltstone completions`: what a shell needs to complete our verbs and options.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Outcome;

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone completions bash > /etc/bash_completion.d/siltstone
  siltstone completions zsh > \"${fpath[1]}/_siltstone\"
  siltstone completions fish > ~/.config/fish/completions/siltstone.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> std::io::Result<Outcome> {
    // clap_complete panics when it cannot write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Arguments::command(), "siltstone", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Fine)
}
