//! What must not be printed: passwords, and what a password can be guessed from.

use super::{Message, Value};

/// What is printed in place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// Whether the value of a config of this name may be a secret.
#[must_use]
pub fn is_sensitive_config(name: &str) -> bool {
    // spec: kraft-metadata 2.3. Plug-ins bring names of their own, so that anything that ends in
    // `.key` counts.
    let name = name.to_ascii_lowercase();
    let words = ["password", "secret", "sasl.jaas.config", "credential"];
    words.iter().any(|word| name.contains(word)) || name.ends_with(".key")
}

/// Puts [`HIDDEN`] in place of the secrets of a message.
pub fn hide_secrets(message: &mut Message<'_>) {
    let secrets: &[&str] = match message.name {
        "UserScramCredentialRecord" => &["salt", "storedKey", "serverKey"],
        "ConfigRecord" if message.data.text("name").is_some_and(is_sensitive_config) => &["value"],
        _ => return,
    };
    let Value::Struct(fields) = &mut message.data else { return };
    for (name, value) in fields {
        // That a config was removed is no secret.
        if secrets.contains(name) && *value != Value::Null {
            *value = Value::Text(HIDDEN.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Payload, decode_metadata_record, write_json};
    use super::*;

    fn shown(value: &[u8]) -> String {
        let Ok(Payload::Message(mut message)) = decode_metadata_record(value) else {
            unreachable!()
        };
        hide_secrets(&mut message);
        let mut json = String::new();
        write_json(&message.data, &mut json);
        json
    }

    #[test]
    fn passwords_of_users_are_hidden() {
        let value = b"\x01\x0b\x00\x02u\x01\x03ab\x03cd\x03ef\x00\x00\x10\x00\x00";
        let shown = shown(value);
        let secrets = r#""salt":"[hidden]","storedKey":"[hidden]","serverKey":"[hidden]""#;
        assert!(shown.contains(secrets) && shown.ends_with(r#""iterations":4096}"#), "{shown}");
    }

    #[test]
    fn values_of_sensitive_configs_are_hidden() {
        let config = |name: &str, value: &[u8]| {
            let size = u8::try_from(name.len() + 1).unwrap();
            [&[1, 4, 0, 4, 2, b'1', size][..], name.as_bytes(), value, &[0]].concat()
        };
        let hidden = shown(&config("listener.name.x.ssl.keystore.password", b"\x03pw"));
        assert!(hidden.ends_with(r#""value":"[hidden]"}"#), "{hidden}");
        let removed = shown(&config("ssl.keystore.key", b"\x00"));
        assert!(removed.ends_with(r#""value":null}"#), "{removed}");
        let open = shown(&config("segment.bytes", b"\x029"));
        assert!(open.ends_with(r#""value":"9"}"#), "{open}");
    }

    #[test]
    fn names_are_compared_in_any_case() {
        for name in ["SASL.JAAS.CONFIG", "delegation.token.secret.key", "x.ssl.truststore.Password"]
        {
            assert!(is_sensitive_config(name), "{name}");
        }
        for name in ["min.insync.replicas", "key.converter", "compression.type"] {
            assert!(!is_sensitive_config(name), "{name}");
        }
    }
}
