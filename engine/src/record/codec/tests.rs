//! What holds for every codec alike.

use proptest::prelude::*;

use super::{Codec, CodecError, CodecErrorKind, Compression, Compressor, Decompressor, Stream};

const COMPRESSED: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

/// Opens a payload in both ways, which must agree.
pub(super) fn open(codec: Codec, magic: i8, payload: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut decompressor = Decompressor::new();
    let whole = decompressor.decompress(codec, magic, payload, usize::MAX).map(<[u8]>::to_vec);
    for chunk_size in [1, 100, 1 << 20] {
        let streamed = decompressor
            .stream(codec, magic, payload, u64::MAX)
            .and_then(|stream| drain(stream, chunk_size));
        match (&whole, &streamed) {
            (Ok(whole), Ok(streamed)) => assert_eq!(whole, streamed),
            (Err(whole), Err(streamed)) => assert_eq!(whole.kind(), streamed.kind()),
            _ => panic!("whole gives {whole:?}, chunks of {chunk_size} give {streamed:?}"),
        }
    }
    whole
}

fn drain(mut stream: Stream<'_>, chunk_size: usize) -> Result<Vec<u8>, CodecError> {
    let mut all = Vec::new();
    let mut chunk = vec![0; chunk_size];
    loop {
        match stream.fill(&mut chunk) {
            Ok(0) => {
                assert_eq!(stream.fill(&mut chunk), Ok(0), "the end is not the end");
                return Ok(all);
            }
            Ok(size) => all.extend_from_slice(&chunk[..size]),
            Err(error) => {
                assert_eq!(stream.fill(&mut chunk), Err(error.clone()));
                return Err(error);
            }
        }
    }
}

pub(super) fn compress(codec: Codec, magic: i8, input: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Compressor::new().compress(codec.into(), magic, input, &mut payload).unwrap();
    payload
}

/// Bytes that compress somewhat, as records do.
pub(super) fn sample(size: usize) -> Vec<u8> {
    (0_u64..)
        .flat_map(|i| {
            format!("{{\"id\":{i},\"user\":\"u{}\"}}", i * 2_654_435_761 % 997).into_bytes()
        })
        .take(size)
        .collect()
}

fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..2000);
    (noise, 0..200_usize, 1..200_usize).prop_map(|(noise, from, times)| {
        let repeated = noise.get(from..).unwrap_or(&noise).repeat(times);
        [noise, repeated].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_compressed_opens_to_the_same_bytes(
        input in any_payload(),
        codec in prop::sample::select(COMPRESSED.to_vec()),
        old in any::<bool>(),
    ) {
        let magic = if old && codec != Codec::Zstd { 0 } else { 2 };
        let payload = compress(codec, magic, &input);
        prop_assert_eq!(open(codec, magic, &payload), Ok(input));
    }

    #[test]
    fn any_bytes_open_or_fail_the_same_in_both_ways(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        codec in prop::sample::select(COMPRESSED.to_vec()),
        magic in 0..=2_i8,
        kept in 0..30_usize,
    ) {
        let head: Vec<u8> = compress(codec, 2, &sample(300)).into_iter().take(kept).collect();
        let _ = open(codec, magic, &[head, noise].concat());
    }
}

#[test]
fn every_level_round_trips() {
    // spec: behaviours CO-001
    let input = sample(100_000);
    let mut compressor = Compressor::new();
    let mut decompressor = Decompressor::new();
    for (codec, magics, levels) in [
        (Codec::Gzip, 0..=2, vec![-1, 1, 6, 9]),
        (Codec::Lz4, 0..=2, vec![1, 9, 17]),
        (Codec::Zstd, 2..=2, vec![-131_072, -5, 1, 3, 9, 22]),
    ] {
        for (level, magic) in levels.iter().flat_map(|l| magics.clone().map(move |m| (*l, m))) {
            let mut payload = Vec::new();
            let compression = Compression::with_level(codec, level).unwrap();
            compressor.compress(compression, magic, &input, &mut payload).unwrap();
            let opened = decompressor.decompress(codec, magic, &payload, input.len()).unwrap();
            assert_eq!(opened, input, "{codec} {level}, magic {magic}");
        }
    }
}

#[test]
fn compressing_appends_and_leaves_what_is_there() {
    for codec in Codec::ALL {
        let mut out = b"header".to_vec();
        Compressor::new().compress(codec.into(), 2, b"records", &mut out).unwrap();
        assert_eq!(open(codec, 2, out.strip_prefix(b"header").unwrap()).unwrap(), b"records");
    }
}

#[test]
fn kept_contexts_do_not_carry_one_payload_into_the_next() {
    let (first, second) = (sample(70_000), sample(1_000));
    let mut decompressor = Decompressor::new();
    let mut compressor = Compressor::new();
    for codec in COMPRESSED {
        let mut payloads = [Vec::new(), Vec::new()];
        compressor.compress(codec.into(), 2, &first, &mut payloads[0]).unwrap();
        compressor.compress(codec.into(), 2, &second, &mut payloads[1]).unwrap();
        assert_eq!(payloads[1], compress(codec, 2, &second));
        // One stream is left half read, one payload is broken: the next must not notice.
        let mut stream = decompressor.stream(codec, 2, &payloads[0], u64::MAX).unwrap();
        assert_ne!(stream.fill(&mut [0; 10]).unwrap(), 0);
        let torn = &payloads[0][..payloads[0].len() / 2];
        let _ = decompressor.decompress(codec, 2, torn, usize::MAX);
        assert_eq!(decompressor.decompress(codec, 2, &payloads[1], usize::MAX).unwrap(), second);
    }
}

#[test]
fn a_payload_cut_anywhere_fails_or_opens_to_a_prefix() {
    let input = sample(600);
    for codec in COMPRESSED {
        let payload = compress(codec, 2, &input);
        for size in 0..payload.len() {
            match open(codec, 2, &payload[..size]) {
                Ok(opened) => {
                    assert!(input.starts_with(&opened) && opened.len() < input.len());
                    // A zstd payload may be empty, a snappy one may end between its chunks.
                    assert!(codec == Codec::Zstd && size == 0 || codec == Codec::Snappy);
                }
                Err(error) => assert_eq!(error.kind(), CodecErrorKind::Corrupt),
            }
        }
    }
}

#[test]
fn a_payload_with_any_bit_flipped_never_panics() {
    for codec in COMPRESSED {
        let payload = compress(codec, 2, &sample(200));
        for bit in 0..payload.len() * 8 {
            let mut flipped = payload.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = open(codec, 2, &flipped);
        }
    }
}

#[test]
fn the_limit_is_the_last_size_that_opens() {
    for input in [sample(1_000), sample(200_000)] {
        let size = input.len();
        for codec in Codec::ALL {
            let payload = compress(codec, 2, &input);
            let mut decompressor = Decompressor::new();
            assert_eq!(decompressor.decompress(codec, 2, &payload, size).unwrap(), input);
            for limit in [0, 1, size - 1] {
                let error = decompressor.decompress(codec, 2, &payload, limit).unwrap_err();
                assert_eq!(error.kind(), CodecErrorKind::Limit, "{error}");
                let limit = u64::try_from(limit).unwrap();
                let error = decompressor
                    .stream(codec, 2, &payload, limit)
                    .and_then(|stream| drain(stream, 100))
                    .unwrap_err();
                assert_eq!(error.kind(), CodecErrorKind::Limit, "{error}");
                assert!(error.reason().ends_with(&format!("more than {limit} bytes")));
            }
            let limit = u64::try_from(size).unwrap();
            let stream = decompressor.stream(codec, 2, &payload, limit).unwrap();
            assert_eq!(drain(stream, 100).unwrap(), input);
        }
    }
}

#[test]
fn a_bomb_is_read_in_small_memory() {
    let bomb_size = 40 << 20;
    let input = vec![b'k'; bomb_size];
    for codec in COMPRESSED {
        let payload = compress(codec, 2, &input);
        let mut decompressor = Decompressor::new();
        let mut stream = decompressor.stream(codec, 2, &payload, u64::MAX).unwrap();
        let mut chunk = [0; 8192];
        while stream.fill(&mut chunk).unwrap() > 0 {}
        assert_eq!(stream.size_bytes(), 40 << 20);
        assert!(decompressor.kept_bytes() < 4 << 20, "{codec}: {}", decompressor.kept_bytes());

        let error = decompressor.decompress(codec, 2, &payload, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), CodecErrorKind::Limit);
        assert!(decompressor.kept_bytes() < 5 << 20, "{codec}: {}", decompressor.kept_bytes());
    }
}

#[test]
fn memory_above_the_usual_is_given_back_on_demand() {
    let payload = compress(Codec::Lz4, 2, &sample(1 << 20));
    let mut decompressor = Decompressor::new();
    decompressor.decompress(Codec::Lz4, 2, &payload, usize::MAX).unwrap();
    assert!(decompressor.kept_bytes() >= 1 << 20);
    decompressor.shrink_to(1 << 16);
    assert_eq!(decompressor.kept_bytes(), 1 << 16);
}
