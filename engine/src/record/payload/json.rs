//! Values as text: JSON as Kafka's dump tool prints it.
//!
//! Bytes are base64, ids base64url, and a tagged field with its default value is left out.

use std::fmt::Write;

use super::Value;

/// Appends `value` as JSON on one line.
pub fn write_json(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(value) => append(out, format_args!("{value}")),
        // JSON has no word for what is not a number; Kafka quotes it.
        Value::Float(value) if value.is_nan() => out.push_str("\"NaN\""),
        Value::Float(value) if value.is_infinite() => {
            out.push_str(if *value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
        }
        Value::Float(value) => append(out, format_args!("{value:?}")),
        Value::Text(value) => write_json_text(value, out),
        Value::Bytes(value) => {
            out.push('"');
            write_base64(value, out);
            out.push('"');
        }
        Value::Uuid(value) => append(out, format_args!("\"{value}\"")),
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                write_json(element, out);
            }
            out.push_str(if elements.is_empty() { "[]" } else { "]" });
        }
        Value::Struct(fields) => {
            for (at, (name, value)) in fields.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                write_json_text(name, out);
                out.push(':');
                write_json(value, out);
            }
            out.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
    }
}

/// Appends `text` as a JSON string with its quotes.
pub fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => append(out, format_args!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn append(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("writing to a string cannot fail");
}

/// Appends `bytes` in base64 with padding.
fn write_base64(bytes: &[u8], out: &mut String) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().map_or(0, u32::from);
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for at in 0..4_usize {
            let sextet = match at {
                0 => bits >> 18,
                1 => bits >> 12,
                2 => bits >> 6,
                _ => bits,
            } & 63;
            let slot = usize::try_from(sextet).unwrap_or_default();
            let character = ALPHABET.get(slot).copied().filter(|_| at <= group.len());
            out.push(character.map_or('=', char::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &Value<'_>) -> String {
        let mut out = String::new();
        write_json(value, &mut out);
        out
    }

    #[test]
    fn bytes_are_padded_base64() {
        for (bytes, text) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")]
        {
            assert_eq!(json(&Value::Bytes(bytes.as_bytes())), format!("\"{text}\""));
        }
        assert_eq!(json(&Value::Bytes(&[0xfb, 0xff])), "\"+/8=\"");
    }

    #[test]
    fn quotes_and_control_characters_are_escaped() {
        let text = Value::Text("a\"b\\c\n\u{1}ü日".into());
        assert_eq!(json(&text), r#""a\"b\\c\n\u0001ü日""#);
    }

    #[test]
    fn empty_and_special_values_are_valid_json() {
        let value = Value::Struct(vec![
            ("none", Value::Null),
            ("list", Value::Array(vec![])),
            ("inner", Value::Struct(vec![])),
            ("nan", Value::Float(f64::NAN)),
            ("zero", Value::Float(0.0)),
            ("flag", Value::Bool(true)),
        ]);
        assert_eq!(
            json(&value),
            r#"{"none":null,"list":[],"inner":{},"nan":"NaN","zero":0.0,"flag":true}"#
        );
    }
}
