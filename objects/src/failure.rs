//! What does a store's error mean to the engine?

use std::error::Error as _;

use siltstone::{Error, Kind};

/// The error as the engine tells it; `other` is its kind when it is none of those that are told
/// apart.
pub(crate) fn error_of(error: &object_store::Error, other: Kind) -> Error {
    use object_store::Error as Store;
    let kind = match error {
        Store::NotFound { .. } => Kind::NotFound,
        Store::Precondition { .. } | Store::NotModified { .. } | Store::AlreadyExists { .. } => {
            Kind::Conflict
        }
        Store::NotSupported { .. } | Store::NotImplemented { .. } => Kind::Unsupported,
        Store::InvalidPath { .. } | Store::UnknownConfigurationKey { .. } => Kind::InvalidArgument,
        _ => other,
    };
    Error::new(kind, sentence(error))
}

/// The error and all its causes, each told once, with no secret in it.
fn sentence(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    without_secrets(&text)
}

/// The text without what is secret in its URLs: queries, which may be signed, and passwords.
pub(crate) fn without_secrets(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at);
        let is_end = |c: char| c.is_whitespace() || matches!(c, ')' | '"' | '\'' | '>' | ',');
        let (url, behind) = url.split_at(url.find(is_end).unwrap_or(url.len()));
        kept.push_str(before);
        kept.push_str(&shown(url));
        rest = behind;
    }
    kept + rest
}

/// What may be shown of a URL, from its `://` on.
fn shown(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    let (slashes, rest) = url.split_at(url.len().min("://".len()));
    let (host, path) = rest.split_at(rest.find(['/', '#']).unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{slashes}{user}@{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_cut_out_of_messages() {
        for (text, shown) in [
            ("plain", "plain"),
            ("GET https://h/a?sig=x: 404", "GET https://h/a 404"),
            ("url (https://h/a?sig=x&y=z), and http://b/c?d", "url (https://h/a), and http://b/c"),
            ("http://h/a b?c", "http://h/a b?c"),
            ("to http://u:secret@h:80/a@b?c: no", "to http://u@h:80/a@b no"),
            ("http://u:s@cret@h, s3://u@h", "http://u@h, s3://u@h"),
            ("://", "://"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
