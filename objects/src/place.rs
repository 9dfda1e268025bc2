//! What does a URL name: which store, and what in it?

use object_store::ObjectStoreScheme;
use siltstone::{Error, Kind, Result};
use url::Url;

use crate::failure::without_secrets;

/// The schemes of URLs that name something in a store, or on this machine's disk.
const SCHEMES: [&str; 11] =
    ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "file"];

/// Whether a text is a URL of a store, and not a path.
fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| SCHEMES.contains(&scheme.as_str()))
}

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) scheme: ObjectStoreScheme,
    pub(crate) url: Url,
    path: String,
}

impl Place {
    /// Reads a URL such as `s3://bucket/folder/object`.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no URL of a store that is known here.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: String| {
            Error::new(Kind::InvalidArgument, without_secrets(&format!("{text}: {why}")))
        };
        let url = Url::parse(text).map_err(|error| refuse(format!("not a URL: {error}")))?;
        if !is_url(text) {
            let why = format!(
                "no store is known for {}:// (s3, gs, az, https, http, file)",
                url.scheme()
            );
            return Err(refuse(why));
        }
        if url.fragment().is_some() {
            return Err(refuse("a # in a name must be written as %23".to_owned()));
        }
        let (scheme, path) =
            ObjectStoreScheme::parse(&url).map_err(|error| refuse(error.to_string()))?;
        Ok(Place { scheme, url, path: path.to_string() })
    }

    /// The name within the store; empty for all of it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path on this machine that a `file://` names.
    #[must_use]
    pub fn local_path(&self) -> Option<std::path::PathBuf> {
        (self.scheme == ObjectStoreScheme::Local).then(|| self.url.to_file_path().ok()).flatten()
    }

    /// The URL without what a person must not see: the password, and signatures in a query.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut url = self.url.clone();
        // It fails for a URL that can have none.
        url.set_password(None).ok();
        url.set_query(None);
        url.to_string().trim_end_matches('/').to_owned()
    }

    /// All of the store.
    #[must_use]
    pub fn root(&self) -> Place {
        let mut place = self.clone();
        while let Some((folder, _)) = place.split() {
            place = folder;
        }
        place
    }

    /// The folder around the object that this names, and the object's name in it. `None` when it
    /// names a whole store.
    #[must_use]
    pub fn split(&self) -> Option<(Place, String)> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        if name.is_empty() {
            return None;
        }
        let mut url = self.url.clone();
        url.path_segments_mut().ok()?.pop_if_empty().pop();
        let path = folder.to_owned();
        Some((Place { scheme: self.scheme.clone(), url, path }, name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        for text in ["s3://bucket/key", "S3://bucket", "gs://b", "az://c/x", "https://h/x"] {
            assert!(is_url(text), "{text}");
        }
        for text in ["/var/lib/kafka", "orders-0", "s3:/bucket", "s3", "://x", "c://x", "a/s3://b"]
        {
            assert!(!is_url(text), "{text}");
        }
    }

    #[test]
    fn a_url_names_a_store_and_what_is_in_it() {
        for (text, path, folder, name) in [
            ("s3://bucket/a/b.log", "a/b.log", "s3://bucket/a", "b.log"),
            ("s3://bucket/b.log", "b.log", "s3://bucket", "b.log"),
            ("s3://bucket/a/b/", "a/b", "s3://bucket/a", "b"),
            ("gs://bucket/a%20b", "a b", "gs://bucket", "a b"),
            ("az://container/a/b", "a/b", "az://container/a", "b"),
            ("https://host:8080/x/y", "x/y", "https://host:8080/x", "y"),
        ] {
            let place = Place::parse(text).unwrap();
            assert_eq!(place.path(), path, "{text}");
            let (around, found) = place.split().unwrap();
            assert_eq!((around.shown().as_str(), found.as_str()), (folder, name), "{text}");
            let root = place.root();
            assert_eq!((root.path(), root.split()), ("", None));
            assert!(place.shown().starts_with(&root.shown()));
            assert_eq!(format!("{}/{name}", around.path()).trim_start_matches('/'), path);
        }
        assert_eq!(Place::parse("s3://bucket").unwrap().split(), None);
        let place = Place::parse("file:///data/a%20b").unwrap();
        assert_eq!(place.local_path(), Some("/data/a b".into()));
        assert_eq!(Place::parse("s3://bucket/a").unwrap().local_path(), None);
    }

    #[test]
    fn secrets_in_a_url_are_not_shown() {
        let place = Place::parse("https://user:secret@host/a/b?sig=secret").unwrap();
        assert_eq!(place.shown(), "https://user@host/a/b");
        for text in [
            "https://user:secret@host/a?sig=secret#b",
            "https://user:secret@host:none/a?sig=secret",
            "ftp://user:secret@host/a?sig=secret",
            "s3://user:secret@host/a?sig=secret#b",
        ] {
            let error = Place::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for text in ["", "s3:", "s3://", "ftp://host/x", "memory:///x", "s3://bucket/a#b", "bucket"]
        {
            let error = Place::parse(text).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument, "{text}");
        }
    }
}
