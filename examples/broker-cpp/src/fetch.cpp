#include <algorithm>

#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

static constexpr std::int8_t READ_COMMITTED = 1;
/// Of one answer, whatever a client asks for.
static constexpr std::int64_t FETCH_BYTES_MAX = 64 << 20;
/// Aborted transactions of one answer, but for its first partition with records: 16 MiB.
static constexpr std::size_t ABORTED_MAX = 1 << 20;

namespace {

/// What the partitions of one request share.
struct Fetching {
    bool is_committed;
    std::int64_t bytes_left;
    std::int64_t bytes_found = 0;
    bool has_failed = false;
    std::set<Partition *> partitions = {};
    /// Those of the partition that was looked up last.
    std::vector<silt_aborted_t> aborted = {};
    std::size_t aborted_left = ABORTED_MAX;
};

} // namespace

/// Looks up the bytes, and the aborted transactions among them.
static silt_status_t locate(const Partition &partition, const FetchPartition &asked,
                            Fetching &fetching, siltstone::Range &range) {
    silt_fetch_t fetch = {};
    fetch.log = partition.log.get();
    fetch.offset = asked.fetch_offset;
    fetch.max_bytes = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(asked.max_bytes, 0, fetching.bytes_left));
    fetch.up_to = fetching.is_committed ? SILT_UP_TO_LAST_STABLE : SILT_UP_TO_HIGH_WATERMARK;
    // The first batch of an answer is given whatever its size, so that every consumer gets on.
    fetch.flags = fetching.bytes_found == 0 ? SILT_FETCH_MIN_ONE : 0;
    auto &aborted = fetching.aborted;
    aborted.resize(fetching.is_committed ? 16 : 0);
    for (;;) {
        fetch.aborted = aborted.data();
        fetch.aborted_capacity = static_cast<std::uint32_t>(aborted.size());
        silt_range_t found;
        silt_status_t status = SILT_OK;
        silt_error_t error = SILT_ERROR_INIT;
        if (silt_locate(&fetch, 1, &found, &status, &error) != SILT_OK) {
            return error.code;
        }
        range = siltstone::Range(found);
        if (found.aborted_count > fetching.aborted_left && fetching.bytes_found > 0) {
            // The next answer has its records.
            range = siltstone::Range();
            aborted.clear();
            return SILT_OK;
        }
        const bool is_all = status != SILT_E_SHORT_BUFFER;
        aborted.resize(is_all ? std::min<std::size_t>(found.aborted_count, aborted.size())
                              : found.aborted_count);
        if (is_all) {
            return status;
        }
    }
}

static FetchPartitionResponse fetch_partition(const Partition &partition,
                                              const FetchPartition &asked, Fetching &fetching) {
    FetchPartitionResponse response;
    silt_error_t error = SILT_ERROR_INIT;
    error.code = locate(partition, asked, fetching, response.records);
    response.error_code = error_code_of(error);
    const silt_offsets_t offsets = partition.log.offsets();
    response.high_watermark = offsets.high_watermark;
    response.last_stable_offset = offsets.last_stable_offset;
    response.log_start_offset = offsets.log_start_offset;
    if (fetching.is_committed) {
        response.aborted_transactions.emplace();
        const std::size_t aborted_count = fetching.aborted.size();
        fetching.aborted_left -= std::min(fetching.aborted_left, aborted_count);
        response.aborted_transactions->reserve(aborted_count);
        for (const silt_aborted_t &transaction : fetching.aborted) {
            response.aborted_transactions->push_back(
                {transaction.producer_id, transaction.first_offset});
        }
    }
    const auto size = static_cast<std::int64_t>(response.records.size_bytes());
    fetching.bytes_found += size;
    fetching.bytes_left = std::max<std::int64_t>(0, fetching.bytes_left - size);
    return response;
}

static FetchTopicResponse fetch_topic(Broker &broker, const FetchTopic &asked, Fetching &fetching) {
    FetchTopicResponse told;
    told.name = asked.name;
    told.topic_id = asked.topic_id;
    const Topic *const topic = broker.topics.find(asked.name, asked.topic_id);
    for (const FetchPartition &part : asked.partitions) {
        Partition *const partition = topic == nullptr ? nullptr : topic->find(part.index);
        if (partition == nullptr) {
            const bool is_unknown_id = topic == nullptr && asked.name.empty();
            told.partitions.emplace_back().error_code =
                is_unknown_id ? error_code::UNKNOWN_TOPIC_ID
                              : error_code::UNKNOWN_TOPIC_OR_PARTITION;
        } else {
            if (!fetching.partitions.insert(partition).second) {
                throw Malformed("a partition is asked for twice");
            }
            told.partitions.push_back(fetch_partition(*partition, part, fetching));
        }
        told.partitions.back().index = part.index;
        fetching.has_failed |= told.partitions.back().error_code != error_code::NONE;
    }
    return told;
}

Answer<FetchResponse> fetch(Broker &broker, FetchRequest &request, Call &call) {
    FetchResponse response;
    // Clients that are given no session send all of their partitions each time.
    if (request.session_id != 0) {
        response.error_code = error_code::FETCH_SESSION_ID_NOT_FOUND;
        return response;
    }
    Fetching fetching{request.isolation_level == READ_COMMITTED,
                      std::clamp<std::int64_t>(request.max_bytes, 0, FETCH_BYTES_MAX)};
    for (const FetchTopic &asked : request.topics) {
        response.topics.push_back(fetch_topic(broker, asked, fetching));
    }
    const bool is_enough = fetching.bytes_found >= request.min_bytes || fetching.has_failed;
    if (!is_enough && call.may_wait && request.max_wait_ms > 0) {
        call.wait = Wait{std::chrono::milliseconds(request.max_wait_ms),
                         std::move(fetching.partitions)};
    }
    return response;
}

} // namespace broker
