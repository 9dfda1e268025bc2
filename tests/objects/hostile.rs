//! Servers that fail and lie: what they do is tried again, or a clear error. Never is it taken for
//! the bytes of an object.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use siltstone::io::SimDisk;
use siltstone::state::EpochEntry;
use siltstone::tier::{
    IndexCacheOptions, ObjectLayout, ObjectTarget, RemoteIndexCache, RemotePartition,
    RemoteSegment, RemoteSegmentId, RemoteSegmentState,
};
use siltstone::uuid::Uuid;
use siltstone::{Error, Kind};

use crate::server::{Answer, Request, Server};

const BYTES: &[u8] = b"0123456789";

/// Asserts that an error is of this kind and names object, operation and what went wrong.
fn assert_tells(error: &Error, kind: Kind, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains("http://127.0.0.1:") && text.contains("/store/a.log"), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

fn good(request: &Request) -> Answer {
    Answer::object(request, BYTES, "one")
}

#[test]
fn a_good_server_gives_what_was_asked_for() {
    let server = Server::start(good);
    let store = server.store();
    assert_eq!(store.get("a.log", None, 10).unwrap(), BYTES);
    assert_eq!(store.get("a.log", Some(3..7), 4).unwrap(), b"3456");
    assert_eq!(store.get("a.log", Some(10..10), 0).unwrap(), b"");
    assert_eq!(store.size("a.log").unwrap(), 10);
    assert!(server.requests().iter().all(|request| request.path == "/store/a.log"));
    // What is known of the object is asked of it, too.
    let tags: Vec<_> = server.requests().iter().map(|it| it.if_match.clone()).collect();
    assert_eq!((&tags[0], tags[1].as_deref()), (&None, Some("one")));
    for (range, limit, kind) in [
        (Some(5..11), 100, Kind::OutOfRange),
        (Some(20..30), 100, Kind::OutOfRange),
        (Some(11..11), 100, Kind::OutOfRange),
        (Some(0..10), 9, Kind::Limit),
        (None, 9, Kind::Limit),
    ] {
        assert_tells(&store.get("a.log", range, limit).unwrap_err(), kind, &["read"]);
    }
}

#[test]
fn names_that_name_nothing_ask_nothing() {
    let server = Server::start(good);
    let store = server.store();
    for name in ["", "/", "a//b", "../a", "a/..", "/a", "a/"] {
        assert_eq!(store.get(name, None, 10).unwrap_err().kind(), Kind::InvalidArgument, "{name}");
        assert_eq!(store.put(name, &[]).unwrap_err().kind(), Kind::InvalidArgument, "{name}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn an_object_that_is_not_there_is_asked_for_once() {
    let server = Server::start(|_| Answer::status(404));
    let store = server.store();
    assert_tells(&store.get("a.log", None, 10).unwrap_err(), Kind::NotFound, &["read"]);
    assert_tells(&store.size("a.log").unwrap_err(), Kind::NotFound, &["examine"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_that_fails_for_a_while_is_asked_again() {
    for status in [500, 502, 503] {
        let server = Server::start(move |request| match request.number {
            0 | 1 => Answer::status(status),
            _ => good(request),
        });
        assert_eq!(server.store().get("a.log", Some(2..5), 3).unwrap(), b"234");
        assert_eq!(server.requests().len(), 3);
    }
}

#[test]
fn a_server_that_always_fails_is_given_up() {
    let server = Server::start(|_| Answer::status(503));
    let error = server.store().get("a.log", None, 10).unwrap_err();
    assert_tells(&error, Kind::Io, &["503"]);
    assert_eq!(server.requests().len(), 4);
    // What is not allowed does not get better.
    let server = Server::start(|_| Answer::status(403));
    assert_tells(&server.store().get("a.log", None, 10).unwrap_err(), Kind::Io, &["403"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_slow_server_is_asked_again_and_given_up_in_the_end() {
    let delay = Duration::from_millis(2500);
    let server = Server::start(move |request| match request.number {
        0 => Answer { delay, ..good(request) },
        _ => good(request),
    });
    assert_eq!(server.store().get("a.log", None, 10).unwrap(), BYTES);
    let server = Server::start(move |request| Answer { delay, ..good(request) });
    let begin = Instant::now();
    assert_tells(&server.store().get("a.log", None, 10).unwrap_err(), Kind::Io, &["read"]);
    assert!(begin.elapsed() < Duration::from_secs(40));
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let store = Server::start(good).store();
    assert_tells(&store.get("a.log", None, 10).unwrap_err(), Kind::Io, &["read"]);
}

/// A body of fewer bytes than its head says.
fn short(request: &Request, tag: &str) -> Answer {
    let whole = Answer::object(request, BYTES, tag);
    let length = Some(whole.body.len());
    Answer { body: whole.body[..whole.body.len() / 2].to_vec(), length, ..whole }
}

#[test]
fn a_body_that_breaks_off_is_fetched_again() {
    for tag in ["one", ""] {
        let server = Server::start(move |request| match request.number {
            0 => short(request, tag),
            _ => Answer::object(request, BYTES, tag),
        });
        assert_eq!(server.store().get("a.log", Some(2..8), 6).unwrap(), b"234567", "{tag:?}");
        let server = Server::start(move |request| match request.number {
            0 => short(request, tag),
            _ => Answer::object(request, BYTES, tag),
        });
        assert_eq!(server.store().get("a.log", None, 10).unwrap(), BYTES, "{tag:?}");
        let server = Server::start(move |request| short(request, tag));
        let error = server.store().get("a.log", Some(2..8), 6).unwrap_err();
        assert_tells(&error, Kind::Io, &["at position"]);
        assert!(server.requests().len() < 40);
    }
}

#[test]
fn a_body_of_another_length_is_never_taken() {
    for body in [&b"234"[..], b"", b"2345678", b"23456789 and much more"] {
        let server = Server::start(move |request| Answer { body: body.to_vec(), ..good(request) });
        let error = server.store().get("a.log", Some(2..8), 6).unwrap_err();
        assert_tells(&error, Kind::Corrupt, &["of the 6 asked for", "at position 2"]);
        assert_eq!(server.requests().len(), 4);
    }
    // A body in chunks has no length that could be compared.
    let server = Server::start(|request| Answer { is_chunked: true, ..good(request) });
    let error = server.store().get("a.log", Some(2..8), 6).unwrap_err();
    assert_tells(&error, Kind::Io, &["Content-Length"]);
}

#[test]
fn another_range_than_was_asked_for_is_never_taken() {
    for range in ["bytes 0-5/10", "bytes 2-9/10", "bytes 2-7", "chapters 2-7/10", "bytes 7-2/10"] {
        let server = Server::start(move |request| {
            let mut answer = good(request);
            answer.headers.retain(|(name, _)| *name != "Content-Range");
            answer.headers.push(("Content-Range", range.to_owned()));
            answer
        });
        let error = server.store().get("a.log", Some(2..8), 6).unwrap_err();
        assert!(matches!(error.kind(), Kind::Io | Kind::OutOfRange), "{error}");
        assert_tells(&error, error.kind(), &["read"]);
    }
    // A server that knows no ranges gives all of it.
    let server = Server::start(|request| {
        Answer::object(&Request { range: None, ..request.clone() }, BYTES, "one")
    });
    let error = server.store().get("a.log", Some(2..8), 6).unwrap_err();
    assert_tells(&error, Kind::Unsupported, &["ange"]);
}

#[test]
fn an_object_that_changed_between_two_reads_is_noticed() {
    // Whether the server compares the tags itself or not.
    for compares in [true, false] {
        let version = Arc::new(AtomicUsize::new(0));
        let current = Arc::clone(&version);
        let server = Server::start(move |request| {
            let tag = format!("version-{}", current.load(Ordering::SeqCst));
            match &request.if_match {
                Some(wanted) if compares && *wanted != tag => Answer::status(412),
                _ => Answer::object(request, BYTES, &tag),
            }
        });
        let store = server.store();
        assert_eq!(store.get("a.log", Some(0..2), 2).unwrap(), b"01");
        assert_eq!(store.get("a.log", Some(2..4), 2).unwrap(), b"23");
        version.store(1, Ordering::SeqCst);
        let error = store.get("a.log", Some(4..6), 2).unwrap_err();
        assert_tells(&error, Kind::Conflict, &["another one"]);
        // From then on it is the new one that is read.
        assert_eq!(store.get("a.log", Some(4..6), 2).unwrap(), b"45");
        version.store(2, Ordering::SeqCst);
        assert_eq!(store.size("a.log").unwrap_err().kind(), Kind::Conflict);
    }
    // Without a tag, size and time tell.
    let server = Server::start(|request| {
        let bytes: &[u8] = if request.number == 0 { BYTES } else { b"01234567890" };
        Answer::object(request, bytes, "")
    });
    let store = server.store();
    assert_eq!(store.get("a.log", Some(0..2), 2).unwrap(), b"01");
    assert_eq!(store.get("a.log", Some(2..4), 2).unwrap_err().kind(), Kind::Conflict);
}

#[test]
fn a_broken_index_is_an_error_and_is_not_kept() {
    let server = Server::start(|request| {
        let bytes: &[u8] = match request.path.ends_with(".timeindex") && request.number < 5 {
            true => b"no time index",
            false => &[],
        };
        Answer::object(request, bytes, "one")
    });
    let store = Arc::new(server.store());
    let partition =
        RemotePartition { topic_id: Uuid::reserved(7), topic: "t".to_owned(), partition: 0 };
    let segment = RemoteSegment {
        id: RemoteSegmentId { partition, segment_id: Uuid::reserved(8) },
        start_offset: 5,
        end_offset: 9,
        max_timestamp_ms: 0,
        broker_id: 1,
        event_timestamp_ms: 0,
        size_bytes: 10,
        custom_metadata: None,
        state: RemoteSegmentState::CopyFinished,
        leader_epochs: vec![EpochEntry { epoch: 0, start_offset: 5 }],
        is_txn_index_empty: true,
    };
    let (disk, layout) = (Arc::new(SimDisk::new()), ObjectLayout::default());
    let (root, options) = (std::path::Path::new("/"), IndexCacheOptions::default());
    let cache = RemoteIndexCache::open(disk, root, store, layout, options, 0).unwrap();
    let error = cache.get(&segment, 0).unwrap_err();
    assert_eq!((error.kind(), cache.count()), (Kind::Corrupt, 0));
    assert!(error.to_string().contains(".timeindex: time index"), "{error}");
}
