//! `siltstone recover`: makes log directories fit to start after a broker was killed.

mod args;
mod print;
mod run;

pub(crate) use args::RecoverArgs;
pub(crate) use run::run;
