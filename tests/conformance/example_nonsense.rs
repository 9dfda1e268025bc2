//! Clients that do not know how to behave: the broker of `examples/broker-cpp` lives on, and others
//! notice nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::example_broker::{ExampleBroker, kcat};
use crate::example_wire::{Client, Fetch, answer, connect, frame};

/// A Fetch of the start of a topic.
fn fetch(topic: &str, max_bytes: i32) -> Vec<u8> {
    Fetch { topic, partitions: &[0], max_bytes, max_wait_ms: 0 }.frame()
}

/// Makes a topic that no socket takes at once; its log.
fn make_large_topic(broker: &ExampleBroker) -> (String, Vec<u8>) {
    let line = "x".repeat(999);
    let text: String = (0..24_000).map(|_| format!("{line}\n")).collect();
    kcat(broker, &["-P", "-t", "large", "-p", "0"], &text);
    let log = fs::read(broker.data().join("large-0/00000000000000000000.log")).expect("a log");
    assert!(log.len() > text.len());
    (text, log)
}

/// An answer as it comes, with its size.
fn read_answer(stream: &mut TcpStream) -> Vec<u8> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).expect("an answer");
    let mut bytes = vec![0; usize::try_from(u32::from_be_bytes(size)).expect("a size")];
    stream.read_exact(&mut bytes).expect("an answer");
    bytes
}

#[test]
fn nonsense_ends_its_connection_and_not_the_broker() {
    let options = ["--no-auto-create", "--request-bytes-max", "1000000"];
    let Some(mut broker) = ExampleBroker::start(&options) else { return };
    let all_versions = frame(18, 0, &[]);
    let healthy = answer(&broker, &all_versions);
    assert_eq!(&healthy[4..10], [0, 0, 0, 7, 0, 0]);
    // A version from the future is told which there are.
    assert_eq!(&answer(&broker, &frame(18, 99, &[]))[4..10], [0, 0, 0, 7, 0, 35]);

    let none: [&[u8]; 8] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &u32::MAX.to_be_bytes(),
        &1_000_001_u32.to_be_bytes(),
        &0_u32.to_be_bytes(),
        &frame(18, 3, &[0xff; 40]),
        &frame(999, 0, &[]),
        &frame(1, 99, &[]),
        // An array of two thousand million topics.
        &frame(3, 1, &i32::MAX.to_be_bytes()),
    ];
    for bytes in none {
        assert_eq!(answer(&broker, bytes), b"", "{bytes:?}");
    }

    let seeds = [
        all_versions.clone(),
        frame(18, 3, b"\x00\x05kcat\x02\x31\x00"),
        frame(3, 1, &(-1_i32).to_be_bytes()),
        frame(3, 9, b"\x00\x02\x06topic\x00\x00\x00\x00\x00"),
        fetch("topic", 1000),
        frame(10, 1, b"\x00\x01t\x01"),
        frame(22, 2, b"\x00\x02t\x00\x00\x10\x00\x00"),
        frame(26, 1, b"\x00\x01t\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"),
        frame(
            0,
            3,
            b"\xff\xff\xff\xff\x00\x00\x00\x10\x00\x00\x00\x01\x00\x05topic\x00\x00\x00\x01",
        ),
    ];
    let mut state: u64 = 0x5eed;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    for round in 0..600 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=random(3) {
            // Behind the size, for else nearly all of them would wait for more.
            let at = 4 + random(bytes.len() - 4);
            bytes[at] =
                u8::try_from([0, 1, 0x7f, 0x80, 0xff, random(256)][random(6)]).expect("a byte");
        }
        answer(&broker, &bytes);
    }
    assert_eq!(answer(&broker, &all_versions), healthy);
    broker.stop();
    broker.verify();
}

#[test]
fn a_consumer_that_does_not_read_keeps_nobody_waiting() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let (text, log) = make_large_topic(&broker);
    let mut slow: Vec<TcpStream> = (0..3).map(|_| connect(&broker)).collect();
    for stream in &mut slow {
        for _ in 0..4 {
            stream.write_all(&fetch("large", i32::MAX)).expect("a broker that reads");
        }
    }
    let read = kcat(&broker, &["-C", "-q", "-e", "-t", "large", "-p", "0", "-o", "beginning"], "");
    assert_eq!(read.len(), text.len());

    // Then they read: all of it is there, in parts as large as their sockets took.
    for stream in &mut slow {
        for _ in 0..4 {
            assert!(read_answer(stream).ends_with(&log));
        }
    }
    drop(slow);
    broker.stop();
    broker.verify();
}

#[test]
fn a_consumer_that_goes_before_its_answer_ends_nothing_else() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    make_large_topic(&broker);
    for _ in 0..20 {
        let mut stream = connect(&broker);
        stream.write_all(&fetch("large", i32::MAX)).expect("a broker that reads");
        drop(stream);
        assert_ne!(answer(&broker, &frame(18, 0, &[])), b"");
    }
    broker.stop();
}

#[test]
fn a_client_that_asks_no_more_has_its_answers() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    assert_eq!(Client::of(&broker).create("empty", 1, None), 0);
    let waiting = Fetch { topic: "empty", partitions: &[0], max_bytes: 1, max_wait_ms: i32::MAX };
    // It has what there is at once, since it may as well be gone, and so has what is behind it.
    let healthy = answer(&broker, &frame(18, 0, &[]));
    let begin = Instant::now();
    let told = answer(&broker, &[waiting.frame(), frame(18, 0, &[])].concat());
    assert!(told.len() > healthy.len() && told.ends_with(&healthy));
    let mut stream = connect(&broker);
    stream.write_all(&waiting.frame()).expect("a broker that reads");
    // Until the fetch waits.
    std::thread::sleep(Duration::from_millis(200));
    stream.shutdown(Shutdown::Write).expect("a socket");
    let mut told_late = Vec::new();
    stream.read_to_end(&mut told_late).expect("an answer");
    assert_eq!([told_late, healthy].concat(), told);
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());

    let (_, log) = make_large_topic(&broker);
    let mut stream = connect(&broker);
    for _ in 0..4 {
        stream.write_all(&fetch("large", i32::MAX)).expect("a broker that reads");
    }
    stream.shutdown(Shutdown::Write).expect("a socket");
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..4 {
        assert!(read_answer(&mut stream).ends_with(&log));
    }
    assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
    broker.stop();
}

#[test]
fn connections_that_no_file_is_left_for_wait() {
    let Some(mut broker) = ExampleBroker::start_under("ulimit -n 60", &[]) else { return };
    let all_versions = frame(18, 0, &[]);
    let healthy = answer(&broker, &all_versions);
    let mut streams: Vec<TcpStream> = (0..100).map(|_| connect(&broker)).collect();
    streams[0].write_all(&all_versions).expect("a broker that reads");
    assert_eq!(read_answer(&mut streams[0]), healthy[4..]);
    // Those that wait keep the broker from nothing, and not from sleeping.
    let before = broker.cpu_ticks();
    std::thread::sleep(Duration::from_secs(2));
    let ticks = broker.cpu_ticks() - before;
    assert!(ticks < 40, "it was busy for {ticks} ticks");
    // Their turn comes when others go.
    streams.drain(..90);
    let last = streams.last_mut().expect("a connection");
    last.write_all(&all_versions).expect("a broker that reads");
    assert_eq!(read_answer(last), healthy[4..]);
    drop(streams);
    assert_eq!(answer(&broker, &all_versions), healthy);
    broker.stop();
}
