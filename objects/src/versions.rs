//! Is an object still the one that was looked at before?

use std::collections::HashMap;

use object_store::ObjectMeta;

/// So many objects are remembered; then all are forgotten.
const OBJECTS_MAX: usize = 10_000;

/// What tells one version of an object from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    tag: Option<String>,
    size_bytes: u64,
    modified_ms: i64,
}

impl Version {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let modified_ms = meta.last_modified.timestamp_millis();
        Version { tag: meta.e_tag.clone(), size_bytes: meta.size, modified_ms }
    }

    /// Whether two answers are of one version. Where both have a tag it tells: some stores give the
    /// time of an answer for that of the object. Weak tags do not tell one body from another.
    fn is_same(&self, other: &Version) -> bool {
        let is_same_size = self.size_bytes == other.size_bytes;
        match (&self.tag, &other.tag) {
            (Some(own), Some(other)) if own != other => false,
            (Some(own), Some(_)) if !is_weak(own) => is_same_size,
            _ => is_same_size && self.modified_ms == other.modified_ms,
        }
    }
}

/// The versions of objects that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Versions(HashMap<String, Version>);

impl Versions {
    /// The tag that the object must still have. A weak one never matches: no store would answer
    /// any more (RFC 9110, 13.1.1).
    pub(crate) fn tag(&self, name: &str) -> Option<String> {
        self.0.get(name)?.tag.clone().filter(|tag| !is_weak(tag))
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

fn is_weak(tag: &str) -> bool {
    tag.starts_with("W/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(tag: Option<&str>, size_bytes: u64, modified_ms: i64) -> Version {
        Version { tag: tag.map(str::to_owned), size_bytes, modified_ms }
    }

    #[test]
    fn an_object_with_a_weak_tag_is_read_without_asking_for_it() {
        // If-Match with a weak tag is refused by every server: the second read of an object was
        // told that it had changed.
        let mut versions = Versions::default();
        for (tag, asked) in [("W/\"5-x\"", None), ("\"5-x\"", Some("\"5-x\""))] {
            assert!(versions.is_same(tag, version(Some(tag), 5, 7)));
            assert_eq!(versions.tag(tag).as_deref(), asked);
        }
        assert_eq!(versions.tag("unknown"), None);
    }

    #[test]
    fn versions_are_told_apart_by_strong_tags_or_else_by_all_that_is_known() {
        for (one, other, expected) in [
            (version(Some("a"), 5, 7), version(Some("a"), 5, 8), true),
            (version(Some("a"), 5, 7), version(Some("a"), 6, 7), false),
            (version(Some("a"), 5, 7), version(Some("b"), 5, 7), false),
            (version(Some("W/a"), 5, 7), version(Some("W/a"), 5, 7), true),
            (version(Some("W/a"), 5, 7), version(Some("W/a"), 5, 8), false),
            (version(Some("W/a"), 5, 7), version(Some("W/b"), 5, 7), false),
            (version(None, 5, 7), version(Some("a"), 5, 7), true),
            (version(None, 5, 7), version(None, 5, 8), false),
        ] {
            let mut versions = Versions::default();
            assert!(versions.is_same("x", one.clone()));
            assert_eq!(versions.is_same("x", other.clone()), expected, "{one:?} {other:?}");
        }
    }
}
