/* The life of a log, and every way to ask for it wrongly. The argument is an empty directory. */
#include "home.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

silt_status_t silt_test_panic(silt_error_t *err);
void silt_test_panic_next(void);
silt_status_t silt_test_panic_on_log(silt_log_t *log, silt_error_t *err);

static silt_log_t *open_log(const char *name, const silt_log_options_t *options) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_log_t *log = NULL;
    if (silt_log_open(path_of(name), options, &log, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    CHECK(log != NULL);
    return log;
}

static silt_appended_t append(silt_log_t *log, int64_t producer_id, int32_t sequence) {
    unsigned char bytes[256];
    size_t size = make_batch(bytes, 0, 1000 + sequence, producer_id, sequence, 40);
    silt_append_t request = SILT_APPEND_INIT;
    request.leader_epoch = 3;
    request.now_ms = 5000;
    silt_appended_t appended = SILT_APPENDED_INIT;
    silt_error_t error = SILT_ERROR_INIT;
    if (silt_log_append_leader(log, bytes, size, &request, &appended, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return appended;
}

static silt_offsets_t offsets_of(const silt_log_t *log) {
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
    return offsets;
}

static silt_range_t locate(const silt_log_t *log, int64_t offset, uint32_t up_to,
                           silt_status_t expected) {
    silt_fetch_t fetch = { log, offset, 1 << 20, up_to, SILT_FETCH_MIN_ONE, 0, NULL };
    silt_range_t range;
    silt_status_t status = 1;
    EXPECT(SILT_OK, silt_locate(&fetch, 1, &range, &status, NULL));
    EXPECT(expected, status);
    return range;
}

static void lives(void) {
    silt_config_t configs[] = { { "segment.bytes", "1024" }, { "retention.ms", "-1" } };
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.configs = configs;
    options.config_count = 2;
    memset(options.topic_id, 7, sizeof options.topic_id);
    silt_log_t *log = open_log("orders-0", &options);
    EXPECT(SILT_OK, silt_log_assign_epoch(log, 3, 0, NULL));
    for (int i = 0; i < 50; i++) {
        silt_appended_t appended = append(log, 77, i);
        CHECK(appended.first_offset == i && appended.last_offset == i && appended.flags != 1);
    }
    /* Sent again: the answer of the first time. */
    silt_appended_t again = append(log, 77, 49);
    CHECK((again.flags & SILT_APPENDED_DUPLICATE) && again.first_offset == 49);

    silt_offsets_t offsets = offsets_of(log);
    CHECK(offsets.log_end_offset == 50 && offsets.high_watermark == 0);
    CHECK(offsets.segment_count > 3 && offsets.size_bytes == 50 * batch_size(40));
    int64_t set = 0;
    EXPECT(SILT_OK, silt_log_set_high_watermark(log, 1000, &set, NULL));
    CHECK(set == 50);
    EXPECT(SILT_OK, silt_log_set_high_watermark(log, 40, NULL, NULL));

    /* What is found is what was appended, and stays when the log does not. */
    silt_range_t range = locate(log, 12, SILT_UP_TO_HIGH_WATERMARK, SILT_OK);
    CHECK(range.fd >= 0 && range.lease != 0 && range.base_offset == 12);
    unsigned char bytes[256];
    CHECK(pread(range.fd, bytes, batch_size(40), (off_t)range.position) == (ssize_t)batch_size(40));
    silt_batch_t batch;
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_batch_parse(bytes, batch_size(40), &batch, 1, &count, NULL, NULL));
    CHECK(batch.base_offset == 12 && batch.leader_epoch == 3 && batch.producer_id == 77);
    uint64_t valid = 0;
    EXPECT(SILT_OK, silt_batch_validate(bytes, batch_size(40), &valid, NULL));
    CHECK(silt_range_is_intact(&range) == 1);

    silt_range_t nothing = locate(log, 45, SILT_UP_TO_HIGH_WATERMARK, SILT_OK);
    CHECK(nothing.fd == -1 && nothing.lease == 0 && nothing.size_bytes == 0);
    CHECK(silt_range_is_intact(&nothing) == 0);
    locate(log, 51, SILT_UP_TO_LOG_END, SILT_E_OUT_OF_RANGE);
    locate(log, -1, SILT_UP_TO_LOG_END, SILT_E_OUT_OF_RANGE);

    silt_fetch_t fetch = { log, 30, 1 << 20, SILT_UP_TO_LOG_END, 0, 0, NULL };
    silt_range_t copied;
    unsigned char copy[2048];
    EXPECT(SILT_OK, silt_log_read(&fetch, copy, sizeof copy, &copied, NULL));
    CHECK(copied.base_offset == 30 && copied.size_bytes > 0 && copied.lease == 0);
    EXPECT(SILT_OK, silt_log_read(&fetch, copy, 100, &copied, NULL));
    CHECK(copied.size_bytes == 100 && silt_range_is_intact(&copied) == 0);
    fetch.max_bytes = 10;
    EXPECT(SILT_OK, silt_log_read(&fetch, copy, sizeof copy, &copied, NULL));
    CHECK(copied.size_bytes == 10 && copied.flags == SILT_RANGE_FIRST_INCOMPLETE);
    fetch.max_bytes = 1 << 20;
    fetch.flags = SILT_FETCH_MIN_ONE;
    EXPECT(SILT_E_SHORT_BUFFER, silt_log_read(&fetch, copy, 10, &copied, NULL));
    CHECK(copied.size_bytes == 0 && copied.fd == -1 && copied.lease == 0);

    silt_segment_t segments[64];
    uint32_t segment_count = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_log_segments(log, NULL, 0, &segment_count, NULL));
    CHECK(segment_count == offsets.segment_count);
    EXPECT(SILT_OK, silt_log_segments(log, segments, 64, &segment_count, NULL));
    CHECK(segments[0].base_offset == 0 && segments[1].base_offset > 0);

    silt_epoch_t epochs[2];
    EXPECT(SILT_OK, silt_log_epochs(log, epochs, 2, &count, NULL));
    CHECK(count == 1 && epochs[0].epoch == 3 && epochs[0].start_offset == 0);
    int32_t found = 0;
    int64_t end = 0;
    EXPECT(SILT_OK, silt_log_epoch_end(log, 3, &found, &end, NULL));
    CHECK(found == 3 && end == 50);
    EXPECT(SILT_OK, silt_log_epoch_end(log, 9, &found, &end, NULL));
    CHECK(found == -1 && end == -1);

    silt_time_offset_t when;
    EXPECT(SILT_OK, silt_log_offset_for_time(log, 1020, &when, NULL));
    CHECK(when.offset == 20 && when.timestamp_ms == 1020 && when.leader_epoch == 3);
    EXPECT(SILT_E_NOT_FOUND, silt_log_offset_for_time(log, 9000, &when, NULL));

    silt_aborted_t aborted[4];
    EXPECT(SILT_OK, silt_log_aborted(log, 0, 50, aborted, 4, &count, NULL));
    CHECK(count == 0);

    int64_t base = 0;
    EXPECT(SILT_OK, silt_log_roll(log, 6000, &base, NULL));
    CHECK(base == 50);
    EXPECT(SILT_OK, silt_log_flush(log, 6000, NULL));
    CHECK(offsets_of(log).recovery_point == 50);
    EXPECT(SILT_OK, silt_log_advance_start(log, 20, NULL));
    CHECK(offsets_of(log).log_start_offset == 20);
    EXPECT(SILT_E_OUT_OF_RANGE, silt_log_advance_start(log, 49, NULL));
    uint64_t removed = 0;
    EXPECT(SILT_OK, silt_log_retain(log, 6000, &removed, NULL));
    CHECK(removed > 0);
    EXPECT(SILT_OK, silt_log_delete_due_files(log, 6000, &removed, NULL));
    CHECK(removed == 0);
    EXPECT(SILT_OK, silt_log_delete_due_files(log, 100000, &removed, NULL));
    CHECK(removed > 0);
    /* Its segment is gone, the range is not. */
    CHECK(pread(range.fd, bytes, 61, (off_t)range.position) == 61);

    EXPECT(SILT_OK, silt_log_truncate_to(log, 45, 7000, NULL));
    CHECK(offsets_of(log).log_end_offset == 45);
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    EXPECT(SILT_E_CLOSED, silt_log_stop(log, NULL));
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CLOSED, silt_log_flush(log, 8000, &error));
    CHECK(error.code == SILT_E_CLOSED && error.message[0] != 0);
    silt_log_close(log);
    CHECK(pread(range.fd, bytes, 61, (off_t)range.position) == 61);
    uint64_t leases[2] = { 0, range.lease };
    EXPECT(SILT_OK, silt_leases_release(leases, 2, NULL));
    CHECK(pread(range.fd, bytes, 61, (off_t)range.position) == -1 && errno == EBADF);

    /* Another topic's, and then again as it was. */
    options.topic_id[0] = 8;
    silt_log_t *other = NULL;
    EXPECT(SILT_E_CONFLICT, silt_log_open(path_of("orders-0"), &options, &other, &error));
    CHECK(other == NULL && strstr(error.message, "orders-0") != NULL);
    options.topic_id[0] = 7;
    options.log_start_offset = 20;
    log = open_log("orders-0", &options);
    CHECK(offsets_of(log).log_end_offset == 45 && offsets_of(log).log_start_offset == 20);
    EXPECT(SILT_OK, silt_log_truncate_fully(log, 500, -1, 9000, NULL));
    CHECK(offsets_of(log).log_end_offset == 500 && offsets_of(log).log_start_offset == 500);
    CHECK(append(log, -1, 0).first_offset == 500);
    silt_log_close(log);
}

/* Two logs of a directory would write over each other's batches. */
static void is_open_once(void) {
    silt_log_t *log = open_log("once-0", NULL), *other = NULL;
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CONFLICT, silt_log_open(path_of("once-0"), NULL, &other, &error));
    CHECK(other == NULL && strstr(error.message, "once-0") != NULL);
    CHECK(symlink("once-0", path_of("link-0")) == 0);
    EXPECT(SILT_E_CONFLICT, silt_log_open(path_of("link-0"), NULL, &other, &error));
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    other = open_log("once-0", NULL);
    /* It was stopped, and has nothing to give back. */
    silt_log_close(log);
    log = NULL;
    EXPECT(SILT_E_CONFLICT, silt_log_open(path_of("once-0"), NULL, &log, &error));
    silt_log_close(other);
    silt_log_close(open_log("once-0", NULL));
}

static void refuses(void) {
    silt_log_t *log = open_log("refused-0", NULL);
    unsigned char bytes[256], before[256];
    silt_append_t request = SILT_APPEND_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    silt_error_t error = SILT_ERROR_INIT;
    append(log, 5, 0);

    /* A gap in the sequence changes neither the log nor the bytes. */
    size_t size = make_batch(bytes, 0, 1000, 5, 7, 40);
    memcpy(before, bytes, size);
    EXPECT(SILT_E_CONFLICT, silt_log_append_leader(log, bytes, size, &request, &appended, &error));
    CHECK(error.detail_code == SILT_DETAIL_OUT_OF_ORDER_SEQUENCE);
    CHECK(memcmp(before, bytes, size) == 0 && offsets_of(log).log_end_offset == 1);
    CHECK(appended.first_offset == -1);

    size = make_batch(bytes, 0, 1000, -1, 0, 40);
    bytes[size - 3] ^= 1;
    EXPECT(SILT_E_CORRUPT, silt_log_append_leader(log, bytes, size, &request, &appended, &error));
    CHECK(error.detail_code == SILT_DETAIL_CORRUPT_MESSAGE);
    EXPECT(SILT_E_CORRUPT, silt_log_append_follower(log, bytes, size, 0, 0, &appended, NULL));
    size = make_batch(bytes, 0, 1000, -1, 0, 40);
    EXPECT(SILT_E_OUT_OF_RANGE, silt_log_append_follower(log, bytes, size, 0, 0, &appended, &error));
    CHECK(error.detail_code == SILT_DETAIL_UNEXPECTED_APPEND_OFFSET);
    make_batch(bytes, 1, 1000, -1, 0, 40);
    EXPECT(SILT_OK, silt_log_append_follower(log, bytes, size, 0, 0, &appended, NULL));
    CHECK(appended.last_offset == 1);
    EXPECT(SILT_OK, silt_log_append_follower(log, NULL, 0, 0, 0, &appended, NULL));
    CHECK(appended.last_offset == -1);

    request.origin = 9;
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    request.origin = 0;
    request.transaction_version = -4;
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_set_high_watermark(log, -1, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_truncate_to(log, -1, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_truncate_fully(log, -1, -1, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_truncate_fully(log, 5, -7, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_assign_epoch(log, -1, 0, NULL));
    silt_log_close(log);
}

static void refuses_to_open(void) {
    silt_log_t *log = NULL;
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(NULL, NULL, &log, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("x-0"), NULL, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("nothing"), NULL, &log, &error));
    CHECK(strstr(error.message, "nothing") != NULL);
    EXPECT(SILT_E_NOT_FOUND, silt_log_open(path_of("no/where-0"), NULL, &log, &error));
    CHECK(error.os_errno == ENOENT);
    CHECK(mkdir(path_of("damaged-0"), 0755) == 0 && mkdir(path_of("damaged-1"), 0755) == 0);
    make_file(path_of("damaged-0/partition.metadata"), "version: x", 10);
    EXPECT(SILT_E_CORRUPT, silt_log_open(path_of("damaged-0"), NULL, &log, &error));
    CHECK(strstr(error.message, "partition.metadata") != NULL);
    struct rlimit limit, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = limit;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    EXPECT(SILT_E_IO, silt_log_open(path_of("damaged-1"), NULL, &log, &error));
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(error.os_errno == EMFILE);
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    silt_config_t config = { "segment.bytes", "many" };
    options.configs = &config;
    options.config_count = 1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("x-0"), &options, &log, &error));
    CHECK(strstr(error.message, "segment.bytes") != NULL);
    config.value = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("x-0"), &options, &log, NULL));
    options.configs = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("x-0"), &options, &log, NULL));
    options.config_count = 0;
    options.io = 77;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("x-0"), &options, &log, NULL));
    options.io = 0;
    options.flags = 1u << 31;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("x-0"), &options, &log, NULL));
    CHECK(log == NULL);
}

/* Whether this process has a map of a file whose path has this in it. */
static int is_mapped(const char *part) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[4096];
    int is_found = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        is_found |= strstr(line, part) != NULL;
    }
    fclose(maps);
    return is_found;
}

/* Answers are the same with maps and without; what the log cuts under them makes no signal. */
static void looks_up_by_maps(void) {
    silt_config_t config = { "segment.bytes", "1024" };
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.configs = &config;
    options.config_count = 1;
    for (int maps = 0; maps < 2; maps++) {
        const char *name = maps ? "mapped-0" : "unmapped-0";
        options.flags = maps ? SILT_LOG_MAP_SEALED : 0;
        silt_log_t *log = open_log(name, &options);
        for (int i = 0; i < 50; i++) {
            append(log, 77, i);
        }
        for (int round = 0; round < 20; round++) {
            for (int offset = 0; offset < 20; offset++) {
                silt_range_t range = locate(log, offset, SILT_UP_TO_LOG_END, SILT_OK);
                CHECK(range.base_offset == offset);
                EXPECT(SILT_OK, silt_leases_release(&range.lease, 1, NULL));
            }
        }
        CHECK(is_mapped(name) == maps);
        EXPECT(SILT_OK, silt_log_truncate_to(log, 3, 9000, NULL));
        locate(log, 4, SILT_UP_TO_LOG_END, SILT_E_OUT_OF_RANGE);
        silt_range_t range = locate(log, 2, SILT_UP_TO_LOG_END, SILT_OK);
        CHECK(range.base_offset == 2);
        EXPECT(SILT_OK, silt_leases_release(&range.lease, 1, NULL));
        silt_log_close(log);
        CHECK(!is_mapped(name));
    }
}

/* An older caller's struct is shorter, a newer one's is longer. */
static void grows(void) {
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    silt_log_t *log = NULL;
    uint32_t wrong_sizes[] = { 8, 4097, UINT32_MAX };
    for (int i = 0; i < 3; i++) {
        options.struct_size = wrong_sizes[i];
        EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("grown-0"), &options, &log, NULL));
    }
    struct {
        silt_log_options_t known;
        uint64_t later;
    } newer = { SILT_LOG_OPTIONS_INIT, 0 };
    newer.known.struct_size = sizeof newer;
    EXPECT(SILT_OK, silt_log_open(path_of("grown-0"), &newer.known, &log, NULL));
    silt_log_close(log);
    newer.later = 1;
    log = NULL;
    EXPECT(SILT_E_UNSUPPORTED, silt_log_open(path_of("grown-0"), &newer.known, &log, NULL));
    CHECK(log == NULL);

    log = open_log("grown-0", NULL);
    struct {
        silt_offsets_t known;
        uint64_t later;
    } result = { SILT_OFFSETS_INIT, 42 };
    result.known.struct_size = sizeof result;
    EXPECT(SILT_OK, silt_log_offsets(log, &result.known, NULL));
    CHECK(result.known.struct_size == sizeof result && result.later == 42);
    CHECK(result.known.log_end_offset == 0);
    silt_log_close(log);
}

/* Appends a transactional batch of one record. */
static silt_status_t append_in_transaction(silt_log_t *log, int32_t sequence, uint64_t verification,
                                           silt_error_t *error) {
    unsigned char bytes[256];
    size_t size = make_batch(bytes, 0, 1000, 9, sequence, 40);
    put_in_transaction(bytes, size);
    silt_append_t request = SILT_APPEND_INIT;
    request.verification = verification;
    silt_appended_t appended = SILT_APPENDED_INIT;
    return silt_log_append_leader(log, bytes, size, &request, &appended, error);
}

/* Ends the transaction of the same producer. */
static silt_status_t append_marker(silt_log_t *log, uint32_t flags, silt_appended_t *appended,
                                   silt_error_t *error) {
    silt_end_marker_t marker = SILT_END_MARKER_INIT;
    marker.flags = flags;
    marker.producer_id = 9;
    marker.timestamp_ms = 7000;
    marker.coordinator_epoch = 2;
    unsigned char bytes[78];
    uint64_t size = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_end_marker_write(&marker, NULL, 0, &size, NULL));
    CHECK(size == sizeof bytes);
    EXPECT(SILT_OK, silt_end_marker_write(&marker, bytes, sizeof bytes, &size, NULL));
    silt_append_t request = SILT_APPEND_INIT;
    request.origin = SILT_ORIGIN_COORDINATOR;
    request.transaction_version = 1;
    return silt_log_append_leader(log, bytes, size, &request, appended, error);
}

/* A marker that aborts, and one that commits: the library writes and understands them. */
static void ends_transactions(void) {
    silt_log_t *log = open_log("ended-0", NULL);
    silt_error_t error = SILT_ERROR_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    uint64_t verification = 0;
    for (int i = 0; i < 2; i++) {
        EXPECT(SILT_OK, silt_log_start_verification(log, 9, i, 0, 0, 5000, &verification, NULL));
        EXPECT(SILT_OK, append_in_transaction(log, i, verification, NULL));
        EXPECT(SILT_OK, append_marker(log, i == 0 ? SILT_END_ABORT : 0, &appended, NULL));
        CHECK(appended.last_offset == 2 * i + 1 && appended.max_timestamp_ms == 7000);
    }
    EXPECT(SILT_OK, silt_log_set_high_watermark(log, 4, NULL, NULL));
    CHECK(offsets_of(log).last_stable_offset == 4);
    silt_aborted_t aborted[2];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_log_aborted(log, 0, 4, aborted, 2, &count, NULL));
    CHECK(count == 1 && aborted[0].producer_id == 9);
    CHECK(aborted[0].first_offset == 0 && aborted[0].last_offset == 1);
    /* Room for none of them: the range is good. */
    silt_fetch_t committed = { log, 0, 100, SILT_UP_TO_LAST_STABLE, 0, 0, aborted };
    silt_range_t located;
    silt_status_t status = SILT_OK;
    EXPECT(SILT_OK, silt_locate(&committed, 1, &located, &status, NULL));
    EXPECT(SILT_E_SHORT_BUFFER, status);
    CHECK(located.aborted_count == 1 && located.size_bytes == 100);
    EXPECT(SILT_OK, silt_leases_release(&located.lease, 1, NULL));

    silt_batch_t batch;
    unsigned char bytes[256];
    silt_fetch_t fetch = { log, 1, 78, SILT_UP_TO_LOG_END, 0, 0, NULL };
    silt_range_t range;
    EXPECT(SILT_OK, silt_log_read(&fetch, bytes, sizeof bytes, &range, NULL));
    EXPECT(SILT_OK, silt_batch_parse(bytes, 78, &batch, 1, &count, NULL, NULL));
    CHECK(batch.flags == (SILT_BATCH_TRANSACTIONAL | SILT_BATCH_CONTROL) && batch.crc != 0);

    silt_end_marker_t marker = SILT_END_MARKER_INIT;
    uint64_t size = 42;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(NULL, bytes, 78, &size, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(&marker, bytes, 78, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(&marker, NULL, 78, &size, NULL));
    marker.flags = 2;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(&marker, bytes, 78, &size, NULL));
    marker.flags = 0;
    marker.producer_epoch = 1 << 15;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(&marker, bytes, 78, &size, &error));
    marker.producer_epoch = 0;
    marker.producer_id = -1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(&marker, bytes, 78, &size, &error));
    marker.producer_id = 0;
    marker.timestamp_ms = -2;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_end_marker_write(&marker, bytes, 78, &size, &error));
    CHECK(size == 42 && error.message[0] != 0);
    silt_log_close(log);
}

/* Those who have been silent are forgotten, and what a topic's folder says is told. */
static void knows_its_topic_and_forgets_producers(void) {
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.producer_expiration_ms = 1000;
    for (int i = 0; i < 16; i++) {
        options.topic_id[i] = (uint8_t)(i + 1);
    }
    silt_log_t *log = open_log("silent-0", &options);
    append(log, 5, 0);
    silt_producer_t producer;
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_log_expire_producers(log, 1999, NULL));
    EXPECT(SILT_OK, silt_log_producers(log, &producer, 1, &count, NULL));
    CHECK(count == 1);
    EXPECT(SILT_OK, silt_log_expire_producers(log, 2000, NULL));
    EXPECT(SILT_OK, silt_log_producers(log, &producer, 1, &count, NULL));
    CHECK(count == 0);

    uint8_t id[16] = { 0 };
    EXPECT(SILT_OK, silt_log_topic_id(log, id, NULL));
    CHECK(memcmp(id, options.topic_id, sizeof id) == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_topic_id(log, NULL, NULL));

    EXPECT(SILT_OK, silt_log_set_highest_remote(log, 7, NULL));
    EXPECT(SILT_OK, silt_log_set_highest_remote(log, 3, NULL));
    CHECK(offsets_of(log).highest_remote_offset == 7);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_set_highest_remote(log, -1, NULL));
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    silt_log_close(log);

    /* The directory knows, where the caller does not; and an older caller, too. */
    options.struct_size = offsetof(silt_log_options_t, producer_expiration_ms);
    memset(options.topic_id, 0, sizeof options.topic_id);
    log = open_log("silent-0", &options);
    EXPECT(SILT_OK, silt_log_topic_id(log, id, NULL));
    CHECK(id[0] == 1 && id[15] == 16);
    append(log, 5, 1);
    EXPECT(SILT_OK, silt_log_expire_producers(log, 2000, NULL));
    EXPECT(SILT_OK, silt_log_producers(log, &producer, 1, &count, NULL));
    CHECK(count == 1);
    silt_log_close(log);
    options.struct_size = sizeof options;
    options.producer_expiration_ms = -1;
    log = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("silent-0"), &options, &log, NULL));
    CHECK(log == NULL);
}

static void begins_verified_transactions_alone(void) {
    silt_log_t *log = open_log("verified-0", NULL);
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CONFLICT, append_in_transaction(log, 0, 0, &error));
    CHECK(error.detail_code == SILT_DETAIL_INVALID_TXN_STATE);
    uint64_t verification = 0;
    EXPECT(SILT_OK, silt_log_start_verification(log, 9, 0, 0, 0, 5000, &verification, NULL));
    CHECK(verification != 0);
    EXPECT(SILT_E_CONFLICT, append_in_transaction(log, 0, verification + 1, NULL));
    EXPECT(SILT_OK, append_in_transaction(log, 0, verification, NULL));
    EXPECT(SILT_OK, silt_log_start_verification(log, 9, 1, 0, 0, 5000, &verification, NULL));
    CHECK(verification == 0);
    EXPECT(SILT_OK, append_in_transaction(log, 1, 0, NULL));

    verification = 42;
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_log_start_verification(NULL, 9, 0, 0, 0, 0, &verification, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_start_verification(log, 9, 0, 0, 0, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_log_start_verification(log, 9, 0, 1 << 15, 0, 0, &verification, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_log_start_verification(log, 9, 0, 0, 2, 0, &verification, NULL));
    EXPECT(SILT_E_CONFLICT,
           silt_log_start_verification(log, 9, 0, -1, 0, 0, &verification, &error));
    CHECK(error.detail_code == SILT_DETAIL_INVALID_PRODUCER_EPOCH && verification == 42);
    silt_log_close(log);
}

static void takes_no_null(void) {
    silt_log_t *log = open_log("null-0", NULL);
    unsigned char bytes[256];
    size_t size = make_batch(bytes, 0, 1000, -1, 0, 40);
    silt_append_t request = SILT_APPEND_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    uint32_t count;
    int32_t number;
    int64_t offset;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_leader(NULL, bytes, size, &request, &appended, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_leader(log, NULL, size, &request, &appended, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_leader(log, bytes, size, NULL, &appended, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_leader(log, bytes, size, &request, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_follower(NULL, bytes, size, 0, 0, &appended, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_follower(log, NULL, size, 0, 0, &appended, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_append_follower(log, bytes, size, 0, 0, NULL, NULL));
    CHECK(offsets_of(log).log_end_offset == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_stop(NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_flush(NULL, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_roll(NULL, 0, &offset, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_truncate_to(NULL, 0, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_truncate_fully(NULL, 0, -1, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_offsets(log, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_set_high_watermark(NULL, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_advance_start(NULL, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_retain(NULL, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_delete_due_files(NULL, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_segments(NULL, NULL, 0, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_segments(log, NULL, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_segments(log, NULL, 9, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_epochs(log, NULL, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_epoch_end(log, 0, NULL, &offset, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_epoch_end(log, 0, &number, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_assign_epoch(NULL, 0, 0, NULL));
    append(log, -1, 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_offset_for_time(log, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_aborted(log, 0, 1, NULL, 0, NULL, NULL));

    silt_fetch_t fetch = { log, 0, 100, 0, 0, 0, NULL };
    silt_range_t range;
    silt_status_t status;
    EXPECT(SILT_OK, silt_locate(NULL, 0, NULL, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_locate(NULL, 1, &range, &status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_locate(&fetch, 1, NULL, &status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_locate(&fetch, 1, &range, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_read(NULL, bytes, size, &range, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_read(&fetch, NULL, size, &range, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_read(&fetch, bytes, size, NULL, NULL));
    fetch.up_to = 3;
    EXPECT(SILT_OK, silt_locate(&fetch, 1, &range, &status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, status);
    fetch.up_to = 0;
    fetch.log = NULL;
    EXPECT(SILT_OK, silt_locate(&fetch, 1, &range, &status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, status);
    CHECK(range.fd == -1 && range.lease == 0);
    CHECK(silt_range_is_intact(NULL) == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leases_release(NULL, 1, NULL));
    EXPECT(SILT_OK, silt_leases_release(NULL, 0, NULL));
    /* What is none of the library's objects. */
    uint64_t other[64] = { 0 };
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_flush((silt_log_t *)(void *)other, 0, NULL));
    silt_log_close(log);
    silt_log_close(NULL);
}

static void outlives_a_panic(void) {
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_BUG, silt_test_panic(&error));
    CHECK(strstr(error.message, "as it was asked to") != NULL);
    EXPECT(SILT_E_BUG, silt_test_panic(NULL));
    silt_log_t *log = open_log("panic-0", NULL);
    EXPECT(SILT_E_BUG, silt_test_panic_on_log(log, &error));
    EXPECT(SILT_E_CLOSED, silt_log_flush(log, 0, &error));
    silt_log_close(log);

    /* The logs that a call names are its objects, too. */
    unsigned char bytes[256];
    silt_append_item_t item;
    silt_append_result_t result;
    silt_range_t range;
    silt_status_t status;
    for (int call = 0; call < 4; call++) {
        log = open_log("panic-1", NULL);
        memset(&item, 0, sizeof item);
        item.log = log;
        item.records = bytes;
        item.size_bytes = make_batch(bytes, 0, 1000, -1, 0, 40);
        silt_fetch_t fetch = { log, 0, 100, 0, 0, 0, NULL };
        silt_test_panic_next();
        EXPECT(SILT_E_BUG,
               call == 0   ? silt_append_many(&item, 1, &result, &status, NULL)
               : call == 1 ? silt_locate(&fetch, 1, &range, &status, NULL)
               : call == 2 ? silt_locate_within(&fetch, 1, 9, &range, &status, NULL)
                           : silt_log_read(&fetch, bytes, sizeof bytes, &range, NULL));
        EXPECT(SILT_E_CLOSED, silt_log_flush(log, 0, &error));
        silt_log_close(log);
    }
}

static void belongs_to_its_process(void) {
    silt_log_t *log = open_log("forked-0", NULL);
    append(log, -1, 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        silt_error_t error = SILT_ERROR_INIT;
        int is_told = silt_log_flush(log, 0, &error) == SILT_E_FORKED;
        silt_log_close(log);
        /* Nobody is to count what the child had from its parent as leaked at its end. */
        kill(getpid(), is_told ? SIGKILL : SIGABRT);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    silt_log_close(log);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    lives();
    is_open_once();
    refuses();
    refuses_to_open();
    looks_up_by_maps();
    grows();
    begins_verified_transactions_alone();
    ends_transactions();
    knows_its_topic_and_forgets_producers();
    takes_no_null();
    outlives_a_panic();
    belongs_to_its_process();
    puts("ok");
    return 0;
}
