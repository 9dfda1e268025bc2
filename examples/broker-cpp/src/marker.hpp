// The record that ends a transaction in a partition.
#pragma once

#include <cstdint>
#include <vector>

#include "wire.hpp"

namespace broker {

/// A control batch, as a transaction coordinator writes it. Its offset is the engine's to give.
std::vector<std::byte> end_transaction_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                                              bool is_commit, std::int64_t now_ms);

} // namespace broker
