//! Which rows of the catalogue have no test yet, and why?
//!
//! A test cites its rows in a comment: `// spec: behaviours LL-007, LL-020`. A row is one fact with
//! all of its results.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rows by section.
const ROWS: &[(&str, &str)] = &[
    (
        "OI",
        "001 002 003 005 006 007 009 010 011 013 014 015 017 018 019 021 022 023 025 026 \
         027 029 030 031 033 034 035 037 038 039",
    ),
    ("TI", "001 002 003 005 006 007 009 010 011 013 014 015 017 018 019 021 022 023 025"),
    ("XI", "001 002 004 005 006 008 009 010 012 013 014 016 017 018 020"),
    ("LM", "001 002 004 005 006"),
    ("SG", "001 002 003 005 006 007 009 010 011"),
    (
        "LS",
        "001 002 003 005 006 007 009 010 011 013 014 015 017 018 019 021 022 023 025 026 \
         027 029 030 031 033 034 035 037 038 039 041 042 043 045 046 047 049 050 051 053",
    ),
    (
        "FR",
        "001 002 004 005 006 008 009 010 012 013 014 016 017 018 020 021 022 024 025 026 \
         028",
    ),
    ("MI", "001 002 004 005 006 008 009 010 012 013 014"),
    (
        "VB",
        "002 003 004 006 007 008 010 011 012 014 015 016 018 019 020 022 023 024 026 027 \
         028 030 031 032 034 035 036 038 039 040",
    ),
    ("LG", "001 002 003 005 006 007 009 010 011 013 014 015 017 018"),
    ("BU", "001 003 004 005 007 008 009 011 012 013 015 016"),
    ("CT", "001 003 004 005 007 008 009 011"),
    ("CO", "001 002 004 005 006 008 009 010 012 013 014 016 017 018"),
    ("FI", "002 003 004 006 007 008 010 011 012 014 015"),
    (
        "VA",
        "001 003 004 005 007 008 009 011 012 013 015 016 017 019 020 021 023 024 025 027 \
         028 029 031 032 033 035 036 037 039 040 041 043",
    ),
    (
        "EC",
        "001 002 004 005 006 008 009 010 012 013 014 016 017 018 020 021 022 024 025 026 \
         028 029 030 032 033 034 036 037 038 040",
    ),
    (
        "PS",
        "001 002 004 005 006 008 009 010 012 013 014 016 017 018 020 021 022 024 025 026 \
         028 029 030 032 033 034 036 037 038 040 041 042 044 045 046 048 049 050 052 053 \
         054 056 057 058 060 061 062 064 065 066 068 069 070 072 073",
    ),
    (
        "LL",
        "001 003 004 005 007 008 009 011 012 013 015 016 017 019 020 021 023 024 025 027 \
         028 029 031 032",
    ),
    (
        "LD",
        "001 003 004 005 007 008 009 011 012 013 015 016 017 019 020 021 023 024 025 027 \
         028 029 031 032 033 035 036 037 039 040 041 043 044 045 047 048",
    ),
    (
        "UL",
        "001 003 004 005 007 008 009 011 012 013 015 016 017 019 020 021 023 024 025 027 \
         028 029 031 032 033 035 036 037 039 040 041 043 044 045 047 048 049 051 052 053 \
         055 056 057 059 060 061 063 064 065 067 068 069 071 072 073 075 076 077 079 080 \
         081 083 084 085 087 088 089 091 092 093 095 096 097 099 100 101 103 104 105 107 \
         108 109 111 112 113 115 116 117 119 120 121 123 124 125 127 128 129 131 132 133 \
         135 136 137 139 140 141",
    ),
    ("MG", "001 002 003 005 006 007 009 010 011 013 014 015 017 018 019 021 022"),
    ("CP", "001 003 004 005 007 008 009 011 012 013 015"),
    ("RI", "001 002 004 005 006 008 009 010"),
    (
        "CL",
        "002 003 004 006 007 008 010 011 012 014 015 016 018 019 020 022 023 024 026 027 \
         028 030 031 032 034 035 036 038 039 040 042 043 044 046 047 048 050 051",
    ),
    ("CM", "001 003 004 005 007 008 009 011"),
];

/// Sections of parts that are not there yet.
const WAITING_SECTIONS: &[(&str, &str)] = &[("RI", "the cache of remote indexes")];

/// Rows without a test, and why.
const WAITING: &[(&str, &str)] = &[
    (
        "OI-029 XI-014 XI-018 SG-011 LS-050 FR-004 FR-005 FR-006 FR-008 FR-018 FR-024 \
         FR-025 LL-009 LD-007 LD-008 UL-072",
        "speaks of an object of Kafka's that is not there: index handles, slices, calls between its classes",
    ),
    (
        "XI-017 LS-003 LS-006 LS-018 LS-019 LS-021 LS-025 LS-045 FR-002 FR-012 FR-017 \
         FR-026 FR-028 VB-002 VB-003 VB-004 VB-006 VB-007 VB-008 VB-018 VB-020 \
         VB-022 VB-023 VB-024 VB-026 VB-027 LG-001 LG-002 LG-017 LG-018 BU-001 BU-003 \
         BU-004 BU-005 BU-007 BU-008 BU-009 BU-015 BU-016 CT-001 \
         CT-003 CT-004 CT-005 CT-007 CT-008 CT-009 CT-011 CO-001 CO-002 CO-004 CO-005 \
         CO-006 CO-008 CO-009 CO-010 CO-012 CO-013 CO-014 CO-016 CO-017 CO-018 FI-010 \
         EC-040 LD-025 LD-027 LD-028 LD-029 UL-131 UL-133 CP-005 \
         CP-011 CP-012",
        "not matched with a test of the engine yet",
    ),
    (
        "LM-001 LM-002 LM-004 LM-005 LM-006 LL-017",
        "places are looked up when they are asked for; none is kept without its position",
    ),
    (
        "LS-001 LS-002 LS-009 LS-010 LS-014 LS-043 FR-001 LL-001 LL-003 LL-012 LL-013 \
         LL-031 LD-024 UL-041 UL-071 UL-109 UL-111 CL-038",
        "a state that only Kafka's own tests can bring about",
    ),
    (
        "LS-041 LS-042 FR-021 CL-002",
        "a log file is not lengthened before it is written to, so there is no zero tail to cut",
    ),
    ("UL-123 CM-011", "is for whole log directories"),
    (
        "UL-103 UL-104",
        "an abort that cannot be indexed is refused whole, and the log is as it was before",
    ),
    (
        "UL-108",
        "batches of old formats are always converted: the leader has an epoch from the first one on",
    ),
];

fn rows() -> BTreeSet<String> {
    let of = |(section, numbers): &(&str, &'static str)| {
        let section = (*section).to_owned();
        numbers.split_whitespace().map(move |number| format!("{section}-{number}"))
    };
    ROWS.iter().flat_map(of).collect()
}

/// Every row that some test of the repository cites.
fn cited() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    let mut waiting: Vec<PathBuf> = ["engine/src", "tests"].map(|dir| root.join(dir)).to_vec();
    let mut cited = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory").filter_map(Result::ok);
            waiting.extend(entries.map(|entry| entry.path()));
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            for line in text.lines() {
                let Some((_, list)) = line.split_once("behaviours ") else { continue };
                let words = list.split([',', ';', ' ']).filter(|word| is_row(word));
                cited.extend(words.map(str::to_owned));
            }
        }
    }
    cited
}

/// Whether a word is written as a row is: `LL-007`.
fn is_row(word: &str) -> bool {
    word.split_once('-').is_some_and(|(section, number)| {
        section.len() == 2
            && section.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() == 3
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn waiting() -> BTreeSet<String> {
    let single = WAITING.iter().flat_map(|(ids, _)| ids.split_whitespace().map(str::to_owned));
    let is_waiting = |row: &String| {
        WAITING_SECTIONS.iter().any(|(section, _)| row.starts_with(&format!("{section}-")))
    };
    single.chain(rows().into_iter().filter(is_waiting)).collect()
}

#[test]
fn every_row_has_a_test_or_waits_for_a_reason() {
    let (rows, cited, waiting) = (rows(), cited(), waiting());
    let missing: Vec<&String> =
        rows.iter().filter(|row| !cited.contains(*row) && !waiting.contains(*row)).collect();
    assert!(missing.is_empty(), "without a test or a reason: {missing:?}");
    let unknown: Vec<&String> = cited.union(&waiting).filter(|row| !rows.contains(*row)).collect();
    assert!(unknown.is_empty(), "no rows of the catalogue: {unknown:?}");
    let both: Vec<&str> = WAITING
        .iter()
        .flat_map(|(ids, _)| ids.split_whitespace())
        .filter(|row| cited.contains(*row))
        .collect();
    assert!(both.is_empty(), "they need not wait any more: {both:?}");
    println!("{} of {} rows are cited by a test", cited.len(), rows.len());
}
