// The socket that clients connect to.
#pragma once

#include "files.hpp"
#include "options.hpp"

namespace broker {

Descriptor listen_at(const Address &address);

/// Where it really listens: port 0 becomes the one that it got.
Address address_of(int listener, const std::string &host);

} // namespace broker
