// What the command line says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace broker {

struct Address {
    std::string host;
    std::uint16_t port = 0;
};

struct Options {
    std::filesystem::path log_dir;
    /// Port 0 takes a free one.
    Address listen = {"127.0.0.1", 9092};
    /// Where clients find the broker, if that is not where it listens.
    std::optional<Address> advertise;
    /// Of topics that are made without a number, and of those that a client asks for that are not
    /// there.
    std::int32_t partitions = 1;
    bool creates_topics_on_demand = true;
    /// Whether what is acknowledged survives a power cut, and not the death of the process alone.
    bool flushes_before_ack = false;
    /// Producers that have been silent for longer are forgotten.
    std::int64_t producer_expiration_ms = 86'400'000;
    /// How often what is old is looked for.
    std::int64_t housekeeping_ms = 30'000;
    std::size_t connections_max = 1000;
    std::size_t request_bytes_max = 100 << 20;
};

/// Nothing, when the command line asks for help or makes no sense; what is wrong was printed.
std::optional<Options> parse_options(int argc, char **argv);

} // namespace broker
