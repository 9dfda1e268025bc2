// Files that another process tears while the C++ wrapper reads them: exceptions, and no signal.
#include <siltstone.hpp>

#include "torn.h"

// Whether a call may say that of files that were torn.
static bool is_told(const siltstone::Error &error) {
    return error.what()[0] != 0 &&
           (error.code() == SILT_E_CORRUPT || error.code() == SILT_E_IO ||
            error.code() == SILT_E_NOT_FOUND || error.code() == SILT_E_OUT_OF_RANGE);
}

template <typename Call> static void told(Call &&call) {
    try {
        call();
    } catch (const siltstone::Error &error) {
        CHECK(is_told(error));
    }
}

// All that a log may say lies in here.
static const std::uint64_t log_size = TORN_BATCHES * batch_size(40);

static bool is_inside(std::int64_t packed) {
    return packed == SILT_E_CORRUPT || packed == SILT_E_NOT_FOUND ||
           (packed >= 0 && static_cast<std::uint32_t>(packed) <= log_size);
}

static void read_once(const siltstone::Log &log, std::uint32_t &state) {
    static std::vector<unsigned char> bytes(1 << 16);
    const std::int64_t offset = random_of(&state) % TORN_BATCHES;
    told([&] {
        const siltstone::Range range = log.locate(offset, 4096, SILT_UP_TO_LOG_END);
        CHECK(range.position() + range.size_bytes() <= log_size);
        CHECK(range.empty() ||
              pread(range.fd(), bytes.data(), static_cast<size_t>(range.size_bytes()),
                    static_cast<off_t>(range.position())) >= 0);
    });
    told([&] {
        const siltstone::Range range = log.read(offset, SILT_UP_TO_LOG_END, bytes.data(), 4096);
        CHECK(range.position() + range.size_bytes() <= log_size);
    });
    told([&] {
        const silt_time_offset_t found = log.offset_for_time(1000 + offset);
        CHECK(found.offset >= 0 && found.offset < TORN_BATCHES);
    });
    told([&] { static_cast<void>(log.aborted(0, offset)); });
    told([&] {
        siltstone::Index index(path_of(torn_names[1]), SILT_INDEX_OFFSET, 0, 0,
                               SILT_INDEX_READ_ONLY);
        CHECK(is_inside(index.lookup(offset)));
        CHECK(is_inside(index.upper_bound(static_cast<std::int32_t>(random_of(&state) % log_size),
                                          100)));
    });
    told([&] {
        siltstone::Index index(path_of(torn_names[2]), SILT_INDEX_TIME, 0, 0,
                               SILT_INDEX_READ_ONLY);
        const silt_index_entry_t entry = index.lookup_time(1000 + offset);
        CHECK(entry.position == -1);
        index.sanity_check();
    });
}

// Whether it is an exception with the system's error when a disk is full; whether there was one.
template <typename Call> static bool is_full(Call &&call) {
    try {
        call();
        return false;
    } catch (const siltstone::Error &error) {
        CHECK(error.what()[0] != 0 && error.code() == SILT_E_IO && error.os_errno() == EFBIG);
        return true;
    }
}

// Files can grow no further somewhere in the life of a log. What was appended is there after it.
static void lives_with_a_full_disk(const std::string &name, rlim_t size) {
    const std::string dir = path_of(name.c_str());
    silt_config_t configs[] = {{"segment.index.bytes", "1024"}, {"segment.bytes", "4096"}};
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.configs = configs;
    options.config_count = 2;
    std::int64_t appended_end = 0;
    limit_files(size);
    is_full([&] {
        siltstone::Log log(dir, &options);
        for (int i = 0; i < 200; i++) {
            unsigned char bytes[256];
            const silt_append_t request = SILT_APPEND_INIT;
            log.append_leader(bytes, make_batch(bytes, 0, 1000 + i, -1, 0, 40), request);
            appended_end = i + 1;
        }
    });
    const std::string index_path = dir + ".txnindex";
    std::size_t aborted = 0;
    is_full([&] {
        siltstone::Index index(index_path, SILT_INDEX_TXN, 0, 0);
        for (std::int64_t i = 0; i < 200; i++) {
            index.append_aborted(index_path, {9, 5 * i, 5 * i, 5 * i});
            aborted++;
        }
    });
    limit_files(RLIM_INFINITY);
    options.flags = SILT_LOG_UNCLEAN;
    CHECK(siltstone::Log(dir, &options).offsets().log_end_offset == appended_end);
    const siltstone::Index index(index_path, SILT_INDEX_TXN, 0, 0);
    CHECK(index.collect_aborted(INT64_MIN, INT64_MAX).size() == aborted);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    look_through_holes([] {
        static std::uint32_t state = 5;
        told([] {
            const siltstone::Log log(path_of("torn-0"));
            for (int i = 0; i < rounds(200); i++) {
                read_once(log, state);
            }
        });
    });
    siltstone::Log log(make_log_to_tear());
    const pid_t child = start_tearing();
    std::uint32_t state = 1;
    for (int i = 0; i < tries(); i++) {
        read_once(log, state);
    }
    stop_tearing(child);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (int i = 0; i < tries() / 50 + 1; i++) {
        lives_with_a_full_disk("full-" + std::to_string(i), random_of(&state) % 6000);
    }
    std::puts("ok");
    return 0;
}
