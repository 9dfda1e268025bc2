//! Is an object still the one that was looked at before?

use std::collections::HashMap;

use object_store::ObjectMeta;

/// So many objects are remembered; then all are forgotten.
const OBJECTS_MAX: usize = 10_000;

/// What tells one version of an object from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) tag: Option<String>,
    size_bytes: u64,
    modified_ms: i64,
}

impl Version {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let modified_ms = meta.last_modified.timestamp_millis();
        Version { tag: meta.e_tag.clone(), size_bytes: meta.size, modified_ms }
    }

    /// Whether two answers are of one version. Where both have a tag it tells: some stores give the
    /// time of an answer for that of the object.
    fn is_same(&self, other: &Version) -> bool {
        let is_same_size = self.size_bytes == other.size_bytes;
        match (&self.tag, &other.tag) {
            (Some(own), Some(other)) => own == other && is_same_size,
            _ => is_same_size && self.modified_ms == other.modified_ms,
        }
    }
}

/// The versions of objects that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Versions(HashMap<String, Version>);

impl Versions {
    pub(crate) fn tag(&self, name: &str) -> Option<String> {
        self.0.get(name)?.tag.clone()
    }

    /// Whether the object is what it was, as far as is known. One that is not is forgotten, so that
    /// the next look may be at the new one.
    pub(crate) fn is_same(&mut self, name: &str, version: Version) -> bool {
        if self.0.get(name).is_some_and(|known| !known.is_same(&version)) {
            self.0.remove(name);
            return false;
        }
        if self.0.len() >= OBJECTS_MAX {
            self.0.clear();
        }
        self.0.insert(name.to_owned(), version);
        true
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}
