// siltstone.hpp - siltstone.h for C++17: owners that close what they hold, and errors as exceptions.
//
// Everything here is inline and calls the C functions; what they do, and from which threads, is in
// siltstone.h. An object of these classes is as thread-safe as what it holds; moving one is not.
#ifndef SILTSTONE_HPP
#define SILTSTONE_HPP

#include <siltstone.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
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

/// A text as C has it; one with a NUL within would be cut there.
inline const char *text(const std::string &from) {
    if (from.find('\0') != std::string::npos) {
        silt_error_t error = no_error();
        error.code = SILT_E_INVALID_ARGUMENT;
        std::strncpy(error.message, "a text has a NUL within", sizeof error.message - 1);
        throw Error(error);
    }
    return from.c_str();
}

/// A progress function that may throw: the call ends then, and throws the same.
class Progress {
public:
    Progress(silt_progress_fn function, void *ctx) noexcept : function_(function), ctx_(ctx) {}

    /// What the library is given, with this object as its context.
    silt_progress_fn function() const noexcept { return function_ == nullptr ? nullptr : run; }

    template <typename Call> void check(Call &&call) {
        silt_error_t error = no_error();
        const silt_status_t status = call(&error);
        if (thrown_) {
            std::rethrow_exception(thrown_);
        }
        if (status != SILT_OK) {
            throw Error(error);
        }
    }

private:
    static std::int32_t run(void *it, std::uint64_t done, std::uint64_t total) noexcept {
        Progress &progress = *static_cast<Progress *>(it);
        try {
            return progress.function_(progress.ctx_, done, total);
        } catch (...) {
            progress.thrown_ = std::current_exception();
            return 1;
        }
    }

    silt_progress_fn function_;
    void *ctx_;
    std::exception_ptr thrown_;
};

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

/// An object of the C library, closed at its end.
template <typename Object, void (*Close)(Object *)> class Owner {
public:
    Owner(Owner &&other) noexcept : it_(std::exchange(other.it_, nullptr)) {}
    /// What was held until now is closed at once.
    Owner &operator=(Owner &&other) noexcept {
        Owner taken(std::move(other));
        std::swap(it_, taken.it_);
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() { Close(it_); }

    /// The C object, for functions that have no wrapper.
    Object *get() const noexcept { return it_; }

protected:
    explicit Owner(Object *it = nullptr) noexcept : it_(it) {}

    Object *it_;
};

} // namespace detail

/// Bytes of a log in an open file; releases its lease at its end. What was moved from is empty.
class Range {
public:
    Range() noexcept : range_(nothing()) {}
    explicit Range(const silt_range_t &range) noexcept : range_(range) {}
    Range(Range &&other) noexcept : range_(std::exchange(other.range_, nothing())) {}
    /// The lease that was held until now is released at once.
    Range &operator=(Range &&other) noexcept {
        Range taken(std::move(other));
        std::swap(range_, taken.range_);
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
    static silt_range_t nothing() noexcept { return {-1, 0, 0, 0, -1, -1, 0, 0, 0}; }

    silt_range_t range_;
};

/// A partition.
class Log : public detail::Owner<silt_log_t, silt_log_close> {
public:
    /// Opens or makes one.
    explicit Log(const std::string &dir, const silt_log_options_t *options = nullptr) {
        detail::check([&](silt_error_t *error) {
            return silt_log_open(detail::text(dir), options, &it_, error);
        });
    }
    /// Takes one over.
    explicit Log(silt_log_t *log) noexcept : Owner(log) {}

    /// Ends it as a clean stop does.
    void stop() {
        detail::check([&](silt_error_t *error) { return silt_log_stop(it_, error); });
    }

    silt_appended_t append_leader(void *records, std::uint64_t size_bytes,
                                  const silt_append_t &append) {
        silt_appended_t out = SILT_APPENDED_INIT;
        detail::check([&](silt_error_t *error) {
            return silt_log_append_leader(it_, records, size_bytes, &append, &out, error);
        });
        return out;
    }

    /// The number for the append of a transaction's first batch; 0 when it is open already.
    std::uint64_t start_verification(std::int64_t producer_id, std::int32_t base_sequence,
                                     std::int32_t producer_epoch, std::uint32_t flags,
                                     std::int64_t now_ms) {
        std::uint64_t verification = 0;
        detail::check([&](silt_error_t *error) {
            return silt_log_start_verification(it_, producer_id, base_sequence, producer_epoch,
                                               flags, now_ms, &verification, error);
        });
        return verification;
    }

    silt_appended_t append_follower(const void *records, std::uint64_t size_bytes,
                                    std::int32_t leader_epoch, std::int64_t now_ms) {
        silt_appended_t out = SILT_APPENDED_INIT;
        detail::check([&](silt_error_t *error) {
            return silt_log_append_follower(it_, records, size_bytes, leader_epoch, now_ms, &out,
                                            error);
        });
        return out;
    }

    void flush(std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) { return silt_log_flush(it_, now_ms, error); });
    }

    std::int64_t roll(std::int64_t now_ms) {
        std::int64_t base = 0;
        detail::check(
            [&](silt_error_t *error) { return silt_log_roll(it_, now_ms, &base, error); });
        return base;
    }

    void truncate_to(std::int64_t offset, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_log_truncate_to(it_, offset, now_ms, error);
        });
    }

    silt_offsets_t offsets() const {
        silt_offsets_t out = SILT_OFFSETS_INIT;
        detail::check([&](silt_error_t *error) { return silt_log_offsets(it_, &out, error); });
        return out;
    }

    std::int64_t set_high_watermark(std::int64_t high_watermark) {
        std::int64_t set = 0;
        detail::check([&](silt_error_t *error) {
            return silt_log_set_high_watermark(it_, high_watermark, &set, error);
        });
        return set;
    }

    /// The id of the topic; zeros where none is known.
    std::array<std::uint8_t, 16> topic_id() const {
        std::array<std::uint8_t, 16> id{};
        detail::check(
            [&](silt_error_t *error) { return silt_log_topic_id(it_, id.data(), error); });
        return id;
    }

    /// Takes note that all up to `offset`, inclusive, is in remote storage.
    void set_highest_remote(std::int64_t offset) {
        detail::check([&](silt_error_t *error) {
            return silt_log_set_highest_remote(it_, offset, error);
        });
    }

    /// Forgets producers that have been silent for too long.
    void expire_producers(std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_log_expire_producers(it_, now_ms, error);
        });
    }

    /// Removes everything and goes on at `offset`; the log start is that too, unless it is given.
    void truncate_fully(std::int64_t offset, std::int64_t now_ms,
                        std::int64_t log_start_offset = -1) {
        detail::check([&](silt_error_t *error) {
            return silt_log_truncate_fully(it_, offset, log_start_offset, now_ms, error);
        });
    }

    void advance_start(std::int64_t offset) {
        detail::check(
            [&](silt_error_t *error) { return silt_log_advance_start(it_, offset, error); });
    }

    /// How many segments the topic's retention does not keep; they are gone from the log.
    std::uint64_t retain(std::int64_t now_ms) {
        std::uint64_t removed = 0;
        detail::check(
            [&](silt_error_t *error) { return silt_log_retain(it_, now_ms, &removed, error); });
        return removed;
    }

    /// How many files were due, and are unlinked.
    std::uint64_t delete_due_files(std::int64_t now_ms) {
        std::uint64_t removed = 0;
        detail::check([&](silt_error_t *error) {
            return silt_log_delete_due_files(it_, now_ms, &removed, error);
        });
        return removed;
    }

    void assign_epoch(std::int32_t epoch, std::int64_t start_offset) {
        detail::check([&](silt_error_t *error) {
            return silt_log_assign_epoch(it_, epoch, start_offset, error);
        });
    }

    /// The largest epoch up to this one, and where it ends; -1 and -1 where there is none.
    std::pair<std::int32_t, std::int64_t> epoch_end(std::int32_t epoch) const {
        std::pair<std::int32_t, std::int64_t> found(-1, -1);
        detail::check([&](silt_error_t *error) {
            return silt_log_epoch_end(it_, epoch, &found.first, &found.second, error);
        });
        return found;
    }

    /// The first record as late as this or later; an Error of SILT_E_NOT_FOUND where there is none.
    silt_time_offset_t offset_for_time(std::int64_t timestamp_ms) const {
        silt_time_offset_t out;
        detail::check([&](silt_error_t *error) {
            return silt_log_offset_for_time(it_, timestamp_ms, &out, error);
        });
        return out;
    }

    /// Copies the bytes that a fetch gives; the range has no file and no lease.
    Range read(std::int64_t offset, std::uint32_t up_to, void *bytes,
               std::uint32_t capacity) const {
        const silt_fetch_t fetch = {it_, offset, capacity, up_to, SILT_FETCH_MIN_ONE, 0, nullptr};
        silt_range_t range;
        detail::check([&](silt_error_t *error) {
            return silt_log_read(&fetch, bytes, capacity, &range, error);
        });
        return Range(range);
    }

    /// Looks up one fetch; many are for silt_locate.
    Range locate(std::int64_t offset, std::uint32_t max_bytes, std::uint32_t up_to) const {
        const silt_fetch_t fetch = {it_, offset, max_bytes, up_to, SILT_FETCH_MIN_ONE, 0, nullptr};
        silt_range_t range;
        silt_status_t status = SILT_OK;
        detail::check([&](silt_error_t *error) {
            return silt_locate(&fetch, 1, &range, &status, error);
        });
        if (status != SILT_OK) {
            silt_error_t error = detail::no_error();
            error.code = status;
            error.offset = offset;
            // An item of many has no message.
            std::strncpy(error.message, silt_status_name(status), sizeof error.message - 1);
            throw Error(error);
        }
        return Range(range);
    }

    std::vector<silt_segment_t> segments() const {
        return detail::all<silt_segment_t>(
            [&](silt_segment_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) { return silt_log_segments(it_, out, capacity, count, error); });
    }

    std::vector<silt_epoch_t> epochs() const {
        return detail::all<silt_epoch_t>(
            [&](silt_epoch_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) { return silt_log_epochs(it_, out, capacity, count, error); });
    }

    std::vector<silt_aborted_t> aborted(std::int64_t from, std::int64_t to) const {
        return detail::all<silt_aborted_t>(
            [&](silt_aborted_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_log_aborted(it_, from, to, out, capacity, count, error);
            });
    }

    std::vector<silt_producer_t> producers() const {
        return detail::all<silt_producer_t>(
            [&](silt_producer_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_log_producers(it_, out, capacity, count, error);
            });
    }
};

/// What came of each of many fetches.
struct Located {
    std::vector<Range> ranges;
    std::vector<silt_status_t> status;
};

/// Looks up many fetches, whose ranges have at most `max_bytes` together.
inline Located locate_within(const std::vector<silt_fetch_t> &fetches, std::uint64_t max_bytes) {
    const std::size_t count = fetches.size();
    std::vector<silt_range_t> ranges(count);
    Located located = {{}, std::vector<silt_status_t>(count)};
    located.ranges.reserve(count);
    detail::check([&](silt_error_t *error) {
        return silt_locate_within(fetches.data(), static_cast<std::uint32_t>(count), max_bytes,
                                  ranges.data(), located.status.data(), error);
    });
    for (const silt_range_t &range : ranges) {
        located.ranges.emplace_back(range);
    }
    return located;
}

/// What came of each of many appends.
struct Appends {
    std::vector<silt_append_result_t> results;
    std::vector<silt_status_t> status;
};

/// Appends to many logs; what silt_log_start_verification gave is 0 for items that have none.
inline Appends append_many(const std::vector<silt_append_item_t> &items,
                           std::vector<std::uint64_t> verifications = {}) {
    const std::size_t count = items.size();
    verifications.resize(count);
    Appends done = {std::vector<silt_append_result_t>(count), std::vector<silt_status_t>(count)};
    detail::check([&](silt_error_t *error) {
        return silt_append_many_verified(items.data(), verifications.data(),
                                         static_cast<std::uint32_t>(count), done.results.data(),
                                         done.status.data(), error);
    });
    return done;
}

/// An index by itself.
class Index : public detail::Owner<silt_index_t, silt_index_close> {
public:
    /// Opens or makes one; `kind` is SILT_INDEX_.
    Index(const std::string &path, std::uint32_t kind, std::int64_t base_offset,
          std::uint32_t max_size_bytes, std::uint32_t flags = 0) {
        detail::check([&](silt_error_t *error) {
            return silt_index_open(detail::text(path), kind, base_offset, max_size_bytes, flags,
                                   &it_, error);
        });
    }

    /// As silt_index_lookup: packed, or a negative status.
    std::int64_t lookup(std::int64_t offset) const noexcept {
        return silt_index_lookup(it_, offset);
    }
    /// As silt_index_upper_bound: packed, or a negative status.
    std::int64_t upper_bound(std::int32_t position, std::int32_t size_bytes) const noexcept {
        return silt_index_upper_bound(it_, position, size_bytes);
    }

    silt_index_entry_t lookup_time(std::int64_t timestamp_ms) const {
        silt_index_entry_t out;
        detail::check([&](silt_error_t *error) {
            return silt_index_lookup_time(it_, timestamp_ms, &out, error);
        });
        return out;
    }

    silt_index_entry_t entry(std::uint32_t slot) const {
        silt_index_entry_t out;
        detail::check(
            [&](silt_error_t *error) { return silt_index_entry(it_, slot, &out, error); });
        return out;
    }

    void append(std::int64_t offset, std::int32_t position) {
        detail::check([&](silt_error_t *error) {
            return silt_index_append(it_, offset, position, error);
        });
    }

    /// Whether it said something new.
    bool append_time(std::int64_t timestamp_ms, std::int64_t offset, bool is_forced = false) {
        std::int32_t appended = 0;
        detail::check([&](silt_error_t *error) {
            return silt_index_append_time(it_, timestamp_ms, offset, is_forced ? 1 : 0,
                                          &appended, error);
        });
        return appended != 0;
    }

    void append_aborted(const std::string &path, const silt_aborted_entry_t &entry) {
        detail::check([&](silt_error_t *error) {
            return silt_index_append_aborted(it_, detail::text(path), &entry, error);
        });
    }

    /// `is_complete`, where it is given, gets whether no later segment can have more.
    std::vector<silt_aborted_entry_t> collect_aborted(std::int64_t from, std::int64_t upper_bound,
                                                      bool *is_complete = nullptr) const {
        std::int32_t complete = 0;
        auto found = detail::all<silt_aborted_entry_t>(
            [&](silt_aborted_entry_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_index_collect_aborted(it_, from, upper_bound, out, capacity, count,
                                                  &complete, error);
            });
        if (is_complete != nullptr) {
            *is_complete = complete != 0;
        }
        return found;
    }

    void truncate_to(const std::string &path, std::int64_t offset) {
        detail::check([&](silt_error_t *error) {
            return silt_index_truncate_to(it_, detail::text(path), offset, error);
        });
    }

    /// Whether the length is another one.
    bool resize(const std::string &path, std::uint32_t size_bytes) {
        std::int32_t is_changed = 0;
        detail::check([&](silt_error_t *error) {
            return silt_index_resize(it_, detail::text(path), size_bytes, &is_changed, error);
        });
        return is_changed != 0;
    }

    void trim(const std::string &path) {
        detail::check(
            [&](silt_error_t *error) { return silt_index_trim(it_, detail::text(path), error); });
    }

    void flush(const std::string &path) {
        detail::check(
            [&](silt_error_t *error) { return silt_index_flush(it_, detail::text(path), error); });
    }

    void sanity_check() const {
        detail::check([&](silt_error_t *error) { return silt_index_sanity_check(it_, error); });
    }

    /// Where the counters of an offset or time index are, as long as this object lives.
    const silt_index_counters_t &counters() const {
        const silt_index_counters_t *out = nullptr;
        detail::check(
            [&](silt_error_t *error) { return silt_index_counters(it_, &out, error); });
        return *out;
    }

    /// Lets go of the index while others may be using it: they are told SILT_E_CLOSED.
    void shut() {
        detail::check([&](silt_error_t *error) { return silt_index_shut(it_, error); });
    }
};

/// The log directories of a broker.
class Engine : public detail::Owner<silt_engine_t, silt_engine_close> {
public:
    /// The progress function of the options may throw, which ends the opening.
    explicit Engine(const std::vector<std::string> &dirs, const silt_engine_options_t &options) {
        std::vector<const char *> paths;
        for (const std::string &dir : dirs) {
            paths.push_back(detail::text(dir));
        }
        detail::Progress progress(options.progress, options.progress_ctx);
        silt_engine_options_t own = options;
        if (options.progress != nullptr) {
            own.progress = progress.function();
            own.progress_ctx = &progress;
        }
        progress.check([&](silt_error_t *error) {
            return silt_engine_open(paths.data(), static_cast<std::uint32_t>(paths.size()), &own,
                                    &it_, error);
        });
    }

    /// Ends it as a clean stop does; how many directories are marked as stopped cleanly.
    std::uint32_t stop(std::int64_t broker_epoch = -1, std::uint32_t threads = 1) {
        std::uint32_t clean_dirs = 0;
        detail::check([&](silt_error_t *error) {
            return silt_engine_stop(it_, broker_epoch, threads, &clean_dirs, error);
        });
        return clean_dirs;
    }

    Log log(const std::string &topic, std::int32_t partition) {
        silt_log_t *log = nullptr;
        detail::check([&](silt_error_t *error) {
            return silt_engine_log(it_, detail::text(topic), partition, &log, error);
        });
        return Log(log);
    }

    Log create_log(const std::string &topic, std::int32_t partition,
                   const silt_new_log_t &new_log) {
        silt_log_t *log = nullptr;
        detail::check([&](silt_error_t *error) {
            return silt_engine_create_log(it_, detail::text(topic), partition, &new_log, &log,
                                          error);
        });
        return Log(log);
    }

    void delete_log(const std::string &topic, std::int32_t partition, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_delete_log(it_, detail::text(topic), partition, now_ms, error);
        });
    }

    Log future_log(const std::string &topic, std::int32_t partition) {
        silt_log_t *log = nullptr;
        detail::check([&](silt_error_t *error) {
            return silt_engine_future_log(it_, detail::text(topic), partition, &log, error);
        });
        return Log(log);
    }

    /// The future log takes the place of the current one.
    void replace_log(const std::string &topic, std::int32_t partition, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_replace_log(it_, detail::text(topic), partition, now_ms, error);
        });
    }

    void delete_future(const std::string &topic, std::int32_t partition, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_delete_future(it_, detail::text(topic), partition, now_ms, error);
        });
    }

    void mark_stray(const std::string &topic, std::int32_t partition, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_mark_stray(it_, detail::text(topic), partition, now_ms, error);
        });
    }

    void take_offline(const std::string &dir) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_take_offline(it_, detail::text(dir), error);
        });
    }

    void set_config(const std::string &topic, const std::vector<silt_config_t> &configs) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_set_config(it_, detail::text(topic), configs.data(),
                                          static_cast<std::uint32_t>(configs.size()), error);
        });
    }

    std::vector<silt_engine_partition_t> partitions() const {
        return detail::all<silt_engine_partition_t>(
            [&](silt_engine_partition_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_engine_partitions(it_, out, capacity, count, error);
            });
    }

    /// At most so many pieces of work that are due.
    std::vector<silt_work_t> due(std::int64_t now_ms, std::uint32_t capacity = 256) {
        std::vector<silt_work_t> work(capacity);
        std::uint32_t count = 0;
        detail::check([&](silt_error_t *error) {
            return silt_engine_due(it_, now_ms, work.data(), capacity, &count, error);
        });
        work.resize(count);
        return work;
    }

    void run(const silt_work_t &work, std::int64_t now_ms) {
        detail::check([&](silt_error_t *error) {
            return silt_engine_run(it_, work.id, now_ms, error);
        });
    }

    void drop_work(const silt_work_t &work) {
        detail::check(
            [&](silt_error_t *error) { return silt_engine_drop_work(it_, work.id, error); });
    }

    void checkpoint() {
        detail::check([&](silt_error_t *error) { return silt_engine_checkpoint(it_, error); });
    }

    silt_engine_stats_t stats() const {
        silt_engine_stats_t out = SILT_ENGINE_STATS_INIT;
        detail::check([&](silt_error_t *error) { return silt_engine_stats(it_, &out, error); });
        return out;
    }
};

/// A queue of operations whose answers are polled.
class Ring : public detail::Owner<silt_ring_t, silt_ring_close> {
public:
    Ring() {
        detail::check([&](silt_error_t *error) { return silt_ring_new(&it_, error); });
    }

    int fd() const {
        std::int32_t fd = -1;
        detail::check([&](silt_error_t *error) { return silt_ring_fd(it_, &fd, error); });
        return fd;
    }

    /// The operations must stay where they are until their answers are there.
    void submit(const silt_op_t *ops, std::uint32_t count) {
        detail::check(
            [&](silt_error_t *error) { return silt_ring_submit(it_, ops, count, error); });
    }

    /// How many answers there are.
    std::uint32_t poll(silt_done_t *out, std::uint32_t capacity, std::int32_t timeout_ms) {
        std::uint32_t count = 0;
        detail::check([&](silt_error_t *error) {
            return silt_ring_poll(it_, out, capacity, timeout_ms, &count, error);
        });
        return count;
    }
};

/// Says what is to be uploaded of many logs; see silt_tier_columns_t.
inline void tier_eligible(const silt_tier_columns_t &columns) {
    detail::check([&](silt_error_t *error) { return silt_tier_eligible(&columns, error); });
}

/// Where a remote segment is to be read, and what a reader of committed data leaves out.
struct DirectRead {
    silt_direct_read_t read;
    std::vector<silt_aborted_t> aborted;
};

/// Says where a reader of a remote segment may read; `request` needs no room for transactions. For
/// a reader of committed data its transaction_index is not NULL, also where the segment has none:
/// beware of the data() of an empty vector.
inline DirectRead tier_direct_read(silt_direct_request_t request) {
    DirectRead found = {SILT_DIRECT_READ_INIT, {}};
    found.aborted = detail::all<silt_aborted_t>(
        [&](silt_aborted_t *out, std::uint32_t capacity, std::uint32_t *count,
            silt_error_t *error) {
            request.aborted = out;
            request.aborted_capacity = capacity;
            const silt_status_t status = silt_tier_direct_read(&request, &found.read, error);
            *count = found.read.aborted_count;
            return status;
        });
    return found;
}

/// What is said of a segment in remote storage, with the memory that it needs.
class RemoteRecord {
public:
    /// An empty one, to be filled through the setters and get().
    RemoteRecord() noexcept : record_(SILT_REMOTE_RECORD_INIT) {}

    /// Reads the value of a record of __remote_log_metadata.
    static RemoteRecord decode(const void *bytes, std::uint64_t size_bytes) {
        return filled([&](silt_remote_record_t *record, silt_error_t *error) {
            return silt_remote_record_decode(bytes, size_bytes, record, error);
        });
    }

    /// Of what a call writes.
    template <typename Call> static RemoteRecord filled(Call &&call) {
        RemoteRecord made;
        for (;;) {
            silt_error_t error = detail::no_error();
            silt_remote_record_t record = made.get();
            record.topic_capacity = static_cast<std::uint32_t>(made.topic_.size());
            record.custom_capacity = static_cast<std::uint32_t>(made.custom_.size());
            record.epoch_capacity = static_cast<std::uint32_t>(made.epochs_.size());
            const silt_status_t status = call(&record, &error);
            if (status != SILT_OK && status != SILT_E_SHORT_BUFFER) {
                throw Error(error);
            }
            made.record_ = record;
            made.topic_.resize(record.topic_size_bytes);
            made.custom_.resize(static_cast<std::size_t>(
                record.custom_size_bytes < 0 ? 0 : record.custom_size_bytes));
            made.epochs_.resize(record.epoch_count);
            if (status == SILT_OK) {
                return made;
            }
        }
    }

    void set_topic(std::string topic) { topic_ = std::move(topic); }
    void set_epochs(std::vector<silt_epoch_t> epochs) { epochs_ = std::move(epochs); }
    void set_custom(std::vector<std::uint8_t> custom) {
        custom_ = std::move(custom);
        record_.custom_size_bytes = static_cast<std::int32_t>(custom_.size());
    }
    const std::string &topic() const noexcept { return topic_; }
    const std::vector<silt_epoch_t> &epochs() const noexcept { return epochs_; }
    /// Empty also where there is none; custom_size_bytes of fields() tells.
    const std::vector<std::uint8_t> &custom() const noexcept { return custom_; }
    /// All that is no array.
    silt_remote_record_t &fields() noexcept { return record_; }
    const silt_remote_record_t &fields() const noexcept { return record_; }

    /// The C struct, which lives as long as this object is left alone.
    silt_remote_record_t get() noexcept {
        silt_remote_record_t record = record_;
        record.topic = topic_.data();
        record.topic_size_bytes = static_cast<std::uint32_t>(topic_.size());
        record.custom = custom_.data();
        record.epochs = epochs_.data();
        record.epoch_count = static_cast<std::uint32_t>(epochs_.size());
        return record;
    }

    /// The value as Kafka writes it.
    std::vector<std::uint8_t> encode() {
        const silt_remote_record_t record = get();
        std::vector<std::uint8_t> bytes(256);
        for (;;) {
            silt_error_t error = detail::no_error();
            std::uint64_t size = 0;
            const silt_status_t status =
                silt_remote_record_encode(&record, bytes.data(), bytes.size(), &size, &error);
            if (status != SILT_OK && status != SILT_E_SHORT_BUFFER) {
                throw Error(error);
            }
            bytes.resize(static_cast<std::size_t>(size));
            if (status == SILT_OK) {
                return bytes;
            }
        }
    }

private:
    silt_remote_record_t record_;
    std::string topic_;
    std::vector<std::uint8_t> custom_;
    std::vector<silt_epoch_t> epochs_;
};

/// The parts of one upload.
class Upload : public detail::Owner<silt_upload_t, silt_upload_close> {
public:
    Upload(const Log &log, std::int64_t base_offset, std::int64_t next_offset,
           const silt_upload_options_t &options) {
        detail::check([&](silt_error_t *error) {
            return silt_tier_manifest(log.get(), base_offset, next_offset, &options, &it_,
                                      error);
        });
    }

    /// They live as long as this object.
    std::vector<silt_part_t> parts() const {
        return detail::all<silt_part_t>(
            [&](silt_part_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_upload_parts(it_, out, capacity, count, error);
            });
    }

    RemoteRecord segment() const {
        return RemoteRecord::filled([&](silt_remote_record_t *record, silt_error_t *error) {
            return silt_upload_segment(it_, record, error);
        });
    }

    bool is_intact() const noexcept { return silt_upload_is_intact(it_) != 0; }
};

/// Rebuilds replicas from remote storage; gives the status of each.
inline std::vector<silt_status_t> tier_rebuild(std::vector<silt_rebuild_t> &items,
                                               const silt_rebuild_options_t &options) {
    std::vector<silt_status_t> status(items.size());
    detail::check([&](silt_error_t *error) {
        return silt_tier_rebuild(items.data(), static_cast<std::uint32_t>(items.size()), &options,
                                 status.data(), error);
    });
    return status;
}

/// What a follower does about an event; its state is kept in `state`.
inline silt_follower_action_t follower_step(const silt_bounds_t &follower,
                                            silt_fetch_state_t &state,
                                            const silt_follower_event_t &event) {
    silt_follower_action_t action = SILT_FOLLOWER_ACTION_INIT;
    detail::check([&](silt_error_t *error) {
        return silt_follower_step(&follower, &state, &event, &action, error);
    });
    if (action.kind == SILT_ACTION_FAIL) {
        state.flags = 0;
    } else if ((action.state.flags & SILT_FETCH_STATE_THERE) != 0) {
        state = action.state;
    }
    return action;
}

/// What a leader answers to a fetch; epochs that the request does not say are -1.
inline silt_fetch_verdict_t leader_fetch(const silt_bounds_t &leader, bool is_follower,
                                         std::int64_t fetch_offset, std::int32_t leader_epoch,
                                         std::int32_t last_fetched_epoch) {
    silt_fetch_verdict_t verdict = SILT_FETCH_VERDICT_INIT;
    detail::check([&](silt_error_t *error) {
        return silt_leader_fetch(&leader, is_follower ? 1 : 0, fetch_offset, leader_epoch,
                                 last_fetched_epoch, &verdict, error);
    });
    return verdict;
}

/// What a leader answers to ListOffsets.
struct LeaderOffset {
    silt_time_offset_t offset;
    /// 0, or an error of the protocol.
    std::int32_t error_code;
};

/// What a leader answers to ListOffsets; `found` is what its log has, or null.
inline LeaderOffset leader_offset(const silt_bounds_t &leader, std::int64_t timestamp,
                                  std::int16_t version, std::uint32_t up_to,
                                  const silt_time_offset_t *found = nullptr) {
    LeaderOffset answer = {{-1, -1, -1, 0}, 0};
    detail::check([&](silt_error_t *error) {
        return silt_leader_offset(&leader, timestamp, version, up_to, found, &answer.offset,
                                  &answer.error_code, error);
    });
    return answer;
}

/// Takes note of a follower's fetch.
inline void progress_record(silt_progress_t &follower, std::int64_t offset,
                            std::int64_t log_start_offset, std::int64_t broker_epoch,
                            std::int64_t leader_log_end_offset, std::int64_t now_ms) {
    detail::check([&](silt_error_t *error) {
        return silt_progress_record(&follower, offset, log_start_offset, broker_epoch,
                                    leader_log_end_offset, now_ms, error);
    });
}

/// Whether more is committed.
inline silt_watermark_t isr_watermark(const silt_isr_t &isr,
                                      const std::vector<silt_progress_t> &followers) {
    silt_watermark_t watermark = SILT_WATERMARK_INIT;
    detail::check([&](silt_error_t *error) {
        return silt_isr_watermark(&isr, followers.data(),
                                  static_cast<std::uint32_t>(followers.size()), &watermark, error);
    });
    return watermark;
}

/// Who may join the replicas in sync and who must leave: SILT_FOLLOWER_ for each.
inline std::vector<std::uint8_t> isr_verdicts(const silt_isr_t &isr,
                                              const std::vector<silt_progress_t> &followers) {
    std::vector<std::uint8_t> verdicts(followers.size());
    detail::check([&](silt_error_t *error) {
        return silt_isr_verdicts(&isr, followers.data(),
                                 static_cast<std::uint32_t>(followers.size()), verdicts.data(),
                                 error);
    });
    return verdicts;
}

/// What the controller's answer to a change means: SILT_ALTER_.
inline std::uint32_t isr_answered(const silt_isr_t &isr, std::int32_t leader_epoch,
                                  std::int32_t error_code, std::int32_t answered_leader_epoch,
                                  std::int32_t answered_partition_epoch) {
    std::uint32_t outcome = 0;
    detail::check([&](silt_error_t *error) {
        return silt_isr_answered(&isr, leader_epoch, error_code, answered_leader_epoch,
                                 answered_partition_epoch, &outcome, error);
    });
    return outcome;
}

/// What a producer with these acks is told: SILT_ACKS_.
inline std::uint32_t isr_acks(const silt_isr_t &isr, std::int16_t acks,
                              std::int64_t required_offset) {
    std::uint32_t verdict = 0;
    detail::check([&](silt_error_t *error) {
        return silt_isr_acks(&isr, acks, required_offset, &verdict, error);
    });
    return verdict;
}

/// A partition as the controller keeps it, with the memory that it needs.
struct Partition {
    std::vector<std::int32_t> replicas;
    std::vector<std::int32_t> isr;
    std::vector<std::int32_t> elr;
    std::vector<std::int32_t> last_known_elr;
    std::vector<std::int32_t> adding;
    std::vector<std::int32_t> removing;
    /// All that is no array.
    silt_partition_t fields = SILT_PARTITION_INIT;

    /// The C struct, which lives as long as this object is left alone.
    silt_partition_t get() noexcept {
        silt_partition_t partition = fields;
        partition.replicas = replicas.data();
        partition.isr = isr.data();
        partition.elr = elr.data();
        partition.last_known_elr = last_known_elr.data();
        partition.adding = adding.data();
        partition.removing = removing.data();
        partition.replica_count = static_cast<std::uint32_t>(replicas.size());
        partition.isr_count = static_cast<std::uint32_t>(isr.size());
        partition.elr_count = static_cast<std::uint32_t>(elr.size());
        partition.last_known_elr_count = static_cast<std::uint32_t>(last_known_elr.size());
        partition.adding_count = static_cast<std::uint32_t>(adding.size());
        partition.removing_count = static_cast<std::uint32_t>(removing.size());
        return partition;
    }

    /// Gives each array as many replicas as a C struct says.
    void resize(const silt_partition_t &partition) {
        replicas.resize(partition.replica_count);
        isr.resize(partition.isr_count);
        elr.resize(partition.elr_count);
        last_known_elr.resize(partition.last_known_elr_count);
        adding.resize(partition.adding_count);
        removing.resize(partition.removing_count);
        fields = partition;
    }
};

/// What becomes of a partition: -1 when it has changed, 0 when not, and the protocol's error when
/// an election was refused.
inline std::int32_t partition_step(Partition &partition, const silt_partition_event_t &event) {
    const silt_partition_t before = partition.get();
    std::uint32_t capacity = before.replica_count;
    for (;;) {
        silt_partition_t out = before;
        out.replica_count = out.isr_count = out.elr_count = capacity;
        out.last_known_elr_count = out.adding_count = out.removing_count = capacity;
        Partition next;
        next.resize(out);
        out = next.get();
        out.capacity = capacity;
        silt_error_t error = detail::no_error();
        std::int32_t outcome = 0;
        const silt_status_t status = silt_partition_step(&before, &event, &out, &outcome, &error);
        if (status == SILT_OK) {
            next.resize(out);
            partition = std::move(next);
            return outcome;
        }
        if (status != SILT_E_SHORT_BUFFER) {
            throw Error(error);
        }
        capacity = std::max({out.replica_count, out.isr_count, out.elr_count,
                             out.last_known_elr_count, out.adding_count, out.removing_count});
    }
}

/// Log directories that no broker has open.
class Dir : public detail::Owner<silt_dir_t, silt_dir_close> {
public:
    explicit Dir(const std::vector<std::string> &paths,
                 const silt_dir_options_t *options = nullptr) {
        std::vector<const char *> texts;
        for (const std::string &path : paths) {
            texts.push_back(detail::text(path));
        }
        detail::check([&](silt_error_t *error) {
            return silt_dir_open(texts.data(), static_cast<std::uint32_t>(texts.size()), options,
                                 &it_, error);
        });
    }

    std::vector<silt_partition_dir_t> scan() const {
        return detail::all<silt_partition_dir_t>(
            [&](silt_partition_dir_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) { return silt_dir_scan(it_, out, capacity, count, error); });
    }

    /// What is wrong. The progress function may throw, which ends the call.
    std::vector<silt_problem_t> verify(const silt_verify_options_t &options,
                                       silt_progress_fn function = nullptr, void *ctx = nullptr) {
        detail::Progress progress(function, ctx);
        progress.check([&](silt_error_t *error) {
            return silt_dir_verify(it_, &options, progress.function(), &progress, nullptr, error);
        });
        return problems();
    }

    /// What came of each partition; without SILT_RECOVER_REPAIR what would. The progress function
    /// may throw, which ends the call.
    std::vector<silt_recovery_t> recover(const silt_recover_options_t &options,
                                         silt_progress_fn function = nullptr,
                                         void *ctx = nullptr) {
        detail::Progress progress(function, ctx);
        progress.check([&](silt_error_t *error) {
            return silt_dir_recover(it_, &options, progress.function(), &progress, error);
        });
        return recoveries();
    }

    /// Recovers the next directory; how many are left.
    std::uint32_t recover_step(const silt_recover_options_t &options) {
        std::uint32_t left = 0;
        detail::check([&](silt_error_t *error) {
            return silt_dir_recover_step(it_, &options, &left, error);
        });
        return left;
    }

    std::vector<silt_problem_t> problems() const {
        return detail::all<silt_problem_t>(
            [&](silt_problem_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_dir_problems(it_, out, capacity, count, error);
            });
    }

    std::vector<silt_recovery_t> recoveries() const {
        return detail::all<silt_recovery_t>(
            [&](silt_recovery_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) {
                return silt_dir_recoveries(it_, out, capacity, count, error);
            });
    }

    std::vector<silt_plan_step_t> plan() const {
        return detail::all<silt_plan_step_t>(
            [&](silt_plan_step_t *out, std::uint32_t capacity, std::uint32_t *count,
                silt_error_t *error) { return silt_dir_plan(it_, out, capacity, count, error); });
    }
};

/// The headers of the batches in some bytes.
struct Batches {
    std::vector<silt_batch_t> batches;
    /// Where the first batch is that is not whole.
    std::uint64_t consumed_bytes;
};

/// Reads the headers of the batches that lie in some bytes; checksums are not looked at.
inline Batches parse_batches(const void *bytes, std::uint64_t size_bytes) {
    Batches found = {std::vector<silt_batch_t>(64), 0};
    for (;;) {
        silt_error_t error = detail::no_error();
        std::uint32_t count = 0;
        const auto capacity = static_cast<std::uint32_t>(found.batches.size());
        const silt_status_t status = silt_batch_parse(bytes, size_bytes, found.batches.data(),
                                                      capacity, &count, &found.consumed_bytes,
                                                      &error);
        if (status == SILT_OK) {
            found.batches.resize(count);
            return found;
        }
        if (status != SILT_E_SHORT_BUFFER) {
            throw Error(error);
        }
        found.batches.resize(2 * found.batches.size());
    }
}

/// Checks frames and checksums: an Error of SILT_E_CORRUPT with the position of what is wrong.
/// `valid_bytes`, where it is given, gets in any case where the last good batch ends.
inline void validate_batches(const void *bytes, std::uint64_t size_bytes,
                             std::uint64_t *valid_bytes = nullptr) {
    detail::check([&](silt_error_t *error) {
        return silt_batch_validate(bytes, size_bytes, valid_bytes, error);
    });
}

/// The indexes of a segment, and what its walk has found.
struct RebuiltSegment {
    silt_rebuilt_t rebuilt;
    std::vector<unsigned char> offset_index;
    std::vector<unsigned char> time_index;
};

/// Makes the indexes of a whole segment from its bytes; 0: Kafka's defaults.
inline RebuiltSegment rebuild_segment(const void *bytes, std::uint64_t size_bytes,
                                      std::int64_t base_offset,
                                      std::uint32_t index_interval_bytes = 0,
                                      std::uint32_t index_size_bytes_max = 0) {
    RebuiltSegment made = {SILT_REBUILT_INIT, {}, {}};
    // Enough for the default interval; else the library says what is.
    made.offset_index.resize(static_cast<std::size_t>(size_bytes / 512 + 8));
    made.time_index.resize(static_cast<std::size_t>(size_bytes / 340 + 24));
    for (;;) {
        silt_error_t error = detail::no_error();
        const silt_status_t status = silt_segment_rebuild(
            bytes, size_bytes, base_offset, index_interval_bytes, index_size_bytes_max,
            made.offset_index.data(), made.offset_index.size(), made.time_index.data(),
            made.time_index.size(), &made.rebuilt, &error);
        if (status != SILT_OK && status != SILT_E_SHORT_BUFFER) {
            throw Error(error);
        }
        made.offset_index.resize(
            static_cast<std::size_t>(made.rebuilt.offset_index_size_bytes));
        made.time_index.resize(static_cast<std::size_t>(made.rebuilt.time_index_size_bytes));
        if (status == SILT_OK) {
            return made;
        }
    }
}

/// The batch that ends a transaction.
inline std::vector<unsigned char> write_end_marker(const silt_end_marker_t &marker) {
    std::uint64_t size_bytes = 0;
    static_cast<void>(silt_end_marker_write(&marker, nullptr, 0, &size_bytes, nullptr));
    std::vector<unsigned char> bytes(static_cast<std::size_t>(size_bytes));
    detail::check([&](silt_error_t *error) {
        return silt_end_marker_write(&marker, bytes.data(), bytes.size(), &size_bytes, error);
    });
    return bytes;
}

/// As silt_segment_scan.
inline silt_scanned_t scan_segment(const void *bytes, std::uint64_t size_bytes,
                                   const silt_scan_t &scan) {
    silt_scanned_t out = SILT_SCANNED_INIT;
    detail::check([&](silt_error_t *error) {
        return silt_segment_scan(bytes, size_bytes, &scan, &out, error);
    });
    return out;
}

/// The bytes of a snapshot of these producers.
inline std::vector<unsigned char> write_snapshot(const std::vector<silt_producer_t> &producers) {
    std::uint64_t size_bytes = 0;
    const auto count = static_cast<std::uint32_t>(producers.size());
    static_cast<void>(
        silt_snapshot_write(producers.data(), count, nullptr, 0, &size_bytes, nullptr));
    std::vector<unsigned char> bytes(size_bytes);
    detail::check([&](silt_error_t *error) {
        return silt_snapshot_write(producers.data(), count, bytes.data(), bytes.size(), &size_bytes,
                                   error);
    });
    return bytes;
}

/// The producers in the bytes of a snapshot.
inline std::vector<silt_producer_t> read_snapshot(const void *bytes, std::uint64_t size_bytes) {
    return detail::all<silt_producer_t>([&](silt_producer_t *out, std::uint32_t capacity,
                                            std::uint32_t *count, silt_error_t *error) {
        return silt_snapshot_read(bytes, size_bytes, out, capacity, count, error);
    });
}

} // namespace siltstone

#endif // SILTSTONE_HPP
