//! The command line, run as an operator runs it.

mod cases;
mod dump;
mod given;
mod hostile;
mod kill;
mod links;
mod listing;
mod marker;
mod promises;
mod reading;
mod rebuild_aux;
mod refusals;
mod remote;
mod remote_places;
mod scenario;
mod transactions;
mod unseen;
mod uploads;
mod usage;

use std::path::Path;

use siltstone_tests::kits::{State, Unpacked};

/// The options with which `recover` comes to Kafka's own bytes on a copy of a state.
fn recover_options(state: &State, unpacked: &Unpacked) -> Vec<String> {
    vec![
        "recover".to_owned(),
        "--json".to_owned(),
        "--topic-configs".to_owned(),
        unpacked.case_file().display().to_string(),
        "--now-ms".to_owned(),
        state.at_ms().to_string(),
        "--producer-id-expiration-ms".to_owned(),
        "2147483647".to_owned(),
        "--allow-loss".to_owned(),
        unpacked.data().display().to_string(),
    ]
}

/// Whether the directory says that it was stopped cleanly.
fn has_clean_marker(data: &Path) -> bool {
    data.join(".kafka_cleanshutdown").exists()
}
