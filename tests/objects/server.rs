//! An HTTP server of the tests, which answers as a closure wants.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use siltstone_objects::{Place, RemoteStore, StoreOptions};

/// What was asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `HEAD` and so on.
    pub method: String,
    /// With its slash in front.
    pub path: String,
    /// The range in bytes, the end exclusive.
    pub range: Option<(usize, usize)>,
    /// The tag that the object must have.
    pub if_match: Option<String>,
    /// How many requests came before.
    pub number: usize,
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The length that is announced; that of the body without one.
    pub length: Option<usize>,
    /// The body comes in chunks, with no length announced.
    pub is_chunked: bool,
    /// How long to wait before the answer.
    pub delay: Duration,
}

impl Answer {
    /// An answer of this status with nothing in it.
    pub fn status(status: u16) -> Self {
        Answer { status, ..Answer::default() }
    }

    /// What a good server answers of an object with these bytes and this tag.
    pub fn object(request: &Request, bytes: &[u8], tag: &str) -> Self {
        let modified = "Thu, 01 Jan 2026 00:00:00 GMT".to_owned();
        let mut headers = vec![("Last-Modified", modified)];
        if !tag.is_empty() {
            headers.push(("ETag", format!("\"{tag}\"")));
        }
        let Some((start, end)) = request.range else {
            return Answer { status: 200, headers, body: bytes.to_vec(), ..Answer::default() };
        };
        if start >= bytes.len() {
            return Answer::status(416);
        }
        let end = end.min(bytes.len());
        let range = format!("bytes {start}-{}/{}", end - 1, bytes.len());
        headers.push(("Content-Range", range));
        let body = bytes[start..end].to_vec();
        Answer { status: 206, headers, body, ..Answer::default() }
    }
}

/// A running server; it ends when this is dropped.
pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on 127.0.0.1.
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (requests, is_over) = (Arc::<Mutex<Vec<Request>>>::default(), Arc::default());
        let (seen, over) = (Arc::clone(&requests), Arc::<AtomicBool>::clone(&is_over));
        let serve = move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                // A client that goes away is its own affair.
                stream.and_then(|stream| serve(stream, &seen, &answer)).ok();
            }
        };
        Server { port, requests, is_over, thread: Some(std::thread::spawn(serve)) }
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The store behind it, with little patience.
    pub fn store(&self) -> RemoteStore {
        self.store_at(&format!("{}/store", self.address()), &[])
    }

    /// The same at another URL, by these settings.
    pub fn store_at(&self, url: &str, settings: &[(&str, &str)]) -> RemoteStore {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let options = StoreOptions {
            retries_max: 3,
            retry_time: Duration::from_secs(20),
            request_time: Duration::from_millis(1500),
            settings: settings.iter().map(owned).collect(),
            ..StoreOptions::default()
        };
        RemoteStore::open(&Place::parse(url).unwrap(), options).unwrap()
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &impl Fn(&Request) -> Answer,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut words = first.split(' ').map(str::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        range: None,
        if_match: None,
        number: seen.lock().unwrap().len(),
    };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let (start, last) = value.trim_start_matches("bytes=").split_once('-').unwrap();
                request.range = Some((start.parse().unwrap(), last.parse::<usize>().unwrap() + 1));
            }
            "if-match" => request.if_match = Some(value.trim_matches('"').to_owned()),
            _ => {}
        }
    }
    let answer = answer(&request);
    let is_head = request.method == "HEAD";
    seen.lock().unwrap().push(request);
    std::thread::sleep(answer.delay);
    let mut head = format!("HTTP/1.1 {} Answer\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let length = answer.length.unwrap_or(answer.body.len());
    head += &match answer.is_chunked {
        true => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        false => format!("Content-Length: {length}\r\n\r\n"),
    };
    stream.write_all(head.as_bytes())?;
    if is_head {
        return Ok(());
    }
    if answer.is_chunked {
        stream.write_all(format!("{:x}\r\n", answer.body.len()).as_bytes())?;
        stream.write_all(&answer.body)?;
        return stream.write_all(b"\r\n0\r\n\r\n");
    }
    stream.write_all(&answer.body)
}
