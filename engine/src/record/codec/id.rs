//! Which codec, and at which level?

use std::fmt;

use super::CodecError;

/// A compression codec of Kafka's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// The records stand there as they are.
    #[default]
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy blocks in xerial framing.
    Snappy = 2,
    /// The LZ4 frame format.
    Lz4 = 3,
    /// RFC 8878.
    Zstd = 4,
}

impl Codec {
    /// Every codec, by id.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    /// The codec with this id; `None` for 5 and above, which no version of Kafka has given out.
    #[inline]
    #[must_use]
    pub fn from_id(id: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(id)).copied()
    }

    /// The id as it stands in bits 0 to 2 of the attributes.
    #[inline]
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Codec::None => 0,
            Codec::Gzip => 1,
            Codec::Snappy => 2,
            Codec::Lz4 => 3,
            Codec::Zstd => 4,
        }
    }

    /// Kafka's name for it, as in `compression.type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A codec to write with, and its level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Compression {
    codec: Codec,
    level: i32,
}

impl Compression {
    /// No compression.
    pub const NONE: Compression = Compression { codec: Codec::None, level: 0 };

    /// The codec at Kafka's default level.
    #[must_use]
    pub fn new(codec: Codec) -> Self {
        // spec: records 4, table of levels
        let level = match codec {
            Codec::None | Codec::Snappy => 0,
            Codec::Gzip => -1,
            Codec::Lz4 => 9,
            Codec::Zstd => 3,
        };
        Compression { codec, level }
    }

    /// The codec at a level that Kafka's `compression.*.level` accepts: gzip 1 to 9 or -1, lz4 1 to
    /// 17, zstd -131072 to 22. Codecs without levels ignore it.
    ///
    /// # Errors
    ///
    /// A level outside those ranges.
    pub fn with_level(codec: Codec, level: i32) -> Result<Self, CodecError> {
        let accepted = match codec {
            Codec::None | Codec::Snappy => return Ok(Compression::new(codec)),
            Codec::Gzip => level == -1 || (1..=9).contains(&level),
            Codec::Lz4 => (1..=17).contains(&level),
            Codec::Zstd => (-131_072..=22).contains(&level),
        };
        if !accepted {
            return Err(CodecError::argument(codec, format!("has no level {level}")));
        }
        Ok(Compression { codec, level })
    }

    /// The codec.
    #[must_use]
    pub fn codec(self) -> Codec {
        self.codec
    }

    /// The level; 0 for a codec without levels.
    #[must_use]
    pub fn level(self) -> i32 {
        self.level
    }
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        Compression::new(codec)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CodecErrorKind;
    use super::*;

    #[test]
    fn ids_are_those_of_kafka_and_5_to_7_are_unknown() {
        for (id, codec) in Codec::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(codec.id()), id);
            assert_eq!(Codec::from_id(codec.id()), Some(codec));
        }
        for id in 5..=u8::MAX {
            assert_eq!(Codec::from_id(id), None);
        }
    }

    #[test]
    fn levels_outside_kafkas_ranges_are_refused() {
        // spec: behaviours CO-002
        for (codec, good, bad) in [
            (Codec::Gzip, [-1, 1, 9], [-2, 0, 10]),
            (Codec::Lz4, [1, 9, 17], [0, -1, 18]),
            (Codec::Zstd, [-131_072, 0, 22], [-131_073, 23, i32::MAX]),
        ] {
            for level in good {
                assert_eq!(Compression::with_level(codec, level).unwrap().level(), level);
            }
            for level in bad {
                let error = Compression::with_level(codec, level).unwrap_err();
                assert_eq!(error.kind(), CodecErrorKind::Argument);
            }
            assert_eq!(
                Compression::with_level(codec, Compression::new(codec).level()),
                Ok(Compression::new(codec))
            );
        }
    }
}
