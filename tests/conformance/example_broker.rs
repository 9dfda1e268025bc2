//! The broker of `examples/broker-cpp`: built once with the sanitizers of the compiler, started,
//! killed, started again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use siltstone_tests::sources::root;
use siltstone_tests::tool::{self, build_library, needed};
use tempfile::TempDir;

use crate::broker::{tail, terminate};

/// A broker with a log directory of its own, which goes when this is dropped.
pub struct ExampleBroker {
    home: TempDir,
    limits: String,
    options: Vec<String>,
    child: Child,
    port: u16,
}

impl ExampleBroker {
    /// Starts one on a new directory; `None` when it cannot be built and need not be.
    pub fn start(options: &[&str]) -> Option<Self> {
        Self::start_under(":", options)
    }

    /// Starts one after commands of the shell that take something from it.
    pub fn start_under(limits: &str, options: &[&str]) -> Option<Self> {
        program()?;
        let home = TempDir::with_prefix("siltstone-example-").expect("a temporary directory");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let (child, port) = spawn(home.path(), limits, &options, 0);
        Some(ExampleBroker { home, limits: limits.to_owned(), options, child, port })
    }

    /// Where clients find it.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its log directory.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Ends it without a word, and starts it again.
    pub fn kill_and_restart(&mut self) {
        self.child.kill().expect("a broker that runs");
        self.child.wait().expect("a child to wait for");
        self.restart();
    }

    /// Starts it where it was.
    pub fn restart(&mut self) {
        (self.child, self.port) = spawn(self.home.path(), &self.limits, &self.options, self.port);
    }

    /// How long it has been busy, in units of the system: most often a hundredth of a second.
    pub fn cpu_ticks(&self) -> u64 {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a process");
        let (_, behind_name) = stat.rsplit_once(") ").expect("its name");
        let times = behind_name.split(' ').skip(11).take(2);
        times.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Stops it cleanly.
    pub fn stop(&mut self) {
        let status = terminate(&mut self.child);
        assert!(status.success(), "{status}\n{}", errors(self.home.path()));
    }

    /// Nothing is to be found in its directory.
    pub fn verify(&self) {
        let verified = tool::run(["verify", &self.data().display().to_string()]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

impl Drop for ExampleBroker {
    fn drop(&mut self) {
        // After a stop there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn errors(home: &Path) -> String {
    tail(&fs::read_to_string(home.join("errors")).unwrap_or_default())
}

/// Starts the program and waits until it listens, where it says.
fn spawn(home: &Path, limits: &str, options: &[String], port: u16) -> (Child, u16) {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\""));
    command.arg(program().expect("it was built before"));
    command.arg("--log-dir").arg(home.join("data")).args(options);
    command.arg("--listen").arg(format!("127.0.0.1:{port}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let errors_file = File::options().create(true).append(true).open(home.join("errors"));
    command.stderr(errors_file.expect("a file"));
    let mut child = command.spawn().expect("the program");
    let output = child.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    let port = line.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    (child, port.unwrap_or_else(|| panic!("it did not start:\n{}", errors(home))))
}

/// Runs `kcat` with something on its standard input; what it prints.
pub fn kcat(broker: &ExampleBroker, arguments: &[&str], input: &str) -> String {
    kcat_at(&broker.address(), arguments, input)
}

/// The same with whatever broker is at this address.
pub fn kcat_at(address: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("kcat");
    command.args(["-b", address]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it ran before");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // Written while its output is read, so that neither blocks. It may end before all is read.
        scope.spawn(move || stdin.write_all(input.as_bytes()).and_then(|()| stdin.flush()));
        child.wait_with_output().expect("a child to wait for")
    });
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kcat {arguments:?}: {told}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The program: the one that `SILTSTONE_BROKER_BIN` names, else built; `None` when it cannot be
/// built and need not be.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        needed("the example", tools_run())?;
        Some(std::env::var_os("SILTSTONE_BROKER_BIN").map_or_else(build, PathBuf::from))
    };
    PROGRAM.get_or_init(build).as_deref()
}

fn tools_run() -> Result<(), String> {
    for (tool, version) in [("cmake", "--version"), ("c++", "--version"), ("kcat", "-V")] {
        let outcome = Command::new(tool).arg(version).output();
        outcome.map_err(|error| format!("{tool} cannot be run: {error}"))?;
    }
    Ok(())
}

fn build() -> PathBuf {
    let library = build_library();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broker-cpp");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root().join("examples/broker-cpp")).arg("-B").arg(&folder);
    configure.args(["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_DISABLE_FIND_PACKAGE_Siltstone=ON"]);
    // All at once is built in half the time.
    configure.args(["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"]);
    configure.arg("-DCMAKE_CXX_FLAGS=-fsanitize=address,undefined -fno-sanitize-recover=all");
    configure.arg(format!("-DSILTSTONE_LIBRARY_DIR={}", library.display()));
    let mut make = Command::new("cmake");
    make.arg("--build").arg(&folder).args(["--parallel", "2"]);
    for mut command in [configure, make] {
        let output = command.output().expect("it ran before");
        let told = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&told));
    }
    folder.join("siltstone-broker")
}
