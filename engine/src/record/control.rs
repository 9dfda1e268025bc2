//! What does a control record say?
//!
//! ```text
//! key:   i16 version | i16 type | what a later version adds
//! value: of ABORT and COMMIT: i16 version | i32 coordinator epoch
//! ```

use crate::bytes;
use crate::record::batch::{BatchHeader, HEADER_SIZE};
use crate::record::records::Records;

/// The kinds of control records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    /// The transaction is aborted.
    Abort,
    /// The transaction is committed.
    Commit,
    /// A leader of the KRaft quorum was elected.
    LeaderChange,
    /// Begin of a KRaft snapshot.
    SnapshotHeader,
    /// End of a KRaft snapshot.
    SnapshotFooter,
    /// The version of KRaft.
    KraftVersion,
    /// The voters of the KRaft quorum.
    KraftVoters,
    /// A kind that this release does not know; readers skip it.
    Unknown(i16),
}

impl ControlType {
    /// The kind with this number.
    #[must_use]
    pub fn from_id(id: i16) -> Self {
        match id {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            2 => ControlType::LeaderChange,
            3 => ControlType::SnapshotHeader,
            4 => ControlType::SnapshotFooter,
            5 => ControlType::KraftVersion,
            6 => ControlType::KraftVoters,
            other => ControlType::Unknown(other),
        }
    }

    /// The kind's number, as it stands in the key.
    #[must_use]
    pub fn id(self) -> i16 {
        match self {
            ControlType::Abort => 0,
            ControlType::Commit => 1,
            ControlType::LeaderChange => 2,
            ControlType::SnapshotHeader => 3,
            ControlType::SnapshotFooter => 4,
            ControlType::KraftVersion => 5,
            ControlType::KraftVoters => 6,
            ControlType::Unknown(id) => id,
        }
    }

    /// The kind's name, as Kafka spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ControlType::Abort => "ABORT",
            ControlType::Commit => "COMMIT",
            ControlType::LeaderChange => "LEADER_CHANGE",
            ControlType::SnapshotHeader => "SNAPSHOT_HEADER",
            ControlType::SnapshotFooter => "SNAPSHOT_FOOTER",
            ControlType::KraftVersion => "KRAFT_VERSION",
            ControlType::KraftVoters => "KRAFT_VOTERS",
            ControlType::Unknown(_) => "UNKNOWN",
        }
    }
}

/// Reads the key of a control record; an error text when it is too short or its version negative.
pub fn parse_key(key: &[u8]) -> Result<ControlType, &'static str> {
    // spec: records 6. A higher version is read as version 0.
    let (Some(version), Some(id)) = (bytes::get_i16(key, 0), bytes::get_i16(key, 2)) else {
        return Err("the key of a control record has fewer than 4 bytes");
    };
    if version < 0 {
        Err("the key of a control record has a negative version")
    } else {
        Ok(ControlType::from_id(id))
    }
}

/// What the marker at the end of a transaction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndMarker {
    /// Whether the transaction is aborted, and not committed.
    pub is_abort: bool,
    /// Epoch of the coordinator that wrote it.
    pub coordinator_epoch: i32,
    /// The record's timestamp.
    pub timestamp_ms: i64,
}

/// What a control batch means to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Compaction has removed the record: the batch means nothing.
    Empty,
    /// The end of a transaction.
    End(EndMarker),
    /// A control record that is no transaction's.
    Other(ControlType),
    /// A control record that cannot be read; the text says why.
    Broken(&'static str),
}

/// Reads the first record of a control batch of magic 2, whose bytes are all given.
#[must_use]
pub fn parse_control(header: &BatchHeader, batch: &[u8]) -> Control {
    if header.count == 0 {
        return Control::Empty;
    }
    if header.codec_id() != 0 {
        return Control::Broken("a control batch is compressed");
    }
    let payload = batch.get(HEADER_SIZE..).unwrap_or_default();
    let Some(Ok(record)) = Records::new(header, payload).next() else {
        return Control::Broken("a control batch has no readable record");
    };
    let kind = match parse_key(record.key.unwrap_or_default()) {
        Ok(kind) => kind,
        Err(why) => return Control::Broken(why),
    };
    if !matches!(kind, ControlType::Abort | ControlType::Commit) {
        return Control::Other(kind);
    }
    let value = record.value.unwrap_or_default();
    match (bytes::get_i16(value, 0), bytes::get_i32(value, 2)) {
        (Some(version), Some(coordinator_epoch)) if version >= 0 => Control::End(EndMarker {
            is_abort: kind == ControlType::Abort,
            coordinator_epoch,
            timestamp_ms: record.timestamp_ms,
        }),
        (Some(_), Some(_)) => {
            Control::Broken("an end-of-transaction marker has a negative version")
        }
        _ => Control::Broken("an end-of-transaction marker has fewer than 6 bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;

    #[test]
    fn kafkas_commit_marker_reads_as_it_was_made() {
        // spec: records 10
        let text = concat!(
            "00000000000003d7000000420000001d02172b6dc800300000000000000000000003e800000000000003e8",
            "0000000000000049000dffffffff000000012000000008000000010c00000000015b00"
        );
        let batch: Vec<u8> = (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect();
        let header = BatchHeader::parse(&batch).unwrap();
        assert!(header.is_control() && header.is_transactional());
        let marker = EndMarker { is_abort: false, coordinator_epoch: 347, timestamp_ms: 1000 };
        assert_eq!(parse_control(&header, &batch), Control::End(marker));
    }

    #[test]
    fn a_short_key_and_a_negative_version_are_refused() {
        // spec: behaviours CT-003, CT-004, CT-005
        for size in 0..4 {
            assert!(parse_key(&[0; 4][..size]).is_err());
        }
        assert!(parse_key(&[0xff, 0xff, 0, 0]).is_err());
        assert_eq!(parse_key(&[0, 5, 0, 0, 7, 8]), Ok(ControlType::Abort));
        assert_eq!(parse_key(&[0, 5, 0, 1, 7, 8]), Ok(ControlType::Commit));
        assert_eq!(parse_key(&[0, 0, 0, 9]), Ok(ControlType::Unknown(9)));
    }

    /// What a batch with this control record means.
    fn control(key: &[u8], value: &[u8]) -> Control {
        let options = BatchOptions {
            producer_id: 73,
            producer_epoch: 13,
            is_transactional: true,
            is_control: true,
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options).unwrap();
        builder.append(1000, Some(key), Some(value)).unwrap();
        let mut batch = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut batch).unwrap();
        parse_control(&BatchHeader::parse(&batch).unwrap(), &batch)
    }

    #[test]
    fn a_marker_of_a_later_version_tells_its_epoch_and_one_that_is_short_is_broken() {
        // spec: behaviours CT-007
        let marker = EndMarker { is_abort: true, coordinator_epoch: 347, timestamp_ms: 1000 };
        assert_eq!(control(&[0; 4], &[0, 5, 0, 0, 1, 0x5b, 7, 8]), Control::End(marker));
        assert!(matches!(control(&[0; 4], &[0, 0, 0, 0, 1]), Control::Broken(_)));
        assert!(matches!(control(&[0; 4], &[0xff, 0xff, 0, 0, 1, 0x5b]), Control::Broken(_)));
        let unknown = Control::Other(ControlType::Unknown(9));
        assert_eq!(control(&[0, 0, 0, 9], &[0, 0, 0, 0, 1, 0x5b]), unknown);
    }
}
