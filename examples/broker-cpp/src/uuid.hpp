// Ids of topics, and their text form: base64 for URLs, without padding.
#pragma once

#include <optional>
#include <string_view>

#include "wire.hpp"

namespace broker {

Uuid random_uuid();

/// Nothing for what is no id.
std::optional<Uuid> parse_uuid(std::string_view text);

} // namespace broker
