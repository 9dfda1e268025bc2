/* One appender, readers and a closer of leases at once. The argument is an empty directory. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { READERS = 3 };

static silt_log_t *log_;
static int appends;

static void *read_on(void *unused) {
    (void)unused;
    int64_t next = 0;
    while (next < appends) {
        silt_fetch_t fetch = { log_, next, 4096, SILT_UP_TO_LOG_END, SILT_FETCH_MIN_ONE, 0, NULL };
        silt_range_t range;
        silt_status_t status;
        EXPECT(SILT_OK, silt_locate(&fetch, 1, &range, &status, NULL));
        EXPECT(SILT_OK, status);
        if (range.size_bytes == 0) {
            continue;
        }
        unsigned char bytes[4096];
        CHECK(pread(range.fd, bytes, range.size_bytes, (off_t)range.position) ==
              (ssize_t)range.size_bytes);
        silt_batch_t batches[64];
        uint32_t count;
        uint64_t consumed;
        silt_status_t parsed =
            silt_batch_parse(bytes, range.size_bytes, batches, 64, &count, &consumed, NULL);
        CHECK(parsed == SILT_OK || parsed == SILT_E_SHORT_BUFFER);
        uint64_t valid;
        EXPECT(SILT_OK, silt_batch_validate(bytes, consumed, &valid, NULL));
        for (uint32_t i = 0; i < count; i++) {
            CHECK(batches[i].base_offset == next);
            next++;
        }
        EXPECT(SILT_OK, silt_leases_release(&range.lease, 1, NULL));
    }
    return NULL;
}

static void *write_too(void *refused) {
    for (int i = 0; i < rounds(200); i++) {
        silt_status_t status = silt_log_roll(log_, 0, NULL, NULL);
        CHECK(status == SILT_OK || status == SILT_E_CONFLICT);
        *(int *)refused += status == SILT_E_CONFLICT;
    }
    return NULL;
}

static int is_met;

static void *ask_for_producers(void *unused) {
    silt_producer_t producers[4];
    uint32_t count = 0;
    silt_status_t status = SILT_OK;
    while (status == SILT_OK) {
        status = silt_log_producers(log_, producers, 4, &count, NULL);
    }
    EXPECT(SILT_E_CONFLICT, status);
    __atomic_store_n(&is_met, 1, __ATOMIC_RELAXED);
    return unused;
}

/* Whoever asks for producers is not kept waiting by one that writes. */
static void refuses_beside_one_that_writes(void) {
    pthread_t asker;
    CHECK(pthread_create(&asker, NULL, ask_for_producers, NULL) == 0);
    while (!__atomic_load_n(&is_met, __ATOMIC_RELAXED)) {
        unsigned char bytes[256];
        size_t size = make_batch(bytes, 0, 1000, -1, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        /* A cut waits for the disk. */
        EXPECT(SILT_OK, silt_log_append_leader(log_, bytes, size, &request, &appended, NULL));
        EXPECT(SILT_OK, silt_log_truncate_fully(log_, appended.last_offset, -1, 0, NULL));
    }
    CHECK(pthread_join(asker, NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    appends = rounds(3000);
    char path[4096];
    snprintf(path, sizeof path, "%s/busy-0", argv[1]);
    silt_config_t config = { "segment.bytes", "20000" };
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.configs = &config;
    options.config_count = 1;
    EXPECT(SILT_OK, silt_log_open(path, &options, &log_, NULL));
    pthread_t readers[READERS], writer;
    int refused = 0;
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_create(&readers[i], NULL, read_on, NULL) == 0);
    }
    CHECK(pthread_create(&writer, NULL, write_too, &refused) == 0);
    for (int i = 0; i < appends;) {
        unsigned char bytes[256];
        size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        silt_status_t status =
            silt_log_append_leader(log_, bytes, size, &request, &appended, NULL);
        CHECK(status == SILT_OK || status == SILT_E_CONFLICT);
        i += status == SILT_OK;
    }
    CHECK(pthread_join(writer, NULL) == 0);
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
    refuses_beside_one_that_writes();
    EXPECT(SILT_OK, silt_log_stop(log_, NULL));
    silt_log_close(log_);
    puts("ok");
    return 0;
}
