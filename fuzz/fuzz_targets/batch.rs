//! A file of batches: the scan, every header, every record, and the search behind damage.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use siltstone::io::Source;
use siltstone::record::Records;
use siltstone::record::batch::HEADER_SIZE;
use siltstone::record::codec::{Codec, Decompressor};
use siltstone::record::control::parse_control;
use siltstone::record::scan::{ScanEnd, ScannedBatch, scan};
use siltstone::segment::damage;

const PAYLOAD_LIMIT_BYTES: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    walk(bytes);
    let mut fixed = bytes.to_vec();
    siltstone_fuzz::fix_checksums(&mut fixed);
    walk(&fixed);
});

fn walk(bytes: &[u8]) {
    let mut decompressor = Decompressor::new();
    let mut whole = &bytes[..];
    let (seen, end) = run(&mut whole, &mut |batch| {
        let header = batch.header;
        let _ = (header.last_sequence(), header.delete_horizon_ms(), header.timestamp_type());
        if header.magic == 2 {
            let _ = parse_control(header, batch.bytes);
            walk_records(&mut decompressor, batch);
        }
    });
    assert!(end.position <= bytes.len() as u64);
    let (seen_narrow, end_narrow) = run(&mut Narrow(bytes), &mut |_| {});
    assert_eq!((&seen, end), (&seen_narrow, end_narrow), "by narrow windows");
    let expected_offset = seen.last().map_or(0, |&(_, next_offset)| next_offset);
    let found = damage::examine(&mut &bytes[..], end, 0, expected_offset);
    if let Some(damage) = found.expect("bytes in memory") {
        assert!(damage.position <= damage.end);
    }
}

/// Positions and next offsets of the batches, and the end of the scan.
fn run(
    source: &mut dyn Source,
    look: &mut dyn FnMut(&ScannedBatch<'_>),
) -> (Vec<(u64, i64)>, ScanEnd) {
    let mut seen = Vec::new();
    let mut visit = |batch: ScannedBatch<'_>| {
        seen.push((batch.position, batch.header.next_offset()));
        look(&batch);
        Ok(ControlFlow::Continue(()))
    };
    let end = scan(source, 0, u64::MAX, &mut visit).expect("bytes in memory");
    (seen, end)
}

fn walk_records(decompressor: &mut Decompressor, batch: &ScannedBatch<'_>) {
    let Some(codec) = Codec::from_id(batch.header.codec_id()) else { return };
    let payload = &batch.bytes[HEADER_SIZE..];
    let opened = decompressor.decompress(codec, 2, payload, PAYLOAD_LIMIT_BYTES);
    let Ok(payload) = opened else { return };
    for record in Records::new(batch.header, payload) {
        let Ok(record) = record else { return };
        let count = record.headers.count() as usize;
        assert_eq!(record.headers.into_iter().count(), count);
    }
}

/// A source that shows no byte more than it is asked for.
struct Narrow<'a>(&'a [u8]);

impl Source for Narrow<'_> {
    fn end(&self) -> u64 {
        self.0.len() as u64
    }

    fn window(&mut self, position: u64, wanted_bytes: usize) -> siltstone::Result<&[u8]> {
        let rest = self.0.get(position as usize..).unwrap_or_default();
        Ok(&rest[..wanted_bytes.min(rest.len())])
    }
}
