//! A partition directory, or a log directory, as an input of the fuzzer.
//!
//! ```text
//! u8 flags | u8 recovery point | u8 log start | files
//! file: u8 size, name | u16 size, bytes          what is too short is as long as it can be
//! ```

use siltstone::io::checksum::crc32c;
use siltstone::log::recover::RecoverOptions;
use siltstone::segment::rebuild::IndexSettings;

const CLEAN_SHUTDOWN: u8 = 1;
const ALLOW_LOSS: u8 = 2;
const ALL: u8 = 4;
const DISCARD_LOST: u8 = 8;
const REMOTE_STORAGE: u8 = 16;
const RAW_CHECKSUMS: u8 = 32;
const SMALL_INDEXES: u8 = 64;
const STAGE_NOTHING: u8 = 128;

/// Files, and what recovery is told.
pub struct Directory {
    /// What recovery is told.
    pub options: RecoverOptions,
    /// Name and bytes; no name twice.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Directory {
    /// A partition directory; any bytes are some directory.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Directory {
        Directory::decode_names(bytes, |name| name.replace(['/', '\0'], "_"))
    }

    /// A log directory, with names such as `orders-0/00000000000000000000.log`.
    #[must_use]
    pub fn decode_tree(bytes: &[u8]) -> Directory {
        Directory::decode_names(bytes, |name| name.replace('\0', "_"))
    }

    fn decode_names(bytes: &[u8], name_of: impl Fn(&str) -> String) -> Directory {
        let (head, mut rest) = bytes.split_at(bytes.len().min(3));
        let [flags, recovery_point, log_start] =
            [0, 1, 2].map(|at| head.get(at).copied().unwrap_or_default());
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        while !rest.is_empty() {
            let name = name_of(&String::from_utf8_lossy(take(&mut rest, 1)));
            let mut bytes = take(&mut rest, 2).to_vec();
            if flags & RAW_CHECKSUMS == 0 {
                fix(&name, &mut bytes);
            }
            let is_named = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
            if is_named && files.iter().all(|(other, _)| *other != name) {
                files.push((name, bytes));
            }
        }
        Directory { options: options(flags, recovery_point, log_start), files }
    }
}

/// Bytes behind a size field of so many bytes.
fn take<'a>(rest: &mut &'a [u8], field_size: usize) -> &'a [u8] {
    let (field, behind) = rest.split_at(rest.len().min(field_size));
    let size = field.iter().fold(0, |size, &byte| size << 8 | usize::from(byte));
    let (taken, behind) = behind.split_at(behind.len().min(size));
    *rest = behind;
    taken
}

fn options(flags: u8, recovery_point: u8, log_start: u8) -> RecoverOptions {
    let small = IndexSettings { interval_bytes: 100, max_size_bytes: 40 };
    RecoverOptions {
        clean_shutdown: flags & CLEAN_SHUTDOWN != 0,
        recovery_point: recovery_point.into(),
        log_start_offset: log_start.into(),
        all: flags & ALL != 0,
        allow_loss: flags & ALLOW_LOSS != 0,
        discard_lost: flags & DISCARD_LOST != 0,
        remote_storage: flags & REMOTE_STORAGE != 0,
        index: if flags & SMALL_INDEXES != 0 { small } else { IndexSettings::default() },
        now_ms: 1_700_000_000_000,
        producer_expiration_ms: 2_147_483_647,
        stage_bytes: Some(if flags & STAGE_NOTHING != 0 { 0 } else { 1 << 20 }),
        ..RecoverOptions::default()
    }
}

/// Puts the checksums right that no fuzzer guesses.
fn fix(name: &str, bytes: &mut [u8]) {
    if name.contains(".log") {
        crate::fix_checksums(bytes);
    } else if name.ends_with(".snapshot") && bytes.len() >= 6 {
        let sum = crc32c(&bytes[6..]).to_be_bytes();
        bytes[2..6].copy_from_slice(&sum);
    }
}
