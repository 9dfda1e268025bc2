// The messages about the broker and its topics: ApiVersions, Metadata, CreateTopics,
// DescribeTopicPartitions. See table.hpp.
#pragma once

#include "table.hpp"

namespace broker {

/// "Nobody has asked what may be done with it."
inline constexpr std::int32_t OPERATIONS_NOT_ASKED = INT32_MIN;

struct ApiVersionsRequest {
    std::string_view client_software_name;
    std::string_view client_software_version;
    static void table(auto row) {
        row(&ApiVersionsRequest::client_software_name, since(3));
        row(&ApiVersionsRequest::client_software_version, since(3));
    }
};

struct ApiVersion {
    std::int16_t api_key = 0;
    std::int16_t min_version = 0;
    std::int16_t max_version = 0;
    static void table(auto row) {
        row(&ApiVersion::api_key);
        row(&ApiVersion::min_version);
        row(&ApiVersion::max_version);
    }
};

struct ApiVersionsResponse {
    std::int16_t error_code = 0;
    std::vector<ApiVersion> api_keys;
    std::int32_t throttle_time_ms = 0;
    static void table(auto row) {
        row(&ApiVersionsResponse::error_code);
        row(&ApiVersionsResponse::api_keys);
        row(&ApiVersionsResponse::throttle_time_ms, since(1));
    }
};

struct MetadataTopic {
    Uuid topic_id{};
    std::optional<std::string_view> name;
    static void table(auto row) {
        row(&MetadataTopic::topic_id, since(10));
        row(&MetadataTopic::name);
    }
};

struct MetadataRequest {
    std::optional<std::vector<MetadataTopic>> topics;
    bool allow_auto_topic_creation = true;
    bool include_cluster_authorized_operations = false;
    bool include_topic_authorized_operations = false;
    static void table(auto row) {
        row(&MetadataRequest::topics);
        row(&MetadataRequest::allow_auto_topic_creation, since(4));
        row(&MetadataRequest::include_cluster_authorized_operations, Versions{8, 10});
        row(&MetadataRequest::include_topic_authorized_operations, since(8));
    }
};

struct MetadataBroker {
    std::int32_t node_id = 0;
    std::string_view host;
    std::int32_t port = 0;
    std::optional<std::string_view> rack;
    static void table(auto row) {
        row(&MetadataBroker::node_id);
        row(&MetadataBroker::host);
        row(&MetadataBroker::port);
        row(&MetadataBroker::rack, since(1));
    }
};

struct MetadataPartition {
    std::int16_t error_code = 0;
    std::int32_t index = 0;
    std::int32_t leader_id = -1;
    std::int32_t leader_epoch = -1;
    std::vector<std::int32_t> replica_nodes;
    std::vector<std::int32_t> isr_nodes;
    std::vector<std::int32_t> offline_replicas;
    static void table(auto row) {
        row(&MetadataPartition::error_code);
        row(&MetadataPartition::index);
        row(&MetadataPartition::leader_id);
        row(&MetadataPartition::leader_epoch, since(7));
        row(&MetadataPartition::replica_nodes);
        row(&MetadataPartition::isr_nodes);
        row(&MetadataPartition::offline_replicas, since(5));
    }
};

struct MetadataTopicResponse {
    std::int16_t error_code = 0;
    std::optional<std::string_view> name;
    Uuid topic_id{};
    bool is_internal = false;
    std::vector<MetadataPartition> partitions;
    std::int32_t topic_authorized_operations = OPERATIONS_NOT_ASKED;
    static void table(auto row) {
        row(&MetadataTopicResponse::error_code);
        row(&MetadataTopicResponse::name);
        row(&MetadataTopicResponse::topic_id, since(10));
        row(&MetadataTopicResponse::is_internal, since(1));
        row(&MetadataTopicResponse::partitions);
        row(&MetadataTopicResponse::topic_authorized_operations, since(8));
    }
};

struct MetadataResponse {
    std::int32_t throttle_time_ms = 0;
    std::vector<MetadataBroker> brokers;
    std::optional<std::string_view> cluster_id;
    std::int32_t controller_id = -1;
    std::vector<MetadataTopicResponse> topics;
    std::int32_t cluster_authorized_operations = OPERATIONS_NOT_ASKED;
    std::int16_t error_code = 0;
    static void table(auto row) {
        row(&MetadataResponse::throttle_time_ms, since(3));
        row(&MetadataResponse::brokers);
        row(&MetadataResponse::cluster_id, since(2));
        row(&MetadataResponse::controller_id, since(1));
        row(&MetadataResponse::topics);
        row(&MetadataResponse::cluster_authorized_operations, Versions{8, 10});
        row(&MetadataResponse::error_code, since(13));
    }
};

struct NewAssignment {
    std::int32_t partition_index = 0;
    std::vector<std::int32_t> broker_ids;
    static void table(auto row) {
        row(&NewAssignment::partition_index);
        row(&NewAssignment::broker_ids);
    }
};

struct NewTopicConfig {
    std::string_view name;
    std::optional<std::string_view> value;
    static void table(auto row) {
        row(&NewTopicConfig::name);
        row(&NewTopicConfig::value);
    }
};

struct NewTopic {
    std::string_view name;
    std::int32_t partition_count = -1;
    std::int16_t replication_factor = -1;
    std::vector<NewAssignment> assignments;
    std::vector<NewTopicConfig> configs;
    static void table(auto row) {
        row(&NewTopic::name);
        row(&NewTopic::partition_count);
        row(&NewTopic::replication_factor);
        row(&NewTopic::assignments);
        row(&NewTopic::configs);
    }
};

struct CreateTopicsRequest {
    std::vector<NewTopic> topics;
    std::int32_t timeout_ms = 0;
    bool validate_only = false;
    static void table(auto row) {
        row(&CreateTopicsRequest::topics);
        row(&CreateTopicsRequest::timeout_ms);
        row(&CreateTopicsRequest::validate_only);
    }
};

struct CreatedTopicConfig {
    std::string_view name;
    std::optional<std::string_view> value;
    bool is_read_only = false;
    std::int8_t config_source = 1; // of the topic itself
    bool is_sensitive = false;
    static void table(auto row) {
        row(&CreatedTopicConfig::name);
        row(&CreatedTopicConfig::value);
        row(&CreatedTopicConfig::is_read_only);
        row(&CreatedTopicConfig::config_source);
        row(&CreatedTopicConfig::is_sensitive);
    }
};

struct CreatedTopic {
    std::string_view name;
    Uuid topic_id{};
    std::int16_t error_code = 0;
    std::optional<std::string> error_message;
    std::int32_t partition_count = -1;
    std::int16_t replication_factor = -1;
    std::optional<std::vector<CreatedTopicConfig>> configs = std::vector<CreatedTopicConfig>{};
    static void table(auto row) {
        row(&CreatedTopic::name);
        row(&CreatedTopic::topic_id, since(7));
        row(&CreatedTopic::error_code);
        row(&CreatedTopic::error_message);
        row(&CreatedTopic::partition_count, since(5));
        row(&CreatedTopic::replication_factor, since(5));
        row(&CreatedTopic::configs, since(5));
    }
};

struct CreateTopicsResponse {
    std::int32_t throttle_time_ms = 0;
    std::vector<CreatedTopic> topics;
    static void table(auto row) {
        row(&CreateTopicsResponse::throttle_time_ms);
        row(&CreateTopicsResponse::topics);
    }
};

struct DescribedTopicName {
    std::string_view name;
    static void table(auto row) {
        row(&DescribedTopicName::name);
    }
};

/// Where the next page of topics begins.
struct TopicCursor {
    std::string_view topic;
    std::int32_t partition_index = 0;
    static void table(auto row) {
        row(&TopicCursor::topic);
        row(&TopicCursor::partition_index);
    }
};

struct DescribeTopicPartitionsRequest {
    std::vector<DescribedTopicName> topics;
    std::int32_t partition_limit = 2000;
    std::optional<TopicCursor> cursor;
    static void table(auto row) {
        row(&DescribeTopicPartitionsRequest::topics);
        row(&DescribeTopicPartitionsRequest::partition_limit);
        row(&DescribeTopicPartitionsRequest::cursor);
    }
};

struct DescribedPartition {
    std::int16_t error_code = 0;
    std::int32_t index = 0;
    std::int32_t leader_id = -1;
    std::int32_t leader_epoch = -1;
    std::vector<std::int32_t> replica_nodes;
    std::vector<std::int32_t> isr_nodes;
    std::vector<std::int32_t> eligible_leader_replicas; // Java wants no null
    std::vector<std::int32_t> last_known_elr;
    std::vector<std::int32_t> offline_replicas;
    static void table(auto row) {
        row(&DescribedPartition::error_code);
        row(&DescribedPartition::index);
        row(&DescribedPartition::leader_id);
        row(&DescribedPartition::leader_epoch);
        row(&DescribedPartition::replica_nodes);
        row(&DescribedPartition::isr_nodes);
        row(&DescribedPartition::eligible_leader_replicas);
        row(&DescribedPartition::last_known_elr);
        row(&DescribedPartition::offline_replicas);
    }
};

struct DescribedTopic {
    std::int16_t error_code = 0;
    std::optional<std::string_view> name;
    Uuid topic_id{};
    bool is_internal = false;
    std::vector<DescribedPartition> partitions;
    std::int32_t topic_authorized_operations = OPERATIONS_NOT_ASKED;
    static void table(auto row) {
        row(&DescribedTopic::error_code);
        row(&DescribedTopic::name);
        row(&DescribedTopic::topic_id);
        row(&DescribedTopic::is_internal);
        row(&DescribedTopic::partitions);
        row(&DescribedTopic::topic_authorized_operations);
    }
};

struct DescribeTopicPartitionsResponse {
    std::int32_t throttle_time_ms = 0;
    std::vector<DescribedTopic> topics;
    std::optional<TopicCursor> next_cursor;
    static void table(auto row) {
        row(&DescribeTopicPartitionsResponse::throttle_time_ms);
        row(&DescribeTopicPartitionsResponse::topics);
        row(&DescribeTopicPartitionsResponse::next_cursor);
    }
};

} // namespace broker
