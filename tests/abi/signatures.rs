//! Has each function of the library the parameters that the header declares?
//!
//! The linker asks for names alone: a parameter that has become wider, or two that have changed
//! their places, would be found out by nobody. So the text of `ffi/src` is read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use siltstone_tests::sources::root;

use crate::header::{header, without_comments};
use crate::table::{Parameter, functions, types};

/// A type as both languages can say it: what is pointed to, whether it may be written to, and how
/// many stars lead to it. An object is never written to by its type alone.
fn kind(base: &str, stars: usize, is_const: bool, is_object: bool) -> String {
    let base = match base {
        // What is behind them are bytes.
        "void" | "char" if stars > 0 => "uint8_t",
        base => base,
    };
    let constant = if is_const && stars > 0 && !is_object { "const " } else { "" };
    format!("{constant}{base}{}", "*".repeat(stars))
}

/// The functions of the header, with the kinds of their results and parameters.
fn declared() -> BTreeMap<String, Vec<String>> {
    let header = without_comments(&header());
    let objects = types(&header).objects;
    let kind_of =
        |it: &Parameter| kind(&it.base, it.stars, it.is_const, objects.contains(&it.base));
    let all = functions(&header).into_iter().map(|function| {
        let stars = function.result.matches('*').count();
        let is_const = function.result.contains("const ");
        let words = function.result.replace("const ", "").replace('*', "");
        let result = kind(words.trim(), stars, is_const, false);
        let parameters = function.parameters.iter().map(kind_of);
        (function.name, [result].into_iter().chain(parameters).collect())
    });
    all.collect()
}

/// All Rust files below a folder, without their comments.
fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, all);
        } else {
            let text = fs::read_to_string(&entry).expect("a source");
            for line in text.lines() {
                *all += line.split("//").next().unwrap_or_default();
                all.push('\n');
            }
        }
    }
}

/// The names that structs of the header have in Rust.
fn structs(source: &str) -> BTreeMap<&str, &str> {
    let mut names = BTreeMap::from([("IndexCounters", "silt_index_counters_t")]);
    for (at, _) in source.match_indices("\"silt_") {
        let Some((name, behind)) = source[at + 1..].split_once('"') else { continue };
        if let Some((rust, _)) = behind.split_once('{') {
            let known = names.insert(rust.trim(), name);
            assert_eq!(known, None, "two structs are {rust}");
        }
    }
    // Another one where the engine has it, too.
    let words: Vec<&str> = source.split([' ', ',', '{', '}', '\n']).collect();
    for alias in words.windows(3).filter(|words| words[1] == "as" && words[2].starts_with('C')) {
        if let Some(name) = names.get(alias[0]) {
            names.insert(alias[2], name);
        }
    }
    names
}

/// The kind of a Rust type.
fn kind_in_rust(text: &str, structs: &BTreeMap<&str, &str>) -> String {
    let mut rest = text.trim();
    let (mut stars, mut is_const) = (0, false);
    while let Some(behind) = rest.strip_prefix('*') {
        stars += 1;
        is_const = behind.starts_with("const ");
        rest = behind.split_once(' ').expect("what it points to").1.trim();
    }
    let path = rest.split('<').next().unwrap_or_default();
    if path.ends_with("Handle") {
        let object = rest.rsplit([':', '<']).next().unwrap_or_default();
        let object = object.strip_suffix("Object>").expect("an object").to_lowercase();
        return kind(&format!("silt_{object}_t"), stars, is_const, true);
    }
    let base = match path.rsplit(':').next().unwrap_or_default() {
        "Status" => "silt_status_t",
        "ProgressFn" => "silt_progress_fn",
        "c_char" => "char",
        "c_void" => "void",
        "i8" => "int8_t",
        "u8" => "uint8_t",
        "i16" => "int16_t",
        "u16" => "uint16_t",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        name => structs.get(name).unwrap_or_else(|| panic!("what is {text}?")),
    };
    kind(base, stars, is_const, false)
}

/// The parameters up to the end of their parenthesis, and what is behind.
fn parameters(text: &str) -> (Vec<&str>, &str) {
    let (all, behind) = text.split_once(')').expect("the end of the parameters");
    let types = all.split(',').filter_map(|it| it.split_once(':')).map(|(_, kind)| kind);
    (types.collect(), behind)
}

/// The functions of the library, with the kinds of their results and parameters.
fn defined() -> BTreeMap<String, Vec<String>> {
    let mut source = String::new();
    sources(&root().join("ffi/src"), &mut source);
    let structs = structs(&source);
    let mut all = BTreeMap::new();
    // What macros write before and behind the parameters that are seen.
    let heads = [
        ("extern \"C\" fn ", None),
        ("log_function! {\n    fn ", Some("*const Handle<LogObject>")),
        ("engine_function! {\n    fn ", Some("*const Handle<EngineObject>")),
        ("object_function! {\n    fn ", Some("")),
    ];
    for (head, object) in heads {
        for definition in source.split(head).skip(1) {
            let Some((name, rest)) = definition.split_once('(') else { continue };
            if !name.starts_with("silt_") || name.starts_with("silt_test_") {
                continue;
            }
            let (mut types, behind) = parameters(rest);
            let end = behind.split('{').next().unwrap_or_default();
            let mut result = end.trim().strip_prefix("->").unwrap_or("c_void");
            let owner;
            if let Some(object) = object {
                result = "Status";
                match types.first().filter(|_| object.is_empty()) {
                    Some(kind) => {
                        owner = format!("*const Handle<{}>", kind.trim());
                        types[0] = &owner;
                    }
                    None => types.insert(0, object),
                }
                types.push("*mut SiltError");
            }
            let kinds = [result].into_iter().chain(types);
            let kinds = kinds.map(|it| kind_in_rust(it, &structs)).collect();
            assert!(all.insert(name.to_owned(), kinds).is_none(), "{name} is there twice");
        }
    }
    all
}

#[test]
fn functions_have_the_parameters_that_the_header_declares() {
    let (declared, defined) = (declared(), defined());
    assert!(declared.len() > 90);
    for (name, kinds) in &declared {
        assert_eq!(defined.get(name), Some(kinds), "{name}");
    }
    assert_eq!(declared.len(), defined.len());
}
