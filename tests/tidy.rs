//! The architecture, checked: which module may use which, where `unsafe` may stand, and that every
//! file belongs to something.

use std::collections::BTreeSet;
use std::fs;

use siltstone::problem::Code;
use siltstone_tests::sources::{Source, root, sources};

/// The engine's modules; each may use those on its left, and those that share its place may not use
/// each other.
const ORDER: [&[&str]; 8] = [
    &["io"],
    &["record"],
    &["index", "state"],
    &["segment"],
    &["log"],
    &["dir"],
    &["tier"],
    &["replica"],
];

/// Bytes in, bytes out: these open no files.
const PURE: [&str; 4] = ["record", "index", "state", "replica"];

/// Where unsafe code may stand.
const UNSAFE: [&str; 3] = ["engine/src/io/map.rs", "engine/src/io/ring.rs", "ffi/src/"];

/// The module of the engine that a file belongs to.
fn module(source: &Source) -> Option<&str> {
    let path = source.name.strip_prefix("engine/src/")?;
    path.split(['/', '.']).next()
}

fn place(module: &str) -> Option<usize> {
    ORDER.iter().position(|modules| modules.contains(&module))
}

/// What follows `crate::`, in a list too.
fn used(code: &str) -> BTreeSet<&str> {
    let end_of_name =
        |text: &str| text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            used.insert(&rest[..end_of_name(rest)]);
            continue;
        };
        let mut depth = 0;
        let mut begin = 0;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    let item = list[begin..at].trim_start();
                    used.insert(&item[..end_of_name(item)]);
                    begin = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    used
}

#[test]
fn modules_use_only_what_stands_left_of_them() {
    let mut wrong = Vec::new();
    for source in sources(&["engine/src"]) {
        let Some(own) = module(&source) else { continue };
        for other in used(&source.code()) {
            let allowed = match (place(own), place(other)) {
                _ if own == other || own == "lib" => true,
                // What stands beside the modules is for all, and uses none of them.
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(own), Some(other)) => other < own,
            };
            if !allowed {
                wrong.push(format!("{}: {own} uses {other}", source.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn pure_modules_open_no_files() {
    let mut wrong = Vec::new();
    for source in sources(&["engine/src"]) {
        let is_pure = module(&source).is_some_and(|module| PURE.contains(&module));
        for word in
            ["std::fs", "std::net", "std::process", "std::thread", "dyn Storage", "OpenMode"]
        {
            if is_pure && source.code().contains(word) {
                wrong.push(format!("{}: {word}", source.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn only_the_command_line_knows_a_network() {
    let manifest =
        |name: &str| fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
    let mut wrong = Vec::new();
    for name in ["engine", "ffi", "benches"] {
        for word in ["tokio", "reqwest", "hyper", "object_store", "siltstone-objects"] {
            if root().join(name).is_dir() && manifest(name).contains(word) {
                wrong.push(format!("{name}: {word}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(manifest("cli").contains("siltstone-objects"));
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let mut wrong = Vec::new();
    for source in sources(&["engine/src", "objects/src", "cli/src", "ffi/src", "tests", "benches"])
    {
        let may = UNSAFE.iter().any(|place| source.name.starts_with(place));
        let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "allow(unsafe_code"];
        // This file names them.
        if !may && source.name != "tests/tidy.rs" && words.iter().any(|w| source.code().contains(w))
        {
            wrong.push(source.name);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut wrong = Vec::new();
    for source in
        sources(&["engine/src", "objects/src", "cli/src", "ffi/src", "tests", "benches", "fuzz"])
    {
        let is_asked =
            !source.name.starts_with("fuzz/target/") && !source.name.ends_with("tests.rs");
        if is_asked && !source.text.starts_with("//!") {
            wrong.push(source.name);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_file_is_a_module_of_something() {
    let mut wrong = Vec::new();
    for source in sources(&["engine/src", "objects/src", "cli/src", "ffi/src"]) {
        let path = root().join(&source.name);
        let stem = path.file_stem().expect("a name").display().to_string();
        let (folder, name) = match stem.as_str() {
            "lib" | "main" => continue,
            "mod" => {
                let folder = path.parent().expect("a folder");
                let name = folder.file_name().expect("a name").display().to_string();
                (folder.parent().expect("a folder").to_path_buf(), name)
            }
            _ => (path.parent().expect("a folder").to_path_buf(), stem),
        };
        let parent_file = folder.with_extension("rs");
        let parents = [folder.join("mod.rs"), folder.join("lib.rs"), folder.join("main.rs")];
        let declared = parents.iter().chain([&parent_file]).any(|parent| {
            let text = fs::read_to_string(parent).unwrap_or_default();
            text.lines().any(|line| line.trim_start().ends_with(&format!("mod {name};")))
        });
        if !declared {
            wrong.push(source.name);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn nothing_is_left_for_later_in_the_code() {
    let mut wrong = Vec::new();
    for source in sources(&["engine/src", "objects/src", "cli/src", "ffi/src", "tests", "benches"])
    {
        let is_this = source.name == "tests/tidy.rs";
        for word in ["TODO", "FIXME", "todo!(", "unimplemented!("] {
            if !is_this && source.text.contains(word) {
                wrong.push(format!("{}: {word}", source.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Every text file of the repository that is not made by a build, by its name from the root.
fn texts() -> Vec<(String, String)> {
    let mut waiting = vec![root().to_path_buf()];
    let mut texts = Vec::new();
    while let Some(path) = waiting.pop() {
        let name = path.strip_prefix(root()).expect("a path below the root").display().to_string();
        let is_made = ["target", ".git", "fuzz/target", "fuzz/corpus", "fuzz/artifacts"];
        if is_made.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory").filter_map(Result::ok);
            waiting.extend(entries.map(|entry| entry.path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            texts.push((name, text));
        }
    }
    texts
}

#[test]
fn every_code_of_a_finding_is_explained() {
    let recovery = fs::read_to_string(root().join("docs/RECOVERY.md")).expect("the document");
    let explained = |code: &&Code| recovery.contains(&format!("\n| `{code}` | "));
    let wrong: Vec<&Code> = Code::ALL.iter().filter(|code| !explained(code)).collect();
    assert_eq!(wrong, Vec::<&Code>::new());
}

#[test]
fn the_commands_of_the_readme_are_there() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the document");
    let command = |begin: &str| {
        let line = readme.lines().find(|line| line.trim_start().starts_with(begin));
        line.unwrap_or_else(|| panic!("no {begin}")).trim().to_owned()
    };
    let words: Vec<String> = command("cargo run").split(' ').map(str::to_owned).collect();
    let after = |word: &str| {
        let at = words.iter().position(|it| it == word).expect(word);
        words[at + 1].clone()
    };
    assert_eq!(after("-p"), env!("CARGO_PKG_NAME"));
    let example = format!("tests/examples/{}.rs", after("--example"));
    assert!(root().join(&example).is_file(), "{example}");
    assert_eq!(command("cargo test"), "cargo test");
}

#[test]
fn every_folder_at_the_top_has_a_reason() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the document");
    let made = ["target"];
    let folders = fs::read_dir(root()).expect("the root").filter_map(Result::ok);
    let folders = folders.filter(|entry| entry.path().is_dir());
    let names: Vec<String> = folders.map(|entry| entry.file_name().display().to_string()).collect();
    // Those with a dot in front are tools' own, but for ours.
    let is_ours = |name: &&String| !name.starts_with('.') || *name == ".ci";
    let names = names.iter().filter(|name| !made.contains(&name.as_str())).filter(is_ours);
    let wrong: Vec<_> =
        names.filter(|name| !architecture.contains(&format!("`{name}/`"))).collect();
    assert_eq!(wrong, Vec::<&String>::new());
}

#[test]
fn nothing_names_a_place_on_the_machine_it_was_made_on() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a checkout");
    let is_deep = root.components().count() > 2;
    let here = if is_deep { format!("{}/", root.display()) } else { String::new() };
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        // This file names them.
        if name == "tests/tidy.rs" {
            continue;
        }
        for place in ["/home/", "/root/", &here] {
            // A checkout right below the root may be called as a folder of ours, such as `src`.
            if !place.is_empty() && text.contains(place) {
                wrong.push(format!("{name}: {place}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn files_that_the_documents_name_are_there() {
    let texts = texts();
    let documents = texts.iter().filter(|(name, _)| name.ends_with(".md"));
    let mut wrong = Vec::new();
    for (document, text) in documents {
        let quoted = text.split('`').skip(1).step_by(2);
        for name in quoted.filter(|name| name.ends_with(".rs")) {
            let is_named =
                |(path, _): &&(String, String)| path == name || path.ends_with(&format!("/{name}"));
            if !texts.iter().any(|text| is_named(&text)) {
                wrong.push(format!("{document}: {name}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn nothing_is_kept_that_nobody_uses() {
    let mut wrong = Vec::new();
    for source in sources(&["engine/src", "objects/src", "cli/src", "ffi/src", "tests", "benches"])
    {
        let is_this = source.name == "tests/tidy.rs";
        for word in ["allow(dead_code", "allow(unused", "expect(dead_code", "expect(unused"] {
            if !is_this && source.text.contains(word) {
                wrong.push(format!("{}: {word}", source.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The targets of the links of a document; code is none.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code {
            let behind = line.split("](").skip(1);
            links.extend(behind.filter_map(|rest| rest.split(')').next()));
        }
    }
    links
}

/// What a link to a heading of a document is called.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for (document, text) in texts().iter().filter(|(name, _)| name.ends_with(".md")) {
        for link in links(text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let own = root().join(document);
            let target = if file.is_empty() { own } else { own.with_file_name(file) };
            let text = fs::read_to_string(&target).unwrap_or_default();
            if !target.exists() || !(anchor.is_empty() || anchors(&text).contains(anchor)) {
                wrong.push(format!("{document}: {link}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Where comments are still wider than lines may be; a folder whose comments are wrapped leaves
/// this list.
const WIDE: [&str; 4] = [
    "engine/src/dir/recover/",
    "engine/src/log/",
    "engine/src/record/validate/",
    "engine/src/state/live/",
];

/// Whether a line may be longer than others: a string, a drawing, or a row of a table.
fn cannot_be_broken(line: &str) -> bool {
    let comment = line.trim_start().strip_prefix("//!").map(str::trim_start);
    let is_drawn = |text: &str| text.starts_with(['|', '+']) || text.contains("   ");
    comment.map_or_else(|| line.contains('"'), is_drawn)
}

#[test]
fn lines_are_not_too_long() {
    const CHARACTERS_MAX: usize = 100;
    let mut wrong = Vec::new();
    for source in sources(&["engine", "objects", "cli", "ffi", "tests", "benches", "fuzz"]) {
        let is_made = source.name.starts_with("fuzz/target/");
        if is_made || WIDE.iter().any(|folder| source.name.starts_with(folder)) {
            continue;
        }
        for (number, line) in source.text.lines().enumerate() {
            if line.chars().count() > CHARACTERS_MAX && !cannot_be_broken(line) {
                wrong.push(format!("{}:{}", source.name, number + 1));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
