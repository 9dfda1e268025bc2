/* What is known of producers, and what one walk over a segment gives. The argument is an empty
 * directory. */
#include "check.h"

/* Makes a batch of a transaction of make_batch's, or the marker that aborts or commits it. */
static size_t make_txn(unsigned char *to, int64_t offset, int64_t producer_id, int32_t sequence) {
    size_t size = make_batch(to, offset, 1000 + offset, producer_id, sequence, 40);
    put_number(to + 21, 2, 0x10);
    put_number(to + 17, 4, (int64_t)silt_crc32c(0, to + 21, size - 21));
    return size;
}

static size_t make_marker(unsigned char *to, int64_t offset, int64_t producer_id, int is_commit) {
    size_t size = 61 + 17;
    make_batch(to, offset, 1000 + offset, producer_id, -1, 10);
    put_number(to + 8, 4, (int64_t)size - 12);
    put_number(to + 21, 2, 0x30);
    put_number(to + 53, 4, -1);
    unsigned char record[17] = { 32, 0, 0, 0, 8, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 7, 0 };
    record[8] = (unsigned char)is_commit;
    memcpy(to + 61, record, sizeof record);
    put_number(to + 17, 4, (int64_t)silt_crc32c(0, to + 21, size - 21));
    return size;
}

static unsigned char bytes[1 << 16];

static void scans(void) {
    size_t size = 0;
    for (int i = 0; i < 200; i++) {
        size += make_batch(bytes + size, 100 + i, 5000 + i, 77, i, 40);
    }
    size += make_txn(bytes + size, 300, 5, 0);
    size += make_txn(bytes + size, 301, 6, 0);
    size += make_marker(bytes + size, 302, 5, 0);
    size_t whole = size;
    memset(bytes + size, 1, 30);

    unsigned char offsets[800], times[1200], txns[68], rebuilt_offsets[800], rebuilt_times[1200];
    silt_producer_t producers[4];
    silt_scan_t scan = SILT_SCAN_INIT;
    scan.base_offset = 100;
    scan.index_interval_bytes = 1000;
    scan.offset_index = offsets;
    scan.offset_index_capacity = sizeof offsets;
    scan.time_index = times;
    scan.time_index_capacity = sizeof times;
    scan.txn_index = txns;
    scan.txn_index_capacity = sizeof txns;
    scan.producers = producers;
    scan.producers_capacity = 4;
    silt_scanned_t found = SILT_SCANNED_INIT;
    EXPECT(SILT_OK, silt_segment_scan(bytes, size + 30, &scan, &found, NULL));
    CHECK(found.flags == 0 && found.valid_bytes == whole && found.batch_count == 203);
    CHECK(found.next_offset == 303 && found.max_timestamp_ms == 5199);
    CHECK(found.txn_index_size_bytes == 34 && found.producer_count == 3);
    CHECK(found.first_undecided_offset == 301);

    /* The indexes are those of the other function. */
    silt_rebuilt_t rebuilt = SILT_REBUILT_INIT;
    EXPECT(SILT_OK, silt_segment_rebuild(bytes, size, 100, 1000, 0, rebuilt_offsets,
                                         sizeof rebuilt_offsets, rebuilt_times,
                                         sizeof rebuilt_times, &rebuilt, NULL));
    CHECK(rebuilt.offset_index_size_bytes == found.offset_index_size_bytes);
    CHECK(memcmp(offsets, rebuilt_offsets, rebuilt.offset_index_size_bytes) == 0);
    CHECK(rebuilt.time_index_size_bytes == found.time_index_size_bytes);
    CHECK(memcmp(times, rebuilt_times, rebuilt.time_index_size_bytes) == 0);
    unsigned char aborted[34];
    put_number(aborted, 2, 0);
    put_number(aborted + 2, 8, 5);
    put_number(aborted + 10, 8, 300);
    put_number(aborted + 18, 8, 302);
    put_number(aborted + 26, 8, 301);
    CHECK(memcmp(txns, aborted, sizeof aborted) == 0);
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        const silt_producer_t *it = &producers[i];
        if (it->producer_id == 77) {
            CHECK(it->last_sequence == 199 && it->last_offset == 299 && it->txn_first_offset == -1);
            seen |= 1;
        } else if (it->producer_id == 6) {
            CHECK(it->txn_first_offset == 301 && it->last_sequence == 0);
            seen |= 2;
        } else {
            CHECK(it->producer_id == 5 && it->txn_first_offset == -1);
            CHECK(it->coordinator_epoch == 7);
            seen |= 4;
        }
    }
    CHECK(seen == 7);

    /* The next segment goes on from there: its marker ends the other transaction. */
    silt_producer_t before[3];
    memcpy(before, producers, sizeof before);
    unsigned char next[256];
    size_t next_size = make_marker(next, 303, 6, 1);
    scan.base_offset = 303;
    scan.producers_before = before;
    scan.producers_before_count = 3;
    EXPECT(SILT_OK, silt_segment_scan(next, next_size, &scan, &found, NULL));
    CHECK(found.first_undecided_offset == -1 && found.txn_index_size_bytes == 0);
    CHECK(found.producer_count == 3);
}

static void leaves_what_is_not_its_own(void) {
    silt_scan_t scan = SILT_SCAN_INIT;
    silt_scanned_t found = SILT_SCANNED_INIT;
    size_t size = make_batch(bytes, 10, 1000, -1, 0, 40);
    size_t far = make_batch(bytes + size, 10 + 2147483648LL, 1000, -1, 0, 40);
    EXPECT(SILT_OK, silt_segment_scan(bytes, size + far, &scan, &found, NULL));
    CHECK(found.flags == SILT_SCAN_OFFSETS && found.valid_bytes == size && found.batch_count == 1);
    scan.base_offset = 11;
    EXPECT(SILT_OK, silt_segment_scan(bytes, size, &scan, &found, NULL));
    CHECK(found.flags == SILT_SCAN_OFFSETS && found.valid_bytes == 0 && found.next_offset == 11);
    /* Data outside of the transaction that its producer has open. */
    scan.base_offset = 0;
    size = make_txn(bytes, 10, 5, 0);
    size_t wrong = make_batch(bytes + size, 11, 1000, 5, 1, 40);
    EXPECT(SILT_OK, silt_segment_scan(bytes, size + wrong, &scan, &found, NULL));
    CHECK(found.flags == SILT_SCAN_PRODUCERS && found.valid_bytes == size);
    EXPECT(SILT_OK, silt_segment_scan(NULL, 0, &scan, &found, NULL));
    CHECK(found.flags == 0 && found.valid_bytes == 0 && found.max_timestamp_ms == -1);
}

static void refuses(void) {
    silt_scan_t scan = SILT_SCAN_INIT;
    silt_scanned_t found = SILT_SCANNED_INIT;
    size_t size = 0;
    for (int i = 0; i < 200; i++) {
        size += make_batch(bytes + size, i, 5000 + i, i % 9, i / 9, 40);
    }
    silt_producer_t producers[4];
    unsigned char small[4];
    scan.producers = producers;
    scan.producers_capacity = 4;
    EXPECT(SILT_E_SHORT_BUFFER, silt_segment_scan(bytes, size, &scan, &found, NULL));
    CHECK(found.producer_count == 9);
    scan.producers_capacity = 0;
    EXPECT(SILT_OK, silt_segment_scan(bytes, size, &scan, &found, NULL));
    scan.time_index = small;
    scan.time_index_capacity = sizeof small;
    EXPECT(SILT_E_SHORT_BUFFER, silt_segment_scan(bytes, size, &scan, &found, NULL));
    scan.time_index = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_scan(bytes, size, &scan, &found, NULL));
    scan.time_index_capacity = 0;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_scan(NULL, size, &scan, &found, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_scan(bytes, size, NULL, &found, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_scan(bytes, size, &scan, NULL, NULL));
    scan.producers_before_count = 1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_scan(bytes, size, &scan, &found, NULL));
    scan.producers_before_count = 0;
    scan.struct_size = 8;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_scan(bytes, size, &scan, &found, NULL));
    struct {
        silt_scan_t known;
        uint64_t later;
    } newer = { SILT_SCAN_INIT, 1 };
    newer.known.struct_size = sizeof newer;
    EXPECT(SILT_E_UNSUPPORTED, silt_segment_scan(bytes, size, &newer.known, &found, NULL));
}

static void producers_and_snapshots(const char *home) {
    char path[4096];
    snprintf(path, sizeof path, "%s/orders-0", home);
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_log_open(path, NULL, &log, NULL));
    for (int i = 0; i < 3; i++) {
        unsigned char batch[256];
        size_t size = make_batch(batch, 0, 1000 + i, 40 + i, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        EXPECT(SILT_OK, silt_log_append_leader(log, batch, size, &request, &appended, NULL));
    }
    silt_producer_t producers[3], again[3];
    uint32_t count = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_log_producers(log, producers, 2, &count, NULL));
    CHECK(count == 3);
    EXPECT(SILT_OK, silt_log_producers(log, producers, 3, &count, NULL));
    CHECK(producers[0].producer_id + producers[1].producer_id + producers[2].producer_id == 123);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_producers(log, producers, 3, NULL, NULL));
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    EXPECT(SILT_E_CLOSED, silt_log_producers(log, producers, 3, &count, NULL));
    silt_log_close(log);

    unsigned char file[512];
    uint64_t size = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_snapshot_write(producers, 3, NULL, 0, &size, NULL));
    CHECK(size == 10 + 3 * 46);
    EXPECT(SILT_OK, silt_snapshot_write(producers, 3, file, sizeof file, &size, NULL));
    EXPECT(SILT_E_SHORT_BUFFER, silt_snapshot_read(file, size, again, 1, &count, NULL));
    EXPECT(SILT_OK, silt_snapshot_read(file, size, again, 3, &count, NULL));
    CHECK(count == 3 && memcmp(producers, again, sizeof again) == 0);
    file[20] ^= 1;
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CORRUPT, silt_snapshot_read(file, size, again, 3, &count, &error));
    CHECK(error.position >= 0);
    EXPECT(SILT_E_CORRUPT, silt_snapshot_read(file, 5, again, 3, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_snapshot_read(NULL, 5, again, 3, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_snapshot_write(NULL, 1, file, 1, &size, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_snapshot_write(producers, 1, file, 512, NULL, NULL));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    scans();
    leaves_what_is_not_its_own();
    refuses();
    producers_and_snapshots(argv[1]);
    puts("ok");
    return 0;
}
