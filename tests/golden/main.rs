//! Golden tests: what is read equals what Kafka's own classes read from the same bytes, for every
//! state of every kit.

mod compaction;
mod engine;
mod fixtures;
mod indexes;
mod live;
mod live_reads;
mod metadata;
mod payload;
mod rebuild;
mod records;
mod recover;
mod replicas;
mod settings;
mod state;
mod tiered_inventory;
mod tiered_reads;
mod tiered_uploads;
mod validate;
mod verify;

use siltstone_tests::expect::Expectation;
use siltstone_tests::kits::{Kit, State};

/// One partition in one state, with what is expected of it.
struct Partition {
    state: State,
    name: String,
    expectation: Expectation,
}

impl Partition {
    /// The bytes of one of its files.
    fn read(&self, file: &str) -> Option<Vec<u8>> {
        self.state.read(&format!("data/{}/{file}", self.name))
    }

    /// Where it is, for messages.
    fn label(&self) -> String {
        format!("{} {}", self.state.label(), self.name)
    }
}

/// Every partition of every state of a kit.
fn partitions(kit: &str) -> impl Iterator<Item = Partition> {
    Kit::open(kit).states().into_iter().flat_map(|state| {
        let names = state.partitions().into_iter();
        names.map(move |name| {
            let expectation = state.expectation(&name).expect("an expectation");
            Partition { state: state.clone(), name, expectation }
        })
    })
}

/// A segment's file.
fn file_name(base_offset: i64, suffix: &str) -> String {
    format!("{base_offset:020}.{suffix}")
}

/// One test for each kit, so that they run side by side.
macro_rules! for_each_kit {
    ($check:ident: $($kit:ident)*) => {
        mod $check {
            $(#[test] fn $kit() { super::$check(stringify!($kit)); })*
        }
    };
    ($check:ident) => {
        crate::for_each_kit! { $check: basic cluster compact legacy tiered tinyindex txn }
    };
}
use for_each_kit;
