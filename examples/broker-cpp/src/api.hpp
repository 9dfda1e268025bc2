// Which requests there are: the table of their kinds, and how one is answered.
#pragma once

#include "broker.hpp"

namespace broker {

/// Answers a request, a frame without its size. No chunks: nothing is to be sent, for now if the
/// call wants to wait. Throws Malformed for what cannot be answered; the connection is closed then.
std::vector<Chunk> answer(Broker &broker, Bytes frame, Call &call);

} // namespace broker
