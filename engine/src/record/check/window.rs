//! How are decompressed bytes looked at when there may be more of them than memory?

use super::fields::{Cursor, TOO_SHORT};
use crate::problem::Code;
use crate::record::codec::{CodecError, Stream};
use crate::record::records::RecordError;
use crate::record::varint;

/// What is returned where the codec failed: [`Window::explain`] knows why.
const FAILED: RecordError = RecordError { code: Code::Codec, reason: "the payload does not open" };

/// A piece of a payload that moves forward through it.
pub(in crate::record) struct Window<'w, 'p> {
    stream: Stream<'p>,
    buffer: &'w mut [u8],
    start: usize,
    end: usize,
    failure: Option<CodecError>,
}

impl<'w, 'p> Window<'w, 'p> {
    pub(in crate::record) fn new(stream: Stream<'p>, buffer: &'w mut [u8]) -> Self {
        Window { stream, buffer, start: 0, end: 0, failure: None }
    }

    /// The most bytes that can be seen at once.
    pub(in crate::record) fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// What comes next: at least `wanted` bytes (no more than the capacity), or all that are left.
    pub(in crate::record) fn peek(&mut self, wanted: usize) -> Result<&[u8], RecordError> {
        if self.end - self.start < wanted {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            while self.end < wanted {
                let room = self.buffer.get_mut(self.end..).unwrap_or_default();
                match self.stream.fill(room) {
                    Ok(0) => break,
                    Ok(size) => self.end += size,
                    Err(error) => {
                        self.failure = Some(error);
                        return Err(FAILED);
                    }
                }
            }
        }
        Ok(self.buffer.get(self.start..self.end).unwrap_or_default())
    }

    /// Moves over bytes that were seen.
    pub(in crate::record) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
    }

    /// Moves over up to `count` bytes, shown piece by piece; gives how many there were.
    pub(in crate::record) fn pass(
        &mut self,
        count: usize,
        mut see: impl FnMut(&[u8]),
    ) -> Result<usize, RecordError> {
        let mut left = count;
        while left > 0 {
            let bytes = self.peek(1)?;
            let piece = bytes.get(..left).unwrap_or(bytes);
            if piece.is_empty() {
                break;
            }
            see(piece);
            let size = piece.len();
            self.consume(size);
            left -= size;
        }
        Ok(count - left)
    }

    /// Why the codec failed, if it did.
    pub(in crate::record) fn explain(self) -> Option<CodecError> {
        self.failure
    }

    /// Bytes that came out of the payload so far.
    pub(in crate::record) fn opened_bytes(&self) -> u64 {
        self.stream.size_bytes()
    }

    /// Bytes of the compressed payload that its reader never looks at.
    pub(in crate::record) fn unread_size(&self) -> usize {
        self.stream.unread_size()
    }
}

/// A record that is larger than the window over its batch.
pub(in crate::record) struct LargeRecord<'a, 'w, 'p> {
    pub(in crate::record) window: &'a mut Window<'w, 'p>,
    /// Bytes of the record that are left.
    pub(in crate::record) left: usize,
}

impl LargeRecord<'_, '_, '_> {
    fn number<T>(
        &mut self,
        size_max: usize,
        read: impl Fn(&[u8]) -> Result<(T, &[u8]), varint::VarintError>,
    ) -> Result<T, RecordError> {
        let bytes = self.window.peek(size_max.min(self.left))?;
        let bytes = bytes.get(..self.left).unwrap_or(bytes);
        let (value, rest) = read(bytes)?;
        let size = bytes.len() - rest.len();
        self.window.consume(size);
        self.left -= size;
        Ok(value)
    }
}

impl Cursor for LargeRecord<'_, '_, '_> {
    fn left(&self) -> usize {
        self.left
    }

    fn varint(&mut self) -> Result<i32, RecordError> {
        self.number(5, varint::read_i32)
    }

    fn varlong(&mut self) -> Result<i64, RecordError> {
        self.number(10, varint::read_i64)
    }

    fn skip(&mut self, count: usize) -> Result<(), RecordError> {
        if count > self.left || self.window.pass(count, |_| {})? < count {
            return Err(TOO_SHORT);
        }
        self.left -= count;
        Ok(())
    }
}
