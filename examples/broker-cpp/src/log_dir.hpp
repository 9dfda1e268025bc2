// The files beside the partitions of a log directory. Names and forms are Kafka's, so that a real
// broker and the siltstone command line understand the directory; topic-settings is our own.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "files.hpp"

namespace broker {

struct PartitionName {
    std::string topic;
    std::int32_t index = 0;
    auto operator<=>(const PartitionName &) const = default;
};

/// A setting of a topic, such as {"segment.bytes", "1048576"}.
using Setting = std::pair<std::string, std::string>;

/// What is known of a topic before it has a folder.
struct TopicSettings {
    /// 0: not known.
    std::int32_t partition_count = 0;
    std::vector<Setting> settings;
};

using Settings = std::map<std::string, TopicSettings>;

/// An offset for each partition.
using Checkpoint = std::map<PartitionName, std::int64_t>;

class LogDir {
public:
    /// Makes the directory when it is missing. Throws when another broker has it.
    explicit LogDir(const std::filesystem::path &path);

    /// The folder of a partition: "orders-0".
    std::filesystem::path folder_of(const PartitionName &partition) const;

    /// The partitions that have a folder.
    std::set<PartitionName> partitions() const;

    /// Removes the folder of a partition with all that is in it.
    void remove(const PartitionName &partition);

    /// The id in the partition.metadata of a partition, as 22 characters; empty for none.
    std::string topic_id_of(const PartitionName &partition) const;

    /// Whether the last stop was clean. From then on it was not, until mark_clean.
    bool take_clean_mark();
    void mark_clean();

    /// Up to where each log is durable.
    Checkpoint recovery_points() const;
    Checkpoint log_start_offsets() const;
    void save(const Checkpoint &recovery_points, const Checkpoint &log_start_offsets,
              const Checkpoint &high_watermarks);

    Settings topic_settings() const;
    void save(const Settings &settings);

    std::filesystem::path file(const char *name) const { return path_ / name; }

private:
    std::filesystem::path path_;
    Descriptor lock_;
};

} // namespace broker
