/* Versions, names, checksums and batches, with every wrong argument. */
#include "check.h"

static void says_what_it_is(void) {
    CHECK(silt_abi_version() == SILT_ABI_VERSION);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", SILT_VERSION_MAJOR, SILT_VERSION_MINOR,
             SILT_VERSION_PATCH);
    CHECK(strcmp(silt_version(), version) == 0);
    CHECK(strcmp(silt_status_name(SILT_OK), "SILT_OK") == 0);
    CHECK(strcmp(silt_status_name(SILT_E_FORKED), "SILT_E_FORKED") == 0);
    CHECK(strcmp(silt_status_name(1), "SILT_E_?") == 0);
    CHECK(strcmp(silt_status_name(INT32_MIN), "SILT_E_?") == 0);

    silt_build_info_t info = SILT_BUILD_INFO_INIT;
    EXPECT(SILT_OK, silt_build_info(&info, NULL));
    CHECK(info.struct_size == sizeof info && info.abi_version == SILT_ABI_VERSION);
    CHECK(strstr(info.target, "linux") != NULL);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_build_info(NULL, NULL));
    info.struct_size = 8;
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_build_info(&info, &error));
    CHECK(error.code == SILT_E_INVALID_ARGUMENT && strstr(error.message, "struct_size") != NULL);
}

static void knows_checksums(void) {
    /* The check value of CRC-32C. */
    CHECK(silt_crc32c(0, "123456789", 9) == 0xe3069283u);
    CHECK(silt_crc32c(silt_crc32c(0, "1234", 4), "56789", 5) == 0xe3069283u);
    CHECK(silt_crc32c(7, NULL, 0) == 7);
    CHECK(silt_crc32c(7, NULL, 9) == 7);
}

static void reads_headers(void) {
    unsigned char bytes[512];
    size_t first = make_batch(bytes, 40, 1000, 9, 3, 10);
    size_t size = first + make_batch(bytes + first, 41, 2000, -1, 0, 20);
    silt_batch_t batches[3];
    uint32_t count = 0;
    uint64_t consumed = 0;
    EXPECT(SILT_OK, silt_batch_parse(bytes, size, batches, 3, &count, &consumed, NULL));
    CHECK(count == 2 && consumed == size);
    CHECK(batches[0].base_offset == 40 && batches[0].last_offset == 40);
    CHECK(batches[0].producer_id == 9 && batches[0].producer_epoch == 0);
    CHECK(batches[0].base_sequence == 3 && batches[0].record_count == 1);
    CHECK(batches[0].magic == 2 && batches[0].codec == 0 && batches[0].flags == 0);
    CHECK(batches[1].position == first && batches[1].max_timestamp_ms == 2000);
    CHECK(batches[1].producer_id == -1 && batches[1].size_bytes == size - first);

    EXPECT(SILT_E_SHORT_BUFFER, silt_batch_parse(bytes, size, batches, 1, &count, &consumed, NULL));
    CHECK(count == 1 && consumed == first);
    EXPECT(SILT_OK, silt_batch_parse(bytes, size - 1, batches, 3, &count, NULL, NULL));
    CHECK(count == 1);
    EXPECT(SILT_OK, silt_batch_parse(NULL, 0, NULL, 0, &count, &consumed, NULL));
    CHECK(count == 0 && consumed == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_batch_parse(NULL, 5, batches, 3, &count, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_batch_parse(bytes, size, NULL, 3, &count, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_batch_parse(bytes, size, batches, 3, NULL, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_batch_parse(bytes, UINT64_MAX, batches, 3, &count, NULL, NULL));
    put_number(bytes + 8, 4, -1);
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CORRUPT, silt_batch_parse(bytes, size, batches, 3, &count, NULL, &error));
    CHECK(error.message[0] != 0);
}

static void checks_batches(void) {
    unsigned char bytes[512];
    size_t first = make_batch(bytes, 0, 1000, -1, 0, 10);
    size_t size = first + make_batch(bytes + first, 1, 2000, -1, 0, 20);
    uint64_t valid = 0;
    EXPECT(SILT_OK, silt_batch_validate(bytes, size, &valid, NULL));
    CHECK(valid == size);
    EXPECT(SILT_OK, silt_batch_validate(bytes, size, NULL, NULL));
    EXPECT(SILT_OK, silt_batch_validate(NULL, 0, &valid, NULL));
    CHECK(valid == 0);
    bytes[size - 2] ^= 1;
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CORRUPT, silt_batch_validate(bytes, size, &valid, &error));
    CHECK(valid == first && error.position == (int64_t)first);
    CHECK(strstr(error.message, "checksum") != NULL);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_batch_validate(NULL, 1, &valid, NULL));
}

static void rebuilds_a_segment(void) {
    unsigned char *bytes = malloc(1 << 16);
    CHECK(bytes != NULL);
    size_t size = 0;
    for (int i = 0; i < 500; i++) {
        size += make_batch(bytes + size, 100 + i, 1000 + i, -1, 0, 50);
    }
    unsigned char offsets[1024], times[1024];
    silt_rebuilt_t rebuilt = SILT_REBUILT_INIT;
    EXPECT(SILT_OK, silt_segment_rebuild(bytes, size, 100, 0, 0, offsets, sizeof offsets, times,
                                         sizeof times, &rebuilt, NULL));
    CHECK(rebuilt.batch_count == 500 && rebuilt.valid_bytes == size);
    CHECK(rebuilt.next_offset == 600 && rebuilt.max_timestamp_ms == 1499);
    /* An entry for every 4096 bytes, and the largest timestamp at the end. */
    CHECK(rebuilt.offset_index_size_bytes == size / 4130 * 8);
    CHECK(rebuilt.time_index_size_bytes == rebuilt.offset_index_size_bytes / 8 * 12 + 12);

    EXPECT(SILT_OK,
           silt_segment_rebuild(bytes, size, 100, 0, 0, NULL, 0, NULL, 0, &rebuilt, NULL));
    EXPECT(SILT_E_SHORT_BUFFER, silt_segment_rebuild(bytes, size, 100, 0, 0, offsets, 8, times,
                                                     sizeof times, &rebuilt, NULL));
    bytes[size - 2] ^= 1;
    EXPECT(SILT_OK, silt_segment_rebuild(bytes, size, 100, 0, 0, offsets, sizeof offsets, times,
                                         sizeof times, &rebuilt, NULL));
    CHECK(rebuilt.batch_count == 499 && rebuilt.next_offset == 599);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_rebuild(bytes, size, 100, 0, 0, NULL, 8, times,
                                                         sizeof times, &rebuilt, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_rebuild(NULL, size, 100, 0, 0, offsets,
                                                         sizeof offsets, NULL, 0, &rebuilt, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_segment_rebuild(bytes, size, 100, 0, 0, offsets,
                                                         sizeof offsets, NULL, 0, NULL, NULL));
    /* A base that the offsets cannot be relative to. */
    EXPECT(SILT_E_OUT_OF_RANGE, silt_segment_rebuild(bytes, size, 1000, 0, 0, offsets,
                                                     sizeof offsets, NULL, 0, &rebuilt, NULL));
    free(bytes);
}

int main(void) {
    says_what_it_is();
    knows_checksums();
    reads_headers();
    checks_batches();
    rebuilds_a_segment();
    puts("ok");
    return 0;
}
