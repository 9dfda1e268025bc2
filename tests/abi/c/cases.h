/* What the calls of cases.txt work on: objects, good arguments, and room for results. */
#ifndef CASES_H
#define CASES_H

#include "home.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void silt_test_panic_next(void);

/* A struct that grows, as a caller with a newer header would have it. */
#define GROWING(type, name) \
    struct {                \
        type it;            \
        uint64_t later;     \
    } name

enum { PATH_SIZE = 4200, LATER = 42 };

struct world {
    silt_error_t error;
    /* What functions work on; made when it is asked for. A guest has those of somebody else. */
    int is_guest;
    silt_log_t *log;
    silt_engine_t *engine;
    silt_ring_t *ring;
    silt_index_t *offsets, *times, *txns;
    silt_upload_t *upload;
    silt_dir_t *dir;
    /* What functions give. */
    silt_log_t *got_log;
    silt_engine_t *got_engine;
    silt_ring_t *got_ring;
    silt_index_t *got_index;
    silt_upload_t *got_upload;
    silt_dir_t *got_dir;

    char log_path[PATH_SIZE], other_log_path[PATH_SIZE], other_index_path[PATH_SIZE];
    char offsets_path[PATH_SIZE], times_path[PATH_SIZE], txns_path[PATH_SIZE];
    char engine_path[PATH_SIZE], second_path[PATH_SIZE], other_engine_path[PATH_SIZE];
    char rest_path[PATH_SIZE];
    const char *dirs[2], *other_dirs[1], *rest_dirs[1];

    unsigned char batch[256], copied[256], value[256], snapshot[256], room[512], more[512];
    uint64_t size, value_size, snapshot_size;
    uint8_t id[16];
    uint64_t u64, work_id, numbers[1];
    int64_t i64;
    uint32_t u32, count;
    int32_t i32;
    silt_status_t statuses[1];

    GROWING(silt_build_info_t, info);
    GROWING(silt_end_marker_t, marker);
    GROWING(silt_rebuilt_t, rebuilt);
    GROWING(silt_log_options_t, log_options);
    GROWING(silt_append_t, append);
    GROWING(silt_appended_t, appended);
    GROWING(silt_offsets_t, found_offsets);
    GROWING(silt_engine_options_t, engine_options);
    GROWING(silt_new_log_t, new_log);
    GROWING(silt_engine_stats_t, stats);
    GROWING(silt_tier_columns_t, columns);
    GROWING(silt_direct_request_t, direct);
    GROWING(silt_direct_read_t, direct_read);
    GROWING(silt_remote_record_t, record);
    GROWING(silt_remote_record_t, decoded);
    GROWING(silt_upload_options_t, upload_options);
    GROWING(silt_rebuild_options_t, rebuild_options);
    GROWING(silt_bounds_t, bounds);
    GROWING(silt_follower_event_t, event);
    GROWING(silt_follower_action_t, action);
    GROWING(silt_fetch_verdict_t, verdict);
    GROWING(silt_isr_t, isr);
    GROWING(silt_watermark_t, watermark);
    GROWING(silt_partition_t, partition);
    GROWING(silt_partition_t, next_partition);
    GROWING(silt_partition_event_t, partition_event);
    GROWING(silt_dir_options_t, dir_options);
    GROWING(silt_verify_options_t, verify_options);
    GROWING(silt_recover_options_t, recover_options);
    GROWING(silt_scan_t, scan);
    GROWING(silt_scanned_t, scanned);

    silt_batch_t batches[4];
    silt_segment_t segments[4];
    silt_epoch_t epochs[4];
    silt_time_offset_t when, found_when;
    silt_fetch_t fetches[1];
    silt_range_t ranges[1];
    silt_aborted_t aborted[4];
    silt_index_entry_t entry;
    silt_aborted_entry_t aborted_entry, aborted_entries[4];
    const silt_index_counters_t *counters;
    silt_append_item_t items[1];
    silt_append_result_t results[1];
    silt_config_t configs[1];
    silt_engine_partition_t partitions[4];
    silt_work_t work[4];
    silt_op_t ops[1];
    silt_done_t done[4];
    silt_part_t parts[6];
    silt_rebuild_t rebuilds[1];
    silt_fetch_state_t fetch_state;
    silt_progress_t progress[1];
    silt_partition_dir_t partition_dirs[4];
    silt_problem_t problems[4];
    silt_recovery_t recoveries[4];
    silt_plan_step_t steps[4];
    silt_producer_t producers[4];

    /* What structs point to. */
    unsigned char offset_index[24];
    int64_t base_offsets[2];
    uint64_t segment_ends[1];
    silt_epoch_t record_epochs[4];
    char topic[16];
    uint8_t custom[16];
    int32_t in_sync[2], replicas[6][4], next_replicas[6][4];
};

/* How many batches a log has, of which the last two are a transaction that was aborted. */
enum { LOG_END = 5 };

static void good_structs(struct world *w) {
    w->error = (silt_error_t)SILT_ERROR_INIT;
    w->info.it = (silt_build_info_t)SILT_BUILD_INFO_INIT;
    w->marker.it = (silt_end_marker_t)SILT_END_MARKER_INIT;
    w->marker.it.producer_id = 9;
    w->rebuilt.it = (silt_rebuilt_t)SILT_REBUILT_INIT;
    w->log_options.it = (silt_log_options_t)SILT_LOG_OPTIONS_INIT;
    w->append.it = (silt_append_t)SILT_APPEND_INIT;
    w->appended.it = (silt_appended_t)SILT_APPENDED_INIT;
    w->found_offsets.it = (silt_offsets_t)SILT_OFFSETS_INIT;
    w->engine_options.it = (silt_engine_options_t)SILT_ENGINE_OPTIONS_INIT;
    w->new_log.it = (silt_new_log_t)SILT_NEW_LOG_INIT;
    w->stats.it = (silt_engine_stats_t)SILT_ENGINE_STATS_INIT;
    w->direct_read.it = (silt_direct_read_t)SILT_DIRECT_READ_INIT;
    w->upload_options.it = (silt_upload_options_t)SILT_UPLOAD_OPTIONS_INIT;
    w->upload_options.it.topic_id[0] = 1;
    w->rebuild_options.it = (silt_rebuild_options_t)SILT_REBUILD_OPTIONS_INIT;
    w->rebuild_options.it.store_dir = w->rest_path;
    w->bounds.it = (silt_bounds_t)SILT_BOUNDS_INIT;
    w->event.it = (silt_follower_event_t)SILT_FOLLOWER_EVENT_INIT;
    w->action.it = (silt_follower_action_t)SILT_FOLLOWER_ACTION_INIT;
    w->verdict.it = (silt_fetch_verdict_t)SILT_FETCH_VERDICT_INIT;
    w->watermark.it = (silt_watermark_t)SILT_WATERMARK_INIT;
    w->dir_options.it = (silt_dir_options_t)SILT_DIR_OPTIONS_INIT;
    w->verify_options.it = (silt_verify_options_t)SILT_VERIFY_OPTIONS_INIT;
    w->recover_options.it = (silt_recover_options_t)SILT_RECOVER_OPTIONS_INIT;
    w->scan.it = (silt_scan_t)SILT_SCAN_INIT;
    w->scanned.it = (silt_scanned_t)SILT_SCANNED_INIT;
}

static void good_columns(struct world *w) {
    w->base_offsets[1] = 10;
    w->segment_ends[0] = 2;
    w->columns.it = (silt_tier_columns_t)SILT_TIER_COLUMNS_INIT;
    w->columns.it.partition_count = 1;
    w->columns.it.segment_count = 2;
    w->columns.it.base_offset = w->base_offsets;
    w->columns.it.segment_end = w->segment_ends;

    put_number(w->offset_index + 3, 1, 49);
    put_number(w->offset_index + 4, 4, 4000);
    w->direct.it = (silt_direct_request_t)SILT_DIRECT_REQUEST_INIT;
    w->direct.it.end_offset = 199;
    w->direct.it.log_size_bytes = 16000;
    w->direct.it.offset_index = w->offset_index;
    w->direct.it.offset_index_size_bytes = 8;
    w->direct.it.offset = 60;
    w->direct.it.limit_offset = 1000;
    w->direct.it.max_bytes = UINT64_MAX;
}

static void good_records(struct world *w) {
    w->record.it = (silt_remote_record_t)SILT_REMOTE_RECORD_INIT;
    w->record.it.kind = SILT_REMOTE_SEGMENT;
    w->record.it.end_offset = 9;
    w->record.it.size_bytes = 100;
    w->record.it.topic_id[0] = w->record.it.segment_id[0] = 1;
    w->record.it.epochs = w->record_epochs;
    w->record.it.epoch_count = 1;
    memcpy(w->topic, "orders", 6);
    w->record.it.topic = w->topic;
    w->record.it.topic_size_bytes = 6;
    w->decoded.it = (silt_remote_record_t)SILT_REMOTE_RECORD_INIT;
    w->decoded.it.epochs = w->record_epochs;
    w->decoded.it.topic = w->topic;
    w->decoded.it.custom = w->custom;
    w->decoded.it.epoch_capacity = 4;
    w->decoded.it.topic_capacity = w->decoded.it.custom_capacity = 16;
    EXPECT(SILT_OK, silt_remote_record_encode(&w->record.it, w->value, sizeof w->value,
                                              &w->value_size, NULL));
    memset(w->producers, 0, sizeof w->producers);
    EXPECT(SILT_OK, silt_snapshot_write(w->producers, 1, w->snapshot, sizeof w->snapshot,
                                        &w->snapshot_size, NULL));
}

/* An array of each kind that a partition has. */
static void point_to(silt_partition_t *partition, int32_t (*arrays)[4]) {
    *partition = (silt_partition_t)SILT_PARTITION_INIT;
    partition->replicas = arrays[0];
    partition->isr = arrays[1];
    partition->elr = arrays[2];
    partition->last_known_elr = arrays[3];
    partition->adding = arrays[4];
    partition->removing = arrays[5];
    partition->capacity = 4;
}

static void good_replicas(struct world *w) {
    w->in_sync[0] = 1;
    w->in_sync[1] = 2;
    w->isr.it = (silt_isr_t)SILT_ISR_INIT;
    w->isr.it.committed = w->in_sync;
    w->isr.it.committed_count = w->isr.it.replica_count = 2;
    w->isr.it.min_insync_replicas = 1;
    w->isr.it.log_end_offset = 9;
    silt_progress_t progress = { 0, 4, 0, 0, -1, -1, 1, 2, 0 };
    w->progress[0] = progress;
    for (int i = 0; i < 3; i++) {
        w->replicas[0][i] = w->replicas[1][i] = i + 1;
    }
    point_to(&w->partition.it, w->replicas);
    w->partition.it.replica_count = w->partition.it.isr_count = 3;
    w->partition.it.leader = 1;
    point_to(&w->next_partition.it, w->next_replicas);
    w->partition_event.it = (silt_partition_event_t)SILT_PARTITION_EVENT_INIT;
}

/* Makes every argument good again, with results of before forgotten. */
static void settle(struct world *w) {
    good_structs(w);
    good_columns(w);
    good_records(w);
    good_replicas(w);
    w->size = make_batch(w->batch, 0, 1000, -1, 0, 40);
    make_batch(w->copied, LOG_END, 1000, -1, 0, 40);
    w->id[0] = 1;
    w->numbers[0] = 0;
    w->configs[0].name = "segment.bytes";
    w->configs[0].value = "1048576";
    silt_fetch_t fetch = { w->log, 0, 400, SILT_UP_TO_LOG_END, SILT_FETCH_MIN_ONE, 0, NULL };
    w->fetches[0] = fetch;
    memset(w->items, 0, sizeof w->items);
    w->items[0].log = w->log;
    w->items[0].records = w->batch;
    w->items[0].size_bytes = w->size;
    memset(w->ops, 0, sizeof w->ops);
    w->ops[0].kind = SILT_OP_SYNC;
    w->ops[0].log = w->log;
    memset(w->rebuilds, 0, sizeof w->rebuilds);
    memset(&w->aborted_entry, 0, sizeof w->aborted_entry);
    w->aborted_entry.last_offset = w->aborted_entry.last_stable_offset = 50;
}

/* Gives back what a call has given. */
static void give_back(struct world *w) {
    silt_log_close(w->got_log);
    silt_engine_close(w->got_engine);
    silt_ring_close(w->got_ring);
    silt_index_close(w->got_index);
    silt_upload_close(w->got_upload);
    silt_dir_close(w->got_dir);
    w->got_log = NULL;
    w->got_engine = NULL;
    w->got_ring = NULL;
    w->got_index = NULL;
    w->got_upload = NULL;
    w->got_dir = NULL;
    EXPECT(SILT_OK, silt_leases_release(&w->ranges[0].lease, 1, NULL));
    w->ranges[0].lease = 0;
    for (int i = 0; i < 4; i++) {
        EXPECT(SILT_OK, silt_leases_release(&w->done[i].range.lease, 1, NULL));
        w->done[i].range.lease = 0;
    }
}

/* A world of its own, in a folder of its own. */
static struct world *begin(void) {
    static int number;
    struct world *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    char folder[PATH_SIZE - 100];
    snprintf(folder, sizeof folder, "%s/world-%d", home, __atomic_fetch_add(&number, 1, 5));
    CHECK(mkdir(folder, 0755) == 0);
#define PATH(field, name) snprintf(w->field, sizeof w->field, "%s/%s", folder, name)
    PATH(log_path, "orders-0");
    PATH(other_log_path, "orders-1");
    PATH(offsets_path, "a.index");
    PATH(times_path, "a.timeindex");
    PATH(txns_path, "a.txnindex");
    PATH(other_index_path, "b.index");
    PATH(engine_path, "engine");
    PATH(second_path, "second");
    PATH(other_engine_path, "other");
    PATH(rest_path, "rest");
    w->dirs[0] = w->engine_path;
    w->dirs[1] = w->second_path;
    w->other_dirs[0] = w->other_engine_path;
    w->rest_dirs[0] = w->rest_path;
    CHECK(mkdir(w->rest_path, 0755) == 0);
    settle(w);
    return w;
}

static void end(struct world *w) {
    give_back(w);
    if (!w->is_guest) {
        silt_upload_close(w->upload);
        silt_log_close(w->log);
        silt_engine_close(w->engine);
        silt_ring_close(w->ring);
        silt_index_close(w->offsets);
        silt_index_close(w->times);
        silt_index_close(w->txns);
        silt_dir_close(w->dir);
    }
    free(w);
}

static void fill_log(silt_log_t *log) {
    unsigned char bytes[256];
    silt_append_t request = SILT_APPEND_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    for (int i = 0; i < LOG_END - 2; i++) {
        size_t size = make_batch(bytes, 0, 1000 + i, 5, i, 40);
        EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    }
    size_t size = make_batch(bytes, 0, 2000, 9, 0, 40);
    put_in_transaction(bytes, size);
    EXPECT(SILT_OK, silt_log_start_verification(log, 9, 0, 0, 0, 0, &request.verification, NULL));
    EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    silt_end_marker_t marker = SILT_END_MARKER_INIT;
    marker.flags = SILT_END_ABORT;
    marker.producer_id = 9;
    uint64_t marker_size = 0;
    EXPECT(SILT_OK, silt_end_marker_write(&marker, bytes, sizeof bytes, &marker_size, NULL));
    request.origin = SILT_ORIGIN_COORDINATOR;
    request.transaction_version = 1;
    EXPECT(SILT_OK, silt_log_append_leader(log, bytes, marker_size, &request, &appended, NULL));
    EXPECT(SILT_OK, silt_log_set_high_watermark(log, LOG_END, NULL, NULL));
}

static void with_log(struct world *w) {
    if (w->log == NULL) {
        EXPECT(SILT_OK, silt_log_open(w->log_path, NULL, &w->log, NULL));
        EXPECT(SILT_OK, silt_log_assign_epoch(w->log, 0, 0, NULL));
        fill_log(w->log);
        EXPECT(SILT_OK, silt_log_roll(w->log, 3000, NULL, NULL));
        settle(w);
    }
}

static void with_upload(struct world *w) {
    with_log(w);
    if (w->upload == NULL) {
        EXPECT(SILT_OK, silt_tier_manifest(w->log, 0, LOG_END, &w->upload_options.it, &w->upload,
                                           NULL));
    }
}

static void with_engine(struct world *w) {
    if (w->engine == NULL) {
        EXPECT(SILT_OK, silt_engine_open(w->dirs, 2, &w->engine_options.it, &w->engine, NULL));
        for (uint32_t place = 0; place < 2; place++) {
            silt_new_log_t new_log = SILT_NEW_LOG_INIT;
            new_log.flags = place == 0 ? 0 : SILT_NEW_LOG_FUTURE;
            new_log.dir = w->dirs[place];
            EXPECT(SILT_OK, silt_engine_create_log(w->engine, "orders", 0, &new_log, &w->got_log,
                                                   NULL));
            give_back(w);
        }
        uint32_t count = 0;
        EXPECT(SILT_OK, silt_engine_due(w->engine, 9000000, w->work, 1, &count, NULL));
        CHECK(count == 1);
        w->work_id = w->work[0].id;
    }
}

static void with_ring(struct world *w) {
    if (w->ring == NULL) {
        EXPECT(SILT_OK, silt_ring_new(&w->ring, NULL));
    }
}

static void with_offsets(struct world *w) {
    if (w->offsets == NULL) {
        EXPECT(SILT_OK, silt_index_open(w->offsets_path, SILT_INDEX_OFFSET, 0, 80, 0, &w->offsets,
                                        NULL));
        EXPECT(SILT_OK, silt_index_append(w->offsets, 5, 100, NULL));
    }
}

static void with_times(struct world *w) {
    if (w->times == NULL) {
        EXPECT(SILT_OK, silt_index_open(w->times_path, SILT_INDEX_TIME, 0, 120, 0, &w->times, NULL));
        EXPECT(SILT_OK, silt_index_append_time(w->times, 1000, 5, 0, NULL, NULL));
    }
}

static void with_txns(struct world *w) {
    if (w->txns == NULL) {
        EXPECT(SILT_OK, silt_index_open(w->txns_path, SILT_INDEX_TXN, 0, 0, 0, &w->txns, NULL));
        silt_aborted_entry_t entry = { 9, 3, 4, 5 };
        EXPECT(SILT_OK, silt_index_append_aborted(w->txns, w->txns_path, &entry, NULL));
    }
}

static void with_dir(struct world *w) {
    if (w->dir == NULL) {
        char path[PATH_SIZE + 20];
        snprintf(path, sizeof path, "%s/orders-0", w->rest_path);
        silt_log_t *log = NULL;
        EXPECT(SILT_OK, silt_log_open(path, NULL, &log, NULL));
        fill_log(log);
        silt_log_close(log);
        EXPECT(SILT_OK, silt_dir_open(w->rest_dirs, 1, NULL, &w->dir, NULL));
        EXPECT(SILT_OK, silt_dir_recover(w->dir, &w->recover_options.it, NULL, NULL, NULL));
    }
}

static void with_all(struct world *w) {
    with_upload(w);
    with_engine(w);
    with_ring(w);
    with_offsets(w);
    with_times(w);
    with_txns(w);
    with_dir(w);
}

/* Another world with the same objects. */
static struct world *guest_of(const struct world *host) {
    struct world *w = begin();
    w->is_guest = 1;
    w->log = host->log;
    w->engine = host->engine;
    w->ring = host->ring;
    w->offsets = host->offsets;
    w->times = host->times;
    w->txns = host->txns;
    w->upload = host->upload;
    w->dir = host->dir;
    w->work_id = host->work_id;
    settle(w);
    return w;
}

/* Ends the program when a call has another outcome than the one that is expected. */
static void expect(const char *call, const char *change, silt_status_t expected,
                   silt_status_t got) {
    if (got != expected) {
        fprintf(stderr, "%s, %s: %s instead of %s\n", call, change, silt_status_name(got),
                silt_status_name(expected));
        exit(1);
    }
}

/* Calls that threads make of the same objects at once. */
typedef silt_status_t (*call_t)(struct world *);

struct guest {
    struct world *world;
    const call_t *calls;
    uint32_t count, state;
    pthread_t thread;
};

/* Whatever comes of a call, it is neither a fault of the library nor a crash. */
static void *call_at_random(void *argument) {
    struct guest *guest = argument;
    for (int i = 0; i < rounds(600); i++) {
        guest->state = guest->state * 1664525u + 1013904223u;
        settle(guest->world);
        silt_status_t status = guest->calls[(guest->state >> 8) % guest->count](guest->world);
        CHECK(status <= SILT_OK && status >= SILT_E_SHORT_BUFFER);
        give_back(guest->world);
    }
    return NULL;
}

static void call_from_many_threads(const call_t *calls, uint32_t count) {
    enum { THREADS = 4 };
    struct world *w = begin();
    with_all(w);
    struct guest guests[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        struct guest guest = { guest_of(w), calls, count, i, 0 };
        guests[i] = guest;
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&guests[i].thread, NULL, call_at_random, &guests[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(guests[i].thread, NULL) == 0);
        end(guests[i].world);
    }
    end(w);
}

#endif
