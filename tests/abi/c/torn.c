/* A log whose files another process tears while it is read, and a disk that is full: statuses, and
 * no signal. The argument is an empty directory. */
#define _GNU_SOURCE /* for holes */
#include "torn.h"

/* All that a log may say lies in here. */
static const uint64_t log_size = TORN_BATCHES * (61 + 7 + 40);

/* What a call may say of files that were torn. */
static void expect_told(silt_status_t status, const silt_error_t *error) {
    CHECK(status == SILT_OK || status == SILT_E_CORRUPT || status == SILT_E_IO ||
          status == SILT_E_NOT_FOUND || status == SILT_E_OUT_OF_RANGE);
    CHECK(status == SILT_OK || error == NULL || (error->code == status && error->message[0] != 0));
}

static void read_once(silt_log_t *log, uint32_t *state) {
    static unsigned char bytes[1 << 16];
    silt_error_t error = SILT_ERROR_INIT;
    int64_t offset = random_of(state) % TORN_BATCHES;
    silt_fetch_t fetch = { log, offset, 4096, SILT_UP_TO_LOG_END, SILT_FETCH_MIN_ONE, 0, NULL };
    silt_range_t range;
    silt_status_t status;
    EXPECT(SILT_OK, silt_locate(&fetch, 1, &range, &status, NULL));
    expect_told(status, NULL);
    if (status == SILT_OK && range.size_bytes > 0) {
        /* No position lies outside of the log. */
        CHECK(range.position + range.size_bytes <= log_size);
        CHECK(pread(range.fd, bytes, range.size_bytes, (off_t)range.position) >= 0);
        EXPECT(SILT_OK, silt_leases_release(&range.lease, 1, NULL));
    }
    status = silt_log_read(&fetch, bytes, sizeof bytes, &range, &error);
    expect_told(status, &error);
    if (status == SILT_OK && range.size_bytes > 0) {
        /* All that is to be seen, and not what a shorter file has of it. */
        CHECK(range.size_bytes == 4096 || range.position + range.size_bytes == log_size);
    }
    silt_time_offset_t when;
    status = silt_log_offset_for_time(log, 1000 + offset, &when, &error);
    expect_told(status, &error);
    CHECK(status != SILT_OK || (when.offset >= 0 && when.offset < TORN_BATCHES));
    silt_aborted_t aborted[1];
    uint32_t count;
    expect_told(silt_log_aborted(log, 0, offset, aborted, 1, &count, &error), &error);
}

/* What is opened while it is torn has what could be read of it. */
static void open_once(int64_t base, uint32_t *state) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_index_t *index = NULL;
    silt_status_t status = silt_index_open(path_of(torn_names[1]), SILT_INDEX_OFFSET, base, 0,
                                           SILT_INDEX_READ_ONLY, &index, &error);
    expect_told(status, &error);
    if (status == SILT_OK) {
        int64_t found = silt_index_lookup(index, random_of(state) % TORN_BATCHES);
        CHECK(found == SILT_E_CORRUPT || (found >= 0 && (uint32_t)found <= log_size));
        found = silt_index_upper_bound(index, (int32_t)(random_of(state) % log_size), 100);
        CHECK(found == SILT_E_CORRUPT || found == SILT_E_NOT_FOUND ||
              (found >= 0 && (uint32_t)found <= log_size));
        expect_told(silt_index_sanity_check(index, &error), &error);
        silt_index_close(index);
    }
    const char *paths[1] = { home };
    silt_dir_t *dir = NULL;
    silt_verify_options_t options = SILT_VERIFY_OPTIONS_INIT;
    uint32_t problems = 0;
    EXPECT(SILT_OK, silt_dir_open(paths, 1, NULL, &dir, NULL));
    expect_told(silt_dir_verify(dir, &options, NULL, NULL, &problems, &error), &error);
    silt_dir_close(dir);
}

static void is_torn(void) {
    silt_log_t *log = make_log_to_tear();
    pid_t child = start_tearing();
    uint32_t state = 1;
    for (int i = 0; i < tries(); i++) {
        read_once(log, &state);
        if (i % 10 == 0) {
            open_once(0, &state);
        }
    }
    stop_tearing(child);
    silt_log_close(log);
}

/* A log whose file is shorter than it was. */
static void is_cut(void) {
    unsigned char bytes[1 << 16];
    silt_error_t error = SILT_ERROR_INIT;
    silt_range_t range;
    silt_log_t *log = make_log_to_tear();
    silt_fetch_t fetch = { log, 0, 4096, SILT_UP_TO_LOG_END, SILT_FETCH_MIN_ONE, 0, NULL };
    CHECK(truncate(path_of(torn_names[0]), 1000) == 0);
    EXPECT(SILT_E_CORRUPT, silt_log_read(&fetch, bytes, sizeof bytes, &range, &error));
    CHECK(error.position == 1000 && strstr(error.message, torn_names[0]) != NULL);
    silt_log_close(log);
    CHECK(rename(path_of("torn-0"), path_of("cut-0")) == 0);
}

/* A log is opened and read whose files have holes. */
static void look(void) {
    static uint32_t state = 5;
    silt_error_t error = SILT_ERROR_INIT;
    silt_log_t *log = NULL;
    expect_told(silt_log_open(path_of("torn-0"), NULL, &log, &error), &error);
    for (int i = 0; log != NULL && i < rounds(200); i++) {
        read_once(log, &state);
    }
    open_once(0, &state);
    silt_log_close(log);
}

/* Files can grow no further somewhere in the life of a log. What was appended is there after it. */
static void is_full(void) {
    uint32_t state = 3;
    silt_config_t configs[] = { { "segment.index.bytes", "1024" }, { "segment.bytes", "4096" } };
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.configs = configs;
    options.config_count = 2;
    for (int round = 0; round < tries() / 50 + 1; round++) {
        char name[64];
        snprintf(name, sizeof name, "full-%d", round);
        limit_files(random_of(&state) % 6000);
        silt_error_t error = SILT_ERROR_INIT;
        silt_log_t *log = NULL;
        int64_t appended_end = 0;
        silt_status_t status = silt_log_open(path_of(name), &options, &log, &error);
        for (int i = 0; status == SILT_OK && i < 200; i++) {
            unsigned char bytes[256];
            size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
            silt_append_t request = SILT_APPEND_INIT;
            silt_appended_t appended = SILT_APPENDED_INIT;
            status = silt_log_append_leader(log, bytes, size, &request, &appended, &error);
            appended_end = status == SILT_OK ? i + 1 : appended_end;
        }
        CHECK(status == SILT_OK || (status == SILT_E_IO && error.os_errno == EFBIG));
        silt_log_close(log);
        limit_files(RLIM_INFINITY);
        options.flags = SILT_LOG_UNCLEAN;
        EXPECT(SILT_OK, silt_log_open(path_of(name), &options, &log, NULL));
        options.flags = 0;
        silt_offsets_t offsets = SILT_OFFSETS_INIT;
        EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
        CHECK(offsets.log_end_offset == appended_end);
        silt_log_close(log);
    }
}

static void expect_full(silt_status_t status, const silt_error_t *error) {
    CHECK(status == SILT_OK || (status == SILT_E_IO && error->os_errno == EFBIG));
}

/* The same of an offset index: what a flush has told to be durable is there. */
static void offset_index_is_full(const char *path, rlim_t size) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_index_t *index = NULL;
    limit_files(size);
    silt_status_t status = silt_index_open(path, SILT_INDEX_OFFSET, 0, 2048, 0, &index, &error);
    expect_full(status, &error);
    if (status == SILT_OK) {
        for (int i = 1; i <= 200; i++) {
            EXPECT(SILT_OK, silt_index_append(index, i, i * 10, NULL));
        }
        status = silt_index_flush(index, path, &error);
        expect_full(status, &error);
        expect_full(silt_index_resize(index, path, 4096, NULL, &error), &error);
        CHECK(silt_index_lookup(index, 150) == ((int64_t)150 << 32 | 1500));
        limit_files(RLIM_INFINITY);
        EXPECT(SILT_OK, silt_index_trim(index, path, NULL));
        EXPECT(SILT_OK, silt_index_sanity_check(index, NULL));
        silt_index_close(index);
        EXPECT(SILT_OK, silt_index_open(path, SILT_INDEX_OFFSET, 0, 2048, 0, &index, NULL));
        CHECK(silt_index_lookup(index, 1000) == ((int64_t)200 << 32 | 2000));
        silt_index_close(index);
    }
    limit_files(RLIM_INFINITY);
}

/* The same of a transaction index: what was appended is there, and no piece of anything else. */
static void txn_index_is_full(const char *path, rlim_t size) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_index_t *index = NULL;
    silt_aborted_entry_t entry = { 9, 0, 0, 0 }, found[200];
    uint32_t appended = 0, count = 0;
    EXPECT(SILT_OK, silt_index_open(path, SILT_INDEX_TXN, 0, 0, 0, &index, NULL));
    limit_files(size);
    for (int64_t i = 0; i < 200; i++) {
        entry.first_offset = entry.last_offset = entry.last_stable_offset = 5 * i;
        silt_status_t status = silt_index_append_aborted(index, path, &entry, &error);
        expect_full(status, &error);
        if (status != SILT_OK) {
            break;
        }
        appended++;
    }
    limit_files(RLIM_INFINITY);
    EXPECT(SILT_OK, silt_index_collect_aborted(index, INT64_MIN, INT64_MAX, found, 200, &count,
                                               NULL, NULL));
    CHECK(count == appended);
    /* There is place again. */
    if (appended < 200) {
        EXPECT(SILT_OK, silt_index_append_aborted(index, path, &entry, NULL));
        appended++;
    }
    silt_index_close(index);
    EXPECT(SILT_OK, silt_index_open(path, SILT_INDEX_TXN, 0, 0, 0, &index, NULL));
    EXPECT(SILT_OK, silt_index_collect_aborted(index, INT64_MIN, INT64_MAX, found, 200, &count,
                                               NULL, NULL));
    CHECK(count == appended && found[count - 1].last_offset == entry.last_offset);
    silt_index_close(index);
}

static void indexes_are_full(void) {
    uint32_t state = 4;
    for (int round = 0; round < tries() / 20 + 1; round++) {
        char name[64];
        snprintf(name, sizeof name, "%d.index", round);
        offset_index_is_full(path_of(name), random_of(&state) % 6000);
        snprintf(name, sizeof name, "%d.txnindex", round);
        txn_index_is_full(path_of(name), random_of(&state) % 8000);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    is_cut();
    look_through_holes(look);
    is_torn();
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    is_full();
    indexes_are_full();
    puts("ok");
    return 0;
}
