//! Whose files are these, and how were they left? The small files beside the logs.
//!
//! | file | content |
//! |---|---|
//! | `.kafka_cleanshutdown` | `{"version":0,"brokerEpoch":7}`, without a line end |
//! | `partition.metadata` | `version: 0`, line feed, `topic_id: <uuid>`, without a line end |
//! | `meta.properties` | Java properties: `version`, `cluster.id`, `node.id` or `broker.id`, `directory.id` |

use super::checkpoint::Lines;
use super::json::number_of_member;
use super::properties::Properties;
use crate::error::{Error, Kind, Result};
use crate::uuid::Uuid;

/// The broker epoch in `.kafka_cleanshutdown`. That the file exists says that the stop was clean,
/// whatever it holds: `None` only means that no epoch can be read from it.
#[must_use]
pub fn parse_clean_shutdown(bytes: &[u8]) -> Option<i64> {
    number_of_member(std::str::from_utf8(bytes).ok()?, "brokerEpoch")
}

/// The bytes of `.kafka_cleanshutdown`; -1 says that the broker epoch is not known.
#[must_use]
pub fn format_clean_shutdown(broker_epoch: i64) -> Vec<u8> {
    format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}").into_bytes()
}

/// The broker epoch of the life before, when all of a broker's log directories have a marker with
/// the same one. A directory that is offline, or whose marker is missing or cannot be read, is a
/// `None`.
pub fn agreed_broker_epoch(directories: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    // spec: replication 4.5
    let mut epochs = directories.into_iter();
    let first = epochs.next()??;
    epochs.all(|epoch| epoch == Some(first)).then_some(first).filter(|epoch| *epoch >= 0)
}

/// The topic id in `partition.metadata`.
///
/// # Errors
/// [`Kind::Corrupt`] with the line that is missing or malformed, or for the id of no topic;
/// [`Kind::Unsupported`] for a version other than 0.
// spec: segments 1.2
pub fn parse_partition_metadata(bytes: &[u8]) -> Result<Uuid> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::corrupt("partition metadata is not UTF-8 text"))?;
    let mut lines = Lines::of(text);
    let version = value_of_line(lines.next(), 1, "version: 0")?;
    match version.parse::<i32>() {
        Ok(0) => {}
        Ok(version) if version > 0 => {
            let message = format!("partition metadata version {version} is unknown");
            return Err(Error::new(Kind::Unsupported, message));
        }
        _ => return Err(malformed_line(1, "version: 0", version)),
    }
    let id = value_of_line(lines.next(), 2, "topic_id: <uuid>")?;
    let topic_id = Uuid::parse(id).ok_or_else(|| malformed_line(2, "topic_id: <uuid>", id))?;
    if topic_id == Uuid::ZERO {
        return Err(Error::corrupt("line 2 names the id of no topic"));
    }
    Ok(topic_id)
}

/// The bytes of `partition.metadata`.
#[must_use]
pub fn format_partition_metadata(topic_id: Uuid) -> Vec<u8> {
    format!("version: 0\ntopic_id: {topic_id}").into_bytes()
}

/// What follows the first colon and blanks; a line with two of them is malformed.
fn value_of_line<'a>(line: Option<&'a str>, number: u32, expected: &str) -> Result<&'a str> {
    let line =
        line.ok_or_else(|| Error::corrupt(format!("line {number} ({expected}) is missing")))?;
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\x0b' | '\x0c');
    let mut parts = line.split(':');
    let (Some(_), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(malformed_line(number, expected, line));
    };
    let trimmed = value.trim_start_matches(is_blank);
    if trimmed.len() == value.len() || trimmed.is_empty() {
        return Err(malformed_line(number, expected, line));
    }
    Ok(trimmed)
}

fn malformed_line(number: u32, expected: &str, found: &str) -> Error {
    let shown: String = found.chars().take(60).collect();
    Error::corrupt(format!("line {number} is malformed: expected {expected:?}, found {shown:?}"))
}

/// What `meta.properties` says of a log directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaProperties {
    /// The version of the file, 0 or 1.
    pub version: i32,
    /// The cluster that the directory belongs to.
    pub cluster_id: Option<String>,
    /// The broker or controller that it belongs to.
    pub node_id: Option<i32>,
    /// Its own id, by which the metadata log names it.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    /// Reads the bytes of the file.
    ///
    /// # Errors
    /// [`Kind::Corrupt`] for a value that is missing or no number or id; [`Kind::Unsupported`]
    /// for a version other than 0 and 1.
    // spec: segments 1.1
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let properties = Properties::parse(bytes)?;
        let version = number(&properties, "version")?.unwrap_or(0);
        let node_key = match version {
            0 => "broker.id",
            1 => "node.id",
            _ => {
                let message = format!("meta.properties version {version} is unknown");
                return Err(Error::new(Kind::Unsupported, message));
            }
        };
        let node_id = number(&properties, node_key)?;
        let cluster_id = properties.get("cluster.id").map(str::to_owned);
        for (key, missing) in [("cluster.id", cluster_id.is_none()), (node_key, node_id.is_none())]
        {
            if version == 1 && missing {
                return Err(Error::corrupt(format!("{key} is missing")));
            }
        }
        let directory_id = match properties.get("directory.id") {
            None => None,
            Some(text) => {
                Some(Uuid::parse(text).ok_or_else(|| not("directory.id", "an id", text))?)
            }
        };
        Ok(MetaProperties { version, cluster_id, node_id, directory_id })
    }
}

impl MetaProperties {
    /// The bytes of the file, as written at `now_ms`, in milliseconds since 1970.
    // spec: segments 1.1
    #[must_use]
    pub fn format(&self, now_ms: i64) -> Vec<u8> {
        let node_key = if self.version == 0 { "broker.id" } else { "node.id" };
        let lines = [
            (node_key, self.node_id.map(|id| id.to_string())),
            ("directory.id", self.directory_id.map(|id| id.to_string())),
            ("version", Some(self.version.to_string())),
            ("cluster.id", self.cluster_id.as_deref().map(escaped)),
        ];
        let mut text = format!("#\n#{}\n", date_line(now_ms));
        for (key, value) in lines {
            text.extend(value.map(|value| format!("{key}={value}\n")));
        }
        text.into_bytes()
    }
}

/// A value as a properties file has it.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for unit in value.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ (b'=' | b':' | b'#' | b'!' | b'\\' | b' ')) => {
                text.extend(['\\', char::from(byte)]);
            }
            Ok(byte) if byte.is_ascii_graphic() => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\u{unit:04X}")),
        }
    }
    text
}

/// A time as Java prints it: `Sun Nov 29 22:43:26 UTC 2026`.
fn date_line(now_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let seconds = now_ms.div_euclid(1000);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March in eras of 400, so that the leap day is the last of its year.
    let from_era = day.saturating_add(719_468);
    let (era, of_era) = (from_era.div_euclid(146_097), from_era.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let year = year + era * 400 + i64::from(month >= 10);
    let name = |names: &[&'static str], at: i64| {
        usize::try_from(at).ok().and_then(|at| names.get(at).copied()).unwrap_or_default()
    };
    format!(
        "{} {} {date:02} {:02}:{:02}:{:02} UTC {year}",
        name(&DAYS, day.rem_euclid(7)),
        name(&MONTHS, month),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

fn number(properties: &Properties, key: &str) -> Result<Option<i32>> {
    let Some(text) = properties.get(key) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| not(key, "a number", text))
}

fn not(key: &str, what: &str, found: &str) -> Error {
    let shown: String = found.chars().take(60).collect();
    Error::corrupt(format!("{key} is not {what}: {shown:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_life_before_is_known_when_all_directories_agree() {
        // spec: tiered-behaviours RP21; replication 4.5
        let marker = |text: &[u8]| parse_clean_shutdown(text);
        let (seven, eight) = (format_clean_shutdown(7), format_clean_shutdown(8));
        let agreed = agreed_broker_epoch;
        assert_eq!(agreed([marker(&seven), marker(&seven)]), Some(7));
        assert_eq!(agreed([marker(&seven), marker(&eight)]), None);
        assert_eq!(agreed([marker(&seven), marker(b"{")]), None);
        assert_eq!(agreed([None, marker(&seven)]), None, "offline");
        assert_eq!(agreed_broker_epoch([]), None);
        assert_eq!(agreed_broker_epoch([marker(&format_clean_shutdown(-1))]), None);
    }

    const META: &[u8] = b"#\n#Sun Nov 29 22:43:26 UTC 2026\nnode.id=1\n\
        directory.id=RRzezt1J-Q0PpGsFojeKKw\nversion=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n";

    #[test]
    fn the_clean_shutdown_file_is_written_as_kafka_does_and_read() {
        // spec: behaviours CP-013
        let bytes = format_clean_shutdown(10);
        assert_eq!(bytes, br#"{"version":0,"brokerEpoch":10}"#);
        assert_eq!(parse_clean_shutdown(&bytes), Some(10));
    }

    #[test]
    fn a_clean_shutdown_file_may_lack_an_epoch() {
        // spec: behaviours CP-015
        assert_eq!(parse_clean_shutdown(&format_clean_shutdown(-1)), Some(-1));
        for text in ["", "{}", r#"{"version":0}"#, "garbage", "\0\0\0", r#"{"brokerEpoch":null}"#] {
            assert_eq!(parse_clean_shutdown(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_clean_shutdown(b"\xff{\"brokerEpoch\":1}"), None);
    }

    #[test]
    fn unknown_members_of_the_clean_shutdown_file_are_passed_over() {
        let text = r#" { "more" : {"brokerEpoch":3, "x":[1,"]}\"",null]} , "version":0,
            "brokerEpoch" : 12 } "#;
        assert_eq!(parse_clean_shutdown(text.as_bytes()), Some(12));
    }

    #[test]
    fn partition_metadata_is_written_as_kafka_does_and_read() {
        let bytes = format_partition_metadata(Uuid::reserved(4));
        assert_eq!(bytes, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA");
        assert_eq!(parse_partition_metadata(&bytes).unwrap(), Uuid::reserved(4));
        assert!(
            parse_partition_metadata(b"version: 0\r\ntopic_id: \tAAAAAAAAAAAAAAAAAAAABA\n").is_ok()
        );
    }

    #[test]
    fn partition_metadata_that_is_not_whole_says_which_line() {
        for (text, start) in [
            ("", "line 1 (version: 0) is missing"),
            ("version: 0", "line 2 (topic_id: <uuid>) is missing"),
            ("version:0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA", "line 1 is malformed"),
            ("\nversion: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA", "line 1 is malformed"),
            ("version: x\ntopic_id: AAAAAAAAAAAAAAAAAAAABA", "line 1 is malformed"),
            ("version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAABA", "line 1 is malformed"),
            ("version: 0\ntopic_id: short", "line 2 is malformed"),
            ("version: 0\ntopic_id: a: b", "line 2 is malformed"),
            ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "line 2 names the id of no topic"),
            ("\0\0\0\0", "line 1 is malformed"),
        ] {
            let error = parse_partition_metadata(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt);
            assert!(error.message().starts_with(start), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_later_version_of_partition_metadata_is_refused() {
        let error =
            parse_partition_metadata(b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAABA").unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
    }

    #[test]
    fn meta_properties_are_read() {
        let meta = MetaProperties::parse(META).unwrap();
        assert_eq!((meta.version, meta.node_id), (1, Some(1)));
        assert_eq!(meta.cluster_id.as_deref(), Some("MkU3OEVBNTcwNTJENDM2Qg"));
        assert_eq!(meta.directory_id, Uuid::parse("RRzezt1J-Q0PpGsFojeKKw"));
    }

    #[test]
    fn meta_properties_are_written_as_kafka_does() {
        let meta = MetaProperties::parse(META).unwrap();
        let at = |text: &str| String::from_utf8(meta.format(text.parse().unwrap())).unwrap();
        assert_eq!(at("1795992206000").as_bytes(), META);
        assert!(at("951782400000").starts_with("#\n#Tue Feb 29 00:00:00 UTC 2000\n"));
        assert!(at("-1").starts_with("#\n#Wed Dec 31 23:59:59 UTC 1969\n"));
        let odd =
            MetaProperties { cluster_id: Some("a =:#!\\\u{e4}\n".to_owned()), ..meta.clone() };
        assert_eq!(MetaProperties::parse(&odd.format(0)).unwrap(), odd);
        let old = MetaProperties { version: 0, ..meta };
        assert_eq!(MetaProperties::parse(&old.format(0)).unwrap(), old);
    }

    #[test]
    fn meta_properties_of_version_0_need_nothing() {
        // spec: behaviours MG-022
        let text = b"version=0\nbroker.id = 7\ndirectory.id=RRzezt1J-Q0PpGsFojeKKw\nnode.id=9\n";
        let meta = MetaProperties::parse(text).unwrap();
        assert_eq!((meta.node_id, meta.cluster_id), (Some(7), None));
        assert_eq!(meta.directory_id, Uuid::parse("RRzezt1J-Q0PpGsFojeKKw"));
        assert_eq!(MetaProperties::parse(b"").unwrap(), MetaProperties::default());
    }

    #[test]
    fn meta_properties_that_lack_or_spoil_a_value_name_it() {
        for (text, kind, start) in [
            ("version=1\nnode.id=1", Kind::Corrupt, "cluster.id is missing"),
            ("version=1\ncluster.id=a", Kind::Corrupt, "node.id is missing"),
            ("version=1\ncluster.id=a\nnode.id=one", Kind::Corrupt, "node.id is not a number"),
            ("directory.id=?", Kind::Corrupt, "directory.id is not an id"),
            ("version=2", Kind::Unsupported, "meta.properties version 2 is unknown"),
        ] {
            let error = MetaProperties::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.message().starts_with(start), "{error}");
        }
    }
}
