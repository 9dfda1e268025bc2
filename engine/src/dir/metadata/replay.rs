//! How do records in order add up to an image? Transactions, unknown records, and what cannot be.
//!
//! ```text
//! … record record | Begin record record End | record …       applied at End, all together
//!                 | Begin record record Abort |              dropped
//!                 | Begin record record                      dropped at the end of the log
//! ```

use crate::error::{Error, Kind, Result};
use crate::record::batch::{BatchHeader, HEADER_SIZE};
use crate::record::codec::{Codec, Decompressor};
use crate::record::payload::{Payload, decode_control_record, decode_metadata_record};
use crate::record::records::Records;

use super::image::MetadataImage;

/// The largest transaction that is kept until its end, in bytes of memory.
const TRANSACTION_BYTES_MAX: usize = 64 << 20;
/// The largest batch that is looked into, in bytes and after decompression; Kafka's controllers
/// write at most 8 MiB.
pub(super) const BATCH_BYTES_MAX: usize = 64 << 20;
/// Warnings are kept up to this number; further ones are counted.
const WARNINGS_MAX: usize = 20;

/// An image in the making.
#[derive(Default)]
pub(super) struct Replay {
    pub(super) image: MetadataImage,
    pub(super) warnings: Warnings,
    /// Records of types or versions that this release does not know.
    pub(super) unknown_records: u64,
    /// Offset behind the registration that was looked for, where it was seen.
    pub(super) registered_at: Option<i64>,
    own_registration: Option<(i32, i64)>,
    transaction: Option<Transaction>,
    decompressor: Decompressor,
}

/// Sentences for the operator.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    texts: Vec<String>,
    more: u64,
}

/// The records of an open transaction, one behind the other.
#[derive(Debug, Default)]
struct Transaction {
    bytes: Vec<u8>,
    /// Offset of each record, and where it ends.
    records: Vec<(i64, usize)>,
}

impl Replay {
    /// Begins with nothing; looks for the registration of this node id and broker epoch.
    pub(super) fn new(own_registration: Option<(i32, i64)>) -> Self {
        Replay { own_registration, ..Replay::default() }
    }

    /// Applies the records of a batch whose offsets are at least `from` and below `to`.
    ///
    /// Fails where nothing behind this batch can be trusted: the records cannot be read, or
    /// transactions do not match.
    pub(super) fn batch(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        from: i64,
        to: i64,
    ) -> Result<()> {
        if u64::try_from(batch.len()).unwrap_or(u64::MAX) < u64::from(header.size_bytes) {
            let size = header.size_bytes;
            return Err(Error::new(Kind::Limit, format!("a metadata batch of {size} bytes")));
        }
        let codec = Codec::from_id(header.codec_id())
            .ok_or_else(|| Error::new(Kind::Unsupported, "a metadata batch of an unknown codec"))?;
        // Kafka does not compress metadata, but reads it compressed.
        let mut decompressor = std::mem::take(&mut self.decompressor);
        let packed = batch.get(HEADER_SIZE..).unwrap_or_default();
        let payload = decompressor.decompress(codec, header.magic, packed, BATCH_BYTES_MAX)?;
        let applied = self.records(header, payload, from, to);
        self.decompressor = decompressor;
        applied
    }

    fn records(&mut self, header: &BatchHeader, payload: &[u8], from: i64, to: i64) -> Result<()> {
        for record in Records::new(header, payload) {
            let record = record.map_err(|error| Error::corrupt(error.reason))?;
            if record.offset < from || record.offset >= to {
                continue;
            }
            let applied = if header.is_control() {
                self.control(record.offset, record.key.unwrap_or_default(), record.value)
            } else {
                self.record(record.offset, record.value.unwrap_or_default())
            };
            applied.map_err(|error| error.at_offset(record.offset))?;
        }
        Ok(())
    }

    fn control(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let refused = match decode_control_record(key, value) {
            Ok(Payload::Message(message)) => self.image.apply_control(&message).err(),
            Ok(_) => None,
            Err(error) => Some(error.message().to_owned()),
        };
        if let Some(refused) = refused {
            self.warnings
                .add(format!("metadata offset {offset}: {refused}; the record is skipped"));
        }
        Ok(())
    }

    fn record(&mut self, offset: i64, value: &[u8]) -> Result<()> {
        let message = match decode_metadata_record(value) {
            Ok(Payload::Message(message)) => message,
            Ok(_) => {
                self.unknown_records += 1;
                return Ok(());
            }
            Err(error) if error.kind() == Kind::Unsupported => {
                self.unknown_records += 1;
                return Ok(());
            }
            Err(error) => {
                let reason = error.message();
                let warning = format!("metadata offset {offset}: {reason}; the record is skipped");
                self.warnings.add(warning);
                return Ok(());
            }
        };
        // spec: kraft-metadata 3.1
        match (message.name, &mut self.transaction) {
            ("BeginTransactionRecord", Some(_)) => {
                Err(Error::corrupt("a metadata transaction begins while another is open"))
            }
            ("BeginTransactionRecord", None) => {
                self.transaction = Some(Transaction::default());
                Ok(())
            }
            ("EndTransactionRecord" | "AbortTransactionRecord", None) => {
                Err(Error::corrupt("a metadata transaction ends that never began"))
            }
            ("EndTransactionRecord", Some(_)) => {
                self.commit();
                Ok(())
            }
            ("AbortTransactionRecord", Some(_)) => {
                self.transaction = None;
                Ok(())
            }
            (_, Some(transaction)) => transaction.add(offset, value),
            (_, None) => {
                self.apply(offset, value);
                Ok(())
            }
        }
    }

    fn commit(&mut self) {
        let Some(Transaction { bytes, records }) = self.transaction.take() else { return };
        let mut start = 0;
        for (offset, end) in records {
            self.apply(offset, bytes.get(start..end).unwrap_or_default());
            start = end;
        }
    }

    fn apply(&mut self, offset: i64, value: &[u8]) {
        // It was decoded before, so that this cannot fail.
        let Ok(Payload::Message(message)) = decode_metadata_record(value) else { return };
        if let Err(refused) = self.image.apply(&message) {
            self.warnings
                .add(format!("metadata offset {offset}: {refused}; the record is skipped"));
        }
        let registration = || {
            let id = i32::try_from(message.data.int("brokerId")?).ok()?;
            Some((id, message.data.int("brokerEpoch")?))
        };
        if message.name == "RegisterBrokerRecord"
            && self.own_registration.is_some_and(|own| Some(own) == registration())
        {
            self.registered_at = Some(offset.saturating_add(1));
        }
    }
}

impl Transaction {
    fn add(&mut self, offset: i64, value: &[u8]) -> Result<()> {
        let kept = self.bytes.len() + self.records.len() * size_of::<(i64, usize)>();
        if kept.saturating_add(value.len()) > TRANSACTION_BYTES_MAX {
            let limit = TRANSACTION_BYTES_MAX >> 20;
            let message = format!("a metadata transaction of more than {limit} MiB");
            return Err(Error::new(Kind::Limit, message));
        }
        self.bytes.extend_from_slice(value);
        self.records.push((offset, self.bytes.len()));
        Ok(())
    }
}

impl Warnings {
    pub(super) fn add(&mut self, text: String) {
        if self.texts.len() < WARNINGS_MAX {
            self.texts.push(text);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_texts(mut self) -> Vec<String> {
        if self.more > 0 {
            self.texts.push(format!("and {} more of the kind", self.more));
        }
        self.texts
    }
}
