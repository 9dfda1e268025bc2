//! The decoded form of a message: a small tree.

use std::borrow::Cow;

use crate::uuid::Uuid;

/// A value within a message. Text and bytes point into the record that they were read from.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A nullable field without a value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text; as in Kafka, bytes that are no UTF-8 read as replacement characters.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An id.
    Uuid(Uuid),
    /// Values of one kind.
    Array(Vec<Value<'a>>),
    /// Named fields in the order of the layout. Fields that the version does not have, and tagged
    /// fields with their default value, are not among them.
    Struct(Vec<(&'static str, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The field of a struct; `None` where it is absent or this is no struct.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields().iter().find_map(|(known, value)| (*known == name).then_some(value))
    }

    /// The fields of a struct; none of anything else.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, Value<'a>)] {
        match self {
            Value::Struct(fields) => fields,
            _ => &[],
        }
    }

    /// The elements of an array; none of anything else.
    #[must_use]
    pub fn elements(&self) -> &[Value<'a>] {
        match self {
            Value::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The field as an integer.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.field(name) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// The field as a boolean.
    #[must_use]
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.field(name) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// The field as text; `None` where it is null, too.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.field(name) {
            Some(Value::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// The field as an id.
    #[must_use]
    pub fn uuid(&self, name: &str) -> Option<Uuid> {
        match self.field(name) {
            Some(Value::Uuid(value)) => Some(*value),
            _ => None,
        }
    }

    /// The field as bytes.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        match self.field(name) {
            Some(Value::Bytes(value)) => Some(value),
            _ => None,
        }
    }

    /// The elements of a field that is an array; `None` where it is absent or null.
    #[must_use]
    pub fn array(&self, name: &str) -> Option<&[Value<'a>]> {
        match self.field(name) {
            Some(Value::Array(elements)) => Some(elements),
            _ => None,
        }
    }

    /// Whether this is what a field has that nobody set: null, zero, nothing.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Float(value) => *value == 0.0,
            Value::Text(value) => value.is_empty(),
            Value::Bytes(value) => value.is_empty(),
            Value::Uuid(value) => *value == Uuid::ZERO,
            Value::Array(elements) => elements.is_empty(),
            Value::Struct(fields) => fields.iter().all(|(_, value)| value.is_zero()),
        }
    }
}
