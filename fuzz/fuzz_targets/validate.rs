//! A produce request's bytes into the validator, as leader; what it accepts into a follower.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::record::batch::TimestampType;
use siltstone::record::codec::Codec;
use siltstone::record::validate::{
    AnalyseOptions, AppendOrigin, Batches, TopicCompression, ValidateOptions, Validator, analyse,
    check_produce_request,
};

const OPENED_BYTES_MAX: usize = 1 << 20;
const FIRST_OFFSET: i64 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first_chunk::<3>() else { return };
    let (now, records) = siltstone_fuzz::split_i64(rest);
    let options = options(*choice);
    take(&options, now, records);
    let mut fixed = records.to_vec();
    siltstone_fuzz::fix_checksums(&mut fixed);
    take(&options, now, &fixed);
});

fn options([how, codec, limits]: [u8; 3]) -> ValidateOptions {
    ValidateOptions {
        origin: match how & 3 {
            0 => AppendOrigin::Coordinator,
            _ => AppendOrigin::Client,
        },
        target_magic: match how >> 2 & 3 {
            0 => 0,
            1 => 1,
            _ => 2,
        },
        compression: match Codec::from_id(codec % 6) {
            Some(codec) => TopicCompression::Fixed(codec.into()),
            None => TopicCompression::Producer,
        },
        is_compacted: how & 16 != 0,
        timestamp_type: match how & 32 {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: if limits & 1 == 0 { i64::MAX } else { 1000 },
        timestamp_after_max_ms: if limits & 2 == 0 { i64::MAX } else { 1000 },
        leader_epoch: i32::from(limits >> 2),
        opened_bytes_max: OPENED_BYTES_MAX,
        ..ValidateOptions::default()
    }
}

fn take(options: &ValidateOptions, now: i64, bytes: &[u8]) {
    let _ = check_produce_request(bytes, 9);
    let _ = analyse(bytes, &AnalyseOptions::follower(options.leader_epoch));
    let leader =
        AnalyseOptions::leader(options.origin, options.leader_epoch, options.max_message_bytes);
    let Ok(analysis) = analyse(bytes, &leader) else { return };
    let sent = &bytes[..analysis.valid_bytes];
    let mut records = sent.to_vec();
    let mut rebuilt = b"before".to_vec();
    let result = Validator::new().validate_and_assign(
        &mut records,
        options,
        FIRST_OFFSET,
        now,
        &mut rebuilt,
    );
    let Ok(validated) = result else {
        assert_eq!(records, sent);
        assert_eq!(rebuilt, b"before");
        return;
    };
    let written = validated.bytes(&records, &rebuilt);
    let follower = analyse(written, &AnalyseOptions::follower(options.leader_epoch));
    let follower = follower.expect("what a leader writes, a follower takes");
    assert_eq!(follower.valid_bytes, written.len());
    assert_eq!(follower.batch_count, validated.batch_count);
    if let Some(first) = follower.first {
        assert_eq!(first, validated.first);
        assert_eq!(follower.last_offset, validated.last_offset);
        // spec: records 5.6. Of a compressed batch the leader tells the time of the append, which
        // magic 0 has no field for.
        if options.target_magic > 0 {
            assert_eq!(follower.max_timestamp_ms, validated.max_timestamp_ms.max(-1));
        }
    }
    if validated.size_may_have_changed && !written.is_empty() {
        let count = Batches::new(written).map_while(Result::ok).count();
        assert!(count > 0 && validated.stats.converted_records > 0);
    }
}
