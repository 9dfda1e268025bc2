//! `txns` and `diff`: what became of transactions, and where replicas part.

use serde_json::Value;
use siltstone_tests::kits::{Kit, Unpacked};

use crate::reading::{lines, of_type};

fn txns(unpacked: &Unpacked, options: &[&str]) -> (Vec<Value>, Option<i32>) {
    let options = options.iter().map(|option| (*option).to_owned());
    let metadata = unpacked.metadata().display().to_string();
    let rest = ["--metadata".to_owned(), metadata, unpacked.data().display().to_string()];
    let (lines, outcome) = lines("txns", &options.chain(rest).collect::<Vec<_>>());
    (lines, outcome.code)
}

#[test]
fn open_and_aborted_transactions_are_kafkas() {
    for (kit, state) in [("txn", "unclean"), ("txn", "clean"), ("compact", "clean")] {
        let state = Kit::open(kit).state(state);
        let unpacked = state.unpack();
        for options in [&["--aborted"][..], &["--aborted", "--from-start"][..]] {
            let (lines, code) = txns(&unpacked, options);
            assert_eq!(code, Some(0), "{}", state.label());
            for partition in state.partitions() {
                let Some(expectation) = state.expectation(&partition) else { continue };
                let label = format!("{} {partition} {options:?}", state.label());
                let of = |kind: &str, keys: [&str; 2]| -> Vec<(i64, i64)> {
                    let all = of_type(&lines, kind).into_iter();
                    let here = all.filter(|line| line["name"] == *partition);
                    here.map(|line| keys.map(|key| line[key].as_i64().unwrap()).into()).collect()
                };
                let Some(loaded) = expectation.loaded.ok() else { continue };
                let mut open: Vec<_> =
                    loaded.ongoing_txns.iter().map(|txn| (txn.0, txn.1)).collect();
                open.sort_by_key(|(_, first)| *first);
                assert_eq!(of("open", ["producer_id", "first_offset"]), open, "{label}");
                let indexes = expectation.raw.segments.iter().filter_map(|s| s.txnindex.as_ref());
                let aborted: Vec<_> = indexes.flatten().map(|txn| (txn.2, txn.3)).collect();
                let found = of("aborted", ["first_offset", "last_offset"]);
                // Compaction takes away the batches, but not the entries of the index.
                if kit == "txn" || options.len() == 1 {
                    assert_eq!(found, aborted, "{label}");
                }
            }
        }
    }
}

#[test]
fn a_transaction_hangs_when_its_marker_was_lost() {
    // The end of the log with the marker is torn, and its coordinator has the transaction as ended.
    let unpacked = Kit::open("txn").state("torn").unpack();
    let (lines, code) = txns(&unpacked, &[]);
    assert_eq!(code, Some(1));
    let states: Vec<_> = of_type(&lines, "open")
        .iter()
        .map(|line| (line["name"].as_str().unwrap(), line["state"].as_str().unwrap()))
        .collect();
    assert!(states.contains(&("txn-done-0", "hanging")), "{states:?}");
    assert!(states.contains(&("txn-a-0", "ongoing")), "{states:?}");
    let coordinators = of_type(&lines, "coordinators")[0];
    assert_eq!(coordinators["complete"], true);
}

#[test]
fn without_the_coordinators_log_nothing_is_said_to_hang() {
    let unpacked = Kit::open("txn").state("torn").unpack();
    std::fs::remove_dir_all(unpacked.partition("__transaction_state-0")).unwrap();
    let (lines, _) = txns(&unpacked, &[]);
    let open = of_type(&lines, "open");
    assert!(!open.is_empty() && open.iter().all(|line| line["state"] == "unknown"));
    let partition = unpacked.partition("txn-a-0");
    let text = siltstone_tests::tool::run(["txns".into(), partition.into_os_string()]);
    assert!(text.stdout.contains("no replica of __transaction_state"), "{}", text.stdout);
}

fn diff(a: &Unpacked, b: &Unpacked, partition: Option<&str>) -> (Vec<Value>, Option<i32>) {
    let path = |unpacked: &Unpacked| match partition {
        Some(name) => unpacked.partition(name),
        None => unpacked.data(),
    };
    let (lines, outcome) = lines("diff", &[path(a), path(b)]);
    (lines, outcome.code)
}

#[test]
fn replicas_part_where_the_unclean_leader_began() {
    let kit = Kit::open("cluster");
    let [killed, leader, healed] =
        ["n2-unclean", "n3-unclean", "n2-clean"].map(|state| kit.state(state).unpack());
    let (lines, code) = diff(&killed, &leader, Some("diverge-0"));
    assert_eq!(code, Some(1));
    let parting = &lines[0]["parting"];
    // The epoch of the new leader begins where the killed node had gone on by itself.
    let expectation = kit.state("n3-unclean").expectation("diverge-0").unwrap();
    let epochs = expectation.raw.leader_epochs.unwrap();
    let offset = parting["offset"].as_i64().unwrap();
    assert!(epochs.iter().any(|(_, start)| *start == offset), "{offset} in {epochs:?}");
    assert!(parting["a"]["leader_epoch"].as_i64() < parting["b"]["leader_epoch"].as_i64());
    let (lines, code) = diff(&healed, &leader, Some("diverge-0"));
    assert_eq!((code, &lines[0]["result"]), (Some(0), &"equal".into()));
}

#[test]
fn log_directories_are_compared_by_name() {
    let kit = Kit::open("cluster");
    let (a, b) = (kit.state("n1-clean").unpack(), kit.state("n2-unclean").unpack());
    let (lines, code) = diff(&a, &b, None);
    assert_eq!(code, Some(0));
    let pairs = of_type(&lines, "pair");
    assert!(pairs.iter().all(|pair| pair["result"] == "equal"), "{pairs:?}");
    let only: Vec<_> = of_type(&lines, "only").iter().map(|line| line["name"].clone()).collect();
    assert!(only.contains(&"diverge-0".into()), "{only:?}");
    // One side a partition, the other a directory of many.
    let (_, outcome) = lines_of_mixed(&a, &b);
    assert_eq!(outcome, Some(2));
}

fn lines_of_mixed(a: &Unpacked, b: &Unpacked) -> (Vec<Value>, Option<i32>) {
    let (lines, outcome) = lines("diff", &[a.partition("repl-0"), b.data()]);
    (lines, outcome.code)
}

#[test]
fn damage_and_compaction_are_no_difference_but_are_told() {
    let kit = Kit::open("txn");
    let (whole, torn, flipped) =
        (kit.state("unclean").unpack(), kit.state("torn").unpack(), kit.state("crc").unpack());
    let (lines, code) = diff(&whole, &torn, Some("txn-a-0"));
    assert_eq!((code, &lines[0]["b"]["problem"]["code"]), (Some(0), &"torn_batch".into()));
    let (lines, code) = diff(&whole, &flipped, Some("txn-a-0"));
    assert_eq!((code, &lines[0]["result"]), (Some(2), &"not_compared".into()));
    let kit = Kit::open("compact");
    let (a, b) = (kit.state("unclean").unpack(), kit.state("bare").unpack());
    let (lines, code) = diff(&a, &b, Some("cmp-plain-0"));
    assert_eq!((code, &lines[0]["a"]["has_gaps"]), (Some(0), &true.into()));
    assert!(lines[0]["same_from"].as_i64() > Some(0), "the cleaner's checkpoint");
}
