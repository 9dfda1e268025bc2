//! Which keys and values does a Java properties file hold?
//!
//! As `java.util.Properties` reads a stream: ISO-8859-1 bytes, comments after `#` or `!`, key and
//! value parted by `=`, `:` or blanks, `\uXXXX` and other escapes, and a backslash at the end of a
//! line to go on with the next.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// The keys and values of a properties file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    values: HashMap<String, String>,
}

impl Properties {
    /// Reads the bytes of a file. Of two values for a key the later one holds.
    ///
    /// # Errors
    /// [`Kind::Corrupt`](crate::error::Kind::Corrupt) for `\u` without four hexadecimal digits.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut values = HashMap::new();
        let mut rest = bytes;
        let mut number = 0_u64;
        while !rest.is_empty() {
            number += 1;
            let at = number;
            let line = logical_line(&mut rest, &mut number);
            if line.is_empty() {
                continue;
            }
            let (key, value) = split(&line);
            let unescaped = unescape(key).zip(unescape(value));
            let (key, value) = unescaped
                .ok_or_else(|| Error::corrupt(format!("line {at} has a malformed \\u escape")))?;
            values.insert(key, value);
        }
        Ok(Properties { values })
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Keys and values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// The next line with those that it goes on in, its leading blanks left out; empty for a comment
/// or a blank line. `number` grows by the lines it goes on in.
fn logical_line(rest: &mut &[u8], number: &mut u64) -> Vec<u8> {
    let mut line = trim_start_blanks(natural_line(rest)).to_vec();
    if matches!(line.first(), Some(b'#' | b'!')) {
        return Vec::new();
    }
    while line.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1 {
        line.pop();
        if rest.is_empty() {
            break;
        }
        *number += 1;
        line.extend_from_slice(trim_start_blanks(natural_line(rest)));
    }
    line
}

/// The bytes up to the next line end, which is skipped.
fn natural_line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
    let (line, tail) = rest.split_at(end);
    *rest = match tail {
        [b'\r', b'\n', tail @ ..] | [_, tail @ ..] => tail,
        [] => tail,
    };
    line
}

fn trim_start_blanks(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|&byte| !is_blank(byte)).unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

/// Key and value of a line, parted at the first `=`, `:` or blank that is not escaped.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = line.iter().position(|&byte| {
        let ends = !escaped && (matches!(byte, b'=' | b':') || is_blank(byte));
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let (key, tail) = line.split_at(end.unwrap_or(line.len()));
    let tail = trim_start_blanks(tail);
    let value = match tail {
        [b'=' | b':', value @ ..] => trim_start_blanks(value),
        value => value,
    };
    (key, value)
}

fn unescape(bytes: &[u8]) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            units.push(u16::from(*byte));
            continue;
        }
        let [escape, tail @ ..] = rest else { break };
        rest = tail;
        units.push(match escape {
            b't' => 0x09,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b'f' => 0x0c,
            b'u' => {
                let (digits, tail) = rest.split_at_checked(4)?;
                rest = tail;
                let digits = std::str::from_utf8(digits).ok()?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                u16::from_str_radix(digits, 16).ok()?
            }
            other => u16::from(*other),
        });
    }
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, key: &str) -> Option<String> {
        Properties::parse(text.as_bytes()).unwrap().get(key).map(str::to_owned)
    }

    #[test]
    fn keys_and_values_are_parted_as_java_does() {
        for text in ["a=b", "a:b", "a b", " a = b", "\ta\x0c:\tb", "a  =b\r\n", "x=y\ra=b\n"] {
            assert_eq!(get(text, "a").as_deref(), Some("b"), "{text:?}");
        }
        assert_eq!(get("a = b = c ", "a").as_deref(), Some("b = c "));
        assert_eq!(get("a", "a").as_deref(), Some(""));
        assert_eq!(get("a==b", "a").as_deref(), Some("=b"));
        assert_eq!(get(r"a\=b\ c=d", "a=b c").as_deref(), Some("d"));
    }

    #[test]
    fn comments_and_blank_lines_hold_nothing() {
        let properties = Properties::parse(b"# a=1\n ! b=2\n\n  \n#x\\\nc=3\n").unwrap();
        assert_eq!(properties.iter().collect::<Vec<_>>(), [("c", "3")]);
    }

    #[test]
    fn a_line_goes_on_after_a_backslash() {
        assert_eq!(get("a=b\\\n   c\\\r\n d\ne=f", "a").as_deref(), Some("bcd"));
        assert_eq!(get("a=b\\\\\nc=d", "a").as_deref(), Some("b\\"));
        assert_eq!(get("a=b\\\n#c", "a").as_deref(), Some("b#c"));
        assert_eq!(get("a=b\\", "a").as_deref(), Some("b"));
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(get(r"a=\t\n\r\f\q\\\u00e4\u20AC", "a").as_deref(), Some("\t\n\r\x0cq\\ä€"));
        assert_eq!(Properties::parse(b"a=\xe4").unwrap().get("a"), Some("ä"));
        assert_eq!(get(r"a=\ud83d\ude00", "a").as_deref(), Some("😀"));
    }

    #[test]
    fn malformed_escapes_name_their_line() {
        for text in ["\n#\na=\\u12", "x=\\\ny\na=\\u12g4", "\n\na=\\u+123"] {
            let error = Properties::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.message(), "line 3 has a malformed \\u escape", "{text:?}");
        }
    }

    #[test]
    fn the_later_of_two_values_holds() {
        assert_eq!(get("a=1\nb=2\na=3", "a").as_deref(), Some("3"));
    }
}
