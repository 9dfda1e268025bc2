//! In which format may a client read a segment without a broker? (KIP-1248)

/// The name of Kafka's own format: batches of version 2 one behind the other, as in a `.log`.
pub const APACHE_KAFKA_V1: &str = "ApacheKafkaV1";

/// The same as the proposal spells it.
const APACHE_KAFKA_V1_AS_PROPOSED: &str = "ApachKafkaV1";

/// The name to answer with when a segment is stored in format `stored` and the client understands
/// `understood`: the stored one, if it is among them. Names are compared by case, those that are
/// not known here count for nothing, and a client that names none understands none.
#[must_use]
pub fn negotiate_format<'a>(stored: &'a str, understood: &[&str]) -> Option<&'a str> {
    // spec: tiered 9.1, "format names", "choice when several match"
    let plain = |name: &'a str| match name {
        APACHE_KAFKA_V1_AS_PROPOSED => APACHE_KAFKA_V1,
        other => other,
    };
    let is_same = |name: &str| match name {
        APACHE_KAFKA_V1_AS_PROPOSED => plain(stored) == APACHE_KAFKA_V1,
        other => plain(stored) == other,
    };
    understood.iter().any(|name| is_same(name)).then(|| plain(stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_format_must_be_understood() {
        // spec: tiered 9.1, D9
        let stored = APACHE_KAFKA_V1;
        assert_eq!(negotiate_format(stored, &["X"]), None);
        assert_eq!(negotiate_format(stored, &[]), None);
        assert_eq!(negotiate_format(stored, &["apachekafkav1"]), None);
        assert_eq!(negotiate_format(stored, &["X", "ApacheKafkaV1"]), Some(stored));
        assert_eq!(negotiate_format(stored, &["ApachKafkaV1"]), Some(stored));
        assert_eq!(negotiate_format("ApachKafkaV1", &["ApacheKafkaV1"]), Some(stored));
        assert_eq!(negotiate_format("Parquet", &["ApacheKafkaV1", "Parquet"]), Some("Parquet"));
        assert_eq!(negotiate_format("Parquet", &["ApacheKafkaV1"]), None);
    }
}
