//! The binding for the JVM: Maven builds `jvm/` against the library of this build and runs its
//! tests; then the jars alone are put on a class path.
//!
//! Needs a JDK (22 or newer) and Maven, which fetches what it builds with. `SILTSTONE_CONFORMANCE`
//! says whether what is missing is a failure: see tests/conformance. `SILTSTONE_JVM_ROUNDS` makes
//! as many rounds of random calls and nothing else, beginning with `SILTSTONE_PROPERTY_SEED`;
//! `SILT_TRIES` looks as often at files that another process tears, and does nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use siltstone_tests::sources::root;
use siltstone_tests::tool::{build_library, needed, run_command};

/// The first version whose foreign-function interface is final.
const VERSION_MIN: u32 = 22;

/// The tests whose files another process tears.
const TORN: &str = "TruncatedFilesTest,IndexTest#anIndexIsLookedUpWhile*";

/// Where distributions put their JDKs.
const JDKS: &str = "/usr/lib/jvm";

/// The main version of a JDK, by the file in which each says it.
fn version(jdk: &Path) -> Option<u32> {
    let text = fs::read_to_string(jdk.join("release")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    line.split(['.', '"', '-', '+']).next()?.parse().ok()
}

/// The one of `JAVA_HOME` if it is new enough, else the newest of the system.
fn jdk() -> Result<PathBuf, String> {
    let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let is_new = |jdk: &PathBuf| version(jdk) >= Some(VERSION_MIN);
    if let Some(jdk) = named.filter(is_new) {
        return Ok(jdk);
    }
    let entries = fs::read_dir(JDKS).into_iter().flatten().filter_map(Result::ok);
    let jdks = entries.map(|entry| entry.path()).filter(is_new);
    let newest = jdks.max_by_key(|jdk| (version(jdk), jdk.clone()));
    newest.ok_or_else(|| format!("no JDK of version {VERSION_MIN} or newer in {JDKS}"))
}

/// Maven on a JDK that is new enough, or why it cannot be had.
fn maven() -> Result<(PathBuf, Command), String> {
    let jdk = jdk()?;
    let mut command = Command::new("mvn");
    command.env("JAVA_HOME", &jdk);
    let found = command.arg("-version").output();
    found.map_err(|error| format!("mvn cannot be run: {error}"))?;
    let mut command = Command::new("mvn");
    command.env("JAVA_HOME", &jdk).args(["-q", "-B"]);
    Ok((jdk, command))
}

#[test]
fn maven_builds_the_binding_and_its_tests_pass() {
    let Some((jdk, mut maven)) = needed("the binding for the JVM", maven()) else { return };
    let folder = build_library();
    let target = folder.join("jvm");
    maven.arg("-f").arg(root().join("jvm/pom.xml")).arg("verify");
    maven.arg(format!("-Dsiltstone.native={}", folder.display()));
    maven.arg(format!("-Dsiltstone.target={}", target.display()));
    let rounds = std::env::var("SILTSTONE_JVM_ROUNDS").ok();
    if let Some(rounds) = &rounds {
        let seed = std::env::var("SILTSTONE_PROPERTY_SEED").unwrap_or_else(|_| "1".to_owned());
        maven.arg("-Dtest=RandomCallsTest").arg(format!("-Dsiltstone.rounds={rounds}"));
        maven.arg(format!("-Dsiltstone.seed={seed}")).arg("-Dsiltstone.testLimitSeconds=0");
    }
    let tries = std::env::var("SILT_TRIES").ok();
    if let Some(tries) = &tries {
        maven.arg(format!("-Dtest={TORN}")).arg(format!("-Dsiltstone.tries={tries}"));
        maven.arg("-Dsiltstone.testLimitSeconds=0");
    }
    let output = maven.output().expect("Maven ran before");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    if rounds.is_none() && tries.is_none() {
        jars_are_all_that_a_host_needs(&jdk, &target);
    }
}

/// The classes are in one jar, the library in the one of this platform, which is unpacked.
fn jars_are_all_that_a_host_needs(jdk: &Path, target: &Path) {
    let entries = fs::read_dir(target).expect("the target folder").filter_map(Result::ok);
    let mut jars: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "jar"))
        .collect();
    jars.sort();
    assert_eq!(jars.len(), 2, "{jars:?}");
    let class_path = std::env::join_paths(&jars).expect("paths without a colon");
    let home = tempfile::tempdir().expect("a folder");
    let mut java = Command::new(jdk.join("bin/java"));
    // Cargo's own has the library that it has built.
    java.env_remove("LD_LIBRARY_PATH");
    java.arg("--enable-native-access=ALL-UNNAMED");
    java.arg(format!("-Dsiltstone.tmpdir={}", home.path().display()));
    java.arg("-cp").arg(class_path).arg("io.siltstone.Library");
    let outcome = run_command(&mut java);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let unpacked = format!("from {}/libsiltstone-", home.path().display());
    assert!(outcome.stdout.contains(&unpacked), "{}", outcome.stdout);
}
