#include "flusher.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace broker {

std::int64_t now_ms() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
}

void flush_or_exit(siltstone::Log &log) {
    try {
        log.flush(now_ms());
    } catch (const siltstone::Error &error) {
        std::fprintf(stderr, "a flush failed: %s\n", error.what());
        std::_Exit(1);
    }
}

void Flusher::flush_later(siltstone::Log &log) {
    const std::lock_guard guard(mutex_);
    waiting_.insert(&log);
    has_work_.notify_one();
}

void Flusher::run(std::stop_token stop) {
    std::unique_lock guard(mutex_);
    // A stop that finds logs waiting leaves them: stopping a log flushes it.
    while (has_work_.wait(guard, stop, [this] { return !waiting_.empty(); })) {
        const auto logs = std::exchange(waiting_, {});
        guard.unlock();
        for (siltstone::Log *const log : logs) {
            flush_or_exit(*log);
        }
        guard.lock();
    }
}

} // namespace broker
