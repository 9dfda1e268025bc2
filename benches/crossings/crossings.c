/*
 * What calls cost from C: crossings DIR SEALED_END, where the sealed segment of the log in DIR ends.
 * The `crossings` program of the benches makes DIR and reads the lines that this prints: a name and
 * the nanoseconds of one, of a MiB where it is a walk, the median of rounds.
 */
#include <siltstone.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, LOOKUPS = 1000000, MANY = 64, SEGMENTS = 100000, BATCH_MAX = 4096, TAIL = 16 };

unsigned int empty(void);

static volatile int64_t sink;
static int64_t offsets[LOOKUPS];
static uint64_t state = 3;

static void die(const char *what, const silt_error_t *error) {
    fprintf(stderr, "%s: %s\n", what, error->message);
    exit(1);
}

static int64_t below(int64_t end) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)(state >> 1) % end;
}

static void draw(int64_t start, int64_t end) {
    for (int i = 0; i < LOOKUPS; i++) {
        offsets[i] = start + below(end - start);
    }
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static int rises(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs `round` once to warm up, and then measures it. */
static void measure(const char *name, double operations, void (*round)(void)) {
    double took[ROUNDS];
    round();
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        round();
        took[i] = (now() - start) / operations;
    }
    qsort(took, ROUNDS, sizeof took[0], rises);
    printf("%s\t%.3f\n", name, took[ROUNDS / 2]);
}

static void call_empty(void) {
    for (int i = 0; i < LOOKUPS; i++) {
        sink = empty();
    }
}

static void call_crossing(void) {
    for (int i = 0; i < LOOKUPS; i++) {
        sink = silt_abi_version();
    }
}

static silt_index_t *offset_index;

static void look_up(void) {
    int64_t seen = 0;
    for (int i = 0; i < LOOKUPS; i++) {
        seen ^= silt_index_lookup(offset_index, offsets[i]);
    }
    sink = seen;
}

static silt_log_t *one_log;
static silt_fetch_t fetches[MANY];
static silt_range_t ranges[MANY];
static silt_status_t statuses[MANY];
static uint64_t leases[MANY];

static void locate(uint32_t at_once) {
    silt_error_t error = SILT_ERROR_INIT;
    for (int i = 0; i + (int)at_once <= LOOKUPS / 4; i += (int)at_once) {
        for (uint32_t slot = 0; slot < at_once; slot++) {
            fetches[slot].offset = offsets[i + (int)slot];
        }
        if (silt_locate(fetches, at_once, ranges, statuses, &error) != SILT_OK) {
            die("locate", &error);
        }
        for (uint32_t slot = 0; slot < at_once; slot++) {
            if (statuses[slot] != SILT_OK || ranges[slot].size_bytes == 0) {
                fprintf(stderr, "nothing at offset %" PRId64 "\n", fetches[slot].offset);
                exit(1);
            }
            leases[slot] = ranges[slot].lease;
        }
        silt_leases_release(leases, at_once, NULL);
    }
}

static void open_log(const char *path, uint32_t flags) {
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    silt_error_t error = SILT_ERROR_INIT;
    options.flags = flags;
    if (silt_log_open(path, &options, &one_log, &error) != SILT_OK) {
        die("log", &error);
    }
    for (int slot = 0; slot < MANY; slot++) {
        fetches[slot].log = one_log;
        fetches[slot].max_bytes = 1 << 20;
        fetches[slot].flags = SILT_FETCH_MIN_ONE;
    }
}

static void locate_one(void) { locate(1); }
static void locate_many(void) { locate(MANY); }

static unsigned char batch[BATCH_MAX];
static size_t batch_size;

static silt_appended_t appended = SILT_APPENDED_INIT;

static void append_batches(int times) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_append_t how = SILT_APPEND_INIT;
    unsigned char sent[BATCH_MAX];
    how.now_ms = 1700000001000;
    for (int i = 0; i < times; i++) {
        memcpy(sent, batch, batch_size);
        if (silt_log_append_leader(one_log, sent, batch_size, &how, &appended, &error) != SILT_OK) {
            die("append", &error);
        }
    }
}

static void append(void) { append_batches(LOOKUPS / 20); }

static silt_tier_columns_t columns = SILT_TIER_COLUMNS_INIT;
static int64_t bases[SEGMENTS];
static uint8_t eligible[SEGMENTS];
static uint64_t first_segment, eligible_count, segment_end = SEGMENTS;
static int64_t last_stable = (int64_t)SEGMENTS * 1000;

static void decide(int times) {
    silt_error_t error = SILT_ERROR_INIT;
    for (int i = 0; i < times; i++) {
        if (silt_tier_eligible(&columns, &error) != SILT_OK) {
            die("eligible", &error);
        }
    }
}

static void decide_range(void) { decide(100000); }
static void decide_list(void) { decide(1000); }

static void upload_columns(void) {
    for (int at = 0; at < SEGMENTS; at++) {
        bases[at] = (int64_t)at * 1000;
    }
    columns.partition_count = 1;
    columns.segment_count = SEGMENTS;
    columns.base_offset = bases;
    columns.segment_end = &segment_end;
    columns.last_stable_offset = &last_stable;
    columns.first_segment = &first_segment;
    columns.eligible_count = &eligible_count;
    measure("tier-range", 100000, decide_range);
    columns.eligible = eligible;
    measure("tier-list", 1000, decide_list);
    if (eligible_count != SEGMENTS - 1 || eligible[0] != 1) {
        fprintf(stderr, "%" PRIu64 " segments are to be uploaded\n", eligible_count);
        exit(1);
    }
}

static unsigned char *segment;
static uint64_t segment_size;
static unsigned char offset_index_room[1 << 20], time_index_room[1 << 20];
static silt_producer_t producers[200];

static void expect_walked(silt_status_t status, uint64_t valid_bytes, const silt_error_t *error) {
    if (status != SILT_OK) {
        die("walk", error);
    }
    if (valid_bytes != segment_size) {
        fprintf(stderr, "the walk ended at %" PRIu64 "\n", valid_bytes);
        exit(1);
    }
}

static void scan_segment(void) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_scan_t wanted = SILT_SCAN_INIT;
    silt_scanned_t found = SILT_SCANNED_INIT;
    wanted.offset_index = offset_index_room;
    wanted.offset_index_capacity = sizeof offset_index_room;
    wanted.time_index = time_index_room;
    wanted.time_index_capacity = sizeof time_index_room;
    wanted.producers = producers;
    wanted.producers_capacity = sizeof producers / sizeof producers[0];
    silt_status_t status = silt_segment_scan(segment, segment_size, &wanted, &found, &error);
    expect_walked(status, found.valid_bytes, &error);
}

static void rebuild_segment(void) {
    silt_error_t error = SILT_ERROR_INIT;
    silt_rebuilt_t rebuilt = SILT_REBUILT_INIT;
    silt_status_t status = silt_segment_rebuild(
        segment, segment_size, 0, 0, 0, offset_index_room, sizeof offset_index_room,
        time_index_room, sizeof time_index_room, &rebuilt, &error);
    expect_walked(status, rebuilt.valid_bytes, &error);
}

/* Walks over a segment that no cache holds. All its pages are there before: it is read into them. */
static void walks(const char *path) {
    FILE *file = fopen(path, "rb");
    long size = file == NULL || fseek(file, 0, SEEK_END) != 0 ? -1 : ftell(file);
    segment = size < 0 ? NULL : malloc((size_t)size);
    if (segment == NULL) {
        fprintf(stderr, "no segment\n");
        exit(1);
    }
    rewind(file);
    segment_size = fread(segment, 1, (size_t)size, file);
    fclose(file);
    measure("scan", (double)(segment_size >> 20), scan_segment);
    measure("rebuild", (double)(segment_size >> 20), rebuild_segment);
    free(segment);
}

/* The batch to be appended. */
static void read_batch(const char *path) {
    FILE *file = fopen(path, "rb");
    batch_size = file == NULL ? 0 : fread(batch, 1, sizeof batch, file);
    if (batch_size == 0 || fclose(file) != 0) {
        fprintf(stderr, "no batch\n");
        exit(1);
    }
}

int main(int count, char **arguments) {
    char path[4096];
    silt_error_t error = SILT_ERROR_INIT;
    const silt_index_counters_t *counters = NULL;
    if (count != 3) {
        fprintf(stderr, "crossings DIR SEALED_END\n");
        return 2;
    }
    measure("empty", LOOKUPS, call_empty);
    measure("crossing", LOOKUPS, call_crossing);

    snprintf(path, sizeof path, "%s/0.index", arguments[1]);
    if (silt_index_open(path, SILT_INDEX_OFFSET, 0, 0, SILT_INDEX_READ_ONLY, &offset_index, &error) ||
        silt_index_counters(offset_index, &counters, &error)) {
        die("index", &error);
    }
    draw(0, counters->last_offset);
    measure("index-random", LOOKUPS, look_up);
    draw(counters->last_offset - 70000, counters->last_offset);
    measure("index-last", LOOKUPS, look_up);
    silt_index_close(offset_index);

    snprintf(path, sizeof path, "%s/batch", arguments[1]);
    read_batch(path);
    snprintf(path, sizeof path, "%s/orders-0", arguments[1]);
    open_log(path, SILT_LOG_MAP_SEALED);
    draw(0, atoll(arguments[2]));
    measure("locate-mapped", LOOKUPS / 4, locate_one);
    silt_log_close(one_log);
    open_log(path, 0);
    draw(0, atoll(arguments[2]));
    measure("locate-random", LOOKUPS / 4, locate_one);
    measure("locate-random-64", LOOKUPS / 4 / MANY * MANY, locate_many);
    /* The places of the newest batches are known to the log that they were appended to. */
    append_batches(2 * MANY);
    int64_t end = appended.last_offset + 1;
    draw(end - TAIL * (end - appended.first_offset), end);
    measure("locate-tail", LOOKUPS / 4, locate_one);
    measure("locate-tail-64", LOOKUPS / 4 / MANY * MANY, locate_many);
    measure("append", LOOKUPS / 20, append);
    silt_log_close(one_log);

    upload_columns();
    snprintf(path, sizeof path, "%s/scanned-0/00000000000000000000.log", arguments[1]);
    walks(path);
    return 0;
}
