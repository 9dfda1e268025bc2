// The topics of the broker and the open logs of their partitions.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <unordered_set>

#include "flusher.hpp"
#include "log_dir.hpp"
#include "wire.hpp"

namespace broker {

/// There is one replica, which leads for ever.
inline constexpr std::int32_t LEADER_EPOCH = 0;

using ConnectionId = std::uint64_t;

struct Partition {
    PartitionName name;
    siltstone::Log log;
    /// Connections whose fetch waits for records of this partition.
    std::set<ConnectionId> waiting;
};

struct Topic {
    std::string name;
    Uuid id{};
    std::vector<std::unique_ptr<Partition>> partitions;

    /// Null for one that is not there.
    Partition *find(std::int32_t index) const;
};

class Topics {
public:
    /// Opens what is in the directory.
    Topics(LogDir &dir, bool flushes_before_ack, std::int64_t producer_expiration_ms);

    const std::map<std::string, Topic, std::less<>> &all() const { return topics_; }
    const Topic *find(std::string_view name) const;
    const Topic *find(const Uuid &id) const;
    /// By its name, or by its id where a request has no names.
    const Topic *find(std::string_view name, const Uuid &id) const;
    Partition *find(std::string_view topic, std::int32_t index) const;

    /// How many partitions a new topic may have.
    std::size_t partitions_left() const;

    /// Makes a topic of a valid name that is not there. Throws siltstone::Error for settings that
    /// make no sense, and whatever has failed; then nothing is left of it.
    const Topic &create(const std::string &name, std::int32_t partition_count,
                        const std::vector<Setting> &settings);

    /// Appends a batch; its offsets are written into it, and are -1 when there is no whole batch.
    /// Throws siltstone::Error when the engine refuses it, and then nothing has happened.
    silt_appended_t append(Partition &partition, Bytes records, const silt_append_t &append);

    /// The connections whose fetches may have found something since the last call.
    std::unordered_set<ConnectionId> take_woken() { return std::exchange(woken_, {}); }

    /// Makes durable what was appended, if that is asked for before it is acknowledged.
    void flush_before_ack();

    /// Removes old segments, forgets producers that have been silent for long, and saves how far
    /// each log is durable: once in a while.
    void keep_house();

    /// A clean stop.
    void stop();

private:
    /// How logs are opened: what the last stop has left of them.
    struct Start {
        Checkpoint recovery_points = {};
        Checkpoint log_start_offsets = {};
        bool is_clean = true;
    };

    std::int32_t partition_count_of(const std::string &topic,
                                    const std::set<PartitionName> &folders) const;
    void load(const std::string &name, std::int32_t partition_count, const Start &start);
    void open(Topic &topic, std::int32_t index, const Start &start);
    void undo_create(Topic &topic, std::int32_t partition_count);
    void save_checkpoints();

    LogDir &dir_;
    const bool flushes_before_ack_;
    const std::int64_t producer_expiration_ms_;
    Settings settings_;
    std::map<std::string, Topic, std::less<>> topics_;
    std::map<Uuid, Topic *> topics_by_id_;
    std::size_t partition_count_ = 0;
    std::unordered_set<ConnectionId> woken_;
    std::set<Partition *> unflushed_;
    /// Ends first: it looks at the logs.
    std::unique_ptr<Flusher> flusher_ = std::make_unique<Flusher>();
};

/// Whether Kafka would take it.
bool is_topic_name(std::string_view name);

} // namespace broker
