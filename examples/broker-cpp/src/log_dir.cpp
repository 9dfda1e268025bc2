#include "log_dir.hpp"

#include <charconv>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>

namespace broker {

static const char *const CLEAN_MARK = ".kafka_cleanshutdown";
static const char *const RECOVERY_POINTS = "recovery-point-offset-checkpoint";
static const char *const LOG_START_OFFSETS = "log-start-offset-checkpoint";
static const char *const HIGH_WATERMARKS = "replication-offset-checkpoint";
static const char *const TOPIC_SETTINGS = "topic-settings";
/// Beside the settings of a topic, whose names Kafka has given: no setting is called like this.
static const char *const PARTITION_COUNT = "partitions";

LogDir::LogDir(const std::filesystem::path &path) : path_(std::filesystem::absolute(path)) {
    std::filesystem::create_directories(path_);
    lock_ = open_file(file(".lock"), O_RDWR | O_CREAT);
    // Java locks files in this way, which flock(2) does not see.
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    checked(fcntl(lock_.get(), F_SETLK, &whole), path_.string() + " belongs to a running broker");
}

std::filesystem::path LogDir::folder_of(const PartitionName &partition) const {
    return path_ / (partition.topic + "-" + std::to_string(partition.index));
}

static std::optional<PartitionName> parse_folder(const std::string &folder) {
    const std::size_t dash = folder.rfind('-');
    if (dash == std::string::npos || dash == 0) {
        return std::nullopt;
    }
    PartitionName name{folder.substr(0, dash), 0};
    const char *const end = folder.data() + folder.size();
    const auto result = std::from_chars(folder.data() + dash + 1, end, name.index);
    const bool is_number = result.ec == std::errc() && result.ptr == end && name.index >= 0;
    return is_number ? std::optional(name) : std::nullopt;
}

std::set<PartitionName> LogDir::partitions() const {
    std::set<PartitionName> names;
    for (const auto &entry : std::filesystem::directory_iterator(path_)) {
        const auto name = parse_folder(entry.path().filename());
        // A number in another form, such as 01, is no partition's.
        if (name && entry.is_directory() && folder_of(*name) == entry.path()) {
            names.insert(*name);
        }
    }
    return names;
}

void LogDir::remove(const PartitionName &partition) {
    std::filesystem::remove_all(folder_of(partition));
}

std::string LogDir::topic_id_of(const PartitionName &partition) const {
    std::istringstream text(read_file(folder_of(partition) / "partition.metadata").value_or(""));
    for (std::string line; std::getline(text, line);) {
        if (line.starts_with("topic_id: ")) {
            return line.substr(10);
        }
    }
    return "";
}

bool LogDir::take_clean_mark() { return remove_file(file(CLEAN_MARK)); }

void LogDir::mark_clean() { replace_file(file(CLEAN_MARK), "{\"version\":0,\"brokerEpoch\":-1}"); }

static Checkpoint read_checkpoint(const std::filesystem::path &path) {
    Checkpoint checkpoint;
    std::istringstream text(read_file(path).value_or("0\n0\n"));
    int version = 0;
    std::size_t count = 0;
    if (!(text >> version >> count) || version != 0) {
        throw std::runtime_error(path.string() + " is no checkpoint");
    }
    PartitionName name;
    std::int64_t offset = 0;
    while (text >> name.topic >> name.index >> offset) {
        checkpoint[name] = offset;
    }
    if (checkpoint.size() != count) {
        throw std::runtime_error(path.string() + " is not whole");
    }
    return checkpoint;
}

static void write_checkpoint(const std::filesystem::path &path, const Checkpoint &checkpoint) {
    std::ostringstream text;
    text << "0\n" << checkpoint.size() << "\n";
    for (const auto &[name, offset] : checkpoint) {
        text << name.topic << " " << name.index << " " << offset << "\n";
    }
    replace_file(path, text.str());
}

Checkpoint LogDir::recovery_points() const { return read_checkpoint(file(RECOVERY_POINTS)); }

Checkpoint LogDir::log_start_offsets() const { return read_checkpoint(file(LOG_START_OFFSETS)); }

void LogDir::save(const Checkpoint &recovery_points, const Checkpoint &log_start_offsets,
                  const Checkpoint &high_watermarks) {
    write_checkpoint(file(RECOVERY_POINTS), recovery_points);
    write_checkpoint(file(LOG_START_OFFSETS), log_start_offsets);
    write_checkpoint(file(HIGH_WATERMARKS), high_watermarks);
}

static std::int32_t parse_count(const std::string &text) {
    std::int32_t count = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), count);
    const bool is_number = result.ec == std::errc() && result.ptr == text.data() + text.size();
    return is_number ? count : -1;
}

Settings LogDir::topic_settings() const {
    Settings settings;
    std::istringstream text(read_file(file(TOPIC_SETTINGS)).value_or(""));
    for (std::string line; std::getline(text, line);) {
        const std::size_t space = line.find(' ');
        const std::size_t equals = line.find('=', space);
        if (space == std::string::npos || equals == std::string::npos) {
            throw std::runtime_error(file(TOPIC_SETTINGS).string() + ": " + line);
        }
        TopicSettings &of_topic = settings[line.substr(0, space)];
        const Setting setting(line.substr(space + 1, equals - space - 1), line.substr(equals + 1));
        if (setting.first != PARTITION_COUNT) {
            of_topic.settings.push_back(setting);
        } else if ((of_topic.partition_count = parse_count(setting.second)) < 1) {
            throw std::runtime_error(file(TOPIC_SETTINGS).string() + ": " + line);
        }
    }
    return settings;
}

void LogDir::save(const Settings &settings) {
    std::string text;
    for (const auto &[topic, of_topic] : settings) {
        if (of_topic.partition_count > 0) {
            text += topic + " " + PARTITION_COUNT + "=" +
                    std::to_string(of_topic.partition_count) + "\n";
        }
        for (const auto &[name, value] : of_topic.settings) {
            text += topic + " " + name + "=" + value + "\n";
        }
    }
    replace_file(file(TOPIC_SETTINGS), text);
}

} // namespace broker
