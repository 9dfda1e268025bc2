/* What the C programs of the tests share: checks, and batches to append. */
#ifndef CHECK_H
#define CHECK_H

#include <siltstone.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often something is tried: less where SILT_SLOWER says that all takes so many times as long,
 * as under valgrind. */
static inline int rounds(int count) {
    const char *slower = getenv("SILT_SLOWER");
    int times = slower == NULL ? 1 : atoi(slower);
    return times > 1 ? count / times + 1 : count;
}

/* Ends the program with the place of a claim that does not hold. */
#define CHECK(claim)                                                          \
    do {                                                                      \
        if (!(claim)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim);       \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

/* Ends it when a call has another status than the one that is expected. */
#define EXPECT(expected, call)                                                          \
    do {                                                                                \
        silt_status_t got_ = (call);                                                    \
        if (got_ != (expected)) {                                                       \
            fprintf(stderr, "%s:%d: %s: %s instead of %s\n", __FILE__, __LINE__, #call, \
                    silt_status_name(got_), silt_status_name(expected));                \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

static inline void put_number(unsigned char *at, int size, int64_t value) {
    for (int i = size - 1; i >= 0; i--) {
        at[i] = (unsigned char)(value & 0xff);
        value = value >> 8;
    }
}

/* Bytes of a batch of one record with a value of so many bytes, at most 60. */
static inline size_t batch_size(int value_size) {
    return 61 + 7 + (size_t)value_size;
}

/* Writes a batch of magic 2 with one record; the producer id is -1 for none. */
static inline size_t make_batch(unsigned char *to, int64_t offset, int64_t timestamp_ms,
                                int64_t producer_id, int32_t sequence, int value_size) {
    size_t size = batch_size(value_size);
    memset(to, 'v', size);
    put_number(to, 8, offset);
    put_number(to + 8, 4, (int64_t)size - 12);
    put_number(to + 12, 4, 0);
    to[16] = 2;
    put_number(to + 21, 2, 0);
    put_number(to + 23, 4, 0);
    put_number(to + 27, 8, timestamp_ms);
    put_number(to + 35, 8, timestamp_ms);
    put_number(to + 43, 8, producer_id);
    put_number(to + 51, 2, producer_id < 0 ? -1 : 0);
    put_number(to + 53, 4, producer_id < 0 ? -1 : sequence);
    put_number(to + 57, 4, 1);
    unsigned char *record = to + 61;
    record[0] = (unsigned char)(2 * (6 + value_size)); /* the record's size, as a zigzag varint */
    record[1] = 0;                                     /* attributes */
    record[2] = 0;                                     /* timestamp delta */
    record[3] = 0;                                     /* offset delta */
    record[4] = 1;                                     /* no key */
    record[5] = (unsigned char)(2 * value_size);
    record[6 + value_size] = 0;                        /* no headers */
    put_number(to + 17, 4, (int64_t)silt_crc32c(0, to + 21, size - 21));
    return size;
}

/* Makes a batch one of its producer's transaction. */
static inline void put_in_transaction(unsigned char *batch, size_t size) {
    batch[22] |= 0x10;
    put_number(batch + 17, 4, (int64_t)silt_crc32c(0, batch + 21, size - 21));
}

#endif
