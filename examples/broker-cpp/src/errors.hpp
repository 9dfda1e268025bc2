// The error codes of Kafka's protocol that this broker answers with.
#pragma once

#include <cstdint>

#include <siltstone.hpp>

namespace broker {

namespace error_code {
inline constexpr std::int16_t UNKNOWN_SERVER_ERROR = -1;
inline constexpr std::int16_t NONE = 0;
inline constexpr std::int16_t OFFSET_OUT_OF_RANGE = 1;
inline constexpr std::int16_t UNKNOWN_TOPIC_OR_PARTITION = 3;
inline constexpr std::int16_t INVALID_TOPIC = 17;
inline constexpr std::int16_t INVALID_REQUIRED_ACKS = 21;
inline constexpr std::int16_t UNSUPPORTED_VERSION = 35;
inline constexpr std::int16_t TOPIC_ALREADY_EXISTS = 36;
inline constexpr std::int16_t INVALID_PARTITIONS = 37;
inline constexpr std::int16_t INVALID_REPLICATION_FACTOR = 38;
inline constexpr std::int16_t INVALID_REPLICA_ASSIGNMENT = 39;
inline constexpr std::int16_t INVALID_CONFIG = 40;
inline constexpr std::int16_t INVALID_REQUEST = 42;
inline constexpr std::int16_t INVALID_PRODUCER_EPOCH = 47;
inline constexpr std::int16_t INVALID_TXN_STATE = 48;
inline constexpr std::int16_t INVALID_PRODUCER_ID_MAPPING = 49;
inline constexpr std::int16_t INVALID_TRANSACTION_TIMEOUT = 50;
inline constexpr std::int16_t CONCURRENT_TRANSACTIONS = 51;
inline constexpr std::int16_t OPERATION_NOT_ATTEMPTED = 55;
inline constexpr std::int16_t KAFKA_STORAGE_ERROR = 56;
inline constexpr std::int16_t FETCH_SESSION_ID_NOT_FOUND = 70;
inline constexpr std::int16_t INVALID_RECORD = 87;
inline constexpr std::int16_t PRODUCER_FENCED = 90;
inline constexpr std::int16_t UNKNOWN_TOPIC_ID = 100;
} // namespace error_code

/// What the protocol says for what the engine says.
inline std::int16_t error_code_of(const silt_error_t &error) {
    // Why an append was refused has the protocol's own numbers, but for one that only replicas see.
    if (error.detail_code > 0 && error.detail_code < SILT_DETAIL_UNEXPECTED_APPEND_OFFSET) {
        return static_cast<std::int16_t>(error.detail_code);
    }
    switch (error.code) {
    case SILT_OK:
        return error_code::NONE;
    case SILT_E_OUT_OF_RANGE:
        return error_code::OFFSET_OUT_OF_RANGE;
    case SILT_E_IO:
    case SILT_E_CORRUPT:
        return error_code::KAFKA_STORAGE_ERROR;
    default:
        return error_code::UNKNOWN_SERVER_ERROR;
    }
}

} // namespace broker
