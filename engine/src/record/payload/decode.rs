//! How does a message become a [`Value`]? One decoder for all layouts, in both of Kafka's
//! encodings.
//!
//! ```text
//!            flexible                              plain
//! str        uvarint length + 1, UTF-8             i16 length, UTF-8
//! bytes      uvarint length + 1                    i32 length
//! [T]        uvarint count + 1, elements           i32 count, elements
//! null       0 in place of length + 1              -1 as the length
//! {}         fields, then a tag section            fields
//! {}?        i8 1, then the struct; i8 -1: null    same
//! tags       uvarint count; each: uvarint number, uvarint size, that many bytes
//! ```

use std::borrow::Cow;

use crate::bytes;
use crate::error::{Error, Result};
use crate::record::varint::read_u32;
use crate::uuid::Uuid;

use super::Value;
use super::layout::{Field, Kind, Layout};

/// The longest text of the flexible encoding in bytes; the plain one cannot say more.
const TEXT_BYTES_MAX: usize = 32767;

/// What is wrong, and with which field.
type Broken = (&'static str, &'static str);

const SHORT: &str = "the bytes end within it";
const NULL: &str = "it is null, which it must not be";
const LENGTH: &str = "its length is no length";

/// The message at the start of `bytes`, and how many bytes it has.
pub(super) fn decode<'a>(
    layout: &Layout,
    version: i16,
    bytes: &'a [u8],
) -> Result<(Value<'a>, usize)> {
    let mut decoder = Decoder { bytes, at: 0, version, flexible: layout.is_flexible(version) };
    match decoder.fields(&layout.fields) {
        Ok(value) => Ok((value, decoder.at)),
        Err((field, reason)) => {
            let name = layout.name;
            Err(Error::corrupt(format!("{name} version {version}, {field}: {reason}")))
        }
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    version: i16,
    flexible: bool,
}

impl<'a> Decoder<'a> {
    /// A struct: its fields in order, then its tag section.
    fn fields(&mut self, fields: &[Field]) -> std::result::Result<Value<'a>, Broken> {
        let version = self.version;
        let present = fields.iter().filter(|field| field.is_in(version));
        let mut values = Vec::with_capacity(fields.len());
        for field in present.clone().filter(|field| field.tag.is_none()) {
            let value = self.value(&field.kind, field.nullable, false);
            values.push((field.name, value.map_err(|broken| broken.of(field.name))?));
        }
        if !self.flexible {
            return Ok(Value::Struct(values));
        }
        const TAGS: &str = "tagged fields";
        let count = self.uvarint().ok_or((TAGS, SHORT))?;
        let mut previous = None;
        for _ in 0..count {
            let number = self.uvarint().ok_or((TAGS, SHORT))?;
            if previous.is_some_and(|previous| number <= previous) {
                return Err((TAGS, "their numbers do not rise"));
            }
            previous = Some(number);
            let size = self.uvarint().and_then(|size| usize::try_from(size).ok());
            let bytes = size.and_then(|size| self.take(size)).ok_or((TAGS, SHORT))?;
            let known = present.clone().find_map(|field| {
                let (tag, default) = field.tag.as_ref()?;
                (*tag == number).then_some((field, default))
            });
            if let Some((field, default)) = known {
                let mut inner = Decoder { bytes, at: 0, ..*self };
                let value = inner.value(&field.kind, field.nullable, true);
                let value = value.map_err(|broken| broken.of(field.name))?;
                // spec: kraft-metadata 2.1
                if inner.at != bytes.len() {
                    return Err((field.name, "bytes are left over behind it"));
                }
                if !default.is(&value) {
                    values.push((field.name, value));
                }
            }
        }
        Ok(Value::Struct(values))
    }

    fn value(
        &mut self,
        kind: &Kind,
        nullable: bool,
        tagged: bool,
    ) -> std::result::Result<Value<'a>, Reason> {
        let int = |value: Option<i64>| value.map(Value::Int).ok_or(Reason::Here(SHORT));
        match kind {
            Kind::Bool => {
                let byte = self.take(1).and_then(|bytes| bytes::get_u8(bytes, 0));
                byte.map(|byte| Value::Bool(byte != 0)).ok_or(Reason::Here(SHORT))
            }
            Kind::I8 => int(self.take(1).and_then(|b| bytes::get_i8(b, 0)).map(i64::from)),
            Kind::I16 => int(self.take(2).and_then(|b| bytes::get_i16(b, 0)).map(i64::from)),
            Kind::U16 => int(self.take(2).and_then(|b| bytes::get_u16(b, 0)).map(i64::from)),
            Kind::I32 => int(self.take(4).and_then(|b| bytes::get_i32(b, 0)).map(i64::from)),
            Kind::I64 => int(self.take(8).and_then(|b| bytes::get_i64(b, 0))),
            Kind::F64 => {
                let bits = self.take(8).and_then(|bytes| bytes::get_u64(bytes, 0));
                bits.map(|bits| Value::Float(f64::from_bits(bits))).ok_or(Reason::Here(SHORT))
            }
            Kind::Uuid => {
                let bytes = self.take(16).and_then(|bytes| bytes.try_into().ok());
                bytes.map(|bytes| Value::Uuid(Uuid(bytes))).ok_or(Reason::Here(SHORT))
            }
            Kind::Text => match self.length(2)? {
                Some(size) if size > TEXT_BYTES_MAX => Err(Reason::Here("it is too long")),
                Some(size) => self.text(size),
                None => null(nullable),
            },
            Kind::Bytes => match self.length(4)? {
                Some(size) => self.take(size).map(Value::Bytes).ok_or(Reason::Here(SHORT)),
                None => null(nullable),
            },
            Kind::Array(kind) => match self.length(4)? {
                Some(count) => self.array(kind, count),
                None => null(nullable),
            },
            Kind::Struct(fields) if nullable => match self.presence(tagged)? {
                true => self.fields(fields).map_err(Reason::Within),
                false => Ok(Value::Null),
            },
            Kind::Struct(fields) => self.fields(fields).map_err(Reason::Within),
        }
    }

    fn text(&mut self, size: usize) -> std::result::Result<Value<'a>, Reason> {
        let bytes = self.take(size).ok_or(Reason::Here(SHORT))?;
        Ok(Value::Text(match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        }))
    }

    fn array(&mut self, kind: &Kind, count: usize) -> std::result::Result<Value<'a>, Reason> {
        // Every element has at least one byte, so a lying count is found before anything is made
        // for it.
        if count > self.bytes.len() - self.at {
            return Err(Reason::Here(SHORT));
        }
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(self.value(kind, false, false)?);
        }
        Ok(Value::Array(elements))
    }

    /// Whether a nullable struct is there.
    fn presence(&mut self, tagged: bool) -> std::result::Result<bool, Reason> {
        // spec: internal-topics 2.2. Within a tag the mark is a varint, elsewhere a signed byte.
        let mark = if tagged {
            self.uvarint().map(i64::from)
        } else {
            self.take(1).and_then(|bytes| bytes::get_i8(bytes, 0)).map(i64::from)
        };
        match mark.ok_or(Reason::Here(SHORT))? {
            1 => Ok(true),
            0 if tagged => Ok(false),
            -1 => Ok(false),
            _ => Err(Reason::Here("the mark before it is neither there nor null")),
        }
    }

    /// A length or count, whose plain form has this many bytes; `None` for null.
    fn length(&mut self, plain_bytes: usize) -> std::result::Result<Option<usize>, Reason> {
        let length = if self.flexible {
            self.uvarint().map(|length| i64::from(length) - 1)
        } else if plain_bytes == 2 {
            self.take(2).and_then(|bytes| bytes::get_i16(bytes, 0)).map(i64::from)
        } else {
            self.take(4).and_then(|bytes| bytes::get_i32(bytes, 0)).map(i64::from)
        };
        match length.ok_or(Reason::Here(SHORT))? {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| Reason::Here(LENGTH)),
        }
    }

    fn uvarint(&mut self) -> Option<u32> {
        let (value, behind) = read_u32(self.bytes.get(self.at..)?).ok()?;
        self.at = self.bytes.len() - behind.len();
        Some(value)
    }

    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(size)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }
}

/// Why a value could not be read: its own bytes, or a field within it.
enum Reason {
    Here(&'static str),
    Within(Broken),
}

impl Reason {
    fn of(self, field: &'static str) -> Broken {
        match self {
            Reason::Here(reason) => (field, reason),
            Reason::Within(broken) => broken,
        }
    }
}

fn null<'a>(nullable: bool) -> std::result::Result<Value<'a>, Reason> {
    if nullable { Ok(Value::Null) } else { Err(Reason::Here(NULL)) }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layouts;
    use super::*;

    const TEXT: &str = r"
Plain 0 v0-1 flex1
  name str
  list [i16]?
  id i32 1+
  part {}?
    flag bool
  tag 0 more [{}]? 1+ = null
    data bytes
  tag 5 level i8 1+ = -1
";

    fn read(version: i16, bytes: &[u8]) -> Result<(Value<'_>, usize)> {
        let layouts = Layouts::parse(TEXT);
        decode(layouts.get(0).unwrap(), version, bytes)
    }

    fn message(version: i16, bytes: &[u8]) -> String {
        match read(version, bytes) {
            Ok((value, size)) => {
                let mut out = String::new();
                super::super::write_json(&value, &mut out);
                format!("{out} {size}")
            }
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn plain_lengths_are_signed_and_fixed() {
        let bytes = b"\x00\x02ab\x00\x00\x00\x02\x00\x01\xff\xff\x01\x01rest";
        assert_eq!(message(0, bytes), r#"{"name":"ab","list":[1,-1],"part":{"flag":true}} 14"#);
        let bytes = b"\x00\x00\xff\xff\xff\xff\xff";
        assert_eq!(message(0, bytes), r#"{"name":"","list":null,"part":null} 7"#);
    }

    #[test]
    fn flexible_lengths_are_one_more_and_tags_follow() {
        let bytes = b"\x03ab\x00\x00\x00\x00\x07\xff\x02\x00\x05\x02\x03ab\x00\x05\x01\x04";
        let text =
            r#"{"name":"ab","list":null,"id":7,"part":null,"more":[{"data":"YWI="}],"level":4} 20"#;
        assert_eq!(message(1, bytes), text);
    }

    #[test]
    fn unknown_tags_are_skipped_and_defaults_left_out() {
        let bytes = b"\x01\x01\x00\x00\x00\x07\xff\x02\x05\x01\xff\x07\x03abc";
        assert_eq!(message(1, bytes), r#"{"name":"","list":[],"id":7,"part":null} 16"#);
    }

    #[test]
    fn tags_are_bounded_by_their_size() {
        let start = b"\x01\x01\x00\x00\x00\x07\xff".to_vec();
        let broken = |tags: &[u8]| message(1, &[start.as_slice(), tags].concat());
        assert_eq!(
            broken(b"\x01\x05\x02\x01\x01"),
            "Plain version 1, level: bytes are left over behind it"
        );
        assert_eq!(broken(b"\x01\x05\x00\x01"), "Plain version 1, level: the bytes end within it");
        assert_eq!(
            broken(b"\x01\x05\x02\x01"),
            "Plain version 1, tagged fields: the bytes end within it"
        );
        assert_eq!(
            broken(b"\x02\x07\x00\x07\x00"),
            "Plain version 1, tagged fields: their numbers do not rise"
        );
    }

    #[test]
    fn null_where_none_may_be_is_refused() {
        assert_eq!(
            message(0, b"\xff\xff"),
            "Plain version 0, name: it is null, which it must not be"
        );
        assert_eq!(message(1, b"\x00"), "Plain version 1, name: it is null, which it must not be");
    }

    #[test]
    fn lying_lengths_are_refused_before_anything_is_made_for_them() {
        assert_eq!(message(0, b"\xff\xfe"), "Plain version 0, name: its length is no length");
        assert_eq!(message(0, b"\x7f\xff"), "Plain version 0, name: the bytes end within it");
        assert_eq!(message(1, b"\xff\xff\xff\xff\x0f"), "Plain version 1, name: it is too long");
        let bytes = b"\x01\xff\xff\xff\xff\x0f\x00\x00";
        assert_eq!(message(1, bytes), "Plain version 1, list: the bytes end within it");
        let bytes = b"\x00\x00\x7f\xff\xff\xff\x00\x00";
        assert_eq!(message(0, bytes), "Plain version 0, list: the bytes end within it");
    }

    #[test]
    fn every_shorter_message_is_refused() {
        let bytes = b"\x03ab\x00\x00\x00\x00\x07\xff\x02\x00\x05\x02\x03ab\x00\x05\x01\x04";
        for size in 0..bytes.len() {
            assert!(read(1, &bytes[..size]).is_err(), "{size}");
        }
    }

    #[test]
    fn text_that_is_no_utf8_reads_as_replacement_characters() {
        assert_eq!(
            message(0, b"\x00\x02\xffa\xff\xff\xff\xff\xff"),
            "{\"name\":\"\u{fffd}a\",\"list\":null,\"part\":null} 9"
        );
    }
}
