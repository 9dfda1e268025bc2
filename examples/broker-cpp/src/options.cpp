#include "options.hpp"

#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>

namespace broker {

static constexpr std::int64_t HOUSEKEEPING_MS_MAX = 86'400'000;

static const char *const USAGE =
    "usage: siltstone-broker --log-dir DIR [OPTION...]\n"
    "\n"
    "  --log-dir DIR             where the partitions are; it is made when it is missing\n"
    "  --listen HOST:PORT        127.0.0.1:9092; port 0 takes a free one\n"
    "  --advertise HOST:PORT     where clients find this broker, if not where it listens\n"
    "  --partitions N            of topics that are made without a number (1)\n"
    "  --no-auto-create          do not make topics that clients ask for\n"
    "  --flush-before-ack        acknowledge what is durable on the disk, not in its cache\n"
    "  --producer-expiration-ms N\n"
    "                            forget producers that are silent for longer (86400000)\n"
    "  --housekeeping-ms N       look for old segments and producers this often (30000)\n"
    "  --connections-max N       close new connections beyond (1000)\n"
    "  --request-bytes-max N     close connections that send larger requests (104857600)\n";

template <typename Number> static bool parse_number(std::string_view text, Number &number) {
    const char *const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, number);
    return result.ec == std::errc() && result.ptr == end;
}

static bool parse_address(std::string_view text, Address &address) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
        return false;
    }
    address.host = text.substr(0, colon);
    return parse_number(text.substr(colon + 1), address.port);
}

std::optional<Options> parse_options(int argc, char **argv) {
    Options options;
    const std::map<std::string_view, std::function<bool(std::string_view)>> with_value = {
        {"--log-dir", [&](auto text) { return !(options.log_dir = text).empty(); }},
        {"--listen", [&](auto text) { return parse_address(text, options.listen); }},
        {"--advertise",
         [&](auto text) { return parse_address(text, options.advertise.emplace()); }},
        {"--partitions",
         [&](auto text) {
             return parse_number(text, options.partitions) && options.partitions > 0;
         }},
        {"--producer-expiration-ms",
         [&](auto text) {
             return parse_number(text, options.producer_expiration_ms) &&
                    options.producer_expiration_ms > 0;
         }},
        {"--housekeeping-ms",
         [&](auto text) {
             return parse_number(text, options.housekeeping_ms) && options.housekeeping_ms > 0 &&
                    options.housekeeping_ms <= HOUSEKEEPING_MS_MAX;
         }},
        {"--connections-max",
         [&](auto text) { return parse_number(text, options.connections_max); }},
        {"--request-bytes-max",
         [&](auto text) { return parse_number(text, options.request_bytes_max); }},
    };
    const std::map<std::string_view, std::function<void()>> switches = {
        {"--no-auto-create", [&] { options.creates_topics_on_demand = false; }},
        {"--flush-before-ack", [&] { options.flushes_before_ack = true; }},
    };
    for (int at = 1; at < argc; at++) {
        const std::string_view name = argv[at];
        const auto option = with_value.find(name);
        const auto flag = switches.find(name);
        if (flag != switches.end()) {
            flag->second();
        } else if (option == with_value.end() || at + 1 == argc || !option->second(argv[++at])) {
            std::fprintf(stderr, "%s is not understood\n\n%s", argv[at], USAGE);
            return std::nullopt;
        }
    }
    if (options.log_dir.empty()) {
        std::fputs(USAGE, stderr);
        return std::nullopt;
    }
    return options;
}

} // namespace broker
