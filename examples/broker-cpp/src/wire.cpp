#include "wire.hpp"

#include <limits>

namespace broker {

/// The old form has no more, and the new one means no more.
static constexpr std::size_t STRING_SIZE_MAX = std::numeric_limits<std::int16_t>::max();

Bytes Reader::take(std::size_t size) {
    if (size > rest_.size()) {
        throw Malformed("the request ends too early");
    }
    const Bytes taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
}

std::uint32_t Reader::unsigned_varint() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        const auto byte = integer<std::uint8_t>();
        value |= static_cast<std::uint32_t>(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    throw Malformed("a variable-length integer has more than five bytes");
}

std::optional<std::size_t> Reader::length(bool is_string) {
    if (version.is_flexible) {
        const std::size_t length_plus_one = unsigned_varint();
        return length_plus_one == 0 ? std::nullopt : std::optional(length_plus_one - 1);
    }
    const std::int32_t length = is_string ? integer<std::int16_t>() : integer<std::int32_t>();
    if (length < -1) {
        throw Malformed("a length is negative");
    }
    return length == -1 ? std::nullopt : std::optional<std::size_t>(length);
}

std::optional<std::string_view> Reader::string() {
    const auto size = length(true);
    if (!size) {
        return std::nullopt;
    }
    if (*size > STRING_SIZE_MAX) {
        throw Malformed("a text is too long");
    }
    const Bytes taken = take(*size);
    return std::string_view(reinterpret_cast<const char *>(taken.data()), taken.size());
}

std::optional<Bytes> Reader::bytes() {
    const auto size = length(false);
    return size ? std::optional(take(*size)) : std::nullopt;
}

std::optional<std::size_t> Reader::item_count() {
    const auto count = length(false);
    if (count && *count > std::min(rest_.size(), items_left_)) {
        throw Malformed("an array has too many items");
    }
    items_left_ -= count.value_or(0);
    return count;
}

Uuid Reader::uuid() {
    Uuid uuid;
    std::memcpy(uuid.data(), take(uuid.size()).data(), uuid.size());
    return uuid;
}

void Reader::skip_tagged_fields() {
    if (!version.is_flexible) {
        return;
    }
    for (std::uint32_t left = unsigned_varint(); left > 0; left--) {
        unsigned_varint();
        take(unsigned_varint());
    }
}

void Writer::append(std::span<const std::byte> bytes) {
    memory_ += bytes.size();
    if (memory_ > MEMORY_MAX) {
        throw Malformed("the answer would be too large");
    }
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void Writer::unsigned_varint(std::uint32_t value) {
    while (value >= 0x80) {
        integer(static_cast<std::uint8_t>(value | 0x80));
        value >>= 7;
    }
    integer(static_cast<std::uint8_t>(value));
}

void Writer::string(std::optional<std::string_view> text) {
    if (text) {
        text = text->substr(0, STRING_SIZE_MAX);
    }
    if (version.is_flexible) {
        unsigned_varint(text ? static_cast<std::uint32_t>(text->size()) + 1 : 0);
    } else {
        integer(text ? static_cast<std::int16_t>(text->size()) : std::int16_t{-1});
    }
    if (text) {
        append(std::as_bytes(std::span(*text)));
    }
}

void Writer::item_count(std::optional<std::size_t> count) {
    if (version.is_flexible) {
        unsigned_varint(count ? static_cast<std::uint32_t>(*count) + 1 : 0);
    } else {
        integer(count ? static_cast<std::int32_t>(*count) : -1);
    }
}

void Writer::records(siltstone::Range range) {
    item_count(range.size_bytes());
    if (range.empty()) {
        return;
    }
    file_bytes_ += range.size_bytes();
    done_.push_back(Chunk{std::exchange(bytes_, {}), std::move(range)});
}

std::vector<std::byte> Writer::bytes() && {
    bytes_.erase(bytes_.begin(), bytes_.begin() + 4);
    return std::move(bytes_);
}

std::vector<Chunk> Writer::frame() && {
    done_.push_back(Chunk{std::move(bytes_), {}});
    const auto size = big_endian(static_cast<std::uint32_t>(memory_ - 4 + file_bytes_));
    std::memcpy(done_.front().bytes.data(), size.data(), size.size());
    return std::move(done_);
}

} // namespace broker
