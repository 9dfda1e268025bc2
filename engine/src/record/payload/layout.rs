//! What does a message look like? Reads the texts of [`layouts`](super::layouts).
//!
//! One header line per message, its fields below it, indented by two blanks a level:
//!
//! ```text
//! TopicRecord 2 v0 flex0            name, id, versions, first flexible version (flex-: none)
//!   name str                        a field of every version
//!   directories [uuid] 1+           an array, from version 1 on (1-3: up to version 3)
//!   endPoints [{}]                  an array of structs, whose fields follow one level deeper
//!     port u16
//!   rack str?                       may be null
//!   tag 0 isr [i32]? 2+ = null      a tagged field: number, name, type, versions, default value
//! ```

use super::Value;

/// The messages of one topic.
pub(super) struct Layouts(Vec<Layout>);

/// One message in all its versions.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    pub(super) id: u32,
    versions: Versions,
    flexible_from: Option<i16>,
    pub(super) fields: Vec<Field>,
}

/// A field of a message or struct.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// Number and default value of a tagged field.
    pub(super) tag: Option<(u32, Default)>,
    versions: Versions,
}

/// The type of a field.
#[derive(Debug)]
pub(super) enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U16,
    F64,
    Uuid,
    Text,
    Bytes,
    Array(Box<Kind>),
    Struct(Vec<Field>),
}

/// What a tagged field is when it is not written.
#[derive(Debug)]
pub(super) enum Default {
    Null,
    Int(i64),
    /// False, an empty array, a zero id, a struct of such.
    Zero,
}

/// First and last version, inclusive.
#[derive(Clone, Copy, Debug)]
struct Versions(i16, i16);

impl Versions {
    const ALL: Versions = Versions(0, i16::MAX);

    fn contains(self, version: i16) -> bool {
        (self.0..=self.1).contains(&version)
    }
}

impl Layouts {
    /// The message of this id (api key, record type or control type).
    pub(super) fn get(&self, id: u32) -> Option<&Layout> {
        self.0.iter().find(|layout| layout.id == id)
    }

    /// Reads a text of our own: a mistake in it is a bug, found by the test that reads all of them.
    pub(super) fn parse(text: &'static str) -> Self {
        let mut lines =
            Lines { lines: text.lines().filter(|line| !line.is_empty()).collect(), at: 0 };
        let mut layouts = Vec::new();
        while let Some(words) = lines.take(0) {
            let [name, id, versions, flexible] = words.as_slice() else {
                lines.refuse();
            };
            let parsed = (
                id.parse().ok(),
                versions.strip_prefix('v').and_then(versions_of),
                flexible.strip_prefix("flex"),
            );
            let (Some(id), Some(versions), Some(flexible)) = parsed else { lines.refuse() };
            let fields = lines.fields(1);
            layouts.push(Layout {
                name,
                id,
                versions,
                flexible_from: flexible.parse().ok(),
                fields,
            });
        }
        Layouts(layouts)
    }
}

impl Layout {
    pub(super) fn has_version(&self, version: i16) -> bool {
        self.versions.contains(version)
    }

    pub(super) fn last_version(&self) -> i16 {
        self.versions.1
    }

    pub(super) fn is_flexible(&self, version: i16) -> bool {
        self.flexible_from.is_some_and(|first| version >= first)
    }
}

impl Field {
    pub(super) fn is_in(&self, version: i16) -> bool {
        self.versions.contains(version)
    }
}

impl Default {
    pub(super) fn is(&self, value: &Value<'_>) -> bool {
        match self {
            Default::Null => *value == Value::Null,
            Default::Int(default) => *value == Value::Int(*default),
            // Null is told apart from nothing.
            Default::Zero => *value != Value::Null && value.is_zero(),
        }
    }
}

/// The lines of a text, and how far they are read.
struct Lines {
    lines: Vec<&'static str>,
    at: usize,
}

impl Lines {
    /// The words of the next line if it is at this level.
    fn take(&mut self, level: usize) -> Option<Vec<&'static str>> {
        let line = self.lines.get(self.at)?;
        let blanks = line.len() - line.trim_start().len();
        if blanks != 2 * level {
            return None;
        }
        self.at += 1;
        Some(line.split_whitespace().collect())
    }

    fn fields(&mut self, level: usize) -> Vec<Field> {
        let mut fields = Vec::new();
        while let Some(words) = self.take(level) {
            fields.push(self.field(&words, level));
        }
        fields
    }

    fn field(&mut self, words: &[&'static str], level: usize) -> Field {
        let (words, tag) = match words {
            ["tag", number, words @ .., "=", default] => {
                let Some(parsed) = number.parse().ok().zip(default_of(default)) else {
                    self.refuse()
                };
                (words, Some(parsed))
            }
            words => (words, None),
        };
        let (name, kind, versions) = match words {
            [name, kind] => (name, kind, Some(Versions::ALL)),
            [name, kind, versions] => (name, kind, versions_of(versions)),
            _ => self.refuse(),
        };
        let Some(versions) = versions else { self.refuse() };
        let required = kind.strip_suffix('?');
        let kind = self.kind(required.unwrap_or(kind), level);
        Field { name, kind, nullable: required.is_some(), tag, versions }
    }

    fn kind(&mut self, word: &str, level: usize) -> Kind {
        if let Some(element) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
            return Kind::Array(Box::new(self.kind(element, level)));
        }
        match word {
            "bool" => Kind::Bool,
            "i8" => Kind::I8,
            "i16" => Kind::I16,
            "i32" => Kind::I32,
            "i64" => Kind::I64,
            "u16" => Kind::U16,
            "f64" => Kind::F64,
            "uuid" => Kind::Uuid,
            "str" => Kind::Text,
            "bytes" => Kind::Bytes,
            "{}" => Kind::Struct(self.fields(level + 1)),
            _ => self.refuse(),
        }
    }

    fn refuse(&self) -> ! {
        let before = self.lines.get(..self.at).unwrap_or_default();
        unreachable!("not in the notation of layouts: {:?}", before.last())
    }
}

/// `2`, `0-4` or `3+`.
fn versions_of(word: &str) -> Option<Versions> {
    if let Some(first) = word.strip_suffix('+') {
        return Some(Versions(first.parse().ok()?, i16::MAX));
    }
    match word.split_once('-') {
        Some((first, last)) => Some(Versions(first.parse().ok()?, last.parse().ok()?)),
        None => word.parse().ok().map(|version| Versions(version, version)),
    }
}

fn default_of(word: &str) -> Option<Default> {
    match word {
        "null" => Some(Default::Null),
        "[]" | "empty" | "false" | "zero" => Some(Default::Zero),
        number => number.parse().ok().map(Default::Int),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layouts;
    use super::*;

    #[test]
    fn every_layout_text_is_read_whole() {
        let texts = [
            (layouts::metadata::METADATA, 26),
            (layouts::control::CONTROL, 7),
            (layouts::offsets::KEYS, 22),
            (layouts::offsets::VALUES, 22),
            (layouts::transactions::KEYS, 1),
            (layouts::transactions::VALUES, 1),
            (layouts::share::KEYS, 2),
            (layouts::share::VALUES, 2),
            (layouts::remote::REMOTE, 4),
            (layouts::protocol::PROTOCOL, 2),
        ];
        for (text, count) in texts {
            assert_eq!(Layouts::parse(text).0.len(), count, "{text}");
        }
    }

    #[test]
    fn a_header_tells_versions_and_encoding() {
        let layouts = Layouts::parse("A 7 v1-3 flex2\n  a i8\nB 8 v0 flex-\n");
        let first = layouts.get(7).unwrap();
        assert!(!first.has_version(0) && first.has_version(1) && !first.has_version(4));
        assert!(!first.is_flexible(1) && first.is_flexible(2));
        assert!(!layouts.get(8).unwrap().is_flexible(0));
        assert!(layouts.get(9).is_none());
    }

    #[test]
    fn nested_fields_belong_to_the_struct_above_them() {
        let layouts = Layouts::parse(
            "A 0 v0 flex0\n  a [{}]\n    b i8\n  tag 3 c {}? 1+ = empty\n    d i8\n",
        );
        let fields = &layouts.get(0).unwrap().fields;
        assert_eq!(fields.len(), 2);
        assert!(matches!(&fields[0].kind, Kind::Array(of) if matches!(&**of, Kind::Struct(_))));
        assert!(matches!(&fields[1].tag, Some((3, Default::Zero))));
        assert!(fields[1].nullable && !fields[1].is_in(0) && fields[1].is_in(1));
    }
}
