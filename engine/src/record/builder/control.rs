//! How are control records written?
//!
//! ```text
//! key:                 i16 version 0 | i16 type
//! ABORT, COMMIT:       i16 version 0 | i32 coordinator epoch
//! LEADER_CHANGE:       i16 version 0 | i32 leader | voters { i32 id, tags } | those who granted
//!                      their vote { i32 id, tags } | tags
//! SNAPSHOT_HEADER:     i16 version 0 | i64 last contained log timestamp | tags
//! SNAPSHOT_FOOTER:     i16 version 0 | tags
//! KRAFT_VERSION:       i16 version 0 | i16 KRaft version | tags
//! KRAFT_VOTERS:        i16 version 0 | voters { i32 id, directory id,
//!                      endpoints { name, host, u16 port, tags }, { i16 min, i16 max, tags },
//!                      tags } | tags
//! ```
//!
//! Arrays and strings begin with their count plus one as an unsigned varint; `tags` is the number
//! of tagged fields, 0.

use super::options::invalid;
use super::{BatchBuilder, BatchOptions};
use crate::error::{Error, Kind, Result};
use crate::record::codec::{Compression, Compressor};
use crate::record::control::{ControlType, EndMarker};
use crate::record::varint;
use crate::units::{NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE};

/// A control record of a KRaft log or snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KraftControl {
    /// A leader was elected.
    LeaderChange {
        /// Node id of the leader.
        leader_id: i32,
        /// Node ids of all voters.
        voters: Vec<i32>,
        /// Node ids of those who voted for it.
        granting_voters: Vec<i32>,
    },
    /// A snapshot begins.
    SnapshotHeader {
        /// Timestamp of the last batch that the snapshot contains.
        last_contained_log_timestamp_ms: i64,
    },
    /// A snapshot ends.
    SnapshotFooter,
    /// The KRaft version is this from here on.
    KraftVersion(i16),
    /// The voters are these from here on.
    KraftVoters(Vec<Voter>),
}

/// A voter of the KRaft quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// Node id.
    pub id: i32,
    /// Id of its metadata log directory.
    pub directory_id: [u8; 16],
    /// Where it listens.
    pub endpoints: Vec<Endpoint>,
    /// Smallest KRaft version that it supports.
    pub kraft_version_min: i16,
    /// Largest KRaft version that it supports, inclusive.
    pub kraft_version_max: i16,
}

/// A listener of a [`Voter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name of the listener.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl KraftControl {
    fn kind(&self) -> ControlType {
        match self {
            KraftControl::LeaderChange { .. } => ControlType::LeaderChange,
            KraftControl::SnapshotHeader { .. } => ControlType::SnapshotHeader,
            KraftControl::SnapshotFooter => ControlType::SnapshotFooter,
            KraftControl::KraftVersion(_) => ControlType::KraftVersion,
            KraftControl::KraftVoters(_) => ControlType::KraftVoters,
        }
    }

    fn value(&self) -> Result<Vec<u8>> {
        let mut out = vec![0, 0];
        match self {
            KraftControl::LeaderChange { leader_id, voters, granting_voters } => {
                out.extend_from_slice(&leader_id.to_be_bytes());
                for ids in [voters, granting_voters] {
                    push_count(&mut out, ids.len())?;
                    for id in ids {
                        out.extend_from_slice(&id.to_be_bytes());
                        push_no_tags(&mut out);
                    }
                }
            }
            KraftControl::SnapshotHeader { last_contained_log_timestamp_ms } => {
                out.extend_from_slice(&last_contained_log_timestamp_ms.to_be_bytes());
            }
            KraftControl::SnapshotFooter => {}
            KraftControl::KraftVersion(version) => out.extend_from_slice(&version.to_be_bytes()),
            KraftControl::KraftVoters(voters) => {
                push_count(&mut out, voters.len())?;
                for voter in voters {
                    push_voter(&mut out, voter)?;
                }
            }
        }
        push_no_tags(&mut out);
        Ok(out)
    }
}

fn push_voter(out: &mut Vec<u8>, voter: &Voter) -> Result<()> {
    out.extend_from_slice(&voter.id.to_be_bytes());
    out.extend_from_slice(&voter.directory_id);
    push_count(out, voter.endpoints.len())?;
    for endpoint in &voter.endpoints {
        for text in [&endpoint.name, &endpoint.host] {
            push_count(out, text.len())?;
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&endpoint.port.to_be_bytes());
        push_no_tags(out);
    }
    out.extend_from_slice(&voter.kraft_version_min.to_be_bytes());
    out.extend_from_slice(&voter.kraft_version_max.to_be_bytes());
    push_no_tags(out);
    push_no_tags(out);
    Ok(())
}

fn push_count(out: &mut Vec<u8>, count: usize) -> Result<()> {
    let count = i32::try_from(count)
        .map_err(|_| Error::new(Kind::Limit, "a control record has more than 2^31 - 1 parts"))?;
    varint::write_u32(out, count.unsigned_abs() + 1);
    Ok(())
}

fn push_no_tags(out: &mut Vec<u8>) {
    varint::write_u32(out, 0);
}

/// Appends the batch that ends a transaction. Of the options, offset, leader epoch, producer id and
/// producer epoch count; the marker's timestamp is that of the record.
///
/// # Errors
///
/// No producer id or no producer epoch; a negative timestamp other than -1.
pub fn write_end_marker(
    options: &BatchOptions,
    marker: &EndMarker,
    out: &mut Vec<u8>,
) -> Result<()> {
    // spec: records 6
    let options = BatchOptions { is_transactional: true, base_sequence: NO_SEQUENCE, ..*options };
    let kind = if marker.is_abort { ControlType::Abort } else { ControlType::Commit };
    let [a, b, c, d] = marker.coordinator_epoch.to_be_bytes();
    write_control(options, kind, marker.timestamp_ms, &[0, 0, a, b, c, d], out)
}

/// Appends a batch with one control record of a KRaft log. Of the options, offset and leader epoch
/// (that of the quorum) count.
///
/// # Errors
///
/// A leader change without leader epoch; a negative timestamp; more than 2^31 - 1 bytes.
pub fn write_kraft_control(
    options: &BatchOptions,
    timestamp_ms: i64,
    control: &KraftControl,
    out: &mut Vec<u8>,
) -> Result<()> {
    let is_leader_change = matches!(control, KraftControl::LeaderChange { .. });
    if is_leader_change && options.leader_epoch == NO_LEADER_EPOCH {
        return Err(invalid("a leader change needs the leader's epoch"));
    }
    let options = BatchOptions {
        is_transactional: false,
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_PRODUCER_EPOCH,
        base_sequence: NO_SEQUENCE,
        ..*options
    };
    write_control(options, control.kind(), timestamp_ms, &control.value()?, out)
}

fn write_control(
    options: BatchOptions,
    kind: ControlType,
    timestamp_ms: i64,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let options = BatchOptions {
        is_control: true,
        compression: Compression::NONE,
        log_append_time_ms: None,
        delete_horizon_ms: None,
        last_offset: None,
        ..options
    };
    let [high, low] = kind.id().to_be_bytes();
    let mut builder = BatchBuilder::new(options)?;
    builder.append(timestamp_ms, Some(&[0, 0, high, low]), Some(value))?;
    builder.write_to(&mut Compressor::new(), out).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::tests::hex;
    use super::*;
    use crate::record::batch::{BatchHeader, HEADER_SIZE};
    use crate::record::control::{Control, parse_control};
    use crate::record::records::Records;

    // spec: records 10; behaviours CT-001, CT-009, CT-011
    #[test]
    fn a_commit_marker_has_kafkas_bytes() {
        let options = BatchOptions {
            base_offset: 983,
            leader_epoch: 29,
            producer_id: 73,
            producer_epoch: 13,
            ..Default::default()
        };
        let marker = EndMarker { is_abort: false, coordinator_epoch: 347, timestamp_ms: 1000 };
        let mut out = Vec::new();
        write_end_marker(&options, &marker, &mut out).unwrap();
        let expected = concat!(
            "00000000000003d7000000420000001d02172b6dc800300000000000000000000003e800000000000003",
            "e80000000000000049000dffffffff000000012000000008000000010c00000000015b00"
        );
        assert_eq!(hex(&out), expected);
        let header = BatchHeader::parse(&out).unwrap();
        assert_eq!((out.len(), header.crc), (78, 388_722_120));
        assert_eq!((header.base_sequence, header.count), (-1, 1));
        let record = Records::new(&header, &out[HEADER_SIZE..]).next().unwrap().unwrap();
        assert_eq!((record.key.unwrap().len(), record.value.unwrap().len()), (4, 6));

        let marker = EndMarker { is_abort: true, ..marker };
        let mut out = Vec::new();
        write_end_marker(&options, &marker, &mut out).unwrap();
        let header = BatchHeader::parse(&out).unwrap();
        assert_eq!(parse_control(&header, &out), Control::End(marker));
    }

    #[test]
    fn a_marker_needs_a_producer() {
        let marker = EndMarker { is_abort: true, coordinator_epoch: 0, timestamp_ms: 0 };
        assert!(write_end_marker(&BatchOptions::default(), &marker, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_leader_change_needs_an_epoch() {
        // spec: behaviours BU-007
        let (voters, granting_voters) = (vec![1], vec![1]);
        let change = KraftControl::LeaderChange { leader_id: 1, voters, granting_voters };
        let mut out = b"before".to_vec();
        let error =
            write_kraft_control(&BatchOptions::default(), 0, &change, &mut out).unwrap_err();
        assert_eq!((error.kind(), out.as_slice()), (Kind::InvalidArgument, &b"before"[..]));
    }

    // spec: records 6
    #[test]
    fn kraft_control_records_have_the_bytes_of_schema_version_0() {
        let leader_change = KraftControl::LeaderChange {
            leader_id: 1,
            voters: vec![1, 2, 3],
            granting_voters: vec![1],
        };
        let voter = Voter {
            id: 3,
            directory_id: [0xab; 16],
            endpoints: vec![Endpoint { name: "C".into(), host: "h1".into(), port: 9093 }],
            kraft_version_min: 0,
            kraft_version_max: 1,
        };
        let snapshot_header = KraftControl::SnapshotHeader { last_contained_log_timestamp_ms: 258 };
        let leader_change_hex = concat!(
            "0000",
            "00000001",
            "04",
            "0000000100",
            "0000000200",
            "0000000300",
            "02",
            "0000000100",
            "00"
        );
        let voters_hex = concat!(
            "0000",
            "02",
            "00000003",
            "abababababababababababababababab",
            "02",
            "0243",
            "036831",
            "2385",
            "00",
            "00000001",
            "00",
            "00",
            "00"
        );
        for (control, kind, value) in [
            (leader_change, 2, leader_change_hex),
            (snapshot_header, 3, "0000000000000000010200"),
            (KraftControl::SnapshotFooter, 4, "000000"),
            (KraftControl::KraftVersion(1), 5, "0000000100"),
            (KraftControl::KraftVoters(vec![voter]), 6, voters_hex),
        ] {
            let options = BatchOptions { base_offset: 5, leader_epoch: 7, ..Default::default() };
            let mut out = Vec::new();
            write_kraft_control(&options, 1000, &control, &mut out).unwrap();
            let header = BatchHeader::parse(&out).unwrap();
            assert_eq!((header.attributes, header.producer_id), (0x20, -1));
            assert_eq!((header.leader_epoch, header.count), (7, 1));
            assert_eq!(parse_control(&header, &out), Control::Other(ControlType::from_id(kind)));
            assert_eq!(hex(&control.value().unwrap()), value);
        }
    }
}
