//! What do the header and `c/cases.txt` say of each function?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use siltstone_tests::sources::root;

use crate::header::header;

const TABLE: &str = include_str!("c/cases.txt");

/// A parameter as the header declares it.
#[derive(Debug)]
pub struct Parameter {
    /// The type without `const` and stars.
    pub base: String,
    pub stars: usize,
    pub is_const: bool,
    pub name: String,
}

/// A function as the header declares it.
#[derive(Debug)]
pub struct Function {
    pub result: String,
    pub name: String,
    pub parameters: Vec<Parameter>,
}

/// What the header says of types.
pub struct Types {
    /// Opaque ones.
    pub objects: BTreeSet<String>,
    /// Those that begin with their size.
    pub growing: BTreeSet<String>,
}

/// A line of the table.
pub struct Line {
    pub name: String,
    /// Each, and whether it may be NULL.
    pub arguments: Vec<(String, bool)>,
    pub flags: BTreeSet<String>,
    /// It gives no status but, for NULL, this.
    pub plain: Option<String>,
}

fn parameter(text: &str) -> Parameter {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = text.replace("const", " ").replace('*', " ");
    let names: Vec<&str> = plain.split_whitespace().collect();
    Parameter {
        base: names.first().copied().unwrap_or_default().to_owned(),
        stars: text.matches('*').count(),
        is_const: words.first() == Some(&"const"),
        name: names.last().copied().unwrap_or_default().to_owned(),
    }
}

pub fn functions(header: &str) -> Vec<Function> {
    let declarations = header.split("SILT_API ").skip(1);
    let parsed = declarations.filter_map(|declaration| {
        let (head, rest) = declaration.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        let at = head.rfind([' ', '*'])? + 1;
        let (result, name) = head.split_at(at);
        name.starts_with("silt_").then(|| Function {
            result: result.trim().to_owned(),
            name: name.to_owned(),
            parameters: match parameters.trim() {
                "void" => Vec::new(),
                all => all.split(',').map(parameter).collect(),
            },
        })
    });
    parsed.collect()
}

pub fn types(header: &str) -> Types {
    let (mut objects, mut growing) = (BTreeSet::new(), BTreeSet::new());
    for definition in header.split("typedef struct ").skip(1) {
        match definition.split_once(['{', ';']) {
            Some((tag, _)) if definition.as_bytes().get(tag.len()) == Some(&b';') => {
                objects.extend(tag.split_whitespace().last().map(str::to_owned));
            }
            Some((tag, body)) if body.trim_start().starts_with("uint32_t struct_size;") => {
                growing.insert(format!("{}_t", tag.trim()));
            }
            _ => {}
        }
    }
    // An error is read by nobody.
    growing.remove("silt_error_t");
    Types { objects, growing }
}

fn line(text: &str) -> Line {
    let (plain, text) = match text.strip_prefix("plain ") {
        Some(rest) => {
            let (call, value) = rest.split_once(" = ").unwrap_or((rest, ""));
            (Some(value.to_owned()), call)
        }
        None => (None, text),
    };
    let (call, flags) = text.split_once(" | ").unwrap_or((text, ""));
    let (name, arguments) = call.trim_end().split_once('(').expect("arguments");
    let arguments = arguments.strip_suffix(')').expect("the end of the arguments");
    let arguments = arguments.split(", ").filter(|argument| !argument.is_empty());
    Line {
        name: name.to_owned(),
        arguments: arguments
            .map(|it| {
                it.strip_suffix('?').map_or((it.to_owned(), false), |it| (it.to_owned(), true))
            })
            .collect(),
        flags: flags.split_whitespace().map(str::to_owned).collect(),
        plain,
    }
}

/// Where a program meets an error of a function that is not the status of its call.
pub struct Met {
    pub name: String,
    pub code: String,
    pub text: String,
}

/// All that the table says.
pub struct Table {
    pub calls: Vec<Line>,
    /// The first field that each type has got later.
    pub grown: BTreeMap<String, String>,
    pub met: Vec<Met>,
}

pub fn table() -> Table {
    let mut table = Table { calls: Vec::new(), grown: BTreeMap::new(), met: Vec::new() };
    for text in TABLE.lines().filter(|text| !text.is_empty() && !text.starts_with('#')) {
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        match words.as_slice() {
            ["grown", name, field] => {
                table.grown.insert((*name).to_owned(), (*field).to_owned());
            }
            ["met", name, code, text] => {
                let [name, code, text] = [name, code, text].map(|it| (*it).to_owned());
                table.met.push(Met { name, code, text });
            }
            _ => table.calls.push(line(text)),
        }
    }
    table
}

/// What C and C++ programs of the tests say, with one blank between two words.
fn programs() -> String {
    let folder = root().join("tests/abi/c");
    let mut files: Vec<_> = fs::read_dir(folder).expect("the programs").flatten().collect();
    files.sort_by_key(fs::DirEntry::file_name);
    let is_code = |name: &str| [".c", ".h", ".cpp"].iter().any(|suffix| name.ends_with(suffix));
    let code = files.iter().filter(|file| is_code(&file.file_name().to_string_lossy()));
    let texts = code.map(|file| fs::read_to_string(file.path()).expect("a program"));
    let all: String = texts.collect();
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The statuses and details that the manual names right above a function, with the function.
fn named_in_the_manual(header: &str) -> Vec<(String, String)> {
    let mut named = Vec::new();
    let mut rest = header;
    while let Some((before, behind)) = rest.split_once("SILT_API ") {
        rest = behind;
        // The comment may be above another function, or a struct.
        let Some(comment) = before.trim_end().strip_suffix("*/") else { continue };
        let comment = comment.rsplit("/*").next().unwrap_or_default();
        let name = behind.split('(').next().unwrap_or_default();
        let name = name.rsplit([' ', '*']).next().unwrap_or_default();
        let words = comment.split(|it: char| !it.is_ascii_uppercase() && it != '_');
        let codes: BTreeSet<&str> = words
            .filter(|word| ["SILT_E_", "SILT_DETAIL_"].iter().any(|it| word.starts_with(it)))
            .filter(|word| !word.ends_with('_'))
            .collect();
        named.extend(codes.into_iter().map(|code| (name.to_owned(), code.to_owned())));
    }
    named
}

#[test]
fn every_error_that_the_manual_names_is_met_by_a_program() {
    let programs = programs();
    let met = table().met;
    let mut missing = Vec::new();
    for (name, code) in named_in_the_manual(&header()) {
        let call = format!("EXPECT({code}, {name}(");
        let elsewhere = met.iter().find(|it| it.name == name && it.code == code);
        let is_met = match elsewhere {
            Some(elsewhere) => programs.contains(&elsewhere.text),
            None => programs.contains(&call),
        };
        if !is_met {
            missing.push((name, code));
        }
    }
    assert!(missing.is_empty(), "no program meets {missing:#?}");
}
