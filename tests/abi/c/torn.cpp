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
    std::puts("ok");
    return 0;
}
