#include "marker.hpp"

namespace broker {

static constexpr std::int8_t MAGIC = 2;
static constexpr std::int16_t IS_TRANSACTIONAL = 0x10;
static constexpr std::int16_t IS_CONTROL = 0x20;
static constexpr std::int16_t ABORT = 0;
static constexpr std::int16_t COMMIT = 1;

/// What its checksum covers.
static std::vector<std::byte> checked_part(std::int64_t producer_id, std::int16_t producer_epoch,
                                           bool is_commit, std::int64_t now_ms) {
    Writer out;
    out.integer<std::int16_t>(IS_TRANSACTIONAL | IS_CONTROL);
    out.integer<std::int32_t>(0); // last offset delta
    out.integer(now_ms);          // base timestamp
    out.integer(now_ms);          // max timestamp
    out.integer(producer_id);
    out.integer(producer_epoch);
    out.integer<std::int32_t>(-1); // base sequence
    out.integer<std::int32_t>(1);  // record count
    // The record. Its lengths are variable-length integers, doubled since they may be negative.
    out.integer<std::int8_t>(2 * 16); // length
    out.integer<std::int8_t>(0);      // attributes
    out.integer<std::int8_t>(0);      // timestamp delta
    out.integer<std::int8_t>(0);      // offset delta
    out.integer<std::int8_t>(2 * 4);  // key length
    out.integer<std::int16_t>(0);     // version of the key
    out.integer(is_commit ? COMMIT : ABORT);
    out.integer<std::int8_t>(2 * 6); // value length
    out.integer<std::int16_t>(0);    // version of the value
    out.integer<std::int32_t>(0);    // epoch of the coordinator: it is always this one
    out.integer<std::int8_t>(0);     // header count
    return std::move(out).bytes();
}

std::vector<std::byte> end_transaction_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                                              bool is_commit, std::int64_t now_ms) {
    const auto part = checked_part(producer_id, producer_epoch, is_commit, now_ms);
    Writer out;
    out.integer<std::int64_t>(0); // base offset
    out.integer(static_cast<std::int32_t>(4 + 1 + 4 + part.size()));
    out.integer<std::int32_t>(-1); // leader epoch
    out.integer(MAGIC);
    out.integer(silt_crc32c(0, part.data(), part.size()));
    out.append(part);
    return std::move(out).bytes();
}

} // namespace broker
