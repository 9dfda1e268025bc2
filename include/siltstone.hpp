// siltstone.hpp - siltstone.h for C++17: owners that close what they hold, and errors as exceptions.
//
// Everything here is inline and calls the C functions; what they do, and from which threads, is in
// siltstone.h. An object of these classes is as thread-safe as what it holds; moving one is not.
#ifndef SILTSTONE_HPP
#define SILTSTONE_HPP

#include <siltstone.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace siltstone {

/// A call that failed.
class Error : public std::runtime_error {
public:
    explicit Error(const silt_error_t &error) : std::runtime_error(error.message), error_(error) {}

    /// SILT_E_
    silt_status_t code() const noexcept { return error_.code; }
    /// The number of the system's error, 0 when no system call failed.
    int os_errno() const noexcept { return error_.os_errno; }
    /// SILT_DETAIL_
    int detail_code() const noexcept { return error_.detail_code; }
    /// All of it.
    const silt_error_t &get() const noexcept { return error_; }

private:
    silt_error_t error_;
};

namespace detail {

inline silt_error_t no_error() noexcept {
    silt_error_t error = SILT_ERROR_INIT;
    return error;
}

/// Throws what a call says.
template <typename Call> void check(Call &&call) {
    silt_error_t error = no_error();
    if (call(&error) != SILT_OK) {
        throw Error(error);
    }
}

/// An array of as many items as a call has: it is asked for their number first.
template <typename Item, typename Call> std::vector<Item> all(Call &&call) {
    std::vector<Item> items;
    for (;;) {
        silt_error_t error = no_error();
        std::uint32_t count = 0;
        const auto capacity = static_cast<std::uint32_t>(items.size());
        const silt_status_t status = call(items.data(), capacity, &count, &error);
        if (status == SILT_OK) {
            items.resize(count);
            return items;
        }
        if (status != SILT_E_SHORT_BUFFER) {
            throw Error(error);
        }
        items.resize(count);
    }
}

} // namespace detail

/// Bytes of a log in an open file; releases its lease at its end.
class Range {
public:
    Range() noexcept : range_{-1, 0, 0, 0, -1, -1, 0, 0, 0} {}
    explicit Range(const silt_range_t &range) noexcept : range_(range) {}
    Range(Range &&other) noexcept : range_(other.range_) { other.range_.lease = 0; }
    Range &operator=(Range &&other) noexcept {
        std::swap(range_, other.range_);
        return *this;
    }
    Range(const Range &) = delete;
    Range &operator=(const Range &) = delete;
    ~Range() { static_cast<void>(silt_leases_release(&range_.lease, 1, nullptr)); }

    /// Whether there is nothing to be seen.
    bool empty() const noexcept { return range_.size_bytes == 0; }
    int fd() const noexcept { return range_.fd; }
    std::uint64_t position() const noexcept { return range_.position; }
    std::uint64_t size_bytes() const noexcept { return range_.size_bytes; }
    std::int64_t base_offset() const noexcept { return range_.base_offset; }
    bool is_intact() const noexcept { return silt_range_is_intact(&range_) != 0; }
    const silt_range_t &get() const noexcept { return range_; }

private:
    silt_range_t range_;
};

/// A partition.
class Log {
public:
    /// Opens or makes one.
    explicit Log(const std::string &dir, const silt_log_options_t *options = nullptr) {
        detail::check([&](silt_error_t *error) {
            return silt_log_open(dir.c_str(), options, &log_, error);
        });
    }
    /// Takes one over.
    explicit Log(silt_log_t *log) noexcept : log_(log) {}
    Log(Log &&other) noexcept : log_(std::exchange(other.log_, nullptr)) {}
    Log &operator=(Log &&other) noexcept {
        std::swap(log_, other.log_);
        return *this;
    }
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;
    ~Log() { silt_log_close(log_); }

    /// Ends it as a clean stop does.
    void stop() {
        detail::check([&](silt_error_t *error) { return silt_log_stop(log_, error); });
    }

    silt_appended_t append_leader(void *records, std::uint64_t size_bytes,
                                  const silt_append_t &append) {
        silt_appended_t out = SILT_APPENDED_INIT;
        detail::check([&](silt_error_t *error) {
            return silt_log_append_leader(log_, records, size_bytes, &append, &out, error);
        });
        return out;
    }

    silt_appended_t append_follower(const void *records, std::uint64_t size_bytes,
                                    std::int32_t leader_epoch, std::int64_t now_ms) {
        silt_appended_t out = SILT_APPENDED_INIT;
        detail::check([&](silt_error_t *error) {
            return silt_log_append_follower(log_, records, size_bytes, leader_epoch, now_ms, &out,
                                            error);
        });
        return out;
    }

    void flush(std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) { return silt_log_flush(log_, now_ms, error); });
    }

    std::int64_t roll(std::int64_t now_ms) {
        std::int64_t base = 0;
        detail::check(
            [&](silt_error_t *error) { return silt_log_roll(log_, now_ms, &base, error); });
        return base;
    }

    void truncate_to(std::int64_t offset, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_log_truncate_to(log_, offset, now_ms, error);
        });
    }

    silt_offsets_t offsets() const {
        silt_offsets_t out = SILT_OFFSETS_INIT;
        detail::check([&](silt_error_t *error) { return silt_log_offsets(log_, &out, error); });
        return out;
    }

    std::int64_t set_high_watermark(std::int64_t high_watermark) {
        std::int64_t set = 0;
        detail::check([&](silt_error_t *error) {
            return silt_log_set_high_watermark(log_, high_watermark, &set, error);
        });
        return set;
    }

    /// Looks up one fetch; many are for silt_locate.
    Range locate(std::int64_t offset, std::uint32_t max_bytes, std::uint32_t up_to) const {
        const silt_fetch_t fetch = {log_, offset, max_bytes, up_to, SILT_FETCH_MIN_ONE, 0, nullptr};
        silt_range_t range;
        silt_status_t status = SILT_OK;
        detail::check([&](silt_error_t *error) {
            return silt_locate(&fetch, 1, &range, &status, error);
        });
        if (status != SILT_OK) {
            silt_error_t error = detail::no_error();
            error.code = status;
            error.offset = offset;
            throw Error(error);
        }
        return Range(range);
    }

    std::vector<silt_segment_t> segments() const {
        return detail::all<silt_segment_t>(
            [&](silt_segment_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) { return silt_log_segments(log_, out, capacity, count, error); });
    }

    std::vector<silt_epoch_t> epochs() const {
        return detail::all<silt_epoch_t>(
            [&](silt_epoch_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) { return silt_log_epochs(log_, out, capacity, count, error); });
    }

    std::vector<silt_aborted_t> aborted(std::int64_t from, std::int64_t to) const {
        return detail::all<silt_aborted_t>(
            [&](silt_aborted_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_log_aborted(log_, from, to, out, capacity, count, error);
            });
    }

    /// The C object, for functions that have no wrapper.
    silt_log_t *get() const noexcept { return log_; }

private:
    silt_log_t *log_ = nullptr;
};

/// An index by itself.
class Index {
public:
    /// Opens or makes one; `kind` is SILT_INDEX_.
    Index(const std::string &path, std::uint32_t kind, std::int64_t base_offset,
          std::uint32_t max_size_bytes, std::uint32_t flags = 0) {
        detail::check([&](silt_error_t *error) {
            return silt_index_open(path.c_str(), kind, base_offset, max_size_bytes, flags, &index_,
                                   error);
        });
    }
    Index(Index &&other) noexcept : index_(std::exchange(other.index_, nullptr)) {}
    Index &operator=(Index &&other) noexcept {
        std::swap(index_, other.index_);
        return *this;
    }
    Index(const Index &) = delete;
    Index &operator=(const Index &) = delete;
    ~Index() { silt_index_close(index_); }

    /// As silt_index_lookup: packed, or a negative status.
    std::int64_t lookup(std::int64_t offset) const noexcept {
        return silt_index_lookup(index_, offset);
    }
    /// As silt_index_upper_bound: packed, or a negative status.
    std::int64_t upper_bound(std::int32_t position, std::int32_t size_bytes) const noexcept {
        return silt_index_upper_bound(index_, position, size_bytes);
    }

    silt_index_entry_t lookup_time(std::int64_t timestamp_ms) const {
        silt_index_entry_t out;
        detail::check([&](silt_error_t *error) {
            return silt_index_lookup_time(index_, timestamp_ms, &out, error);
        });
        return out;
    }

    silt_index_entry_t entry(std::uint32_t slot) const {
        silt_index_entry_t out;
        detail::check(
            [&](silt_error_t *error) { return silt_index_entry(index_, slot, &out, error); });
        return out;
    }

    void append(std::int64_t offset, std::int32_t position) {
        detail::check([&](silt_error_t *error) {
            return silt_index_append(index_, offset, position, error);
        });
    }

    /// Whether it said something new.
    bool append_time(std::int64_t timestamp_ms, std::int64_t offset, bool is_forced = false) {
        std::int32_t appended = 0;
        detail::check([&](silt_error_t *error) {
            return silt_index_append_time(index_, timestamp_ms, offset, is_forced ? 1 : 0,
                                          &appended, error);
        });
        return appended != 0;
    }

    void append_aborted(const std::string &path, const silt_aborted_entry_t &entry) {
        detail::check([&](silt_error_t *error) {
            return silt_index_append_aborted(index_, path.c_str(), &entry, error);
        });
    }

    std::vector<silt_aborted_entry_t> collect_aborted(std::int64_t from,
                                                      std::int64_t upper_bound) const {
        return detail::all<silt_aborted_entry_t>(
            [&](silt_aborted_entry_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_index_collect_aborted(index_, from, upper_bound, out, capacity, count,
                                                  nullptr, error);
            });
    }

    void truncate_to(const std::string &path, std::int64_t offset) {
        detail::check([&](silt_error_t *error) {
            return silt_index_truncate_to(index_, path.c_str(), offset, error);
        });
    }

    /// Whether the length is another one.
    bool resize(const std::string &path, std::uint32_t size_bytes) {
        std::int32_t is_changed = 0;
        detail::check([&](silt_error_t *error) {
            return silt_index_resize(index_, path.c_str(), size_bytes, &is_changed, error);
        });
        return is_changed != 0;
    }

    void trim(const std::string &path) {
        detail::check(
            [&](silt_error_t *error) { return silt_index_trim(index_, path.c_str(), error); });
    }

    void flush(const std::string &path) {
        detail::check(
            [&](silt_error_t *error) { return silt_index_flush(index_, path.c_str(), error); });
    }

    void sanity_check() const {
        detail::check([&](silt_error_t *error) { return silt_index_sanity_check(index_, error); });
    }

    /// Where the counters of an offset or time index are, as long as this object lives.
    const silt_index_counters_t &counters() const {
        const silt_index_counters_t *out = nullptr;
        detail::check(
            [&](silt_error_t *error) { return silt_index_counters(index_, &out, error); });
        return *out;
    }

    /// Lets go of the index while others may be using it: they are told SILT_E_CLOSED.
    void shut() {
        detail::check([&](silt_error_t *error) { return silt_index_shut(index_, error); });
    }

    silt_index_t *get() const noexcept { return index_; }

private:
    silt_index_t *index_ = nullptr;
};

/// The log directories of a broker.
class Engine {
public:
    explicit Engine(const std::vector<std::string> &dirs, const silt_engine_options_t &options) {
        std::vector<const char *> paths;
        for (const std::string &dir : dirs) {
            paths.push_back(dir.c_str());
        }
        detail::check([&](silt_error_t *error) {
            return silt_engine_open(paths.data(), static_cast<std::uint32_t>(paths.size()),
                                    &options, &engine_, error);
        });
    }
    Engine(Engine &&other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
    Engine &operator=(Engine &&other) noexcept {
        std::swap(engine_, other.engine_);
        return *this;
    }
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;
    ~Engine() { silt_engine_close(engine_); }

    /// Ends it as a clean stop does; how many directories are marked as stopped cleanly.
    std::uint32_t stop(std::int64_t broker_epoch = -1, std::uint32_t threads = 1) {
        std::uint32_t clean_dirs = 0;
        detail::check([&](silt_error_t *error) {
            return silt_engine_stop(engine_, broker_epoch, threads, &clean_dirs, error);
        });
        return clean_dirs;
    }

    Log log(const std::string &topic, std::int32_t partition) {
        silt_log_t *log = nullptr;
        detail::check([&](silt_error_t *error) {
            return silt_engine_log(engine_, topic.c_str(), partition, &log, error);
        });
        return Log(log);
    }

    Log create_log(const std::string &topic, std::int32_t partition,
                   const silt_new_log_t &new_log) {
        silt_log_t *log = nullptr;
        detail::check([&](silt_error_t *error) {
            return silt_engine_create_log(engine_, topic.c_str(), partition, &new_log, &log, error);
        });
        return Log(log);
    }

    void delete_log(const std::string &topic, std::int32_t partition, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_delete_log(engine_, topic.c_str(), partition, now_ms, error);
        });
    }

    void set_config(const std::string &topic, const std::vector<silt_config_t> &configs) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_set_config(engine_, topic.c_str(), configs.data(),
                                          static_cast<std::uint32_t>(configs.size()), error);
        });
    }

    std::vector<silt_engine_partition_t> partitions() const {
        return detail::all<silt_engine_partition_t>(
            [&](silt_engine_partition_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_engine_partitions(engine_, out, capacity, count, error);
            });
    }

    /// At most so many pieces of work that are due.
    std::vector<silt_work_t> due(std::int64_t now_ms, std::uint32_t capacity = 256) {
        std::vector<silt_work_t> work(capacity);
        std::uint32_t count = 0;
        detail::check([&](silt_error_t *error) {
            return silt_engine_due(engine_, now_ms, work.data(), capacity, &count, error);
        });
        work.resize(count);
        return work;
    }

    void run(const silt_work_t &work, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_run(engine_, work.id, now_ms, error);
        });
    }

    void drop_work(const silt_work_t &work) {
        detail::check(
            [&](silt_error_t *error) { return silt_engine_drop_work(engine_, work.id, error); });
    }

    void checkpoint() {
        detail::check([&](silt_error_t *error) { return silt_engine_checkpoint(engine_, error); });
    }

    silt_engine_stats_t stats() const {
        silt_engine_stats_t out = SILT_ENGINE_STATS_INIT;
        detail::check([&](silt_error_t *error) { return silt_engine_stats(engine_, &out, error); });
        return out;
    }

    silt_engine_t *get() const noexcept { return engine_; }

private:
    silt_engine_t *engine_ = nullptr;
};

/// A queue of operations whose answers are polled.
class Ring {
public:
    Ring() {
        detail::check([&](silt_error_t *error) { return silt_ring_new(&ring_, error); });
    }
    Ring(Ring &&other) noexcept : ring_(std::exchange(other.ring_, nullptr)) {}
    Ring &operator=(Ring &&other) noexcept {
        std::swap(ring_, other.ring_);
        return *this;
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;
    ~Ring() { silt_ring_close(ring_); }

    int fd() const {
        std::int32_t fd = -1;
        detail::check([&](silt_error_t *error) { return silt_ring_fd(ring_, &fd, error); });
        return fd;
    }

    /// The operations must stay where they are until their answers are there.
    void submit(const silt_op_t *ops, std::uint32_t count) {
        detail::check(
            [&](silt_error_t *error) { return silt_ring_submit(ring_, ops, count, error); });
    }

    /// How many answers there are.
    std::uint32_t poll(silt_done_t *out, std::uint32_t capacity, std::int32_t timeout_ms) {
        std::uint32_t count = 0;
        detail::check([&](silt_error_t *error) {
            return silt_ring_poll(ring_, out, capacity, timeout_ms, &count, error);
        });
        return count;
    }

    silt_ring_t *get() const noexcept { return ring_; }

private:
    silt_ring_t *ring_ = nullptr;
};

} // namespace siltstone

#endif // SILTSTONE_HPP
