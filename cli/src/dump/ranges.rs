//! Ranges as an operator writes them.

use std::ops::Range;

use crate::time::parse_ms;

/// Reads `A..B` (B excluded), `A..=B`, `A..`, `..B`, `..` or `A` alone, which is just that one.
fn parse_range(
    text: &str,
    parse: impl Fn(&str) -> Option<i64>,
    what: &str,
) -> Result<Range<i64>, String> {
    let number = |part: &str| parse(part).ok_or_else(|| format!("{part:?} is no {what}"));
    let (from, to) = match text.split_once("..") {
        None => {
            let only = number(text)?;
            (only, only.saturating_add(1))
        }
        Some((from, to)) => {
            let from = if from.is_empty() { i64::MIN } else { number(from)? };
            let to = match to.strip_prefix('=') {
                Some(last) => number(last)?.saturating_add(1),
                None if to.is_empty() => i64::MAX,
                None => number(to)?,
            };
            (from, to)
        }
    };
    if from >= to { Err(format!("nothing lies in {text}")) } else { Ok(from..to) }
}

/// A range of offsets.
pub(super) fn parse_offsets(text: &str) -> Result<Range<i64>, String> {
    parse_range(text, |part| part.parse().ok(), "offset")
}

/// A range of bytes of a file.
pub(super) fn parse_positions(text: &str) -> Result<Range<u64>, String> {
    let number = |part: &str| part.parse().ok().filter(|position: &i64| *position >= 0);
    let range = parse_range(text, number, "position in a file")?;
    let end = if range.end == i64::MAX { u64::MAX } else { range.end.unsigned_abs() };
    Ok(u64::try_from(range.start).unwrap_or_default()..end)
}

/// A range of times: milliseconds since 1970, or ISO-8601.
pub(super) fn parse_times(text: &str) -> Result<Range<i64>, String> {
    parse_range(text, parse_ms, "time (milliseconds since 1970, or 2026-01-31T12:00:00Z)")
}

/// A key: text, or `hex:` and its bytes in hexadecimal.
pub(super) fn parse_key(text: &str) -> Result<Vec<u8>, String> {
    let Some(hex) = text.strip_prefix("hex:") else { return Ok(text.as_bytes().to_vec()) };
    let wrong = || format!("{hex:?} is no even number of hexadecimal digits");
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(wrong)?;
    let pair = |pair: &[u8]| pair.iter().fold(0, |byte: u8, digit| (byte << 4) | digit);
    Ok(digits.chunks(2).map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_in_all_their_forms() {
        for (text, range) in [
            ("3..7", 3..7),
            ("3..=7", 3..8),
            ("3..", 3..i64::MAX),
            ("..7", i64::MIN..7),
            ("..", i64::MIN..i64::MAX),
            ("5", 5..6),
        ] {
            assert_eq!(parse_offsets(text), Ok(range), "{text}");
        }
        for text in ["7..3", "3..3", "a..b", "", "...", "1..2..3"] {
            assert!(parse_offsets(text).is_err(), "{text}");
        }
        let day = parse_times("2026-01-31..2026-02-01").unwrap();
        assert_eq!(day.end - day.start, 86_400_000);
    }

    #[test]
    fn positions_are_never_negative() {
        for (text, range) in
            [("3..7", 3..7), ("3..", 3..u64::MAX), ("..=7", 0..8), ("..", 0..u64::MAX), ("0", 0..1)]
        {
            assert_eq!(parse_positions(text), Ok(range), "{text}");
        }
        for text in ["-1..3", "..-1", "7..3", "a"] {
            assert!(parse_positions(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_are_text_or_hexadecimal() {
        assert_eq!(parse_key("user-1"), Ok(b"user-1".to_vec()));
        assert_eq!(parse_key("hex:00fF"), Ok(vec![0, 0xff]));
        assert_eq!(parse_key("hex:"), Ok(vec![]));
        assert!(parse_key("hex:0").is_err());
        assert!(parse_key("hex:zz").is_err());
        assert!(parse_key("hex:äö").is_err());
    }
}
