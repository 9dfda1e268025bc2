//! What does a scenario say, key by key?

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{RemotePartition, RemoteSegment, RemoteSegmentId, RemoteSegmentState};
use siltstone::uuid::Uuid;
use siltstone::{Error, Result};

/// A JSON object whose members are asked for by name, each by several where people write it in
/// several ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    members: &'a Map<String, Value>,
    /// Where it is, for messages: `leader.` or nothing.
    place: &'a str,
    /// Which object it is: `leader` or nothing, and [`REMOTE`] for each of the segments.
    kind: &'static str,
    used: &'a Used,
}

/// The kind of the objects that are remote segments.
const REMOTE: &str = "remote";
/// The names of their list.
const SEGMENTS: [&str; 3] = [REMOTE, "remote_segments", "segments"];

/// The names that were asked for, each with the kind of its object.
#[derive(Debug, Default)]
pub(super) struct Used(RefCell<BTreeSet<(&'static str, &'static str)>>);

impl Used {
    fn has(&self, kind: &str, name: &str) -> bool {
        self.0.borrow().iter().any(|used| *used == (kind, name))
    }

    /// The members of a scenario that nobody has asked for, with where they are; of segments each
    /// name once.
    pub(super) fn unused(&self, members: &Map<String, Value>) -> BTreeSet<String> {
        let mut unused = BTreeSet::new();
        for (name, value) in members {
            if !self.has("", name) {
                unused.insert(name.clone());
                continue;
            }
            let is_list = SEGMENTS.contains(&name.as_str());
            let (kind, inner): (&str, &[Value]) = match value {
                Value::Array(segments) if is_list => (REMOTE, segments),
                Value::Object(_) => (name, std::slice::from_ref(value)),
                _ => continue,
            };
            let is_known = self.0.borrow().iter().any(|used| used.0 == kind);
            let names = inner.iter().filter_map(Value::as_object).flat_map(Map::keys);
            let names = names.filter(|inner| is_known && !self.has(kind, inner));
            unused.extend(names.map(|inner| format!("{name}.{inner}")));
        }
        unused
    }
}

/// A remote segment.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// As it is in the file, for the answer.
    pub(super) id: Value,
    /// As the engine has it; its own id is its number in the file.
    pub(super) remote: RemoteSegment,
}

fn wrong(key: &str, expected: &str, found: &Value) -> Error {
    let shown: String = found.to_string().chars().take(60).collect();
    Error::corrupt(format!("{key} is {shown}, which is no {expected}"))
}

impl<'a> Input<'a> {
    pub(super) fn new(members: &'a Map<String, Value>, used: &'a Used) -> Self {
        Input { members, place: "", kind: "", used }
    }

    /// The members of another object, which is asked for but not there.
    pub(super) fn absent(self, kind: &'static str, members: &'a Map<String, Value>) -> Self {
        Input { members, kind, ..self }
    }

    /// The member of the first of these names that is there and not null, with its name.
    fn find(&self, names: &[&'static str]) -> Option<(String, &'a Value)> {
        self.used.0.borrow_mut().extend(names.iter().map(|name| (self.kind, *name)));
        let found = names.iter().find_map(|name| {
            let value = self.members.get(*name).filter(|value| !value.is_null())?;
            Some((*name, value))
        });
        found.map(|(name, value)| (format!("{}{name}", self.place), value))
    }

    /// A whole number, if it is there.
    pub(super) fn number(&self, names: &[&'static str]) -> Result<Option<i64>> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let number = value.as_i64().ok_or_else(|| wrong(&name, "whole number", value))?;
        Ok(Some(number))
    }

    /// An offset, if it is there: -1 and above.
    pub(super) fn offset(&self, names: &[&'static str]) -> Result<Option<i64>> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let offset = value.as_i64().filter(|offset| *offset >= -1);
        offset.map(Some).ok_or_else(|| wrong(&name, "offset", value))
    }

    /// A leader epoch, if it is there.
    pub(super) fn epoch(&self, names: &[&'static str]) -> Result<Option<i32>> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let epoch = value.as_i64().and_then(|epoch| i32::try_from(epoch).ok());
        epoch.map(Some).ok_or_else(|| wrong(&name, "leader epoch", value))
    }

    /// Yes or no, if it is there.
    pub(super) fn flag(&self, names: &[&'static str]) -> Result<Option<bool>> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let flag = value.as_bool().or_else(|| value.as_str()?.parse().ok());
        flag.map(Some).ok_or_else(|| wrong(&name, "true or false", value))
    }

    /// An object within this one.
    pub(super) fn object(&self, name: &'static str, place: &'a str) -> Result<Option<Input<'a>>> {
        let Some((shown, value)) = self.find(&[name]) else { return Ok(None) };
        let members = value.as_object().ok_or_else(|| wrong(&shown, "object", value))?;
        Ok(Some(Input { members, place, kind: name, ..*self }))
    }

    /// Leader epochs, as a list of pairs or as an object of start offsets by epoch; rising.
    pub(super) fn epoch_entries(&self, names: &[&'static str]) -> Result<Option<Vec<EpochEntry>>> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let entry = |epoch: Option<i64>, start: Option<i64>| {
            let epoch = i32::try_from(epoch?).ok().filter(|epoch| *epoch >= 0)?;
            Some(EpochEntry { epoch, start_offset: start.filter(|start| *start >= 0)? })
        };
        let entries: Option<Vec<EpochEntry>> = match value {
            Value::Array(pairs) => {
                let pair = |pair: &Value| match pair.as_array()?.as_slice() {
                    [epoch, start] => entry(epoch.as_i64(), start.as_i64()),
                    _ => None,
                };
                pairs.iter().map(pair).collect()
            }
            Value::Object(starts) => {
                let pair =
                    |(epoch, start): (&String, &Value)| entry(epoch.parse().ok(), start.as_i64());
                starts.iter().map(pair).collect()
            }
            _ => None,
        };
        let mut entries = entries
            .ok_or_else(|| wrong(&name, "list of leader epochs and their start offsets", value))?;
        entries.sort_unstable_by_key(|entry| entry.epoch);
        let starts = entries.iter().map(|entry| entry.start_offset);
        if !starts.is_sorted() {
            return Err(wrong(&name, "list of rising start offsets", value));
        }
        Ok(Some(entries))
    }

    /// The leader epochs of a log.
    pub(super) fn epochs(&self) -> Result<Option<LeaderEpochs>> {
        let names = ["epochs", "leader_epochs"];
        let Some((entries, (name, value))) = self.epoch_entries(&names)?.zip(self.find(&names))
        else {
            return Ok(None);
        };
        // Only the last of them would count.
        if entries.windows(2).any(|pair| matches!(pair, [a, b] if a.epoch == b.epoch)) {
            return Err(wrong(&name, "list of leader epochs, each of them once", value));
        }
        LeaderEpochs::from_entries(&entries).map(Some)
    }

    /// The remote segments. One that tells no epochs has those that the log has there, or that of
    /// a first leader.
    pub(super) fn segments(&self, own: Option<&LeaderEpochs>) -> Result<Option<Vec<Segment>>> {
        let Some((name, value)) = self.find(&SEGMENTS) else { return Ok(None) };
        let list = value.as_array().ok_or_else(|| wrong(&name, "list of segments", value))?;
        let segment = |(slot, value): (usize, &Value)| {
            let place = format!("{name}[{slot}].");
            let members = value.as_object().ok_or_else(|| wrong(&place, "object", value))?;
            Input { members, place: &place, kind: REMOTE, used: self.used }.segment(slot, own)
        };
        list.iter().enumerate().map(segment).collect::<Result<Vec<_>>>().map(Some)
    }

    fn segment(&self, slot: usize, own: Option<&LeaderEpochs>) -> Result<Segment> {
        let missing = |name: &str| Error::corrupt(format!("{}{name} is missing", self.place));
        let start = self.offset(&["start", "start_offset", "base_offset"])?;
        let start_offset = start.filter(|start| *start >= 0).ok_or_else(|| missing("start"))?;
        let end_offset = self.offset(&["end", "end_offset", "last_offset"])?;
        let end_offset = end_offset.ok_or_else(|| missing("end"))?;
        if end_offset < start_offset {
            let message = format!("{}end is {end_offset}, before its start", self.place);
            return Err(Error::corrupt(message));
        }
        let state = match self.find(&["state"]) {
            None => RemoteSegmentState::CopyFinished,
            Some((name, value)) => value
                .as_str()
                .and_then(RemoteSegmentState::from_name)
                .ok_or_else(|| wrong(&name, "state of a remote segment", value))?,
        };
        let id = self.find(&["id"]).map(|(_, id)| id.clone());
        let epochs = self.epoch_entries(&["epochs", "leader_epochs", "segment_leader_epochs"])?;
        let of_log =
            own.map(|own| own.entries_in_range(start_offset, end_offset.saturating_add(1)));
        let of_log = of_log.filter(|entries| !entries.is_empty());
        let leader_epochs =
            epochs.or(of_log).unwrap_or_else(|| vec![EpochEntry { epoch: 0, start_offset }]);
        let size = ["size", "size_bytes", "size_in_bytes"];
        let size_bytes = i32::try_from(self.number(&size)?.unwrap_or_default()).ok();
        let size_bytes = size_bytes.filter(|size| *size >= 0).ok_or_else(|| {
            Error::corrupt(format!("{}size is none that a segment can have", self.place))
        })?;
        let timestamps = ["max_timestamp", "max_timestamp_ms", "max_ts"];
        let remote = RemoteSegment {
            id: numbered(slot),
            start_offset,
            end_offset,
            max_timestamp_ms: self.number(&timestamps)?.unwrap_or(i64::MAX),
            broker_id: 0,
            event_timestamp_ms: 0,
            size_bytes,
            custom_metadata: None,
            state,
            leader_epochs,
            is_txn_index_empty: true,
        };
        let refused = |error: Error| {
            Error::corrupt(format!("{}: {}", self.place.trim_end_matches('.'), error.message()))
        };
        remote.check().map_err(refused)?;
        Ok(Segment { id: id.unwrap_or_else(|| Value::from(slot)), remote })
    }
}

/// The id of the segment of this number in the file.
fn numbered(slot: usize) -> RemoteSegmentId {
    let number = u128::try_from(slot).unwrap_or(u128::MAX);
    let partition = RemotePartition { topic_id: Uuid::ZERO, topic: String::new(), partition: 0 };
    RemoteSegmentId { partition, segment_id: Uuid(number.to_be_bytes()) }
}
