//! Which topics and partitions does one DescribeTopicPartitions response have, and where does the
//! next one begin?

use std::collections::HashMap;

use super::describe_topic::{
    Cursor, DescribeRequest, DescribeResponse, DescribedPartition, DescribedTopic,
    OPERATIONS_UNKNOWN,
};
use crate::uuid::Uuid;

/// `UNKNOWN_TOPIC_OR_PARTITION`
pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
/// `INVALID_TOPIC_EXCEPTION`
pub const INVALID_TOPIC: i16 = 17;
/// `TOPIC_AUTHORIZATION_FAILED`
pub const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
/// `INVALID_REQUEST`
pub const INVALID_REQUEST: i16 = 42;

/// A topic as the metadata has it, with what the asker may do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its name.
    pub name: String,
    /// Its id.
    pub topic_id: Uuid,
    /// Whether it is one of Kafka's own.
    pub is_internal: bool,
    /// What the asker may do, or [`OPERATIONS_UNKNOWN`].
    pub authorized_operations: i32,
    /// Its partitions, by number.
    pub partitions: Vec<DescribedPartition>,
}

/// The response to a request. `topics` are all that there are, by name; `limit` is the server's own
/// bound of partitions (`max.request.partition.size.limit`). `may_describe` says of any name
/// whether the asker may see such a topic; who may not is not told whether there is one.
///
/// # Errors
/// The code for the whole request: `INVALID_REQUEST` for a cursor that cannot be.
// spec: replication 5.2
pub fn describe_topics(
    request: &DescribeRequest,
    topics: &[TopicMetadata],
    limit: i32,
    may_describe: impl Fn(&str) -> bool,
    is_alive: impl Fn(i32) -> bool,
) -> Result<DescribeResponse, i16> {
    let begin = request.cursor.as_ref();
    let names_all = request.topics.is_empty();
    if let Some(cursor) = begin {
        let is_asked_for = names_all || request.topics.contains(&cursor.topic_name);
        if cursor.partition_index < 0 || !is_asked_for {
            return Err(INVALID_REQUEST);
        }
    }
    let mut names: Vec<&str> = if names_all {
        topics.iter().map(|topic| topic.name.as_str()).collect()
    } else {
        request.topics.iter().map(String::as_str).collect()
    };
    names.sort_unstable();
    names.dedup();
    names.retain(|name| begin.is_none_or(|cursor| *name >= cursor.topic_name.as_str()));

    let by_name: HashMap<&str, &TopicMetadata> =
        topics.iter().rev().map(|topic| (topic.name.as_str(), topic)).collect();
    let known = |name: &str| by_name.get(name).copied();
    let mut refused = Vec::new();
    let mut budget = request.response_partition_limit.min(limit).max(1);
    let mut response = DescribeResponse::default();
    for name in names {
        // Told by the response that comes by it, so that no page tells of it again.
        if !may_describe(name) {
            refused.push(failed(name, TOPIC_AUTHORIZATION_FAILED));
            continue;
        }
        if budget == 0 {
            response.next_cursor = Some(cursor_at(name, 0));
            break;
        }
        let Some(topic) = known(name) else {
            response.topics.push(failed(name, unknown(name)));
            continue;
        };
        let first =
            begin.filter(|cursor| cursor.topic_name == name).map_or(0, |it| it.partition_index);
        let rest = topic.partitions.iter().filter(|it| it.partition_index >= first);
        let count = usize::try_from(budget).unwrap_or_default();
        let partitions: Vec<_> =
            rest.clone().take(count).map(|it| alive_leader(it, &is_alive)).collect();
        budget = budget.saturating_sub(i32::try_from(partitions.len()).unwrap_or(i32::MAX));
        let next = rest.skip(count).map(|it| it.partition_index).next();
        response.topics.push(DescribedTopic {
            error_code: 0,
            name: Some(name.to_owned()),
            topic_id: topic.topic_id,
            is_internal: topic.is_internal,
            partitions,
            authorized_operations: topic.authorized_operations,
        });
        if let Some(next) = next {
            response.next_cursor = Some(cursor_at(name, next));
            break;
        }
    }
    if !names_all {
        response.topics.extend(refused);
    }
    Ok(response)
}

fn cursor_at(name: &str, partition_index: i32) -> Cursor {
    Cursor { topic_name: name.to_owned(), partition_index }
}

fn failed(name: &str, error_code: i16) -> DescribedTopic {
    DescribedTopic {
        error_code,
        name: Some(name.to_owned()),
        topic_id: Uuid::ZERO,
        is_internal: false,
        partitions: Vec::new(),
        authorized_operations: OPERATIONS_UNKNOWN,
    }
}

/// A partition as it is shown: a leader that is not there is none, and empty lists are not absent.
fn alive_leader(
    partition: &DescribedPartition,
    is_alive: &impl Fn(i32) -> bool,
) -> DescribedPartition {
    let mut shown = partition.clone();
    if !is_alive(shown.leader_id) {
        shown.leader_id = -1;
    }
    shown.eligible_leader_replicas.get_or_insert_default();
    shown.last_known_elr.get_or_insert_default();
    shown
}

fn unknown(name: &str) -> i16 {
    let is_valid = !name.is_empty()
        && name.len() <= 249
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_valid { UNKNOWN_TOPIC_OR_PARTITION } else { INVALID_TOPIC }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, partitions: i32) -> TopicMetadata {
        let partition = |partition_index| DescribedPartition {
            partition_index,
            leader_id: 1,
            ..DescribedPartition::default()
        };
        TopicMetadata {
            name: name.to_owned(),
            topic_id: Uuid([7; 16]),
            is_internal: false,
            authorized_operations: OPERATIONS_UNKNOWN,
            partitions: (0..partitions).map(partition).collect(),
        }
    }

    fn request(topics: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> DescribeRequest {
        DescribeRequest {
            topics: topics.iter().map(|&name| name.to_owned()).collect(),
            response_partition_limit: limit,
            cursor: cursor.map(|(name, partition)| cursor_at(name, partition)),
        }
    }

    /// Name, error and partitions of each topic, and the next cursor.
    type Shown = (Vec<(String, i16, Vec<i32>)>, Option<(String, i32)>);

    fn shown(topics: &[TopicMetadata], request: &DescribeRequest) -> Result<Shown, i16> {
        let may_describe = |name: &str| !name.starts_with('U');
        let response = describe_topics(request, topics, 2000, may_describe, |_| true)?;
        let topics = response.topics.into_iter().map(|topic| {
            assert_eq!(topic.topic_id == Uuid::ZERO, topic.error_code != 0);
            let partitions = topic.partitions.iter().map(|it| it.partition_index).collect();
            (topic.name.unwrap(), topic.error_code, partitions)
        });
        let next = response.next_cursor.map(|it| (it.topic_name, it.partition_index));
        Ok((topics.collect(), next))
    }

    #[test]
    fn a_response_has_what_was_asked_for_from_the_cursor_on() {
        // spec: tiered-behaviours RP24
        let topics = [topic("A", 2), topic("U", 1)];
        let a = |partitions: &[i32]| ("A".to_owned(), 0, partitions.to_vec());
        let u = || ("U".to_owned(), TOPIC_AUTHORIZATION_FAILED, vec![]);
        let ask =
            |names: &[&str], limit, cursor| shown(&topics, &request(names, limit, cursor)).unwrap();
        assert_eq!(ask(&["U", "A"], 2000, None), (vec![a(&[0, 1]), u()], None));
        assert_eq!(ask(&["U", "A"], 2000, Some(("A", 1))), (vec![a(&[1]), u()], None));
        assert_eq!(ask(&[], 2000, None), (vec![a(&[0, 1])], None));
        assert_eq!(ask(&[], 2000, Some(("A", 1))), (vec![a(&[1])], None));
        let next = Some(("A".to_owned(), 1));
        assert_eq!(ask(&[], 1, None), (vec![a(&[0])], next.clone()));
        // What lies behind the page is for the next one to tell of, once.
        assert_eq!(ask(&["A", "U"], 1, None), (vec![a(&[0])], next.clone()));
        assert_eq!(ask(&["A", "U"], 1, Some(("A", 1))), (vec![a(&[1]), u()], None));
        // Nobody learns by it whether there is a topic that he may not see.
        let refused = |name: &str| (name.to_owned(), TOPIC_AUTHORIZATION_FAILED, vec![]);
        let asked = ask(&["U", "U?", "Unknown", "none"], 2000, None).0;
        let none = ("none".to_owned(), UNKNOWN_TOPIC_OR_PARTITION, vec![]);
        assert_eq!(asked, [none, refused("U"), refused("U?"), refused("Unknown")]);
        // A limit below 1 is 1.
        assert_eq!(ask(&[], -5, None), (vec![a(&[0])], next));
    }

    #[test]
    fn topics_before_the_cursor_are_left_out() {
        // spec: tiered-behaviours RP25
        let topics = [topic("A", 2), topic("B", 3)];
        let (found, next) = shown(&topics, &request(&["A", "B"], 2000, Some(("B", 0)))).unwrap();
        assert_eq!((found, next), (vec![("B".to_owned(), 0, vec![0, 1, 2])], None));
    }

    #[test]
    fn pages_follow_each_other_without_gaps() {
        // spec: replication 5.2
        let topics = [topic("A", 2), topic("B", 0), topic("C", 3)];
        for limit in 1..7 {
            let (mut seen, mut cursor) = (Vec::new(), None);
            for _ in 0..10 {
                let from = cursor.as_ref().map(|(name, at): &(String, i32)| (name.as_str(), *at));
                let (page, next) = shown(&topics, &request(&[], limit, from)).unwrap();
                let count: usize = page.iter().map(|topic| topic.2.len()).sum();
                assert!(count <= usize::try_from(limit).unwrap());
                for (name, _, partitions) in page {
                    seen.extend(partitions.into_iter().map(|at| (name.clone(), at)));
                }
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            let all = [("A", 0), ("A", 1), ("C", 0), ("C", 1), ("C", 2)];
            assert_eq!(seen, all.map(|(name, at)| (name.to_owned(), at)), "limit {limit}");
        }
        // The budget is used up at the end of a topic.
        let (_, next) = shown(&topics, &request(&[], 2, None)).unwrap();
        assert_eq!(next, Some(("B".to_owned(), 0)));
    }

    #[test]
    fn cursors_that_cannot_be_are_refused_and_unknown_topics_told() {
        // spec: replication 5.2
        let topics = [topic("A", 2)];
        let refused = shown(&topics, &request(&["A"], 2000, Some(("B", 0))));
        assert_eq!(refused, Err(INVALID_REQUEST));
        let refused = shown(&topics, &request(&[], 2000, Some(("A", -1))));
        assert_eq!(refused, Err(INVALID_REQUEST));
        let (found, _) = shown(&topics, &request(&["a b", "B"], 2000, None)).unwrap();
        let expected = [("B", UNKNOWN_TOPIC_OR_PARTITION), ("a b", INVALID_TOPIC)];
        assert_eq!(found, expected.map(|(name, error)| (name.to_owned(), error, vec![])));
    }

    #[test]
    fn a_leader_that_is_gone_is_none_and_empty_lists_are_there() {
        // spec: replication 5.2
        let request = request(&[], 2000, None);
        let topics = [topic("A", 1)];
        let response = describe_topics(&request, &topics, 2000, |_| true, |_| false).unwrap();
        let partition = &response.topics[0].partitions[0];
        assert_eq!(partition.leader_id, -1);
        assert_eq!(partition.eligible_leader_replicas, Some(vec![]));
        assert_eq!(partition.last_known_elr, Some(vec![]));
    }
}
