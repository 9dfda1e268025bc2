// The primitive types of Kafka's protocol, in bytes: integers are big-endian, lengths come first.
//
// "Flexible" versions of a message write lengths as variable-length integers, plus one so that 0
// can be null, and end each structure with tagged fields.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <siltstone.hpp>

namespace broker {

using Bytes = std::span<std::byte>;
using Uuid = std::array<std::byte, 16>;

/// A request that does not say what its version says it must. Its connection is closed.
class Malformed : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <std::integral Integer>
std::array<std::byte, sizeof(Integer)> big_endian(Integer value) {
    const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
    std::array<std::byte, sizeof(Integer)> bytes;
    for (std::size_t at = 0; at < bytes.size(); at++) {
        const std::size_t shift = 8 * (bytes.size() - 1 - at);
        bytes[at] = static_cast<std::byte>(std::uint64_t{bits} >> shift);
    }
    return bytes;
}

/// The version of a message, and whether it is a flexible one.
struct Version {
    std::int16_t number = 0;
    bool is_flexible = false;
};

/// Takes a message apart. What it returns are views of the bytes it was given.
class Reader {
public:
    explicit Reader(Bytes bytes, Version version = {}) : version(version), rest_(bytes) {}

    template <std::integral Integer> Integer integer() {
        using Unsigned = std::make_unsigned_t<Integer>;
        Unsigned value = 0;
        for (const std::byte byte : take(sizeof(Integer))) {
            // A shift by 8 is too much for a single byte, whose value is then replaced.
            const std::uint64_t shifted = std::uint64_t{value} << 8;
            value = static_cast<Unsigned>(shifted | std::to_integer<Unsigned>(byte));
        }
        return static_cast<Integer>(value);
    }

    std::uint32_t unsigned_varint();

    /// Characters; nothing for null.
    std::optional<std::string_view> string();

    /// Bytes; nothing for null.
    std::optional<Bytes> bytes();

    /// How many items follow; nothing for null. No more than there can be in the bytes that are
    /// left, and not more than a limit in the whole message.
    std::optional<std::size_t> item_count();

    Uuid uuid();

    /// Tagged fields say what an old broker need not know, so this one leaves them out.
    void skip_tagged_fields();

    Bytes take(std::size_t size);

    Bytes rest() const { return rest_; }

    const Version version;

private:
    std::optional<std::size_t> length(bool is_string);

    Bytes rest_;
    std::size_t items_left_ = 100'000;
};

/// What is to be sent: bytes, and then, maybe, bytes of a log that are sent from its file.
struct Chunk {
    std::vector<std::byte> bytes;
    siltstone::Range file;
};

/// Puts a message together.
class Writer {
public:
    explicit Writer(Version version = {}) : version(version) {}

    template <std::integral Integer> void integer(Integer value) { append(big_endian(value)); }

    void unsigned_varint(std::uint32_t value);
    void string(std::optional<std::string_view> text);
    void item_count(std::optional<std::size_t> count);

    /// The bytes of a log, which are not looked at; an empty range is no records.
    void records(siltstone::Range range);

    void append(std::span<const std::byte> bytes);

    /// What was written, if that has no records.
    std::vector<std::byte> bytes() &&;

    /// All of it, behind its size in four bytes.
    std::vector<Chunk> frame() &&;

    Version version;

private:
    /// More than any answer that is asked for in earnest has beside the bytes of logs.
    static constexpr std::size_t MEMORY_MAX = 64 << 20;

    std::vector<Chunk> done_;
    /// The size of the frame is put in front at the end.
    std::vector<std::byte> bytes_ = std::vector<std::byte>(4);
    std::size_t memory_ = 4;
    std::uint64_t file_bytes_ = 0;
};

} // namespace broker
