#include "errors.hpp"
#include "handlers.hpp"

namespace broker {

/// How many partitions are wanted; nothing when the broker ids of an assignment are not this one's.
static std::optional<std::int64_t> partition_count(const Broker &broker, const NewTopic &asked) {
    if (asked.assignments.empty()) {
        return asked.partition_count == -1 ? broker.options.partitions : asked.partition_count;
    }
    const auto count = static_cast<std::int64_t>(asked.assignments.size());
    std::set<std::int32_t> indexes;
    for (const NewAssignment &assignment : asked.assignments) {
        const bool is_ours = assignment.broker_ids == std::vector<std::int32_t>{NODE_ID};
        const std::int32_t index = assignment.partition_index;
        if (!is_ours || index < 0 || index >= count || !indexes.insert(index).second) {
            return std::nullopt;
        }
    }
    return count;
}

static bool is_printable(std::string_view text) {
    return text.find_first_of(std::string_view("\0\r\n", 3)) == std::string_view::npos;
}

static void refuse(CreatedTopic &told, std::int16_t error_code, std::string message) {
    told.error_code = error_code;
    told.error_message = std::move(message);
}

static void create(Broker &broker, const NewTopic &asked, bool validate_only, CreatedTopic &told) {
    const auto count = partition_count(broker, asked);
    std::vector<Setting> settings;
    for (const NewTopicConfig &config : asked.configs) {
        const std::string_view value = config.value.value_or("");
        if (!is_printable(config.name) || !is_printable(value) ||
            config.name.find('=') != std::string_view::npos) {
            return refuse(told, error_code::INVALID_CONFIG, "a setting has more than one line");
        }
        settings.emplace_back(config.name, value);
        told.configs->push_back({config.name, config.value});
    }
    if (!is_topic_name(asked.name)) {
        refuse(told, error_code::INVALID_TOPIC, "the name of the topic is not allowed");
    } else if (broker.topics.find(asked.name) != nullptr) {
        refuse(told, error_code::TOPIC_ALREADY_EXISTS, "the topic is there");
    } else if (!count) {
        refuse(told, error_code::INVALID_REPLICA_ASSIGNMENT, "there is one broker alone, 1");
    } else if (*count < 1 || static_cast<std::size_t>(*count) > broker.topics.partitions_left()) {
        refuse(told, error_code::INVALID_PARTITIONS, "the broker has no place for so many");
    } else if (asked.replication_factor != -1 && asked.replication_factor != 1) {
        refuse(told, error_code::INVALID_REPLICATION_FACTOR, "there is one broker alone");
    } else {
        told.partition_count = static_cast<std::int32_t>(*count);
        told.replication_factor = 1;
        if (!validate_only) {
            told.topic_id =
                broker.topics.create(std::string(asked.name), told.partition_count, settings).id;
        }
    }
}

Answer<CreateTopicsResponse> create_topics(Broker &broker, CreateTopicsRequest &request, Call &) {
    CreateTopicsResponse response;
    for (const NewTopic &asked : request.topics) {
        CreatedTopic &told = response.topics.emplace_back();
        told.name = asked.name;
        try {
            create(broker, asked, request.validate_only, told);
        } catch (const siltstone::Error &error) {
            const bool is_setting = error.code() == SILT_E_INVALID_ARGUMENT;
            refuse(told, is_setting ? error_code::INVALID_CONFIG : error_code_of(error.get()),
                   error.what());
        } catch (const std::exception &error) {
            refuse(told, error_code::UNKNOWN_SERVER_ERROR, error.what());
        }
    }
    return response;
}

} // namespace broker
