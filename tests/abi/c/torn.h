/* Another process that cuts, empties and punches files while a host reads them. */
#ifndef TORN_H
#define TORN_H

#include "home.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TORN_FILES = 3, TORN_BATCHES = 200, PAGE = 4096 };

static const char *const torn_names[TORN_FILES] = {
    "torn-0/00000000000000000000.log",
    "torn-0/00000000000000000000.index",
    "torn-0/00000000000000000000.timeindex",
};

/* How often a host tries: SILT_TRIES, or as often as does not take long. */
static inline int tries(void) {
    const char *told = getenv("SILT_TRIES");
    return told == NULL ? rounds(400) : atoi(told);
}

static inline uint32_t random_of(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* A log of one segment, with an entry of its indexes for each batch, written to the disk. */
static inline silt_log_t *make_log_to_tear(void) {
    silt_config_t configs[] = { { "index.interval.bytes", "0" } };
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.configs = configs;
    options.config_count = 1;
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_log_open(path_of("torn-0"), &options, &log, NULL));
    for (int i = 0; i < TORN_BATCHES; i++) {
        unsigned char bytes[256];
        size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    }
    /* A sealed segment: its indexes are as long as they are full. */
    EXPECT(SILT_OK, silt_log_roll(log, 2000, NULL, NULL));
    EXPECT(SILT_OK, silt_log_flush(log, 2000, NULL));
    return log;
}

/* Has no file grow beyond this size, as on a full disk. Whoever ignores SIGXFSZ gets EFBIG then. */
static inline void limit_files(rlim_t size) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* Makes a hole of a page in a file; 0 where the file system has none, -1 when that fails. */
static inline int punch(int file, off_t at) {
    if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, PAGE) == 0) {
        return 1;
    }
    return errno == EOPNOTSUPP ? 0 : -1;
}

/* Cuts a file, makes it as long as it was, and gives it back its bytes or leaves it the zeros. */
static inline void tear(int file, const unsigned char *bytes, size_t size, uint32_t *state) {
    off_t cut = (off_t)(random_of(state) % (size + 1));
    int is_good = ftruncate(file, cut) == 0;
    if (random_of(state) % 4 == 0) {
        usleep(random_of(state) % 100);
    }
    is_good = is_good && ftruncate(file, (off_t)size) == 0;
    if (random_of(state) % 2 == 0) {
        is_good = is_good && pwrite(file, bytes, size, 0) == (ssize_t)size;
    }
    if (!is_good || punch(file, (off_t)(random_of(state) % 4) * PAGE) < 0) {
        _exit(1);
    }
}

/* Punches the files of a log page by page, and has them looked at after each hole: first those of
 * its indexes, then the log itself. */
static inline void look_through_holes(void (*look)(void)) {
    silt_log_close(make_log_to_tear());
    for (int i = TORN_FILES - 1; i >= 0; i--) {
        int file = open(path_of(torn_names[i]), O_RDWR);
        struct stat stat;
        CHECK(file >= 0 && fstat(file, &stat) == 0 && stat.st_size > 0);
        for (off_t at = 0; at < stat.st_size; at += PAGE) {
            int is_punched = punch(file, at);
            CHECK(is_punched >= 0);
            unsigned char byte = 1;
            CHECK(!is_punched || (pread(file, &byte, 1, at) == 1 && byte == 0));
            look();
        }
        CHECK(close(file) == 0);
    }
    CHECK(rename(path_of("torn-0"), path_of("holes-0")) == 0);
}

/* Starts the other process, which goes on until it is killed. */
static inline pid_t start_tearing(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) {
        return child;
    }
    static unsigned char bytes[TORN_FILES][1 << 16];
    int files[TORN_FILES];
    size_t sizes[TORN_FILES];
    uint32_t state = 7;
    for (int i = 0; i < TORN_FILES; i++) {
        files[i] = open(path_of(torn_names[i]), O_RDWR);
        ssize_t size = files[i] < 0 ? -1 : read(files[i], bytes[i], sizeof bytes[i]);
        if (size <= 0) {
            _exit(2);
        }
        sizes[i] = (size_t)size;
    }
    for (;;) {
        uint32_t at = random_of(&state) % TORN_FILES;
        tear(files[at], bytes[at], sizes[at], &state);
    }
}

/* It was at it to the end. */
static inline void stop_tearing(pid_t child) {
    int status = 0;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

#endif
