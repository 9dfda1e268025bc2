// The C++ wrapper: what it owns goes with it, what fails is an exception.
#include <siltstone.hpp>

#include "check.h"

#include <unistd.h>

static void owns_what_it_opens(const std::string &home) {
    siltstone::Log log(home + "/wrapped-0");
    unsigned char bytes[256];
    silt_append_t request = SILT_APPEND_INIT;
    for (int i = 0; i < 10; i++) {
        const std::size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        CHECK(log.append_leader(bytes, size, request).first_offset == i);
    }
    log.flush(0);
    CHECK(log.set_high_watermark(10) == 10);
    CHECK(log.roll(0) == 10);
    CHECK(log.segments().size() == 2);
    CHECK(log.epochs().size() == 1);
    CHECK(log.aborted(0, 10).empty());
    CHECK(log.offsets().log_end_offset == 10);

    siltstone::Range range = log.locate(4, 4096, SILT_UP_TO_HIGH_WATERMARK);
    siltstone::Range moved(std::move(range));
    CHECK(!moved.empty() && moved.base_offset() == 4 && moved.is_intact());
    siltstone::Log other(std::move(log));
    other.truncate_to(2, 0);
    CHECK(!moved.is_intact());
    const int fd = moved.fd();
    other.stop();
    moved = siltstone::Range();
    CHECK(other.get() != nullptr && fd >= 0);
}

static void throws_what_fails(const std::string &home) {
    try {
        siltstone::Log log(home + "/nothing");
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT && error.what()[0] != 0);
        CHECK(error.os_errno() == 0 && error.detail_code() == 0);
    }
    siltstone::Log log(home + "/wrapped-1");
    try {
        static_cast<void>(log.locate(5, 100, SILT_UP_TO_LOG_END));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_OUT_OF_RANGE);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    owns_what_it_opens(argv[1]);
    throws_what_fails(argv[1]);
    puts("ok");
    return 0;
}
