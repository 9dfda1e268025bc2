//! Requests to the broker of `examples/broker-cpp`, byte by byte: what no client of Kafka's sends,
//! too.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;

use crate::example_broker::ExampleBroker;

/// A request with its size in front.
pub fn frame(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let header = Body::default().i16(key).i16(version);
    let header = header.i32(7 /* correlation id */).i16(-1 /* no client name */).0;
    let size = u32::try_from(header.len() + body.len()).expect("a small request");
    [&size.to_be_bytes(), header.as_slice(), body].concat()
}

pub fn connect(broker: &ExampleBroker) -> TcpStream {
    let stream = TcpStream::connect(broker.address()).expect("a broker that listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream
}

/// What is answered until the broker closes.
pub fn answer(broker: &ExampleBroker, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(broker);
    let mut told = Vec::new();
    // The broker may have closed before all was written or read: it need not take nonsense.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut told);
    told
}

/// What a request says.
#[derive(Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    pub fn i8(self, number: i8) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn i16(self, number: i16) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn i32(self, number: i32) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn i64(self, number: i64) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn text(self, text: &str) -> Self {
        self.i16(i16::try_from(text.len()).expect("a short text")).raw(text.as_bytes())
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// One topic, and one of something for it.
    pub fn topic(self, name: &str) -> Self {
        self.i32(1).text(name).i32(1)
    }
}

/// What is answered, from the front on.
pub struct Told(Vec<u8>);

impl Told {
    pub fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    pub fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }

    /// The same topic again.
    pub fn topic(&mut self, name: &str) -> &mut Self {
        let expected = Body::default().topic(name).0;
        assert!(self.0.starts_with(&expected), "{name}: {:?}", self.0);
        self.0.drain(..expected.len());
        self
    }

    fn take<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let bytes = *self.0.first_chunk().expect("a longer answer");
        self.0.drain(..SIZE);
        bytes
    }
}

/// A Fetch of version 4 from the start of partitions of a topic.
pub struct Fetch<'a> {
    pub topic: &'a str,
    pub partitions: &'a [i32],
    pub max_bytes: i32,
    pub max_wait_ms: i32,
}

impl Fetch<'_> {
    pub fn frame(&self) -> Vec<u8> {
        let count = i32::try_from(self.partitions.len()).expect("a few partitions");
        let mut body = Body::default().i32(-1 /* no replica */).i32(self.max_wait_ms);
        body = body.i32(1 /* byte at least */).i32(self.max_bytes).i8(0);
        body = body.i32(1).text(self.topic).i32(count);
        for partition in self.partitions {
            body = body.i32(*partition).i64(0).i32(self.max_bytes);
        }
        frame(1, 4, &body.0)
    }
}

/// Who a producer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
}

impl Producer {
    /// A batch with one small record.
    pub fn batch(self, base_sequence: i32, is_transactional: bool) -> Vec<u8> {
        let Producer { id: producer_id, epoch: producer_epoch } = self;
        let options = BatchOptions {
            producer_id,
            producer_epoch,
            base_sequence,
            is_transactional,
            ..BatchOptions::default()
        };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
        let now_ms = i64::try_from(since_1970.as_millis()).expect("a year before 292278994");
        let mut builder = BatchBuilder::new(options).expect("options");
        builder.append(now_ms, None, Some(b"x")).expect("a record");
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch");
        bytes
    }
}

/// A client that waits for each answer; partitions are partition 0.
pub struct Client(TcpStream);

impl Client {
    pub fn of(broker: &ExampleBroker) -> Self {
        Client(connect(broker))
    }

    /// The answer without its size and correlation id; `None` when the broker has closed.
    pub fn try_call(&mut self, key: i16, version: i16, body: Body) -> Option<Told> {
        self.0.write_all(&frame(key, version, &body.0)).ok()?;
        let mut size = [0; 4];
        self.0.read_exact(&mut size).ok()?;
        let mut told = vec![0; usize::try_from(u32::from_be_bytes(size)).expect("a size")];
        self.0.read_exact(&mut told).expect("a whole answer");
        let mut told = Told(told);
        assert_eq!(told.i32(), 7);
        Some(told)
    }

    pub fn call(&mut self, key: i16, version: i16, body: Body) -> Told {
        self.try_call(key, version, body).expect("an answer")
    }

    /// Its error code.
    pub fn create(&mut self, topic: &str, partitions: i32, setting: Option<(&str, &str)>) -> i16 {
        let mut body = Body::default().i32(1).text(topic).i32(partitions);
        body = body.i16(1).i32(0 /* no assignments */).i32(i32::from(setting.is_some()));
        if let Some((name, value)) = setting {
            body = body.text(name).text(value);
        }
        let mut told = self.call(19, 2, body.i32(1000).i8(0));
        told.i32(); // throttled for so long
        assert_eq!(told.i32(), 1);
        let name_size = usize::try_from(told.i16()).expect("a size");
        told.0.drain(..name_size);
        told.i16()
    }

    /// Its error code and offset; no records are null.
    pub fn produce(&mut self, topic: &str, id: Option<&str>, records: Option<&[u8]>) -> (i16, i64) {
        let body = id.map_or(Body::default().i16(-1), |id| Body::default().text(id));
        let body = body.i16(-1 /* all acks */).i32(1000).topic(topic).i32(0);
        let size = records.map(|records| i32::try_from(records.len()).expect("a small batch"));
        let body = body.i32(size.unwrap_or(-1)).raw(records.unwrap_or_default());
        let mut told = self.call(0, 3, body);
        assert_eq!(told.topic(topic).i32(), 0);
        (told.i16(), told.i64())
    }

    /// The high watermark, or the last stable offset.
    pub fn end(&mut self, topic: &str, is_committed: bool) -> i64 {
        let body = Body::default().i32(-1).i8(i8::from(is_committed));
        let mut told = self.call(2, 2, body.topic(topic).i32(0).i64(-1 /* the latest */));
        told.i32(); // throttled for so long
        assert_eq!(told.topic(topic).i32(), 0);
        assert_eq!((told.i16(), told.i64()), (0, -1));
        told.i64()
    }

    /// Its error code and what was given; `None` when the broker has closed.
    pub fn try_init(&mut self, id: &str) -> Option<(i16, Producer)> {
        let mut told = self.try_call(22, 1, Body::default().text(id).i32(60_000))?;
        told.i32(); // throttled for so long
        Some((told.i16(), Producer { id: told.i64(), epoch: told.i16() }))
    }

    /// A producer that takes over a transactional id.
    pub fn init(&mut self, id: &str) -> Producer {
        let (error, producer) = self.try_init(id).expect("an answer");
        assert_eq!(error, 0, "{id}");
        producer
    }

    /// Its error code.
    pub fn add(&mut self, id: &str, producer: Producer, topic: &str) -> i16 {
        let body = Body::default().text(id).i64(producer.id).i16(producer.epoch);
        let mut told = self.call(24, 0, body.topic(topic).i32(0));
        told.i32(); // throttled for so long
        assert_eq!(told.topic(topic).i32(), 0);
        told.i16()
    }

    /// Ends a transaction well; its error code.
    pub fn commit(&mut self, id: &str, producer: Producer) -> i16 {
        let body = Body::default().text(id).i64(producer.id).i16(producer.epoch);
        let mut told = self.call(26, 1, body.i8(1));
        told.i32(); // throttled for so long
        told.i16()
    }
}
