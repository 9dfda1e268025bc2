//! Clients that do not know how to behave: the broker of `examples/broker-cpp` lives on, and others
//! notice nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::example_broker::{ExampleBroker, kcat};

/// A request with its size in front.
fn frame(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(key.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(7_i32.to_be_bytes()); // correlation id
    bytes.extend((-1_i16).to_be_bytes()); // no client name
    bytes.extend(body);
    let size = u32::try_from(bytes.len()).expect("a small request");
    [&size.to_be_bytes(), bytes.as_slice()].concat()
}

/// A Fetch of version 4 from the start of partition 0 of a topic with a short name.
fn fetch(topic: &str, max_bytes: i32) -> Vec<u8> {
    let mut body = Vec::new();
    for number in [-1, 0, 1, max_bytes] {
        body.extend(i32::to_be_bytes(number)); // replica, wait, least and most bytes
    }
    body.push(0);
    body.extend(1_i32.to_be_bytes());
    body.extend(i16::try_from(topic.len()).expect("a short name").to_be_bytes());
    body.extend(topic.as_bytes());
    body.extend(1_i32.to_be_bytes());
    body.extend(0_i32.to_be_bytes());
    body.extend(0_i64.to_be_bytes());
    body.extend(max_bytes.to_be_bytes());
    frame(1, 4, &body)
}

fn connect(broker: &ExampleBroker) -> TcpStream {
    let stream = TcpStream::connect(broker.address()).expect("a broker that listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream
}

/// What is answered until the broker closes.
fn answer(broker: &ExampleBroker, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(broker);
    let mut told = Vec::new();
    // The broker may have closed before all was written or read: it need not take nonsense.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut told);
    told
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
    let line = "x".repeat(999);
    let text: String = (0..24_000).map(|_| format!("{line}\n")).collect();
    kcat(&broker, &["-P", "-t", "large", "-p", "0"], &text);
    let mut slow: Vec<TcpStream> = (0..3).map(|_| connect(&broker)).collect();
    for stream in &mut slow {
        for _ in 0..4 {
            stream.write_all(&fetch("large", i32::MAX)).expect("a broker that reads");
        }
    }
    let read = kcat(&broker, &["-C", "-q", "-e", "-t", "large", "-p", "0", "-o", "beginning"], "");
    assert_eq!(read.len(), text.len());

    // Then they read: all of it is there, in parts as large as their sockets took.
    let log = fs::read(broker.data().join("large-0/00000000000000000000.log")).expect("a log");
    assert!(log.len() > text.len());
    for stream in &mut slow {
        for _ in 0..4 {
            let mut size = [0; 4];
            stream.read_exact(&mut size).expect("an answer");
            let mut bytes = vec![0; usize::try_from(u32::from_be_bytes(size)).expect("a size")];
            stream.read_exact(&mut bytes).expect("an answer");
            assert!(bytes.ends_with(&log));
        }
    }
    drop(slow);
    broker.stop();
    broker.verify();
}
