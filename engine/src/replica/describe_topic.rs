//! How are DescribeTopicPartitions, which tells of eligible leader replicas, and the
//! DescribeTopicRequest of KIP-966's first draft written?
//!
//! Both are in the flexible encoding. A compact string is the number of its bytes plus one as an
//! unsigned varint, and then the bytes; 0 stands for none. A compact array is the same with
//! items. A struct that may be absent begins with a byte: -1 for none, 1 for one. Every struct ends
//! with its tagged fields, of which these messages have none; those of later releases are passed
//! over.
//!
//! Reading allocates no more than the bytes present can fill.

use crate::bytes::{get_i8, get_i16, get_i32};
use crate::error::{Error, Kind, Result};
use crate::record::varint;
use crate::uuid::Uuid;

/// The api key of DescribeTopicPartitions.
pub const DESCRIBE_TOPIC_PARTITIONS: i16 = 75;

/// The api key that the draft gave to DescribeTopic. Kafka 4.3.1 has ConsumerGroupDescribe there:
/// the draft's message is never to be sent to a real broker, and never to be answered.
pub const DESCRIBE_TOPIC_SEED: i16 = 69;

/// The only version of both.
pub const VERSION: i16 = 0;

/// How many partitions a response has when the request does not say.
pub const PARTITION_LIMIT_DEFAULT: i32 = 2000;

/// The set of authorised operations when it was not asked for.
pub const OPERATIONS_UNKNOWN: i32 = i32::MIN;

/// A topic in the draft's request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedTopic {
    /// Its id; zero for none.
    pub topic_id: Uuid,
    /// Its name.
    pub name: Option<String>,
}

/// Where a response breaks off, and the next request begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The topic.
    pub topic_name: String,
    /// The first partition.
    pub partition_index: i32,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeRequest {
    /// The topics; all if there is none.
    pub topics: Vec<String>,
    /// How many partitions the response may have.
    pub response_partition_limit: i32,
    /// Where to begin.
    pub cursor: Option<Cursor>,
}

/// A partition in a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedPartition {
    /// 0, or an error code.
    pub error_code: i16,
    /// Its number.
    pub partition_index: i32,
    /// Its leader, -1 for none.
    pub leader_id: i32,
    /// The leader's epoch, -1 for none.
    pub leader_epoch: i32,
    /// All replicas.
    pub replicas: Vec<i32>,
    /// Those in sync.
    pub isr: Vec<i32>,
    /// Those that are eligible.
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// The last known ones.
    pub last_known_elr: Option<Vec<i32>>,
    /// Those that are offline.
    pub offline_replicas: Vec<i32>,
}

/// A topic in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedTopic {
    /// 0, or an error code.
    pub error_code: i16,
    /// Its name.
    pub name: Option<String>,
    /// Its id.
    pub topic_id: Uuid,
    /// Whether it is one of Kafka's own.
    pub is_internal: bool,
    /// Its partitions.
    pub partitions: Vec<DescribedPartition>,
    /// A bit for each operation, or [`OPERATIONS_UNKNOWN`].
    pub authorized_operations: i32,
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeResponse {
    /// How long the client was to wait, in milliseconds.
    pub throttle_time_ms: i32,
    /// The topics.
    pub topics: Vec<DescribedTopic>,
    /// Where the next request begins.
    pub next_cursor: Option<Cursor>,
}

/// The body of the draft's request.
///
/// # Errors
/// `Limit` for more items or bytes than a length can say.
// spec: replication 5.1
pub fn encode_describe_topic_seed(topics: &[SeedTopic]) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.array(topics, |out, topic| {
        out.bytes.extend(topic.topic_id.0);
        out.string(topic.name.as_deref())?;
        out.no_tags();
        Ok(())
    })?;
    Ok(out.end())
}

/// Reads the body of the draft's request.
///
/// # Errors
/// `Corrupt` for bytes that are none; `Unsupported` for another version.
pub fn decode_describe_topic_seed(bytes: &[u8], version: i16) -> Result<Vec<SeedTopic>> {
    let mut reader = Reader::of(bytes, version)?;
    let topics = reader.array(18, |reader| {
        let topic = SeedTopic { topic_id: reader.uuid()?, name: reader.nullable_string()? };
        reader.tags()?;
        Ok(topic)
    })?;
    reader.end()?;
    Ok(topics)
}

/// The body of a request.
///
/// # Errors
/// `Limit` for more items or bytes than a length can say.
// spec: replication 5.2
pub fn encode_describe_request(request: &DescribeRequest) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.array(&request.topics, |out, name| {
        out.string(Some(name))?;
        out.no_tags();
        Ok(())
    })?;
    out.i32(request.response_partition_limit);
    out.cursor(request.cursor.as_ref())?;
    Ok(out.end())
}

/// Reads the body of a request.
///
/// # Errors
/// `Corrupt` for bytes that are none; `Unsupported` for another version.
pub fn decode_describe_request(bytes: &[u8], version: i16) -> Result<DescribeRequest> {
    let mut reader = Reader::of(bytes, version)?;
    let topics = reader.array(2, |reader| {
        let name = reader.string()?;
        reader.tags()?;
        Ok(name)
    })?;
    let response_partition_limit = reader.i32()?;
    let cursor = reader.cursor()?;
    reader.end()?;
    Ok(DescribeRequest { topics, response_partition_limit, cursor })
}

/// The body of a response.
///
/// # Errors
/// `Limit` for more items or bytes than a length can say.
// spec: replication 5.2
pub fn encode_describe_response(response: &DescribeResponse) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.i32(response.throttle_time_ms);
    out.array(&response.topics, |out, topic| {
        out.bytes.extend(topic.error_code.to_be_bytes());
        out.string(topic.name.as_deref())?;
        out.bytes.extend(topic.topic_id.0);
        out.bytes.push(u8::from(topic.is_internal));
        out.array(&topic.partitions, Writer::partition)?;
        out.i32(topic.authorized_operations);
        out.no_tags();
        Ok(())
    })?;
    out.cursor(response.next_cursor.as_ref())?;
    Ok(out.end())
}

/// Reads the body of a response.
///
/// # Errors
/// `Corrupt` for bytes that are none; `Unsupported` for another version.
pub fn decode_describe_response(bytes: &[u8], version: i16) -> Result<DescribeResponse> {
    let mut reader = Reader::of(bytes, version)?;
    let throttle_time_ms = reader.i32()?;
    let topics = reader.array(26, |reader| {
        let topic = DescribedTopic {
            error_code: reader.i16()?,
            name: reader.nullable_string()?,
            topic_id: reader.uuid()?,
            is_internal: reader.i8()? != 0,
            partitions: reader.array(20, Reader::partition)?,
            authorized_operations: reader.i32()?,
        };
        reader.tags()?;
        Ok(topic)
    })?;
    let next_cursor = reader.cursor()?;
    reader.end()?;
    Ok(DescribeResponse { throttle_time_ms, topics, next_cursor })
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn i32(&mut self, value: i32) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn no_tags(&mut self) {
        self.bytes.push(0);
    }

    fn length(&mut self, length: usize) -> Result<()> {
        let length = u32::try_from(length).ok().filter(|it| i32::try_from(*it).is_ok());
        let length = length.ok_or_else(|| Error::new(Kind::Limit, "a message is too large"))?;
        varint::write_u32(&mut self.bytes, length.saturating_add(1));
        Ok(())
    }

    fn string(&mut self, text: Option<&str>) -> Result<()> {
        match text {
            None => self.bytes.push(0),
            Some(text) => {
                self.length(text.len())?;
                self.bytes.extend(text.as_bytes());
            }
        }
        Ok(())
    }

    fn array<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        self.length(items.len())?;
        items.iter().try_for_each(|item| write(self, item))
    }

    fn ids(&mut self, ids: &[i32]) -> Result<()> {
        self.array(ids, |out, id| {
            out.i32(*id);
            Ok(())
        })
    }

    fn nullable_ids(&mut self, ids: Option<&[i32]>) -> Result<()> {
        match ids {
            None => self.bytes.push(0),
            Some(ids) => self.ids(ids)?,
        }
        Ok(())
    }

    fn cursor(&mut self, cursor: Option<&Cursor>) -> Result<()> {
        let Some(cursor) = cursor else {
            self.bytes.push(0xff);
            return Ok(());
        };
        self.bytes.push(1);
        self.string(Some(&cursor.topic_name))?;
        self.i32(cursor.partition_index);
        self.no_tags();
        Ok(())
    }

    fn partition(&mut self, partition: &DescribedPartition) -> Result<()> {
        self.bytes.extend(partition.error_code.to_be_bytes());
        self.i32(partition.partition_index);
        self.i32(partition.leader_id);
        self.i32(partition.leader_epoch);
        self.ids(&partition.replicas)?;
        self.ids(&partition.isr)?;
        self.nullable_ids(partition.eligible_leader_replicas.as_deref())?;
        self.nullable_ids(partition.last_known_elr.as_deref())?;
        self.ids(&partition.offline_replicas)?;
        self.no_tags();
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        self.no_tags();
        self.bytes
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    size_bytes: usize,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8], version: i16) -> Result<Self> {
        if version != VERSION {
            let message = format!("version {version} of the message is unknown");
            return Err(Error::new(Kind::Unsupported, message));
        }
        Ok(Reader { bytes, size_bytes: bytes.len() })
    }

    fn corrupt(&self, what: &str) -> Error {
        let position = self.size_bytes.saturating_sub(self.bytes.len());
        Error::corrupt(what).at_position(u64::try_from(position).unwrap_or(u64::MAX))
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(size)
            .ok_or_else(|| self.corrupt("the message ends within a field"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn i8(&mut self) -> Result<i8> {
        let bytes = self.take(1)?;
        get_i8(bytes, 0).ok_or_else(|| self.corrupt("the message ends within a field"))
    }

    fn i16(&mut self) -> Result<i16> {
        let bytes = self.take(2)?;
        get_i16(bytes, 0).ok_or_else(|| self.corrupt("the message ends within a field"))
    }

    fn i32(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        get_i32(bytes, 0).ok_or_else(|| self.corrupt("the message ends within a field"))
    }

    fn uuid(&mut self) -> Result<Uuid> {
        let bytes = self.take(16)?.try_into();
        bytes.map(Uuid).map_err(|_| self.corrupt("the message ends within an id"))
    }

    fn varint(&mut self) -> Result<usize> {
        let (value, rest) = varint::read_u32(self.bytes)
            .map_err(|_| self.corrupt("a length is no unsigned varint"))?;
        self.bytes = rest;
        usize::try_from(value).map_err(|_| self.corrupt("a length is too large"))
    }

    /// A length, or none for null. It is never more than `size_min` bytes each can fill.
    fn length(&mut self, size_min: usize) -> Result<Option<usize>> {
        let Some(length) = self.varint()?.checked_sub(1) else { return Ok(None) };
        if length.saturating_mul(size_min) > self.bytes.len() {
            return Err(self.corrupt("a length reaches behind the end of the message"));
        }
        Ok(Some(length))
    }

    fn nullable_string(&mut self) -> Result<Option<String>> {
        let Some(size) = self.length(1)? else { return Ok(None) };
        let bytes = self.take(size)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.corrupt("a name is no UTF-8"))?;
        Ok(Some(text.to_owned()))
    }

    fn string(&mut self) -> Result<String> {
        self.nullable_string()?.ok_or_else(|| self.corrupt("a name is missing"))
    }

    fn nullable_array<T>(
        &mut self,
        size_min: usize,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        let Some(count) = self.length(size_min)? else { return Ok(None) };
        (0..count).map(|_| read(self)).collect::<Result<Vec<T>>>().map(Some)
    }

    fn array<T>(
        &mut self,
        size_min: usize,
        read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let items = self.nullable_array(size_min, read)?;
        items.ok_or_else(|| self.corrupt("a list is missing"))
    }

    fn ids(&mut self) -> Result<Vec<i32>> {
        self.array(4, Self::i32)
    }

    fn cursor(&mut self) -> Result<Option<Cursor>> {
        if self.i8()? < 0 {
            return Ok(None);
        }
        let cursor = Cursor { topic_name: self.string()?, partition_index: self.i32()? };
        self.tags()?;
        Ok(Some(cursor))
    }

    fn partition(&mut self) -> Result<DescribedPartition> {
        let partition = DescribedPartition {
            error_code: self.i16()?,
            partition_index: self.i32()?,
            leader_id: self.i32()?,
            leader_epoch: self.i32()?,
            replicas: self.ids()?,
            isr: self.ids()?,
            eligible_leader_replicas: self.nullable_array(4, Self::i32)?,
            last_known_elr: self.nullable_array(4, Self::i32)?,
            offline_replicas: self.ids()?,
        };
        self.tags()?;
        Ok(partition)
    }

    /// Passes over tagged fields, none of which this release knows.
    fn tags(&mut self) -> Result<()> {
        for _ in 0..self.varint()? {
            let _tag = self.varint()?;
            let size = self.varint()?;
            self.take(size)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.tags()?;
        if self.bytes.is_empty() { Ok(()) } else { Err(self.corrupt("bytes follow the message")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits: String = hex.split_whitespace().collect();
        let pairs = digits.as_bytes().chunks(2);
        pairs.map(|it| u8::from_str_radix(std::str::from_utf8(it).unwrap(), 16).unwrap()).collect()
    }

    fn id() -> Uuid {
        Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    }

    #[test]
    fn the_draft_has_its_bytes() {
        // spec: replication 5.1
        let bytes = bytes_of(
            "03 000102030405060708090a0b0c0d0e0f 04 666f6f 00
             00000000000000000000000000000000 00 00 00",
        );
        assert_eq!(bytes.len(), 41);
        let named = SeedTopic { topic_id: id(), name: Some("foo".to_owned()) };
        let topics = [named, SeedTopic::default()];
        assert_eq!(encode_describe_topic_seed(&topics).unwrap(), bytes);
        assert_eq!(decode_describe_topic_seed(&bytes, 0).unwrap(), topics);
        assert_eq!(DESCRIBE_TOPIC_SEED, 69);
        every_damage_is_told(&bytes, |bytes| decode_describe_topic_seed(bytes, 0).map(drop));
    }

    #[test]
    fn requests_have_kafkas_bytes() {
        // spec: replication 5.2
        let cursor = Cursor { topic_name: "foo".to_owned(), partition_index: 1 };
        for (cursor, hex) in [
            (None, "0204666f6f00 000007d0 ff 00"),
            (Some(cursor), "0204666f6f00 000007d0 01 04666f6f 00000001 00 00"),
        ] {
            let request = DescribeRequest {
                topics: vec!["foo".to_owned()],
                response_partition_limit: PARTITION_LIMIT_DEFAULT,
                cursor,
            };
            let bytes = bytes_of(hex);
            assert_eq!(encode_describe_request(&request).unwrap(), bytes);
            assert_eq!(decode_describe_request(&bytes, 0).unwrap(), request);
            every_damage_is_told(&bytes, |bytes| decode_describe_request(bytes, 0).map(drop));
        }
        assert_eq!(DESCRIBE_TOPIC_PARTITIONS, 75);
    }

    const RESPONSE: &str = "00000000 02 0000 04666f6f 000102030405060708090a0b0c0d0e0f 00 02 0000
        00000000 00000001 00000005 04000000010000000200000003 0200000001 0200000002 01
        0200000003 00 80000000 00 ff 00";

    fn response() -> DescribeResponse {
        let partition = DescribedPartition {
            leader_id: 1,
            leader_epoch: 5,
            replicas: vec![1, 2, 3],
            isr: vec![1],
            eligible_leader_replicas: Some(vec![2]),
            last_known_elr: Some(vec![]),
            offline_replicas: vec![3],
            ..DescribedPartition::default()
        };
        let topic = DescribedTopic {
            error_code: 0,
            name: Some("foo".to_owned()),
            topic_id: id(),
            is_internal: false,
            partitions: vec![partition],
            authorized_operations: OPERATIONS_UNKNOWN,
        };
        DescribeResponse { topics: vec![topic], ..DescribeResponse::default() }
    }

    #[test]
    fn responses_have_kafkas_bytes() {
        // spec: replication 5.2
        let bytes = bytes_of(RESPONSE);
        assert_eq!(bytes.len(), 80);
        assert_eq!(encode_describe_response(&response()).unwrap(), bytes);
        assert_eq!(decode_describe_response(&bytes, 0).unwrap(), response());
        every_damage_is_told(&bytes, |bytes| decode_describe_response(bytes, 0).map(drop));

        let mut absent = response();
        absent.topics[0].partitions[0].eligible_leader_replicas = None;
        absent.next_cursor = Some(Cursor { topic_name: "goo".to_owned(), partition_index: 9 });
        let bytes = encode_describe_response(&absent).unwrap();
        assert_eq!(decode_describe_response(&bytes, 0).unwrap(), absent);
    }

    /// Every prefix is refused, and no changed byte leads to a panic.
    fn every_damage_is_told(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<()>) {
        for end in 0..bytes.len() {
            let error = decode(&bytes[..end]).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "cut at {end}");
            assert!(error.position().is_some());
        }
        let longer = [bytes, &[0]].concat();
        assert_eq!(decode(&longer).unwrap_err().kind(), Kind::Corrupt);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= 1 << bit;
                let _ = decode(&damaged);
            }
        }
    }

    #[test]
    fn lengths_that_lie_allocate_nothing() {
        for head in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]] {
            let error = decode_describe_topic_seed(head, 0).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt);
        }
        let tags = [&[0x01][..], &[0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x00]].concat();
        assert_eq!(decode_describe_topic_seed(&tags, 0).unwrap_err().kind(), Kind::Corrupt);
    }

    #[test]
    fn tagged_fields_of_later_releases_are_passed_over() {
        let bytes = bytes_of("0204666f6f 01 05 02 aabb 000007d0 ff 02 00 00 07 01 cc");
        let request = decode_describe_request(&bytes, 0).unwrap();
        assert_eq!((request.topics, request.cursor), (vec!["foo".to_owned()], None));
    }

    #[test]
    fn other_versions_are_unsupported() {
        for version in [-1, 1] {
            let error = decode_describe_response(&bytes_of(RESPONSE), version).unwrap_err();
            assert_eq!(error.kind(), Kind::Unsupported);
        }
    }
}
