// Makes logs durable on a thread of its own, so that no client waits for the disk.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <siltstone.hpp>

namespace broker {

/// Now, in milliseconds since 1970.
std::int64_t now_ms();

/// Flushes a log. A failure ends the process: nobody knows what the disk has then, and the next
/// start looks at what it has.
void flush_or_exit(siltstone::Log &log);

class Flusher {
public:
    Flusher() : thread_([this](std::stop_token stop) { run(stop); }) {}

    /// The log must live as long as the flusher.
    void flush_later(siltstone::Log &log);

private:
    void run(std::stop_token stop);

    std::mutex mutex_;
    std::condition_variable_any has_work_;
    /// Each once: a flush makes durable all that was appended before it.
    std::set<siltstone::Log *> waiting_;
    std::jthread thread_;
};

} // namespace broker
