/* Indexes by themselves, rightly and wrongly. The argument is an empty directory. */
#define _GNU_SOURCE /* for holes */
#include "home.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static silt_index_t *open_index(const char *name, uint32_t kind, int64_t base, uint32_t size) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_index_t *index = NULL;
    if (silt_index_open(path_of(name), kind, base, size, 0, &index, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return index;
}

static long long size_of(const char *name) {
    struct stat found;
    return stat(path_of(name), &found) == 0 ? (long long)found.st_size : -1;
}

static int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) != -1;
    }
    return count;
}

static int64_t packed(int64_t relative, int64_t position) {
    return (relative << 32) | position;
}

static void offset_index(void) {
    int files = open_files();
    silt_index_t *index = open_index("0.index", SILT_INDEX_OFFSET, 50, 83);
    CHECK(size_of("0.index") == 80 && open_files() == files);
    const silt_index_counters_t *counters = NULL;
    EXPECT(SILT_OK, silt_index_counters(index, &counters, NULL));
    CHECK(counters->entry_count == 0 && counters->max_entries == 10 && counters->last_offset == 50);
    CHECK(silt_index_lookup(index, 1000) == 0);
    EXPECT(SILT_OK, silt_index_append(index, 50, 0, NULL));
    EXPECT(SILT_OK, silt_index_append(index, 55, 100, NULL));
    EXPECT(SILT_OK, silt_index_append(index, 70, 200, NULL));
    CHECK(silt_index_lookup(index, 54) == 0 && silt_index_lookup(index, 49) == 0);
    CHECK(silt_index_lookup(index, 55) == packed(5, 100));
    CHECK(silt_index_lookup(index, 1000) == packed(20, 200));
    CHECK(silt_index_upper_bound(index, 0, 150) == packed(20, 200));
    CHECK(silt_index_upper_bound(index, 0, 201) == SILT_E_NOT_FOUND);
    CHECK(counters->entry_count == 3 && counters->last_offset == 70);

    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_append(index, 70, 300, &error));
    CHECK(error.os_errno == 0 && error.message[0] != 0);
    EXPECT(SILT_E_OUT_OF_RANGE, silt_index_append(index, 50 + 2147483648LL, 300, NULL));
    silt_index_entry_t entry;
    EXPECT(SILT_OK, silt_index_entry(index, 1, &entry, NULL));
    CHECK(entry.offset == 55 && entry.position == 100 && entry.timestamp_ms == -1);
    EXPECT(SILT_E_OUT_OF_RANGE, silt_index_entry(index, 3, &entry, NULL));

    /* The path is the host's to change. */
    CHECK(rename(path_of("0.index"), path_of("1.index")) == 0);
    EXPECT(SILT_E_NOT_FOUND, silt_index_flush(index, path_of("0.index"), NULL));
    EXPECT(SILT_OK, silt_index_flush(index, path_of("1.index"), NULL));
    CHECK(size_of("1.index") == 80 && size_of("0.index") == -1);
    EXPECT(SILT_OK, silt_index_truncate_to(index, NULL, 56, NULL));
    CHECK(silt_index_lookup(index, 1000) == packed(5, 100));
    int32_t is_changed = -1;
    EXPECT(SILT_OK, silt_index_resize(index, path_of("1.index"), 161, &is_changed, NULL));
    CHECK(is_changed == 1 && size_of("1.index") == 160 && counters->max_entries == 20);
    EXPECT(SILT_OK, silt_index_resize(index, path_of("1.index"), 160, &is_changed, NULL));
    CHECK(is_changed == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_resize(index, path_of("1.index"), 8, NULL, NULL));
    EXPECT(SILT_OK, silt_index_trim(index, path_of("1.index"), NULL));
    CHECK(size_of("1.index") == 16 && counters->file_size_bytes == 16);
    EXPECT(SILT_E_LIMIT, silt_index_append(index, 90, 300, NULL));
    EXPECT(SILT_OK, silt_index_sanity_check(index, NULL));

    /* A file that is gone is made again. */
    CHECK(unlink(path_of("1.index")) == 0);
    EXPECT(SILT_OK, silt_index_resize(index, path_of("1.index"), 800, NULL, NULL));
    CHECK(size_of("1.index") == 800 && open_files() == files);
    EXPECT(SILT_OK, silt_index_trim(index, path_of("1.index"), NULL));
    silt_index_close(index);

    /* What exists is full. */
    index = open_index("1.index", SILT_INDEX_OFFSET, 50, 800);
    EXPECT(SILT_OK, silt_index_entry(index, 1, &entry, NULL));
    CHECK(entry.offset == 55 && entry.position == 100);
    EXPECT(SILT_E_LIMIT, silt_index_append(index, 90, 300, NULL));
    silt_index_close(index);
}

static void time_index(void) {
    silt_index_t *index = open_index("0.timeindex", SILT_INDEX_TIME, 45, 40);
    silt_index_entry_t entry;
    EXPECT(SILT_OK, silt_index_lookup_time(index, 100, &entry, NULL));
    CHECK(entry.timestamp_ms == -1 && entry.offset == 45 && entry.position == -1);
    int32_t appended = -1;
    EXPECT(SILT_OK, silt_index_append_time(index, 10, 55, 0, &appended, NULL));
    CHECK(appended == 1);
    EXPECT(SILT_OK, silt_index_append_time(index, 10, 60, 0, &appended, NULL));
    CHECK(appended == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_append_time(index, 5, 60, 0, NULL, NULL));
    EXPECT(SILT_OK, silt_index_append_time(index, 20, 65, 0, NULL, NULL));
    EXPECT(SILT_E_LIMIT, silt_index_append_time(index, 30, 75, 0, NULL, NULL));
    EXPECT(SILT_OK, silt_index_append_time(index, 30, 75, 1, NULL, NULL));
    EXPECT(SILT_OK, silt_index_lookup_time(index, 25, &entry, NULL));
    CHECK(entry.timestamp_ms == 20 && entry.offset == 65);
    EXPECT(SILT_OK, silt_index_truncate_to(index, NULL, 60, NULL));
    EXPECT(SILT_OK, silt_index_trim(index, path_of("0.timeindex"), NULL));
    CHECK(size_of("0.timeindex") == 12);
    EXPECT(SILT_OK, silt_index_sanity_check(index, NULL));
    /* Of another kind. */
    CHECK(silt_index_lookup(index, 50) == SILT_E_INVALID_ARGUMENT);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_append(index, 90, 1, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_index_collect_aborted(index, 0, 1, NULL, 0, NULL, NULL, NULL));
    silt_index_close(index);
}

static void txn_index(void) {
    silt_index_t *index = open_index("0.txnindex", SILT_INDEX_TXN, 0, 0);
    CHECK(size_of("0.txnindex") == -1);
    for (int64_t i = 1; i <= 3; i++) {
        silt_aborted_entry_t entry = { 7, i * 10 - 5, i * 10, i * 10 + 1 };
        EXPECT(SILT_OK, silt_index_append_aborted(index, path_of("0.txnindex"), &entry, NULL));
    }
    silt_aborted_entry_t again = { 7, 5, 30, 31 };
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_index_append_aborted(index, path_of("0.txnindex"), &again, NULL));
    CHECK(size_of("0.txnindex") == 3 * 34);
    silt_aborted_entry_t found[3];
    uint32_t count = 0;
    int32_t is_complete = -1;
    EXPECT(SILT_OK, silt_index_collect_aborted(index, INT64_MIN, INT64_MAX, found, 3, &count,
                                               &is_complete, NULL));
    CHECK(count == 3 && is_complete == 0 && found[2].last_stable_offset == 31);
    EXPECT(SILT_OK, silt_index_collect_aborted(index, 15, 21, found, 3, &count, &is_complete, NULL));
    CHECK(count == 1 && is_complete == 1 && found[0].last_offset == 20);
    EXPECT(SILT_E_SHORT_BUFFER,
           silt_index_collect_aborted(index, 0, 100, found, 2, &count, NULL, NULL));
    CHECK(count == 3);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_truncate_to(index, NULL, 20, NULL));
    EXPECT(SILT_OK, silt_index_truncate_to(index, path_of("0.txnindex"), 20, NULL));
    CHECK(size_of("0.txnindex") == 34);
    EXPECT(SILT_OK, silt_index_flush(index, path_of("0.txnindex"), NULL));
    EXPECT(SILT_OK, silt_index_trim(index, path_of("0.txnindex"), NULL));
    EXPECT(SILT_OK, silt_index_sanity_check(index, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_index_resize(index, path_of("0.txnindex"), 100, NULL, NULL));
    const silt_index_counters_t *counters = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_counters(index, &counters, NULL));
    silt_index_entry_t entry;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_entry(index, 0, &entry, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_lookup_time(index, 0, &entry, NULL));
    EXPECT(SILT_OK, silt_index_shut(index, NULL));
    EXPECT(SILT_E_CLOSED, silt_index_trim(index, path_of("0.txnindex"), NULL));
    EXPECT(SILT_E_CLOSED, silt_index_flush(index, path_of("0.txnindex"), NULL));
    EXPECT(SILT_E_CLOSED,
           silt_index_append_aborted(index, path_of("0.txnindex"), &again, NULL));
    silt_index_close(index);
}

/* A version that Kafka refuses: of the two bytes it looks at the first. */
static void is_too_new(void) {
    unsigned char entry[34] = { 1 };
    make_file(path_of("new.txnindex"), entry, sizeof entry);
    silt_index_t *index = open_index("new.txnindex", SILT_INDEX_TXN, 0, 0);
    EXPECT(SILT_E_UNSUPPORTED, silt_index_sanity_check(index, NULL));
    silt_index_close(index);
}

/* An entry before the base, and one before the first byte. */
static void holds_what_cannot_be(void) {
    unsigned char entries[16] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 5, 0, 0, 0, 9, 0x80, 0, 0, 0 };
    make_file(path_of("odd.index"), entries, sizeof entries);
    silt_index_t *index = open_index("odd.index", SILT_INDEX_OFFSET, 0, 0);
    CHECK(silt_index_lookup(index, 5) == SILT_E_CORRUPT);
    CHECK(silt_index_lookup(index, 20) == SILT_E_CORRUPT);
    silt_index_close(index);
}

static void refuses(void) {
    silt_index_t *index = NULL;
    silt_error_t error = SILT_ERROR_INIT;
    const char *path = path_of("2.index");
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(NULL, 0, 0, 80, 0, &index, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(path, 3, 0, 80, 0, &index, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(path, 0, 0, 80, 2, &index, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(path, 0, 0, 80, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(path, 0, 0, 7, 0, &index, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(path, 1, 0, 0x80000000u, 0, &index, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_open(path, 0, 0, UINT32_MAX, 0, &index, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_index_open(path, 0, 0, 80, SILT_INDEX_READ_ONLY, &index, NULL));
    CHECK(index == NULL && size_of("2.index") == -1);
    EXPECT(SILT_E_IO, silt_index_open(home, 0, 0, 80, 0, &index, &error));
    CHECK(error.os_errno != 0);

    CHECK(silt_index_lookup(NULL, 0) == SILT_E_INVALID_ARGUMENT);
    CHECK(silt_index_upper_bound(NULL, 0, 0) == SILT_E_INVALID_ARGUMENT);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_append(NULL, 0, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_shut(NULL, NULL));
    silt_index_close(NULL);

    index = open_index("2.index", SILT_INDEX_OFFSET, 0, 80);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_counters(index, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_flush(index, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_trim(index, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_resize(index, NULL, 8, NULL, NULL));
    EXPECT(SILT_OK, silt_index_append(index, 3, 30, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_index_entry(index, 0, NULL, &error));
    EXPECT(SILT_OK, silt_index_trim(index, path, NULL));
    silt_index_t *reader = NULL;
    EXPECT(SILT_OK, silt_index_open(path, 0, 0, 0, SILT_INDEX_READ_ONLY, &reader, NULL));
    CHECK(silt_index_lookup(reader, 9) == packed(3, 30));
    EXPECT(SILT_E_CONFLICT, silt_index_append(reader, 9, 9, NULL));
    EXPECT(SILT_E_CONFLICT, silt_index_truncate_to(reader, NULL, 0, NULL));
    EXPECT(SILT_OK, silt_index_trim(reader, path, NULL));
    EXPECT(SILT_OK, silt_index_flush(reader, path, NULL));
    silt_index_close(reader);

    const silt_index_counters_t *counters = NULL;
    EXPECT(SILT_OK, silt_index_counters(index, &counters, NULL));
    EXPECT(SILT_OK, silt_index_shut(index, NULL));
    EXPECT(SILT_OK, silt_index_shut(index, NULL));
    CHECK(counters->is_closed == 1);
    silt_index_entry_t entry;
    CHECK(silt_index_lookup(index, 9) == SILT_E_CLOSED);
    CHECK(silt_index_upper_bound(index, 0, 9) == SILT_E_CLOSED);
    EXPECT(SILT_E_CLOSED, silt_index_entry(index, 0, &entry, &error));
    EXPECT(SILT_E_CLOSED, silt_index_append(index, 9, 9, NULL));
    EXPECT(SILT_E_CLOSED, silt_index_trim(index, path, NULL));
    EXPECT(SILT_E_CLOSED, silt_index_resize(index, path, 80, NULL, NULL));
    EXPECT(SILT_E_CLOSED, silt_index_flush(index, path, NULL));
    EXPECT(SILT_E_CLOSED, silt_index_truncate_to(index, NULL, 0, NULL));
    EXPECT(SILT_E_CLOSED, silt_index_sanity_check(index, NULL));
    silt_index_close(index);

    /* Numbers that no sound file has. */
    unsigned char bytes[17] = { 0x80, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 5, 0x80, 0, 0, 0, 1 };
    int file = open(path, O_WRONLY | O_TRUNC);
    CHECK(file >= 0 && write(file, bytes, sizeof bytes) == (ssize_t)sizeof bytes && close(file) == 0);
    index = open_index("2.index", SILT_INDEX_OFFSET, 100, 80);
    EXPECT(SILT_E_CORRUPT, silt_index_sanity_check(index, NULL));
    CHECK(silt_index_lookup(index, 200) == SILT_E_CORRUPT);
    CHECK(silt_index_lookup(index, 100) == SILT_E_CORRUPT);
    silt_index_close(index);
    CHECK(truncate(path, 0x80000000LL) == 0);
    EXPECT(SILT_E_LIMIT, silt_index_open(path, 0, 0, 80, 0, &index, NULL));
}

enum { MANY = 5000 };

/* Another process cuts, tears and punches the file while it is looked up. */
static void file_is_torn(void) {
    silt_index_t *index = open_index("torn.index", SILT_INDEX_OFFSET, 0, 8 * MANY);
    for (int i = 0; i < MANY; i++) {
        EXPECT(SILT_OK, silt_index_append(index, 10 * i + 9, 100 * i, NULL));
    }
    EXPECT(SILT_OK, silt_index_flush(index, path_of("torn.index"), NULL));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int file = open(path_of("torn.index"), O_RDWR);
        for (int i = 0;; i = (i + 1) % 100000) {
            int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
            if (ftruncate(file, i * 37 % (8 * MANY)) != 0 || ftruncate(file, 8 * MANY) != 0) {
                _exit(1);
            }
            /* Not every file system has holes. */
            (void)fallocate(file, hole, 4096 * (i % 9), 4096);
        }
    }
    int status = 0;
    uint32_t at = 1;
    for (int round = 0; round < rounds(300); round++) {
        for (int i = 0; i < 1000; i++) {
            at = at * 1664525u + 1013904223u;
            int64_t offset = at % (10 * MANY);
            int64_t slot = (offset + 1) / 10 - 1;
            CHECK(silt_index_lookup(index, offset) ==
                  (slot < 0 ? 0 : packed(10 * slot + 9, 100 * slot)));
        }
        /* One that is opened meanwhile has what it has read. */
        silt_index_t *other = open_index("torn.index", SILT_INDEX_OFFSET, 0, 80);
        CHECK(silt_index_lookup(other, at % (10 * MANY)) >= 0);
        silt_index_close(other);
        if (round % 50 == 0) {
            EXPECT(SILT_OK, silt_index_flush(index, path_of("torn.index"), NULL));
        }
    }
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    /* It was at it to the end. */
    CHECK(WIFSIGNALED(status));
    silt_index_close(index);
}

static silt_index_t *shared;

static void *look_up(void *unused) {
    (void)unused;
    uint32_t at = 7;
    for (;;) {
        at = at * 1664525u + 1013904223u;
        int64_t offset = at % (10 * MANY);
        int64_t found = silt_index_lookup(shared, offset);
        if (found == SILT_E_CLOSED) {
            return NULL;
        }
        /* Every entry has a position of ten times its offset, and lies at or below what was asked. */
        CHECK(found >= 0 && (found >> 32) <= offset && (found & 0xffffffff) == (found >> 32) * 10);
    }
}

/* One thread appends, cuts, resizes and lets go while others look up. */
static void many_look_up(void) {
    shared = open_index("shared.index", SILT_INDEX_OFFSET, 0, 16 * MANY);
    pthread_t readers[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&readers[i], NULL, look_up, NULL) == 0);
    }
    for (int round = 0; round < rounds(20); round++) {
        for (int i = 0; i < MANY; i++) {
            int offset = 10 * i + round % 10;
            silt_status_t status = silt_index_append(shared, offset, 10 * offset, NULL);
            CHECK(status == SILT_OK || status == SILT_E_INVALID_ARGUMENT);
        }
        EXPECT(SILT_OK, silt_index_trim(shared, path_of("shared.index"), NULL));
        EXPECT(SILT_OK, silt_index_truncate_to(shared, NULL, round * 777, NULL));
        EXPECT(SILT_OK, silt_index_resize(shared, path_of("shared.index"), 16 * MANY, NULL, NULL));
    }
    EXPECT(SILT_OK, silt_index_shut(shared, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
    silt_index_close(shared);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    offset_index();
    time_index();
    txn_index();
    is_too_new();
    holds_what_cannot_be();
    refuses();
    file_is_torn();
    many_look_up();
    puts("ok");
    return 0;
}
