#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

static constexpr std::int64_t LATEST = -1;
static constexpr std::int64_t EARLIEST = -2;

static ListOffsetsPartitionResponse list(const Partition &partition, std::int64_t timestamp_ms,
                                         bool is_committed) {
    ListOffsetsPartitionResponse response;
    const silt_offsets_t offsets = partition.log.offsets();
    const std::int64_t end = is_committed ? offsets.last_stable_offset : offsets.high_watermark;
    if (timestamp_ms == LATEST || timestamp_ms == EARLIEST) {
        response.offset = timestamp_ms == LATEST ? end : offsets.log_start_offset;
        response.leader_epoch = LEADER_EPOCH;
        return response;
    }
    silt_time_offset_t found = {};
    silt_error_t error = SILT_ERROR_INIT;
    const silt_status_t status =
        silt_log_offset_for_time(partition.log.get(), timestamp_ms, &found, &error);
    if (status == SILT_OK && found.offset < end) {
        response.timestamp_ms = found.timestamp_ms;
        response.offset = found.offset;
        response.leader_epoch = found.leader_epoch;
    } else if (status != SILT_OK && status != SILT_E_NOT_FOUND) {
        response.error_code = error_code_of(error);
    }
    return response;
}

Answer<ListOffsetsResponse> list_offsets(Broker &broker, ListOffsetsRequest &request, Call &) {
    ListOffsetsResponse response;
    for (const ListOffsetsTopic &asked : request.topics) {
        ListOffsetsTopicResponse &told = response.topics.emplace_back();
        told.name = asked.name;
        for (const ListOffsetsPartition &part : asked.partitions) {
            ListOffsetsPartitionResponse result;
            const Partition *const partition = broker.topics.find(asked.name, part.index);
            if (partition == nullptr) {
                result.error_code = error_code::UNKNOWN_TOPIC_OR_PARTITION;
            } else if (part.timestamp_ms < EARLIEST) {
                result.error_code = error_code::UNSUPPORTED_VERSION;
            } else {
                result = list(*partition, part.timestamp_ms, request.isolation_level == 1);
            }
            result.index = part.index;
            told.partitions.push_back(result);
        }
    }
    return response;
}

} // namespace broker
