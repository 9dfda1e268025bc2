#include <algorithm>
#include <cstdio>

#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

/// What both kinds of answers say of a partition.
template <typename Partition> static Partition led_by_us(std::size_t index) {
    Partition partition;
    partition.index = static_cast<std::int32_t>(index);
    partition.leader_id = NODE_ID;
    partition.leader_epoch = LEADER_EPOCH;
    partition.replica_nodes = {NODE_ID};
    partition.isr_nodes = {NODE_ID};
    return partition;
}

static MetadataTopicResponse described(const Topic &topic) {
    MetadataTopicResponse told;
    told.name = topic.name;
    told.topic_id = topic.id;
    for (std::size_t index = 0; index < topic.partitions.size(); index++) {
        told.partitions.push_back(led_by_us<MetadataPartition>(index));
    }
    return told;
}

/// Makes the topic that a client has asked for, if that is allowed.
static const Topic *create_on_demand(Broker &broker, std::string_view name) {
    const auto count = static_cast<std::size_t>(broker.options.partitions);
    if (!broker.options.creates_topics_on_demand || count > broker.topics.partitions_left()) {
        return nullptr;
    }
    try {
        return &broker.topics.create(std::string(name), broker.options.partitions, {});
    } catch (const std::exception &error) {
        std::fprintf(stderr, "a topic cannot be made: %s\n", error.what());
        return nullptr;
    }
}

static MetadataTopicResponse described(Broker &broker, const MetadataTopic &asked,
                                       bool may_create) {
    MetadataTopicResponse told;
    told.name = asked.name;
    told.topic_id = asked.topic_id;
    const Topic *topic = nullptr;
    if (!asked.name) {
        topic = broker.topics.find(asked.topic_id);
        told.error_code = error_code::UNKNOWN_TOPIC_ID;
    } else if (!is_topic_name(*asked.name)) {
        told.error_code = error_code::INVALID_TOPIC;
    } else {
        topic = broker.topics.find(*asked.name);
        topic = topic == nullptr && may_create ? create_on_demand(broker, *asked.name) : topic;
        told.error_code = error_code::UNKNOWN_TOPIC_OR_PARTITION;
    }
    return topic == nullptr ? told : described(*topic);
}

Answer<MetadataResponse> metadata(Broker &broker, MetadataRequest &request, Call &call) {
    MetadataResponse response;
    response.brokers.push_back({NODE_ID, broker.address.host, broker.address.port, std::nullopt});
    response.cluster_id = CLUSTER_ID;
    response.controller_id = NODE_ID;
    // The first version has no null, and says it by an empty list.
    const bool asks_for_all =
        !request.topics || (request.topics->empty() && call.version == 0);
    if (asks_for_all) {
        for (const auto &[name, topic] : broker.topics.all()) {
            response.topics.push_back(described(topic));
        }
        return response;
    }
    std::set<std::pair<std::optional<std::string_view>, Uuid>> told;
    for (const MetadataTopic &asked : *request.topics) {
        // A topic that is asked for again and again must not make the answer large.
        if (told.emplace(asked.name, asked.topic_id).second) {
            response.topics.push_back(
                described(broker, asked, request.allow_auto_topic_creation));
        }
    }
    return response;
}

/// Puts a topic into the answer from a partition on; whether all of it had place.
static bool describe(const Topic &topic, std::size_t begin, std::size_t &partitions_left,
                     DescribeTopicPartitionsResponse &response) {
    DescribedTopic &told = response.topics.emplace_back();
    told.name = topic.name;
    told.topic_id = topic.id;
    for (std::size_t index = begin; index < topic.partitions.size(); index++) {
        if (partitions_left == 0) {
            response.next_cursor = TopicCursor{topic.name, static_cast<std::int32_t>(index)};
            return false;
        }
        partitions_left--;
        told.partitions.push_back(led_by_us<DescribedPartition>(index));
    }
    return true;
}

Answer<DescribeTopicPartitionsResponse>
describe_topic_partitions(Broker &broker, DescribeTopicPartitionsRequest &request, Call &) {
    std::set<std::string_view> names;
    for (const DescribedTopicName &topic : request.topics) {
        names.insert(topic.name);
    }
    if (request.topics.empty()) {
        for (const auto &[name, topic] : broker.topics.all()) {
            names.insert(name);
        }
    }
    DescribeTopicPartitionsResponse response;
    auto partitions_left = static_cast<std::size_t>(std::clamp(request.partition_limit, 1, 2000));
    const TopicCursor cursor = request.cursor.value_or(TopicCursor{});
    for (auto name = names.lower_bound(cursor.topic); name != names.end(); ++name) {
        const Topic *const topic = broker.topics.find(*name);
        if (topic == nullptr) {
            DescribedTopic &told = response.topics.emplace_back();
            told.name = *name;
            told.error_code = is_topic_name(*name) ? error_code::UNKNOWN_TOPIC_OR_PARTITION
                                                   : error_code::INVALID_TOPIC;
            continue;
        }
        const std::int32_t begin = *name == cursor.topic ? std::max(0, cursor.partition_index) : 0;
        if (!describe(*topic, static_cast<std::size_t>(begin), partitions_left, response)) {
            break;
        }
    }
    return response;
}

} // namespace broker
