//! How keys and values look to a human: text in quotes where it can be printed, else hexadecimal.

use std::fmt::{self, Display};

/// Characters of text, or bytes, that are shown of a long value.
const SHOWN_MAX: usize = 120;

/// Bytes as they are printed; `null` for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    /// The bytes.
    pub(super) bytes: Option<&'a [u8]>,
    /// Whether long ones are printed whole.
    pub(super) full: bool,
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = self.bytes else { return f.write_str("null") };
        match std::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(is_printable) => self.write_text(text, f),
            _ => self.write_hex(bytes, f),
        }
    }
}

impl Shown<'_> {
    fn write_text(self, text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = match text.char_indices().nth(SHOWN_MAX) {
            Some((at, _)) if !self.full => at,
            _ => text.len(),
        };
        f.write_str("\"")?;
        for character in text.get(..cut).unwrap_or_default().chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"")?;
        write_rest(cut < text.len(), text.len(), f)
    }

    fn write_hex(self, bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.full { bytes.len() } else { bytes.len().min(SHOWN_MAX / 2) };
        f.write_str("0x")?;
        for byte in bytes.iter().take(cut) {
            write!(f, "{byte:02x}")?;
        }
        write_rest(cut < bytes.len(), bytes.len(), f)
    }
}

fn write_rest(is_cut: bool, size: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_cut { write!(f, "… ({size} bytes)") } else { Ok(()) }
}

/// Text in which what a terminal would not show is escaped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printable<'a>(pub(super) &'a str);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                plain if is_printable(plain) => write!(f, "{plain}")?,
                other => write!(f, "\\u{{{:x}}}", u32::from(other))?,
            }
        }
        Ok(())
    }
}

/// Whether a terminal shows the character and does nothing else: no control characters, and none
/// that turn the direction of writing.
fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: Option<&[u8]>, full: bool) -> String {
        Shown { bytes, full }.to_string()
    }

    #[test]
    fn text_is_quoted_and_everything_else_is_hexadecimal() {
        assert_eq!(shown(None, false), "null");
        assert_eq!(shown(Some(b""), false), "\"\"");
        assert_eq!(shown(Some("grün \"x\" \\".as_bytes()), false), "\"grün \\\"x\\\" \\\\\"");
        assert_eq!(shown(Some(b"\x1b[2J"), false), "0x1b5b324a");
        assert_eq!(shown(Some("a\u{202e}b".as_bytes()), false), "0x61e280ae62");
        assert_eq!(shown(Some(&[0xff]), false), "0xff");
    }

    #[test]
    fn nothing_reaches_a_terminal_but_characters() {
        assert_eq!(Printable("a\u{9b}2J\u{202e}b\n").to_string(), "a\\u{9b}2J\\u{202e}b\\u{a}");
    }

    #[test]
    fn long_values_are_cut_unless_asked_for() {
        let text = "ü".repeat(200);
        assert_eq!(
            shown(Some(text.as_bytes()), false),
            format!("\"{}\"… (400 bytes)", "ü".repeat(120))
        );
        assert_eq!(shown(Some(text.as_bytes()), true), format!("\"{text}\""));
        assert_eq!(shown(Some(&[0; 100]), false), format!("0x{}… (100 bytes)", "00".repeat(60)));
    }
}
