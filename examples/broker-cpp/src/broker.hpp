// What the handlers of requests work with.
#pragma once

#include <chrono>

#include "options.hpp"
#include "transactions.hpp"

namespace broker {

/// The number of this broker in answers.
inline constexpr std::int32_t NODE_ID = 1;
inline constexpr std::string_view CLUSTER_ID = "siltstone-broker-cpp";

/// A fetch that finds too little waits for more in these partitions.
struct Wait {
    std::chrono::milliseconds time;
    std::set<Partition *> partitions;
};

/// A request that is being handled, beside what it says.
struct Call {
    /// Of the request.
    std::int16_t version = 0;
    /// A fetch that has waited long enough takes what there is.
    bool may_wait = true;
    /// Set by a handler that wants to be called again later, instead of its answer.
    std::optional<Wait> wait;
};

struct Broker {
    explicit Broker(const Options &options)
        : options(options), dir(options.log_dir),
          topics(dir, options.flushes_before_ack, options.producer_expiration_ms),
          transactions(topics, dir, options.flushes_before_ack) {}

    const Options &options;
    /// Where clients find it; known when it listens.
    Address address;
    LogDir dir;
    Topics topics;
    Transactions transactions;
};

} // namespace broker
