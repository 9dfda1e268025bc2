//! Is the header what the library has, and does it grow only at its end?

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use siltstone_tests::sources::root;

use crate::programs::{Program, library};

/// The structs, fields, functions and constants of the released interface; see docs/ABI.md.
const ABI: &str = include_str!("../../ffi/siltstone.abi");

pub fn header() -> String {
    fs::read_to_string(root().join("include/siltstone.h")).expect("the header")
}

/// The text without its comments.
pub fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
    plain + rest
}

/// The functions that the header declares.
fn functions(header: &str) -> BTreeSet<String> {
    let declarations = header.split("SILT_API ").skip(1);
    let names = declarations.filter_map(|declaration| {
        let (before, _) = declaration.split_once('(')?;
        let name = before.split([' ', '*']).next_back()?;
        name.starts_with("silt_").then(|| name.to_owned())
    });
    names.collect()
}

/// The functions as the header declares them, in a line each, without the names of parameters.
fn declarations(header: &str) -> BTreeSet<String> {
    let declarations = header.split("SILT_API ").skip(1);
    let lines = declarations.filter_map(|declaration| {
        let (head, rest) = declaration.split_once('(')?;
        let parameters = rest.split_once(')')?.0.split(',').map(|parameter| {
            let folded = parameter.split_whitespace().collect::<Vec<_>>().join(" ");
            match folded.rfind([' ', '*']) {
                Some(at) => folded[..=at].trim_end().to_owned(),
                // There is none.
                None => folded,
            }
        });
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        head.contains("silt_").then(|| format!("{head}({parameters})"))
    });
    lines.collect()
}

/// The names of constants: enumerators, and numbers that are none.
fn constants(header: &str) -> Vec<&str> {
    let bodies = header.split("enum {").skip(1).filter_map(|it| it.split_once('}'));
    let names = bodies.flat_map(|(body, _)| body.split(','));
    let names = names.filter_map(|it| it.trim().split(' ').next()).filter(|it| !it.is_empty());
    names.chain(["SILT_NO_PARTITION"]).collect()
}

/// The structs that the header defines, each with its fields.
fn structs(header: &str) -> Vec<(String, Vec<String>)> {
    let mut structs = Vec::new();
    for definition in header.split("typedef struct ").skip(1) {
        let Some((tag, rest)) = definition.split_once('{') else { continue };
        // An opaque type has no fields.
        if tag.contains(';') {
            continue;
        }
        let (body, behind) = rest.split_once('}').expect("the end of a struct");
        let name = behind.split_once(';').expect("its name").0.trim().to_owned();
        let fields = body.split(';').map(str::trim).filter(|field| !field.is_empty());
        let names = fields.map(|field| {
            let field = field.split('[').next().expect("a field");
            field.split([' ', '*']).next_back().expect("its name").to_owned()
        });
        structs.push((name, names.collect()));
    }
    structs
}

/// A program that prints layouts and constants as a C compiler has them.
fn probe(structs: &[(String, Vec<String>)], constants: &[&str]) -> String {
    let mut code = String::from("#include <siltstone.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, fields) in structs {
        code += &format!("printf(\"{name} %u\\n\", (unsigned)sizeof({name}));\n");
        for field in fields {
            code += &format!(
                "printf(\"{name}.{field} %u\\n\", (unsigned)offsetof({name}, {field}));\n"
            );
        }
    }
    for name in constants {
        code += &format!("printf(\"{name} = %lld\\n\", (long long){name});\n");
    }
    code + "return 0;\n}\n"
}

fn compiles(compiler: &str, flags: &[&str], language: &str, code: &str) {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("unit");
    fs::write(&file, code).expect("written");
    let mut command = Command::new(compiler);
    command.args(flags).args(["-fsyntax-only", "-x", language]).arg(&file);
    command.arg("-I").arg(root().join("include"));
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The compilers of a language that this machine has; the first is needed, the others are tried.
fn compilers(names: [&'static str; 2]) -> impl Iterator<Item = &'static str> {
    let is_there = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success())
    };
    names
        .into_iter()
        .enumerate()
        .filter(move |(at, name)| *at == 0 || is_there(name))
        .map(|it| it.1)
}

#[test]
fn strict_compilers_take_the_header_alone_and_twice() {
    let twice = "#include <siltstone.h>\n#include <siltstone.h>\n";
    let warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    for compiler in compilers(["cc", "clang"]) {
        let flags = [&["-std=c99", "-Wstrict-prototypes"], warnings.as_slice()].concat();
        compiles(compiler, &flags, "c", twice);
    }
    for compiler in compilers(["c++", "clang++"]) {
        let flags = [&["-std=c++17", "-Wold-style-cast"], warnings.as_slice()].concat();
        compiles(compiler, &flags, "c++", twice);
        compiles(compiler, &flags, "c++", "#include <siltstone.hpp>\n#include <siltstone.hpp>\n");
    }
}

#[test]
fn structs_of_the_header_lie_as_the_library_has_them() {
    let structs = structs(&without_comments(&header()));
    assert!(structs.len() > 10);
    let seen = Program::from_text("probe", &probe(&structs, &[])).run(&[]);
    let code = "#include <stdio.h>\nconst char *silt_test_layouts(void);\n\
                int main(void) { puts(silt_test_layouts()); return 0; }\n";
    let told = Program::from_text("layouts", code).run(&[]);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(lines(&seen), lines(&told));
}

#[test]
fn the_library_exports_the_functions_of_the_header_and_nothing_else() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output();
    let output = output.expect("nm");
    let text = String::from_utf8_lossy(&output.stdout);
    let symbols = text.lines().filter_map(|line| line.split(' ').next_back());
    let exported: BTreeSet<String> =
        symbols.filter(|name| !name.starts_with("silt_test_")).map(str::to_owned).collect();
    assert_eq!(exported, functions(&without_comments(&header())));
}

#[test]
fn the_interface_has_only_grown() {
    let plain = without_comments(&header());
    let numbers = probe(&structs(&plain), &constants(&plain));
    let numbers = Program::from_text("probe", &numbers).run(&[]);
    let functions = declarations(&plain);
    let now: BTreeSet<&str> = numbers.lines().chain(functions.iter().map(String::as_str)).collect();
    let released: BTreeSet<&str> = ABI.lines().filter(|line| !line.starts_with('#')).collect();
    // A struct may have become larger: its fields stay where they are.
    let is_size = |line: &&str| !line.contains(['.', '(', '=']);
    let lost: Vec<_> = released.difference(&now).filter(|line| !is_size(line)).collect();
    assert!(lost.is_empty(), "gone, moved or changed: {lost:#?}");
    let new: Vec<_> = now.difference(&released).collect();
    assert!(new.is_empty(), "not yet in ffi/siltstone.abi: {new:#?}");
}

#[test]
fn the_versions_of_header_and_package_are_the_same() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    let parts: Vec<String> =
        version.expect("a version").trim_matches('"').split('.').map(str::to_owned).collect();
    for (name, value) in ["MAJOR", "MINOR", "PATCH"].iter().zip(&parts) {
        assert!(header().contains(&format!("#define SILT_VERSION_{name} {value}\n")));
    }
    assert!(Path::new(&root().join("include/siltstone.h")).is_file());
}
