#include "uuid.hpp"

#include <sys/random.h>

#include "files.hpp"

namespace broker {

Uuid random_uuid() {
    Uuid uuid;
    checked(static_cast<int>(getrandom(uuid.data(), uuid.size(), 0)), "getrandom");
    // A random id by RFC 9562. Kafka does without those whose text begins with a dash, since
    // command lines take them for options; a first bit of 0 is enough for that.
    uuid[0] &= std::byte{0x7f};
    uuid[6] = (uuid[6] & std::byte{0x0f}) | std::byte{0x40};
    uuid[8] = (uuid[8] & std::byte{0x3f}) | std::byte{0x80};
    return uuid;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
    static constexpr std::string_view DIGITS =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    if (text.size() != 22) {
        return std::nullopt;
    }
    Uuid uuid;
    std::uint32_t bits = 0;
    unsigned bit_count = 0;
    std::size_t at = 0;
    for (const char c : text) {
        const std::size_t digit = DIGITS.find(c);
        if (digit == std::string_view::npos) {
            return std::nullopt;
        }
        bits = (bits << 6) | static_cast<std::uint32_t>(digit);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            uuid[at++] = static_cast<std::byte>(bits >> bit_count);
        }
    }
    return uuid;
}

} // namespace broker
