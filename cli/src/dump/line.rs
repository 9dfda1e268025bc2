//! One line of JSON, written into memory that is used again: a dump prints millions of them.

use std::fmt::{Display, Write};

use siltstone::record::payload::write_json_text;

/// A JSON object of one line.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
}

impl Line {
    /// Begins an object with its type.
    pub(super) fn begin(&mut self, kind: &str) {
        self.text.clear();
        self.text.push_str("{\"type\":\"");
        self.text.push_str(kind);
        self.text.push('"');
    }

    /// A key of ours: it needs no escapes.
    fn key(&mut self, key: &str) {
        self.text.push_str(",\"");
        self.text.push_str(key);
        self.text.push_str("\":");
    }

    /// A number or a boolean.
    pub(super) fn plain(&mut self, key: &str, value: impl Display) {
        self.key(key);
        // Writing into memory cannot fail.
        let _ = write!(self.text, "{value}");
    }

    /// A number, null where there is none.
    pub(super) fn maybe(&mut self, key: &str, value: Option<impl Display>) {
        match value {
            Some(value) => self.plain(key, value),
            None => self.plain(key, "null"),
        }
    }

    /// Text.
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        write_json_text(value, &mut self.text);
    }

    /// Bytes: null, a string where they are UTF-8, else `{"base64": "…"}`.
    pub(super) fn bytes(&mut self, key: &str, value: Option<&[u8]>) {
        self.key(key);
        self.bytes_value(value);
    }

    fn bytes_value(&mut self, value: Option<&[u8]>) {
        match value.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
            None => self.text.push_str("null"),
            Some((_, Ok(text))) => write_json_text(text, &mut self.text),
            Some((bytes, Err(_))) => {
                self.text.push_str("{\"base64\":");
                let bytes = siltstone::record::payload::Value::Bytes(bytes);
                siltstone::record::payload::write_json(&bytes, &mut self.text);
                self.text.push('}');
            }
        }
    }

    /// Pairs of bytes, as an array of objects with key and value.
    pub(super) fn pairs<'a>(
        &mut self,
        key: &str,
        pairs: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) {
        self.key(key);
        self.text.push('[');
        for (at, (name, value)) in pairs.enumerate() {
            self.text.push_str(if at > 0 { ",{\"key\":" } else { "{\"key\":" });
            self.bytes_value(Some(name));
            self.text.push_str(",\"value\":");
            self.bytes_value(value);
            self.text.push('}');
        }
        self.text.push(']');
    }

    /// JSON that is already written.
    pub(super) fn json(&mut self, key: &str, json: &str) {
        self.key(key);
        self.text.push_str(json);
    }

    /// Ends the object; gives it with its line end.
    pub(super) fn end(&mut self) -> &str {
        self.text.push_str("}\n");
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_never_ambiguous() {
        let mut line = Line::default();
        line.begin("record");
        line.bytes("null", None);
        line.bytes("empty", Some(b""));
        line.bytes("text", Some("ü\"\n\u{0}".as_bytes()));
        line.bytes("binary", Some(&[0xff, 0]));
        line.pairs("headers", [(&b"a"[..], None), (&b"b"[..], Some(&b"c"[..]))].into_iter());
        line.maybe("none", None::<i64>);
        let value: serde_json::Value = serde_json::from_str(line.end()).unwrap();
        let expected = serde_json::json!({
            "type": "record", "null": null, "empty": "", "text": "ü\"\n\u{0}",
            "binary": {"base64": "/wA="},
            "headers": [{"key": "a", "value": null}, {"key": "b", "value": "c"}], "none": null,
        });
        assert_eq!(value, expected);
    }
}
