#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

/// The header of the batch, if it belongs to a transaction and is whole.
static std::optional<silt_batch_t> transactional_batch(Bytes records) {
    silt_batch_t batch = {};
    std::uint32_t count = 0;
    std::uint64_t consumed = 0;
    // A second batch, or one that is damaged, is for the engine to refuse.
    static_cast<void>(silt_batch_parse(records.data(), records.size(), &batch, 1, &count, &consumed,
                                       nullptr));
    const bool is_transactional = count > 0 && (batch.flags & SILT_BATCH_TRANSACTIONAL) != 0;
    const bool is_whole = is_transactional && silt_batch_validate(records.data(), batch.size_bytes,
                                                                  nullptr, nullptr) == SILT_OK;
    return is_whole ? std::optional(batch) : std::nullopt;
}

/// Asks the coordinator whether a batch belongs to a transaction that is open. The log is told of
/// that producer afterwards: it remembers who is verified, and need not remember whoever claims it.
static std::int16_t verify(Broker &broker, const ProduceRequest &request,
                           Partition &partition, const silt_batch_t &batch,
                           silt_append_t &append) {
    const auto error = broker.transactions.check(request.transactional_id.value_or(""),
                                                 {batch.producer_id, batch.producer_epoch},
                                                 partition.name);
    if (error == error_code::NONE) {
        append.verification = partition.log.start_verification(
            batch.producer_id, batch.base_sequence, batch.producer_epoch, 0, append.now_ms);
    }
    return error;
}

static void append(Broker &broker, const ProduceRequest &request, Partition &partition,
                   Bytes records, ProducePartitionResponse &response) {
    silt_append_t append = SILT_APPEND_INIT;
    append.leader_epoch = LEADER_EPOCH;
    append.now_ms = now_ms();
    try {
        if (const auto batch = transactional_batch(records)) {
            response.error_code = verify(broker, request, partition, *batch, append);
            if (response.error_code != error_code::NONE) {
                return;
            }
        }
        const silt_appended_t appended = broker.topics.append(partition, records, append);
        if (appended.first_offset < 0) {
            response.error_code = error_code::INVALID_RECORD;
            response.error_message = "there is no whole batch";
            return;
        }
        response.base_offset = appended.first_offset;
        response.log_append_time_ms = appended.log_append_time_ms;
        response.log_start_offset = appended.log_start_offset;
    } catch (const siltstone::Error &error) {
        response.error_code = error_code_of(error.get());
        response.error_message = error.what();
    }
}

Answer<ProduceResponse> produce(Broker &broker, ProduceRequest &request, Call &) {
    ProduceResponse response;
    bool has_failed = false;
    const bool is_acks_valid = request.acks >= -1 && request.acks <= 1;
    for (const ProduceTopic &asked : request.topics) {
        const Topic *const topic = broker.topics.find(asked.name, asked.topic_id);
        ProduceTopicResponse &told = response.topics.emplace_back();
        told.name = asked.name;
        told.topic_id = asked.topic_id;
        for (const ProducePartition &part : asked.partitions) {
            ProducePartitionResponse &result = told.partitions.emplace_back();
            result.index = part.index;
            Partition *const partition = topic == nullptr ? nullptr : topic->find(part.index);
            if (!is_acks_valid) {
                result.error_code = error_code::INVALID_REQUIRED_ACKS;
            } else if (topic == nullptr && asked.name.empty()) {
                result.error_code = error_code::UNKNOWN_TOPIC_ID;
            } else if (partition == nullptr) {
                result.error_code = error_code::UNKNOWN_TOPIC_OR_PARTITION;
            } else {
                append(broker, request, *partition, part.records, result);
            }
            has_failed |= result.error_code != error_code::NONE;
        }
    }
    if (request.acks != 0) {
        return response;
    }
    if (has_failed) {
        throw Malformed("records that want no answer were refused");
    }
    return std::nullopt;
}

} // namespace broker
