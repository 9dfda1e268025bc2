//! Which value of a setting counts, and who said so?
//!
//! ```text
//! for a topic                                     for the broker
//! 1  what is given for all                        1  what is given for all
//! 2  what is given for this topic                 2  dynamic config of this node
//! 3  the topic's own config                       3  dynamic config of all brokers
//! 4  what the broker has                          4  server.properties
//! 5  Kafka's default                              5  Kafka's default
//! ```
//!
//! A [`Resolver`] is made once from the [`Layers`] and gives [`TopicSettings`] and
//! [`BrokerSettings`].

mod broker;
mod definition;
mod resolve;
mod topic;
mod value;

pub use broker::BrokerSettings;
pub use resolve::{Layers, Resolver, check_topic_names, read_server_properties};
pub use topic::{TopicSettings, is_never_remote};
pub use value::{Resolved, SettingValue, Source};
