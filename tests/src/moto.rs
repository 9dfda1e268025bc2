//! A real S3 API on this machine: the server of the Python package `moto`, in an environment of its
//! own below the target directory.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::tool::needed;

/// The package, in the version that the tests were made with.
const PACKAGE: &str = "moto[server]==5.2.5";

/// How long the server may take until it answers.
const START_TIME: Duration = Duration::from_secs(120);

/// A running server; it ends with the process of the test.
#[derive(Debug)]
pub struct Moto {
    endpoint: String,
    buckets: AtomicU32,
}

impl Moto {
    /// The server of this process, or `None` when it cannot be had and need not be: without
    /// `SILTSTONE_CONFORMANCE` in the environment.
    ///
    /// # Panics
    ///
    /// When it is needed and cannot be had.
    #[must_use]
    pub fn get() -> Option<&'static Moto> {
        static MOTO: OnceLock<Option<Moto>> = OnceLock::new();
        MOTO.get_or_init(|| needed("S3", start())).as_ref()
    }

    /// Its address, such as `http://127.0.0.1:5000`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A new bucket, empty.
    ///
    /// # Panics
    ///
    /// When the server does not make it.
    #[must_use]
    pub fn bucket(&self) -> String {
        let number = self.buckets.fetch_add(1, Ordering::Relaxed);
        let name = format!("bucket-{number}");
        let address = self.endpoint.trim_start_matches("http://");
        let request = format!(
            "PUT /{name} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\nConnection: close\r\n\r\n"
        );
        let answer = exchange(address, request.as_bytes()).expect("an answer of the server");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        name
    }

    /// The environment of a program that is to use it.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, &str); 4] {
        [
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
        ]
    }
}

/// Sends a request and reads the answer to its end.
fn exchange(address: &str, request: &[u8]) -> std::io::Result<String> {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(START_TIME))?;
    stream.write_all(request)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Ends the server when the process that started it is gone, whatever has ended it.
const WATCHED: &str = "
import os, subprocess, sys, time
server = subprocess.Popen(sys.argv[1:])
parent = os.getppid()
while os.getppid() == parent and server.poll() is None:
    time.sleep(0.2)
server.kill()
";

fn start() -> Result<Moto, String> {
    let program = install()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    drop(listener);
    let output = NamedTempFile::new().map_err(|e| e.to_string())?;
    let log = output.reopen().map_err(|e| e.to_string())?;
    let mut watcher = Command::new(program.with_file_name("python3"))
        .args(["-c", WATCHED])
        .arg(&program)
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let address = format!("127.0.0.1:{port}");
    wait_for(&mut watcher, &address).map_err(|why| {
        watcher.kill().ok();
        watcher.wait().ok();
        let said = std::fs::read_to_string(output.path()).unwrap_or_default();
        format!("moto's server: {why}\n{said}")
    })?;
    Ok(Moto { endpoint: format!("http://{address}"), buckets: AtomicU32::new(0) })
}

fn wait_for(watcher: &mut Child, address: &str) -> Result<(), String> {
    let begin = Instant::now();
    let request =
        format!("GET /moto-api/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    while begin.elapsed() < START_TIME {
        if let Ok(Some(status)) = watcher.try_wait() {
            return Err(format!("ended with {status}"));
        }
        if exchange(address, request.as_bytes()).is_ok_and(|answer| answer.starts_with("HTTP/1.")) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("no answer within {} s", START_TIME.as_secs()))
}

/// The server's program, installed once.
fn install() -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target");
    let home = target.join("moto");
    // Written last: an environment without it is not whole.
    let ready = home.join("ready");
    if std::fs::read_to_string(&ready).is_ok_and(|package| package == PACKAGE) {
        return Ok(home.join("bin/moto_server"));
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    run(Command::new(home.join("bin/python3")).args(["-m", "pip", "install", "-q", PACKAGE]))?;
    std::fs::write(ready, PACKAGE).map_err(|error| error.to_string())?;
    Ok(home.join("bin/moto_server"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{command:?}: {}: {said}", output.status))
}
