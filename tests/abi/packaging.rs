//! Is what `ffi/install.sh` installs enough to build hosts as docs/ABI.md and README.md say?
//!
//! Needs a C and a C++ compiler, cmake and pkg-config.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use siltstone_tests::sources::root;
use siltstone_tests::tool::profile_dir;

use crate::programs::library;

/// What the documents call the folder that is installed into.
const PREFIX: &str = "/usr/local";

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("the document")
}

/// A block of a document that is no prose.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

/// The blocks behind a line.
fn blocks<'a>(document: &'a str, heading: &str) -> Vec<Block<'a>> {
    let (_, rest) = document.split_once(&format!("\n{heading}\n")).expect(heading);
    let section = rest.split("\n## ").next().expect("a section");
    let fenced = section.split("\n```").skip(1).step_by(2);
    let block = |fenced: &'a str| {
        let (language, text) = fenced.split_once('\n').expect("the end of a line");
        Block { language, text }
    };
    fenced.map(block).collect()
}

/// The one in this language.
fn block<'a>(blocks: &[Block<'a>], language: &str) -> &'a str {
    let mut found = blocks.iter().filter(|block| block.language == language);
    found.next().unwrap_or_else(|| panic!("no {language}")).text
}

/// The commands, one a line.
fn commands<'a>(blocks: &[Block<'a>]) -> Vec<&'a str> {
    let shell = blocks.iter().filter(|block| block.language == "sh");
    shell.flat_map(|block| block.text.lines()).collect()
}

/// A place where the library is installed.
struct Installed {
    prefix: PathBuf,
    /// `DESTDIR`, or nothing.
    stage: PathBuf,
}

impl Installed {
    /// Installs it with the profile of this test, of which all but the library itself is there.
    fn new(prefix: &Path, stage: &Path, folder: &str) -> Self {
        // Whoever wants the library of the tests asks for it first: both have one name.
        library();
        let profile_dir = profile_dir();
        let is_release = profile_dir.ends_with("release");
        let mut command = Command::new(root().join("ffi/install.sh"));
        command.arg(prefix).env("DESTDIR", stage).env("LIBDIR", folder);
        command.env("PROFILE", if is_release { "release" } else { "dev" });
        command.env("CARGO_TARGET_DIR", profile_dir.parent().expect("target"));
        run(&mut command);
        Installed { prefix: prefix.to_owned(), stage: stage.to_owned() }
    }

    /// Where that is now.
    fn path(&self, name: &str) -> PathBuf {
        let inside = self.prefix.strip_prefix("/").expect("an absolute path");
        let prefix = match self.stage.as_os_str().is_empty() {
            true => self.prefix.clone(),
            false => self.stage.join(inside),
        };
        prefix.join(name)
    }

    /// Runs a command in a folder, with all tools told where this is.
    fn run_in(&self, dir: &Path, command: &str) -> String {
        let libraries = self.path("lib");
        let mut shell = Command::new("bash");
        shell.args(["-euc", command]).current_dir(dir);
        shell.env("PKG_CONFIG_PATH", libraries.join("pkgconfig"));
        shell.env("LD_LIBRARY_PATH", libraries);
        shell.env("CMAKE_PREFIX_PATH", self.path(""));
        if !self.stage.as_os_str().is_empty() {
            shell.env("PKG_CONFIG_SYSROOT_DIR", &self.stage);
        }
        run(&mut shell)
    }
}

/// The one that most tests use; made anew by each run of them.
fn installed() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        fs::remove_dir_all(&prefix).ok();
        Installed::new(&prefix, Path::new(""), "lib")
    })
}

/// Runs a command that must succeed; what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The programs of the document in a folder of their own.
fn hosts(blocks: &[Block<'_>]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, language) in [("host.c", "c"), ("host.cpp", "cpp"), ("CMakeLists.txt", "cmake")] {
        fs::write(dir.path().join(name), block(blocks, language)).expect("written");
    }
    dir
}

#[test]
fn hosts_are_built_as_the_document_says() {
    let document = document("docs/ABI.md");
    let blocks = blocks(&document, "## Building against it");
    let commands = commands(&blocks);
    let dir = hosts(&blocks);
    let (install, told) = commands.split_first_chunk::<2>().expect("commands");
    assert_eq!(install[0], format!("ffi/install.sh {PREFIX}"));
    // Tools are told as the document has it, but where this test has installed.
    let prefix = installed().prefix.to_str().expect("UTF-8");
    let export = install[1].replace(PREFIX, prefix);
    assert!(export.starts_with("export PKG_CONFIG_PATH="), "{export}");
    let mut ran = 0;
    for command in told {
        let mut shell = Command::new("bash");
        shell.args(["-euc", &format!("{export}\n{command}")]).current_dir(dir.path());
        let printed = run(&mut shell);
        if command.starts_with("./") {
            assert_eq!(printed, "offset 0: hello\n", "{command}");
            ran += 1;
        }
    }
    assert_eq!(ran, 4);
    // What is linked with the archive needs no library of ours.
    for program in ["host-static", "build/host-with-archive"] {
        let needs = run(Command::new("readelf").arg("-d").arg(dir.path().join(program)));
        assert!(!needs.contains("siltstone"), "{program}: {needs}");
        let mut alone = Command::new(dir.path().join(program));
        alone.arg(dir.path().join("alone-0")).env_remove("LD_LIBRARY_PATH");
        run(&mut alone);
        fs::remove_dir_all(dir.path().join("alone-0")).expect("what it made");
    }
}

#[test]
fn the_readme_says_what_the_document_says() {
    let (readme, document) = (document("README.md"), document("docs/ABI.md"));
    let tested = blocks(&document, "## Building against it");
    let shown = blocks(&readme, "## You write a broker in C, C++ or on the JVM");
    let shown = commands(&shown);
    assert!(shown.len() > 2);
    for command in shown {
        assert!(commands(&tested).contains(&command), "{command}");
    }
    assert!(block(&tested, "cmake").contains("find_package(Siltstone 0.1 REQUIRED)"));
    assert!(readme.contains("`find_package(Siltstone 0.1 REQUIRED)`"));
}

#[test]
fn folders_may_have_blanks_and_stand_below_another() {
    let document = document("docs/ABI.md");
    let blocks = blocks(&document, "## Building against it");
    let dir = hosts(&blocks);
    let stage = dir.path().join("a stage");
    let install = Installed::new(Path::new("/opt/silt & stone"), &stage, "lib");
    assert!(install.path("include/siltstone.h").is_file());
    // pkg-config escapes the blanks for the shell.
    for command in commands(&blocks).iter().filter(|it| it.contains("pkg-config --")) {
        install.run_in(dir.path(), &format!("eval \"{command}\""));
    }
    install.run_in(dir.path(), "cmake -S . -B build && cmake --build build");
    for host in ["host", "host-static", "host-cpp", "build/host-shared", "build/host-with-archive"]
    {
        let name = host.replace('/', "-");
        let printed = install.run_in(dir.path(), &format!("./{host} {name}-0"));
        assert_eq!(printed, "offset 0: hello\n", "{host}");
    }
    // The file says where it will be, not where it is staged.
    let file = fs::read_to_string(install.path("lib/pkgconfig/siltstone.pc")).expect("the file");
    assert!(file.starts_with("prefix=/opt/silt & stone\n"), "{file}");
}

#[test]
fn libraries_may_lie_in_a_folder_of_the_machine() {
    let document = document("docs/ABI.md");
    let dir = hosts(&blocks(&document, "## Building against it"));
    let prefix = dir.path().join("prefix");
    let install = Installed::new(&prefix, Path::new(""), "lib/x86_64-linux-gnu");
    assert!(!install.path("lib/libsiltstone.a").exists());
    install.run_in(dir.path(), "cmake -S . -B build && cmake --build build");
    let printed = install.run_in(dir.path(), "./build/host-shared t-0");
    assert_eq!(printed, "offset 0: hello\n");
    let where_told = install.run_in(
        dir.path(),
        "PKG_CONFIG_PATH=$CMAKE_PREFIX_PATH/lib/x86_64-linux-gnu/pkgconfig \
         pkg-config --variable=libdir siltstone",
    );
    assert_eq!(Path::new(where_told.trim()), install.path("lib/x86_64-linux-gnu"));
}

#[test]
fn a_version_that_is_too_new_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let asks = |version: &str| {
        let project = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(host C)\n\
             find_package(Siltstone {version})\nmessage(STATUS \"found: ${{Siltstone_FOUND}}\")\n"
        );
        fs::write(dir.path().join("CMakeLists.txt"), project).expect("written");
        let told = installed().run_in(dir.path(), "cmake -S . -B build 2>&1");
        told.contains("found: 1")
    };
    assert!(asks("") && asks("0.1") && asks(&format!("{} EXACT", env!("CARGO_PKG_VERSION"))));
    assert!(!asks("0.2") && !asks("1") && !asks("0.0.9 EXACT"));
    let is_there = |version: &str| {
        let command = format!("pkg-config --atleast-version={version} siltstone && echo yes || :");
        installed().run_in(dir.path(), &command) == "yes\n"
    };
    assert!(is_there("0.1") && !is_there("0.2"));
}

#[test]
fn the_shared_library_has_its_name_its_versions_and_what_it_needs() {
    let path = installed().path("lib/libsiltstone.so.1");
    let dynamic = run(Command::new("readelf").args(["-d", "-W"]).arg(&path));
    let named = |tag: &str| {
        let lines = dynamic.lines().filter(|line| line.contains(&format!("({tag})")));
        let names = lines.filter_map(|line| line.split_once('[')?.1.strip_suffix(']'));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(named("SONAME"), ["libsiltstone.so.1"]);
    let text = document("docs/ABI.md");
    for needed in named("NEEDED") {
        assert!(
            needed.starts_with("ld-linux") || text.contains(&format!("`{needed}`")),
            "{needed}"
        );
    }
    let link = fs::read_link(installed().path("lib/libsiltstone.so")).expect("a link");
    assert_eq!(link, Path::new("libsiltstone.so.1"));

    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "-W"]).arg(&path));
    let mut count = 0;
    for line in symbols.lines() {
        let name = line.split(' ').next_back().expect("a name");
        if name != "SILT_1" {
            let plain = name.strip_suffix("@@SILT_1").unwrap_or_else(|| panic!("{name}"));
            assert!(plain.starts_with("silt_") && !plain.starts_with("silt_test_"), "{plain}");
            count += 1;
        }
    }
    let released = document("ffi/siltstone.abi");
    let is_function = |line: &&str| !line.starts_with('#') && line.contains('(');
    assert_eq!(count, released.lines().filter(is_function).count());
}

#[test]
fn a_rust_host_depends_on_the_crate_by_its_path() {
    let readme = document("README.md");
    let blocks = blocks(&readme, "## You write a broker or a tool in Rust");
    // Beside the target of this test, whose dependencies it takes: that needs their profile.
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-host");
    fs::create_dir_all(dir.join("src")).expect("a folder");
    let workspace = document("Cargo.toml");
    let profiles = workspace.find("[profile.").map_or("", |at| &workspace[at..]);
    let dependencies = block(&blocks, "toml");
    assert!(dependencies.contains("\"siltstone/engine\""), "{dependencies}");
    let dependencies =
        dependencies.replace("siltstone/engine", &format!("{}/engine", root().display()));
    let manifest = format!(
        "[package]\nname = \"rust-host\"\nedition = \"2024\"\n\n{dependencies}\n\
         [workspace]\n\n{profiles}"
    );
    fs::write(dir.join("Cargo.toml"), manifest).expect("written");
    fs::copy(root().join("Cargo.lock"), dir.join("Cargo.lock")).expect("copied");
    let programs = blocks.iter().filter(|block| block.language == "rust");
    for program in programs {
        fs::write(dir.join("src/main.rs"), program.text).expect("written");
        let profile_dir = profile_dir();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--offline", "--quiet"]).current_dir(&dir);
        cargo.arg("--target-dir").arg(profile_dir.parent().expect("target"));
        if profile_dir.ends_with("release") {
            cargo.arg("--release");
        }
        run(&mut cargo);
    }
}
