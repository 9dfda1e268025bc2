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

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    siltstone::Log log(make_log_to_tear());
    const pid_t child = start_tearing();
    std::uint32_t state = 1;
    std::vector<unsigned char> bytes(1 << 16);
    for (int i = 0; i < tries(); i++) {
        const std::int64_t offset = random_of(&state) % TORN_BATCHES;
        told([&] {
            const siltstone::Range range = log.locate(offset, 4096, SILT_UP_TO_LOG_END);
            CHECK(range.position() + range.size_bytes() <= TORN_BATCHES * batch_size(40));
            CHECK(range.empty() ||
                  pread(range.fd(), bytes.data(), static_cast<size_t>(range.size_bytes()),
                        static_cast<off_t>(range.position())) >= 0);
        });
        told([&] { static_cast<void>(log.aborted(0, offset)); });
        told([&] {
            siltstone::Index index(path_of(torn_names[2]), SILT_INDEX_TIME, 0, 0,
                                   SILT_INDEX_READ_ONLY);
            const silt_index_entry_t entry = index.lookup_time(1000 + offset);
            CHECK(entry.position == -1);
            index.sanity_check();
        });
    }
    stop_tearing(child);
    std::puts("ok");
    return 0;
}
