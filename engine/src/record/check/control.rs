//! Can the records of a control batch be read?

use super::fault::BatchFault;
use crate::bytes;
use crate::problem::Code;
use crate::record::batch::BatchHeader;
use crate::record::control::{ControlType, parse_key};
use crate::record::records::Records;

/// Checks the keys of all control records, and the values of those that end a transaction. Faults
/// of their fields are left to the walk over all records.
pub(super) fn check(header: &BatchHeader, payload: &[u8]) -> Result<(), BatchFault> {
    if header.codec_id() != 0 && header.count > 0 {
        return Err(fault("a control batch is compressed".to_owned()));
    }
    for record in Records::new(header, payload).map_while(Result::ok) {
        let key = record.key.unwrap_or_default();
        let kind = parse_key(key).map_err(|why| fault(why.to_owned()))?;
        // spec: records 6. Readers take a later version for 0 and skip what they do not know;
        // nothing here wrote it.
        if let Some(version @ 1..) = bytes::get_i16(key, 0) {
            return Err(fault(format!(
                "the key of a control record has the unknown version {version}"
            )));
        }
        match kind {
            ControlType::Abort | ControlType::Commit => {
                check_marker(record.value.unwrap_or_default())?;
            }
            ControlType::Unknown(id) => {
                return Err(fault(format!("a control record has the unknown type {id}")));
            }
            _ if header.has_producer_id() => {
                let kind = kind.as_str();
                return Err(fault(format!("a producer's control batch holds {kind}")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_marker(value: &[u8]) -> Result<(), BatchFault> {
    match (bytes::get_i16(value, 0), bytes::get_i32(value, 2)) {
        (Some(0), Some(_)) => Ok(()),
        (Some(version), Some(_)) => {
            Err(fault(format!("an end-of-transaction marker has the unknown version {version}")))
        }
        _ => Err(fault("an end-of-transaction marker has fewer than 6 bytes".to_owned())),
    }
}

fn fault(detail: String) -> BatchFault {
    BatchFault { code: Code::ControlRecord, detail }
}
