/* Remote storage: what is to be uploaded, and where a remote segment is read. */
#include "check.h"

/* Two logs: of four segments, and of one that is written to. */
static const int64_t bases[] = { 0, 10, 20, 30, 5 };
static const uint64_t starts[] = { 0, 100, 200, 300, 400 };
static const int64_t timestamps[] = { 1000, 2000, INT64_MIN, -1, -1 };
static const uint64_t ends[] = { 4, 5 };
static const uint64_t active_sizes[] = { 50, 60 };

static silt_tier_columns_t two_logs(void) {
    silt_tier_columns_t columns = SILT_TIER_COLUMNS_INIT;
    columns.partition_count = 2;
    columns.segment_count = 5;
    columns.now_ms = 5000;
    columns.base_offset = bases;
    columns.start_bytes = starts;
    columns.max_timestamp_ms = timestamps;
    columns.segment_end = ends;
    columns.active_size_bytes = active_sizes;
    return columns;
}

static void says_what_is_to_be_uploaded(void) {
    uint8_t eligible[5], reason[5], stop[2];
    uint64_t first[2], count[2], sums[2];
    int64_t oldest[2];
    silt_tier_columns_t columns = two_logs();
    columns.eligible = eligible;
    columns.reason = reason;
    columns.first_segment = first;
    columns.eligible_count = count;
    columns.stop = stop;
    columns.sum_bytes = sums;
    columns.oldest_timestamp_ms = oldest;
    memset(eligible, 9, sizeof eligible);
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(eligible, "\1\1\1\0\0", 5) == 0 && memcmp(reason, "\0\0\0\1\1", 5) == 0);
    CHECK(first[0] == 0 && count[0] == 3 && sums[0] == 300 && stop[0] == SILT_WAITS_ACTIVE);
    CHECK(first[1] == 4 && count[1] == 0 && sums[1] == 0 && stop[1] == SILT_WAITS_ACTIVE);
    CHECK(oldest[0] == 1000 && oldest[1] == INT64_MIN);

    int64_t stable[] = { 20, 5 }, copied[] = { 9, -1 };
    columns.last_stable_offset = stable;
    columns.copied_offset = copied;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(eligible, "\0\1\0\0\0", 5) == 0 && memcmp(reason, "\3\0\2\1\1", 5) == 0);
    CHECK(first[0] == 1 && count[0] == 1 && sums[0] == 100 && oldest[0] == 2000);
    CHECK(stop[0] == SILT_WAITS_ABOVE_LAST_STABLE);

    int64_t log_starts[] = { 10, 0 }, lineage[] = { 20, 0 };
    copied[0] = -1;
    stable[0] = 30;
    columns.log_start_offset = log_starts;
    columns.lineage_start_offset = lineage;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\4\7\11\1\1", 5) == 0 && count[0] == 0 && first[0] == 1);
    columns.lineage_start_offset = NULL;

    uint64_t damaged[] = { 2 };
    columns.damaged = damaged;
    columns.damaged_count = 1;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\4\0\10\1\1", 5) == 0 && stop[0] == SILT_WAITS_DAMAGED);
    columns.damaged_count = 0;

    int64_t lags_ms[] = { 3500, 0 }, lags_bytes[] = { 1000, -1 };
    columns.copy_lag_ms = lags_ms;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\4\5\6\1\1", 5) == 0 && stop[0] == SILT_WAITS_LAGGING);
    columns.max_timestamp_ms = NULL;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\4\6\6\1\1", 5) == 0);
    columns.copy_lag_ms = NULL;
    columns.copy_lag_bytes = lags_bytes;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\4\5\5\1\1", 5) == 0);
    lags_bytes[0] = 150;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\4\0\5\1\1", 5) == 0);
    columns.copy_lag_bytes = NULL;

    stable[0] = -1;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(reason, "\12\12\12\12\1", 5) == 0 && stop[0] == SILT_WAITS_INCONSISTENT);
}

static void takes_any_columns_that_are_not_there(void) {
    uint64_t count[2] = { 7, 7 };
    uint8_t eligible[5];
    silt_tier_columns_t columns = two_logs();
    columns.start_bytes = NULL;
    columns.max_timestamp_ms = NULL;
    columns.active_size_bytes = NULL;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    columns.eligible = eligible;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(memcmp(eligible, "\1\1\1\0\0", 5) == 0);
    columns.eligible_count = count;
    EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
    CHECK(count[0] == 3 && count[1] == 0);

    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(NULL, &error));
    CHECK(error.message[0] != 0);
    columns.base_offset = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    columns.base_offset = bases;
    columns.segment_end = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    columns.segment_end = ends;
    columns.segment_count = 4; /* less than the last partition's end */
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    uint64_t falling[] = { 5, 4 };
    columns.segment_count = 4;
    columns.segment_end = falling;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    columns.segment_end = ends;
    columns.segment_count = UINT64_MAX;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    columns.segment_count = 5;
    uint64_t damaged[] = { 3, 2 };
    columns.damaged_count = 2;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    columns.damaged = damaged;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    columns.damaged_count = 0;
    columns.sum_bytes = (uint64_t *)(void *)(eligible + 1 - ((uintptr_t)eligible & 1));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&columns, NULL));
    CHECK(count[0] == 3);
    silt_tier_columns_t none = SILT_TIER_COLUMNS_INIT;
    EXPECT(SILT_OK, silt_tier_eligible(&none, NULL));
    none.struct_size = 12;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_eligible(&none, NULL));
}

/* Numbers that make no sense give useless answers and nothing worse. */
static void lives_with_offsets_that_do_not_rise(void) {
    enum { SEGMENTS = 64, LOGS = 8 };
    int64_t offsets[SEGMENTS], limits[LOGS], copied[LOGS], lags[LOGS];
    uint64_t positions[SEGMENTS], log_ends[LOGS], count[LOGS], sums[LOGS];
    uint8_t eligible[SEGMENTS], reason[SEGMENTS];
    uint64_t state = 88172645463325252u;
    silt_tier_columns_t columns = SILT_TIER_COLUMNS_INIT;
    columns.partition_count = LOGS;
    columns.segment_count = SEGMENTS;
    columns.base_offset = offsets;
    columns.start_bytes = positions;
    columns.max_timestamp_ms = offsets;
    columns.segment_end = log_ends;
    columns.log_start_offset = lags;
    columns.last_stable_offset = limits;
    columns.copied_offset = copied;
    columns.copy_lag_ms = lags;
    columns.eligible = eligible;
    columns.reason = reason;
    columns.eligible_count = count;
    columns.sum_bytes = sums;
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < SEGMENTS; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            offsets[i] = (int64_t)(round % 2 ? state : state % 64);
            positions[i] = state >> 3;
            int log = i % LOGS;
            log_ends[log] = (uint64_t)(log + 1) * SEGMENTS / LOGS;
            limits[log] = (int64_t)(round % 3 ? state % 80 : state);
            copied[log] = (int64_t)(state >> 8) % 70;
            lags[log] = (int64_t)(state >> 16) % 5 - 1;
        }
        memset(reason, 99, sizeof reason);
        EXPECT(SILT_OK, silt_tier_eligible(&columns, NULL));
        for (int i = 0; i < SEGMENTS; i++) {
            CHECK(reason[i] <= SILT_WAITS_INCONSISTENT && eligible[i] == (reason[i] == 0));
        }
    }
}

/* Offsets 0 to 199 in 16000 bytes, with a place at 49, 99 and 149. */
static silt_direct_request_t segment_of_200(unsigned char *offset_index) {
    for (int i = 0; i < 3; i++) {
        put_number(offset_index + 8 * i, 4, 49 + 50 * i);
        put_number(offset_index + 8 * i + 4, 4, 4000 + 4000 * i);
    }
    silt_direct_request_t request = SILT_DIRECT_REQUEST_INIT;
    request.end_offset = 199;
    request.log_size_bytes = 16000;
    request.offset_index = offset_index;
    request.offset_index_size_bytes = 24;
    request.limit_offset = 1000;
    request.max_bytes = UINT64_MAX;
    return request;
}

static void says_where_a_remote_segment_is_read(void) {
    unsigned char index[24], transactions[68];
    silt_direct_request_t request = segment_of_200(index);
    silt_direct_read_t read = SILT_DIRECT_READ_INIT;
    request.offset = 60;
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.position == 4000 && read.size_bytes == 12000 && read.upper_bound_offset == 200);
    CHECK(read.next_offset == 200 && read.aborted_count == 0 && read.flags == 0);
    request.max_bytes = 1;
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.position == 4000 && read.size_bytes == 4000 && read.upper_bound_offset == 99);
    request.limit_offset = 60;
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.size_bytes == 0 && read.upper_bound_offset == -1 && read.next_offset == -1);

    /* Two aborted transactions, the second of which ends the search of a range up to 99. */
    for (int i = 0; i < 2; i++) {
        unsigned char *entry = transactions + 34 * i;
        put_number(entry, 2, 0);
        put_number(entry + 2, 8, 70 + i);
        put_number(entry + 10, 8, 55 + 20 * i);
        put_number(entry + 18, 8, 65 + 20 * i);
        put_number(entry + 26, 8, 60 + 60 * i);
    }
    silt_aborted_t aborted[2];
    request.limit_offset = 99;
    request.transaction_index = transactions;
    request.transaction_index_size_bytes = sizeof transactions;
    EXPECT(SILT_E_SHORT_BUFFER, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.aborted_count == 2 && read.size_bytes == 4000);
    request.aborted = aborted;
    request.aborted_capacity = 1;
    EXPECT(SILT_E_SHORT_BUFFER, silt_tier_direct_read(&request, &read, NULL));
    request.aborted_capacity = 2;
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.aborted_count == 2 && read.flags == 0);
    CHECK(aborted[0].producer_id == 70 && aborted[0].first_offset == 55);
    CHECK(aborted[1].producer_id == 71 && aborted[1].last_offset == 85);
    request.transaction_index_size_bytes = 34;
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.aborted_count == 1 && read.flags == SILT_DIRECT_ABORTED_GO_ON);
    request.transaction_index_size_bytes = 0; /* the segment has none, the next ones may */
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.aborted_count == 0 && read.flags == SILT_DIRECT_ABORTED_GO_ON);
    request.transaction_index_size_bytes = 34;
    put_number(transactions, 2, 0x100); /* Kafka takes the versions up to 255 */
    EXPECT(SILT_E_UNSUPPORTED, silt_tier_direct_read(&request, &read, NULL));
}

static void refuses_requests_that_make_no_sense(void) {
    unsigned char index[24];
    silt_direct_request_t request = segment_of_200(index);
    silt_direct_read_t read = SILT_DIRECT_READ_INIT;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_direct_read(NULL, &read, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_direct_read(&request, NULL, NULL));
    request.offset = 200;
    EXPECT(SILT_E_OUT_OF_RANGE, silt_tier_direct_read(&request, &read, NULL));
    request.offset = -1;
    EXPECT(SILT_E_OUT_OF_RANGE, silt_tier_direct_read(&request, &read, NULL));
    request.offset = 0;
    request.offset_index = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_direct_read(&request, &read, NULL));
    request.offset_index_size_bytes = 0; /* no entry: all of the segment */
    EXPECT(SILT_OK, silt_tier_direct_read(&request, &read, NULL));
    CHECK(read.position == 0 && read.size_bytes == 16000);
    request.start_offset = 300;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_direct_read(&request, &read, NULL));
    request.start_offset = -1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_direct_read(&request, &read, NULL));
    read.struct_size = 47;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_direct_read(&request, &read, NULL));

    /* A caller of a newer header: what this library does not know must be 0. */
    struct {
        silt_direct_request_t known;
        uint64_t more;
    } newer = { segment_of_200(index), 0 };
    newer.known.struct_size = sizeof newer;
    read.struct_size = sizeof read;
    EXPECT(SILT_OK, silt_tier_direct_read(&newer.known, &read, NULL));
    newer.more = 1;
    EXPECT(SILT_E_UNSUPPORTED, silt_tier_direct_read(&newer.known, &read, NULL));
}

int main(void) {
    says_what_is_to_be_uploaded();
    takes_any_columns_that_are_not_there();
    lives_with_offsets_that_do_not_rise();
    says_where_a_remote_segment_is_read();
    refuses_requests_that_make_no_sense();
    puts("ok");
    return 0;
}
