//! Which number does a small JSON object hold? Just enough of JSON for `.kafka_cleanshutdown`.

/// How deep objects and arrays may lie in each other.
const DEPTH_MAX: u32 = 32;

/// The whole number that the object `text` has under `name`; the last one if there are several.
/// `None` when there is none, or when the text is no JSON object.
pub(super) fn number_of_member(text: &str, name: &str) -> Option<i64> {
    let mut reader = Reader { rest: text };
    let mut found = None;
    reader.token('{')?;
    if reader.token('}').is_some() {
        return None;
    }
    loop {
        let member = reader.string()?;
        reader.token(':')?;
        let value = reader.value(DEPTH_MAX)?;
        if member == name {
            found = value.parse().ok();
        }
        if reader.token(',').is_none() {
            reader.token('}')?;
            return found;
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Skips blanks and then this character, if it is there.
    fn token(&mut self, token: char) -> Option<()> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    /// A string as it is written, its escapes not resolved.
    fn string(&mut self) -> Option<&'a str> {
        self.token('"')?;
        let mut escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        let (string, tail) = self.rest.split_at(end);
        self.rest = tail.strip_prefix('"')?;
        Some(string)
    }

    /// Passes over a value and gives its text if it is a number or a word, else nothing.
    fn value(&mut self, depth: u32) -> Option<&'a str> {
        let depth = depth.checked_sub(1)?;
        if self.token('{').is_some() {
            return self.list('}', |reader| {
                reader.string()?;
                reader.token(':')?;
                reader.value(depth)
            });
        }
        if self.token('[').is_some() {
            return self.list(']', |reader| reader.value(depth));
        }
        if self.rest.starts_with('"') {
            self.string()?;
            return Some("");
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, tail) = self.rest.split_at(end);
        self.rest = tail;
        (!word.is_empty()).then_some(word)
    }

    fn list(
        &mut self,
        end: char,
        mut item: impl FnMut(&mut Self) -> Option<&'a str>,
    ) -> Option<&'a str> {
        if self.token(end).is_some() {
            return Some("");
        }
        loop {
            item(self)?;
            if self.token(',').is_none() {
                self.token(end)?;
                return Some("");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_among_other_members() {
        let text = r#"{"b":[{},[],{"a":1}],"c":"a\":2,","d":true,"a":-3,"e":1.5e3}"#;
        assert_eq!(number_of_member(text, "a"), Some(-3));
        assert_eq!(number_of_member(r#"{"a":1,"a":2}"#, "a"), Some(2));
    }

    #[test]
    fn what_is_no_whole_number_or_no_object_gives_none() {
        for text in [
            "",
            "{",
            "{}",
            "[1]",
            "1",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1"#,
            r#"{"a":1,}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1.5}"#,
            r#"{"a":{"a":1}}"#,
            r#"{"b":1}"#,
            r#"{"a":1e3}"#,
            r#"{"a":99999999999999999999}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a\"#,
        ] {
            assert_eq!(number_of_member(text, "a"), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let text = format!(r#"{{"b":{}"#, "[".repeat(1_000_000));
        assert_eq!(number_of_member(&text, "a"), None);
    }
}
