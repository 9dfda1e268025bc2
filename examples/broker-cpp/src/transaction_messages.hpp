// The messages of idempotent and transactional producers: FindCoordinator, InitProducerId,
// AddPartitionsToTxn, EndTxn. See table.hpp.
#pragma once

#include "table.hpp"

namespace broker {

struct FindCoordinatorRequest {
    std::string_view key;
    std::int8_t key_type = 0;
    std::vector<std::string_view> keys;
    static void table(auto row) {
        row(&FindCoordinatorRequest::key, until(3));
        row(&FindCoordinatorRequest::key_type, since(1));
        row(&FindCoordinatorRequest::keys, since(4));
    }
};

struct Coordinator {
    std::string_view key;
    std::int32_t node_id = -1;
    std::string_view host;
    std::int32_t port = -1;
    std::int16_t error_code = 0;
    std::optional<std::string_view> error_message;
    static void table(auto row) {
        row(&Coordinator::key);
        row(&Coordinator::node_id);
        row(&Coordinator::host);
        row(&Coordinator::port);
        row(&Coordinator::error_code);
        row(&Coordinator::error_message);
    }
};

struct FindCoordinatorResponse {
    std::int32_t throttle_time_ms = 0;
    std::int16_t error_code = 0;
    std::optional<std::string_view> error_message;
    std::int32_t node_id = -1;
    std::string_view host;
    std::int32_t port = -1;
    std::vector<Coordinator> coordinators;
    static void table(auto row) {
        row(&FindCoordinatorResponse::throttle_time_ms, since(1));
        row(&FindCoordinatorResponse::error_code, until(3));
        row(&FindCoordinatorResponse::error_message, Versions{1, 3});
        row(&FindCoordinatorResponse::node_id, until(3));
        row(&FindCoordinatorResponse::host, until(3));
        row(&FindCoordinatorResponse::port, until(3));
        row(&FindCoordinatorResponse::coordinators, since(4));
    }
};

struct InitProducerIdRequest {
    std::optional<std::string_view> transactional_id;
    std::int32_t transaction_timeout_ms = 0;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    static void table(auto row) {
        row(&InitProducerIdRequest::transactional_id);
        row(&InitProducerIdRequest::transaction_timeout_ms);
        row(&InitProducerIdRequest::producer_id, since(3));
        row(&InitProducerIdRequest::producer_epoch, since(3));
    }
};

struct InitProducerIdResponse {
    std::int32_t throttle_time_ms = 0;
    std::int16_t error_code = 0;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    static void table(auto row) {
        row(&InitProducerIdResponse::throttle_time_ms);
        row(&InitProducerIdResponse::error_code);
        row(&InitProducerIdResponse::producer_id);
        row(&InitProducerIdResponse::producer_epoch);
    }
};

using TxnTopic = NamedTopic<std::int32_t>;

struct AddPartitionsToTxnRequest {
    std::string_view transactional_id;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    std::vector<TxnTopic> topics;
    static void table(auto row) {
        row(&AddPartitionsToTxnRequest::transactional_id);
        row(&AddPartitionsToTxnRequest::producer_id);
        row(&AddPartitionsToTxnRequest::producer_epoch);
        row(&AddPartitionsToTxnRequest::topics);
    }
};

struct TxnPartitionResult {
    std::int32_t index = 0;
    std::int16_t error_code = 0;
    static void table(auto row) {
        row(&TxnPartitionResult::index);
        row(&TxnPartitionResult::error_code);
    }
};

using TxnTopicResult = NamedTopic<TxnPartitionResult>;

struct AddPartitionsToTxnResponse {
    std::int32_t throttle_time_ms = 0;
    std::vector<TxnTopicResult> topics;
    static void table(auto row) {
        row(&AddPartitionsToTxnResponse::throttle_time_ms);
        row(&AddPartitionsToTxnResponse::topics);
    }
};

struct EndTxnRequest {
    std::string_view transactional_id;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    bool is_commit = false;
    static void table(auto row) {
        row(&EndTxnRequest::transactional_id);
        row(&EndTxnRequest::producer_id);
        row(&EndTxnRequest::producer_epoch);
        row(&EndTxnRequest::is_commit);
    }
};

struct EndTxnResponse {
    std::int32_t throttle_time_ms = 0;
    std::int16_t error_code = 0;
    static void table(auto row) {
        row(&EndTxnResponse::throttle_time_ms);
        row(&EndTxnResponse::error_code);
    }
};

} // namespace broker
