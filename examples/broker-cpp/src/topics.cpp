#include "topics.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "uuid.hpp"

namespace broker {

static constexpr std::size_t PARTITIONS_MAX = 10'000;

Topics::Topics(LogDir &dir, bool flushes_before_ack, std::int64_t producer_expiration_ms)
    : dir_(dir), flushes_before_ack_(flushes_before_ack),
      producer_expiration_ms_(producer_expiration_ms), settings_(dir.topic_settings()) {
    const Start start{dir_.recovery_points(), dir_.log_start_offsets(), dir_.take_clean_mark()};
    const std::set<PartitionName> folders = dir_.partitions();
    for (const PartitionName &folder : folders) {
        if (topics_.contains(folder.topic)) {
            continue;
        }
        const std::int32_t count = partition_count_of(folder.topic, folders);
        if (count > 0) {
            load(folder.topic, count, start);
        }
    }
    for (const PartitionName &folder : folders) {
        if (find(folder.topic, folder.index) == nullptr) {
            std::fprintf(stderr, "%s is left alone: it belongs to no topic\n",
                         dir_.folder_of(folder).c_str());
        }
    }
    // A topic that has no folder at all was never made.
    std::erase_if(settings_, [&](const auto &topic) { return !topics_.contains(topic.first); });
}

/// What was written down when the topic was made, or else as many folders as follow each other: a
/// single one with a large number makes no large topic.
std::int32_t Topics::partition_count_of(const std::string &topic,
                                        const std::set<PartitionName> &folders) const {
    if (!is_topic_name(topic)) {
        return 0;
    }
    const auto written = settings_.find(topic);
    if (written != settings_.end() && written->second.partition_count > 0) {
        return written->second.partition_count;
    }
    std::int32_t count = 0;
    while (folders.contains({topic, count})) {
        count++;
    }
    return count;
}

/// Where a kill came between the folders of a new topic, the missing ones are made now.
void Topics::load(const std::string &name, std::int32_t partition_count, const Start &start) {
    if (static_cast<std::size_t>(partition_count) > partitions_left()) {
        throw std::runtime_error(name + " has more partitions than the broker has place for");
    }
    Topic &topic = topics_[name];
    topic.name = name;
    std::optional<Uuid> id;
    for (std::int32_t index = 0; index < partition_count && !id; index++) {
        id = parse_uuid(dir_.topic_id_of({name, index}));
    }
    topic.id = id ? *id : random_uuid();
    topics_by_id_[topic.id] = &topic;
    for (std::int32_t index = 0; index < partition_count; index++) {
        open(topic, index, start);
    }
}

static std::int64_t offset_in(const Checkpoint &checkpoint, const PartitionName &name) {
    const auto line = checkpoint.find(name);
    return line == checkpoint.end() ? 0 : line->second;
}

void Topics::open(Topic &topic, std::int32_t index, const Start &start) {
    const PartitionName name{topic.name, index};
    std::vector<silt_config_t> configs;
    for (const auto &[setting, value] : settings_[topic.name].settings) {
        configs.push_back({setting.c_str(), value.c_str()});
    }
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.flags = start.is_clean ? 0 : SILT_LOG_UNCLEAN;
    options.configs = configs.data();
    options.config_count = static_cast<std::uint32_t>(configs.size());
    options.recovery_point = offset_in(start.recovery_points, name);
    options.log_start_offset = offset_in(start.log_start_offsets, name);
    options.now_ms = now_ms();
    options.producer_expiration_ms = producer_expiration_ms_;
    std::memcpy(options.topic_id, topic.id.data(), topic.id.size());
    siltstone::Log log(dir_.folder_of(name), &options);
    // There are no followers to wait for.
    log.set_high_watermark(log.offsets().log_end_offset);
    topic.partitions.push_back(std::make_unique<Partition>(Partition{name, std::move(log), {}}));
    partition_count_++;
}

const Topic *Topics::find(std::string_view name) const {
    const auto topic = topics_.find(name);
    return topic == topics_.end() ? nullptr : &topic->second;
}

const Topic *Topics::find(const Uuid &id) const {
    const auto topic = topics_by_id_.find(id);
    return topic == topics_by_id_.end() ? nullptr : topic->second;
}

const Topic *Topics::find(std::string_view name, const Uuid &id) const {
    return name.empty() ? find(id) : find(name);
}

Partition *Topic::find(std::int32_t index) const {
    const auto at = static_cast<std::size_t>(index);
    return index >= 0 && at < partitions.size() ? partitions[at].get() : nullptr;
}

Partition *Topics::find(std::string_view name, std::int32_t index) const {
    const Topic *const topic = find(name);
    return topic == nullptr ? nullptr : topic->find(index);
}

std::size_t Topics::partitions_left() const {
    return PARTITIONS_MAX - std::min(PARTITIONS_MAX, partition_count_);
}

/// The folders go first: settings without one are no topic to the next start.
void Topics::undo_create(Topic &topic, std::int32_t partition_count) {
    partition_count_ -= topic.partitions.size();
    topic.partitions.clear();
    for (std::int32_t index = 0; index < partition_count; index++) {
        dir_.remove({topic.name, index});
    }
    settings_.erase(topic.name);
    dir_.save(settings_);
}

const Topic &Topics::create(const std::string &name, std::int32_t partition_count,
                            const std::vector<Setting> &settings) {
    Topic topic;
    topic.name = name;
    topic.id = random_uuid();
    for (std::int32_t index = 0; index < partition_count; index++) {
        if (std::filesystem::exists(dir_.folder_of({name, index}))) {
            throw std::runtime_error("there is a folder already that belongs to no topic");
        }
    }
    try {
        // Saved before there is a folder, so that no folder is ever opened without them.
        settings_[name] = {partition_count, settings};
        dir_.save(settings_);
        for (std::int32_t index = 0; index < partition_count; index++) {
            open(topic, index, {});
        }
    } catch (...) {
        undo_create(topic, partition_count);
        throw;
    }
    Topic &created = topics_[name] = std::move(topic);
    topics_by_id_[created.id] = &created;
    return created;
}

silt_appended_t Topics::append(Partition &partition, Bytes records, const silt_append_t &append) {
    const silt_appended_t appended =
        partition.log.append_leader(records.data(), records.size(), append);
    if ((appended.flags & SILT_APPENDED_DUPLICATE) != 0 || appended.last_offset < 0) {
        return appended;
    }
    partition.log.set_high_watermark(appended.last_offset + 1);
    woken_.insert(partition.waiting.begin(), partition.waiting.end());
    if (flushes_before_ack_) {
        unflushed_.insert(&partition);
    } else if ((appended.flags & (SILT_APPENDED_ROLLED | SILT_APPENDED_FLUSH_DUE)) != 0) {
        flusher_->flush_later(partition.log);
    }
    return appended;
}

void Topics::flush_before_ack() {
    for (Partition *const partition : std::exchange(unflushed_, {})) {
        flush_or_exit(partition->log);
    }
}

void Topics::keep_house() {
    const std::int64_t now = now_ms();
    for (const auto &[name, topic] : topics_) {
        for (const auto &partition : topic.partitions) {
            silt_error_t error = SILT_ERROR_INIT;
            silt_log_t *const log = partition->log.get();
            if (silt_log_retain(log, now, nullptr, &error) != SILT_OK ||
                silt_log_delete_due_files(log, now, nullptr, &error) != SILT_OK ||
                silt_log_expire_producers(log, now, &error) != SILT_OK) {
                std::fprintf(stderr, "what is old stays: %s\n", error.message);
            }
        }
    }
    save_checkpoints();
}

void Topics::save_checkpoints() {
    Checkpoint recovery_points;
    Checkpoint log_start_offsets;
    Checkpoint high_watermarks;
    for (const auto &[name, topic] : topics_) {
        for (const auto &partition : topic.partitions) {
            const silt_offsets_t offsets = partition->log.offsets();
            recovery_points[partition->name] = offsets.recovery_point;
            log_start_offsets[partition->name] = offsets.log_start_offset;
            high_watermarks[partition->name] = offsets.high_watermark;
        }
    }
    dir_.save(recovery_points, log_start_offsets, high_watermarks);
}

void Topics::stop() {
    flusher_.reset();
    for (const auto &[name, topic] : topics_) {
        for (const auto &partition : topic.partitions) {
            partition->log.flush(now_ms());
        }
    }
    save_checkpoints();
    for (const auto &[name, topic] : topics_) {
        for (const auto &partition : topic.partitions) {
            partition->log.stop();
        }
    }
    dir_.mark_clean();
}

bool is_topic_name(std::string_view name) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    };
    return !name.empty() && name.size() <= 249 && name != "." && name != ".." &&
           std::all_of(name.begin(), name.end(), is_allowed);
}

} // namespace broker
