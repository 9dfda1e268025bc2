// The messages that move records: Produce, Fetch, ListOffsets. See table.hpp.
#pragma once

#include "table.hpp"

namespace broker {

/// A topic in a message of records. Its name gives way to its id in the same version of both kinds.
template <typename Partition> struct TopicWithId {
    std::string_view name;
    Uuid topic_id{};
    std::vector<Partition> partitions;
    static void table(auto row) {
        row(&TopicWithId::name, until(12));
        row(&TopicWithId::topic_id, since(13));
        row(&TopicWithId::partitions);
    }
};

struct ProducePartition {
    std::int32_t index = 0;
    Bytes records;
    static void table(auto row) {
        row(&ProducePartition::index);
        row(&ProducePartition::records);
    }
};

using ProduceTopic = TopicWithId<ProducePartition>;

struct ProduceRequest {
    std::optional<std::string_view> transactional_id;
    std::int16_t acks = 0;
    std::int32_t timeout_ms = 0;
    std::vector<ProduceTopic> topics;
    static void table(auto row) {
        row(&ProduceRequest::transactional_id);
        row(&ProduceRequest::acks);
        row(&ProduceRequest::timeout_ms);
        row(&ProduceRequest::topics);
    }
};

struct ProduceRecordError {
    std::int32_t batch_index = 0;
    std::optional<std::string> message;
    static void table(auto row) {
        row(&ProduceRecordError::batch_index);
        row(&ProduceRecordError::message);
    }
};

struct ProducePartitionResponse {
    std::int32_t index = 0;
    std::int16_t error_code = 0;
    std::int64_t base_offset = -1;
    std::int64_t log_append_time_ms = -1;
    std::int64_t log_start_offset = -1;
    std::vector<ProduceRecordError> record_errors;
    std::optional<std::string> error_message;
    static void table(auto row) {
        row(&ProducePartitionResponse::index);
        row(&ProducePartitionResponse::error_code);
        row(&ProducePartitionResponse::base_offset);
        row(&ProducePartitionResponse::log_append_time_ms);
        row(&ProducePartitionResponse::log_start_offset, since(5));
        row(&ProducePartitionResponse::record_errors, since(8));
        row(&ProducePartitionResponse::error_message, since(8));
    }
};

using ProduceTopicResponse = TopicWithId<ProducePartitionResponse>;

struct ProduceResponse {
    std::vector<ProduceTopicResponse> topics;
    std::int32_t throttle_time_ms = 0;
    static void table(auto row) {
        row(&ProduceResponse::topics);
        row(&ProduceResponse::throttle_time_ms);
    }
};

struct FetchPartition {
    std::int32_t index = 0;
    std::int32_t current_leader_epoch = -1;
    std::int64_t fetch_offset = 0;
    std::int32_t last_fetched_epoch = -1;
    std::int64_t log_start_offset = -1;
    std::int32_t max_bytes = 0;
    static void table(auto row) {
        row(&FetchPartition::index);
        row(&FetchPartition::current_leader_epoch, since(9));
        row(&FetchPartition::fetch_offset);
        row(&FetchPartition::last_fetched_epoch, since(12));
        row(&FetchPartition::log_start_offset, since(5));
        row(&FetchPartition::max_bytes);
    }
};

using FetchTopic = TopicWithId<FetchPartition>;

using ForgottenTopic = TopicWithId<std::int32_t>;

struct FetchRequest {
    std::int32_t replica_id = -1;
    std::int32_t max_wait_ms = 0;
    std::int32_t min_bytes = 0;
    std::int32_t max_bytes = 0;
    std::int8_t isolation_level = 0;
    std::int32_t session_id = 0;
    std::int32_t session_epoch = -1;
    std::vector<FetchTopic> topics;
    std::vector<ForgottenTopic> forgotten_topics;
    std::string_view rack_id;
    static void table(auto row) {
        row(&FetchRequest::replica_id, until(14));
        row(&FetchRequest::max_wait_ms);
        row(&FetchRequest::min_bytes);
        row(&FetchRequest::max_bytes);
        row(&FetchRequest::isolation_level);
        row(&FetchRequest::session_id, since(7));
        row(&FetchRequest::session_epoch, since(7));
        row(&FetchRequest::topics);
        row(&FetchRequest::forgotten_topics, since(7));
        row(&FetchRequest::rack_id, since(11));
    }
};

struct AbortedTransaction {
    std::int64_t producer_id = 0;
    std::int64_t first_offset = 0;
    static void table(auto row) {
        row(&AbortedTransaction::producer_id);
        row(&AbortedTransaction::first_offset);
    }
};

struct FetchPartitionResponse {
    std::int32_t index = 0;
    std::int16_t error_code = 0;
    std::int64_t high_watermark = -1;
    std::int64_t last_stable_offset = -1;
    std::int64_t log_start_offset = -1;
    std::optional<std::vector<AbortedTransaction>> aborted_transactions;
    std::int32_t preferred_read_replica = -1;
    siltstone::Range records;
    static void table(auto row) {
        row(&FetchPartitionResponse::index);
        row(&FetchPartitionResponse::error_code);
        row(&FetchPartitionResponse::high_watermark);
        row(&FetchPartitionResponse::last_stable_offset);
        row(&FetchPartitionResponse::log_start_offset, since(5));
        row(&FetchPartitionResponse::aborted_transactions);
        row(&FetchPartitionResponse::preferred_read_replica, since(11));
        row(&FetchPartitionResponse::records);
    }
};

using FetchTopicResponse = TopicWithId<FetchPartitionResponse>;

struct FetchResponse {
    std::int32_t throttle_time_ms = 0;
    std::int16_t error_code = 0;
    std::int32_t session_id = 0;
    std::vector<FetchTopicResponse> topics;
    static void table(auto row) {
        row(&FetchResponse::throttle_time_ms);
        row(&FetchResponse::error_code, since(7));
        row(&FetchResponse::session_id, since(7));
        row(&FetchResponse::topics);
    }
};

struct ListOffsetsPartition {
    std::int32_t index = 0;
    std::int32_t current_leader_epoch = -1;
    std::int64_t timestamp_ms = 0;
    static void table(auto row) {
        row(&ListOffsetsPartition::index);
        row(&ListOffsetsPartition::current_leader_epoch, since(4));
        row(&ListOffsetsPartition::timestamp_ms);
    }
};

using ListOffsetsTopic = NamedTopic<ListOffsetsPartition>;

struct ListOffsetsRequest {
    std::int32_t replica_id = -1;
    std::int8_t isolation_level = 0;
    std::vector<ListOffsetsTopic> topics;
    static void table(auto row) {
        row(&ListOffsetsRequest::replica_id);
        row(&ListOffsetsRequest::isolation_level, since(2));
        row(&ListOffsetsRequest::topics);
    }
};

struct ListOffsetsPartitionResponse {
    std::int32_t index = 0;
    std::int16_t error_code = 0;
    std::int64_t timestamp_ms = -1;
    std::int64_t offset = -1;
    std::int32_t leader_epoch = -1;
    static void table(auto row) {
        row(&ListOffsetsPartitionResponse::index);
        row(&ListOffsetsPartitionResponse::error_code);
        row(&ListOffsetsPartitionResponse::timestamp_ms);
        row(&ListOffsetsPartitionResponse::offset);
        row(&ListOffsetsPartitionResponse::leader_epoch, since(4));
    }
};

using ListOffsetsTopicResponse = NamedTopic<ListOffsetsPartitionResponse>;

struct ListOffsetsResponse {
    std::int32_t throttle_time_ms = 0;
    std::vector<ListOffsetsTopicResponse> topics;
    static void table(auto row) {
        row(&ListOffsetsResponse::throttle_time_ms, since(2));
        row(&ListOffsetsResponse::topics);
    }
};

} // namespace broker
