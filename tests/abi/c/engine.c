/* The log directories of a broker, and calls on many logs. The argument is an empty directory. */
#include "home.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char dirs[2][4096];

static silt_engine_t *open_engine(int64_t now_ms) {
    const char *paths[2] = { dirs[0], dirs[1] };
    silt_config_t configs[] = { { "log.segment.bytes", "1048576" } };
    silt_topic_config_t topics[] = { { "small", "segment.bytes", "1024" },
                                     { "small", "of.an.older.release", "?" } };
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    options.configs = configs;
    options.config_count = 1;
    options.topic_configs = topics;
    options.topic_config_count = 2;
    options.cluster_id = "a-cluster";
    options.node_id = 3;
    options.threads = 2;
    options.now_ms = now_ms;
    silt_error_t error = SILT_ERROR_INIT;
    silt_engine_t *engine = NULL;
    if (silt_engine_open(paths, 2, &options, &engine, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return engine;
}

static silt_log_t *create(silt_engine_t *engine, const char *topic, int32_t partition) {
    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    new_log.flags = SILT_NEW_LOG_NEW;
    memset(new_log.topic_id, 9, sizeof new_log.topic_id);
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_engine_create_log(engine, topic, partition, &new_log, &log, NULL));
    return log;
}

static silt_engine_stats_t stats_of(silt_engine_t *engine) {
    silt_engine_stats_t stats = SILT_ENGINE_STATS_INIT;
    EXPECT(SILT_OK, silt_engine_stats(engine, &stats, NULL));
    return stats;
}

enum { LOGS = 3 };

/* Appends to all logs in one call, and finds it in another. */
static void appends_and_locates_many(silt_log_t *const *logs) {
    unsigned char bytes[LOGS + 1][256];
    silt_append_item_t items[LOGS + 1];
    silt_append_result_t results[LOGS + 1];
    silt_status_t status[LOGS + 1];
    memset(items, 0, sizeof items);
    for (int i = 0; i < LOGS; i++) {
        items[i].log = logs[i];
        items[i].records = bytes[i];
        items[i].size_bytes = make_batch(bytes[i], 0, 1000, -1, 0, 40);
        items[i].now_ms = 2000;
    }
    /* A second one for the first log, and it is refused. */
    items[LOGS] = items[0];
    items[LOGS].records = bytes[LOGS];
    make_batch(bytes[LOGS], 0, 1000, 5, 7, 40);
    bytes[LOGS][100] ^= 1;
    EXPECT(SILT_OK, silt_append_many(items, LOGS + 1, results, status, NULL));
    for (int i = 0; i < LOGS; i++) {
        EXPECT(SILT_OK, status[i]);
        CHECK(results[i].first_offset == 0 && results[i].last_offset == 0);
        CHECK(results[i].size_bytes == batch_size(40) && results[i].detail_code == 0);
    }
    EXPECT(SILT_E_CORRUPT, status[LOGS]);
    CHECK(results[LOGS].first_offset == -1 && results[LOGS].detail_code == SILT_DETAIL_CORRUPT_MESSAGE);

    /* As a follower, one behind the other. */
    for (int i = 0; i < 2; i++) {
        items[i].log = logs[0];
        items[i].flags = SILT_APPEND_FOLLOWER;
        make_batch(bytes[i], i + 1, 1000, -1, 0, 40);
    }
    EXPECT(SILT_OK, silt_append_many(items, 2, results, status, NULL));
    EXPECT(SILT_OK, status[0]);
    EXPECT(SILT_OK, status[1]);
    CHECK(results[1].last_offset == 2);

    items[1].records = bytes[0] + 5;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_append_many(items, 2, results, status, NULL));
    items[1].records = bytes[1];
    items[0].log = NULL;
    items[1].flags = 8;
    EXPECT(SILT_OK, silt_append_many(items, 2, results, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, status[0]);
    EXPECT(SILT_E_INVALID_ARGUMENT, status[1]);
    items[0].log = logs[0];
    items[0].records = NULL;
    EXPECT(SILT_OK, silt_append_many(items, 1, results, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, status[0]);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_append_many(NULL, 1, results, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_append_many(items, 1, NULL, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_append_many(items, 1, results, NULL, NULL));
    EXPECT(SILT_OK, silt_append_many(NULL, 0, NULL, NULL, NULL));

    silt_fetch_t fetches[LOGS + 1];
    silt_range_t ranges[LOGS + 1];
    for (int i = 0; i < LOGS; i++) {
        silt_fetch_t fetch = { logs[i], 0, 10000, SILT_UP_TO_LOG_END, SILT_FETCH_MIN_ONE, 0, NULL };
        fetches[i] = fetch;
    }
    fetches[LOGS] = fetches[0];
    fetches[LOGS].offset = 99;
    uint64_t one = batch_size(40);
    EXPECT(SILT_OK, silt_locate_within(fetches, LOGS + 1, 3 * one + 5, ranges, status, NULL));
    CHECK(ranges[0].size_bytes == 3 * one && ranges[1].size_bytes == 5);
    CHECK(ranges[2].size_bytes == 0 && ranges[2].fd == -1 && status[2] == SILT_OK);
    EXPECT(SILT_E_OUT_OF_RANGE, status[LOGS]);
    uint64_t leases[2] = { ranges[0].lease, ranges[1].lease };
    EXPECT(SILT_OK, silt_leases_release(leases, 2, NULL));
    fetches[0].up_to = 9;
    fetches[1].log = NULL;
    EXPECT(SILT_OK, silt_locate_within(fetches, 2, 100, ranges, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, status[0]);
    EXPECT(SILT_E_INVALID_ARGUMENT, status[1]);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_locate_within(NULL, 1, 100, ranges, status, NULL));
}

/* Begins transactions of many logs in one call. */
static void appends_many_that_are_verified(silt_log_t *const *logs) {
    unsigned char bytes[LOGS][256];
    silt_append_item_t items[LOGS];
    silt_append_result_t results[LOGS];
    silt_status_t status[LOGS];
    uint64_t verifications[LOGS];
    memset(items, 0, sizeof items);
    for (int i = 0; i < LOGS; i++) {
        items[i].log = logs[i];
        items[i].records = bytes[i];
        items[i].size_bytes = make_batch(bytes[i], 0, 1000, 9, 0, 40);
        put_in_transaction(bytes[i], items[i].size_bytes);
        EXPECT(SILT_OK, silt_log_start_verification(logs[i], 9, 0, 0, 0, 0, &verifications[i], NULL));
    }
    EXPECT(SILT_OK, silt_append_many(items, 1, results, status, NULL));
    EXPECT(SILT_E_CONFLICT, status[0]);
    CHECK(results[0].detail_code == SILT_DETAIL_INVALID_TXN_STATE);
    verifications[1] = 0;
    EXPECT(SILT_OK, silt_append_many_verified(items, verifications, LOGS, results, status, NULL));
    EXPECT(SILT_OK, status[0]);
    EXPECT(SILT_E_CONFLICT, status[1]);
    EXPECT(SILT_OK, status[2]);
    CHECK(results[1].first_offset == -1 && results[2].size_bytes == batch_size(40));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_append_many_verified(items, NULL, 1, results, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_append_many_verified(NULL, verifications, 1, results, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_append_many_verified(items, verifications, 1, NULL, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_append_many_verified(items, verifications, 1, results, NULL, NULL));
}

static void lives(void) {
    silt_engine_t *engine = open_engine(1000);
    silt_log_t *logs[LOGS];
    for (int i = 0; i < LOGS; i++) {
        logs[i] = create(engine, "orders", i);
    }
    silt_log_t *again = create(engine, "orders", 1);
    appends_and_locates_many(logs);
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(again, &offsets, NULL));
    CHECK(offsets.log_end_offset == 1);
    silt_log_close(again);
    EXPECT(SILT_OK, silt_engine_log(engine, "orders", 2, &again, NULL));
    EXPECT(SILT_E_CONFLICT, silt_log_stop(again, NULL));
    silt_log_close(again);
    EXPECT(SILT_E_NOT_FOUND, silt_engine_log(engine, "orders", 9, &again, NULL));
    silt_new_log_t other = SILT_NEW_LOG_INIT;
    memset(other.topic_id, 8, sizeof other.topic_id);
    EXPECT(SILT_E_CONFLICT, silt_engine_create_log(engine, "orders", 1, &other, &again, NULL));

    silt_engine_partition_t partitions[4];
    uint32_t count = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_engine_partitions(engine, partitions, 2, &count, NULL));
    CHECK(count == LOGS);
    EXPECT(SILT_OK, silt_engine_partitions(engine, partitions, 4, &count, NULL));
    CHECK(strcmp(partitions[2].topic, "orders") == 0 && partitions[2].partition == 2);
    silt_engine_stats_t stats = stats_of(engine);
    CHECK(stats.logs == LOGS && stats.offline_dirs == 0 && stats.previous_broker_epoch == -1);
    CHECK(stats.segments == LOGS && stats.size_bytes == (LOGS + 2) * batch_size(40));

    /* Segments of another size roll, and are flushed when that is due. */
    silt_config_t config = { "segment.bytes", "1024" };
    EXPECT(SILT_OK, silt_engine_set_config(engine, "orders", &config, 1, NULL));
    for (int i = 0; i < 20; i++) {
        unsigned char bytes[256];
        size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        EXPECT(SILT_OK, silt_log_append_leader(logs[0], bytes, size, &request, &appended, NULL));
    }
    silt_work_t work[16], one;
    EXPECT(SILT_OK, silt_engine_due(engine, 2000, work, 16, &count, NULL));
    CHECK(count >= 1);
    uint32_t again_count = 1;
    EXPECT(SILT_OK, silt_engine_due(engine, 2000, &one, 1, &again_count, NULL));
    CHECK(again_count == 0);
    EXPECT(SILT_OK, silt_engine_drop_work(engine, work[0].id, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_drop_work(engine, work[0].id, NULL));
    EXPECT(SILT_OK, silt_engine_due(engine, 2000, &one, 1, &again_count, NULL));
    CHECK(again_count == 1 && one.id != work[0].id && one.kind == work[0].kind);
    work[0] = one;
    int flushed = 0;
    for (uint32_t i = 0; i < count; i++) {
        flushed += work[i].kind == SILT_WORK_FLUSH;
        EXPECT(SILT_OK, silt_engine_run(engine, work[i].id, 2000, NULL));
        EXPECT(SILT_E_NOT_FOUND, silt_engine_run(engine, work[i].id, 2000, NULL));
    }
    CHECK(flushed == 1);
    EXPECT(SILT_OK, silt_log_offsets(logs[0], &offsets, NULL));
    CHECK(offsets.recovery_point > 3);

    /* A deleted log can be read on until its folder goes. */
    EXPECT(SILT_OK, silt_engine_delete_log(engine, "orders", 2, 2000, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_delete_log(engine, "orders", 2, 2000, NULL));
    CHECK(stats_of(engine).waiting_folders == 1);
    silt_log_close(logs[2]);
    EXPECT(SILT_OK, silt_engine_due(engine, 2000 + 100000, work, 16, &count, NULL));
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(SILT_OK, silt_engine_run(engine, work[i].id, 2000 + 100000, NULL));
    }
    CHECK(stats_of(engine).waiting_folders == 0);

    /* Work that is held when the engine stops is void. */
    EXPECT(SILT_OK, silt_engine_checkpoint(engine, NULL));
    EXPECT(SILT_OK, silt_engine_due(engine, 9000000, work, 16, &count, NULL));
    CHECK(count > 0);
    uint32_t clean = 0;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_stop(engine, 77, UINT32_MAX, &clean, NULL));
    void *odd = (char *)&clean + 1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_stop(engine, 77, 2, odd, NULL));
    EXPECT(SILT_OK, silt_engine_stop(engine, 77, 2, &clean, NULL));
    CHECK(clean == 2);
    EXPECT(SILT_E_CLOSED, silt_engine_run(engine, work[0].id, 0, NULL));
    EXPECT(SILT_E_CLOSED, silt_engine_stop(engine, 77, 0, NULL, NULL));
    EXPECT(SILT_E_CLOSED, silt_engine_log(engine, "orders", 0, &again, NULL));
    EXPECT(SILT_E_CLOSED, silt_engine_due(engine, 0, work, 16, &count, NULL));
    EXPECT(SILT_E_CLOSED, silt_log_roll(logs[0], 0, NULL, NULL));
    silt_log_close(logs[0]);
    silt_engine_close(engine);
    /* A log outlives its engine. */
    EXPECT(SILT_E_CLOSED, silt_log_flush(logs[1], 0, NULL));
    silt_log_close(logs[1]);

    engine = open_engine(3000);
    stats = stats_of(engine);
    CHECK(stats.logs == 2 && stats.previous_broker_epoch == 77);
    EXPECT(SILT_OK, silt_engine_log(engine, "orders", 0, &again, NULL));
    EXPECT(SILT_OK, silt_log_offsets(again, &offsets, NULL));
    CHECK(offsets.log_end_offset == 23);
    silt_log_close(again);
    EXPECT(SILT_OK, silt_engine_due(engine, 9000000, work, 16, &count, NULL));
    silt_engine_close(engine);
}

static void begins_transactions(void) {
    silt_engine_t *engine = open_engine(0);
    silt_log_t *logs[LOGS];
    for (int i = 0; i < LOGS; i++) {
        logs[i] = create(engine, "transactions", i);
    }
    appends_many_that_are_verified(logs);
    for (int i = 0; i < LOGS; i++) {
        silt_log_close(logs[i]);
    }
    silt_engine_close(engine);
}

/* Appends a few batches; how many segments of 1024 bytes or more they began. */
static uint32_t rolls(silt_log_t *log) {
    uint32_t rolled = 0;
    for (int i = 0; i < 30; i++) {
        unsigned char bytes[256];
        size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
        rolled += (appended.flags & SILT_APPENDED_ROLLED) != 0;
    }
    return rolled;
}

/* What was set last counts, and a name that Kafka does not know is refused with its name. */
static void keeps_what_was_set_last(void) {
    silt_engine_t *engine = open_engine(0);
    silt_log_t *first = create(engine, "small", 0);
    CHECK(rolls(first) == 3);
    silt_config_t large = { "segment.bytes", "100000" };
    EXPECT(SILT_OK, silt_engine_set_config(engine, "small", &large, 1, NULL));
    CHECK(rolls(first) == 0);
    silt_log_t *second = create(engine, "small", 1);
    CHECK(rolls(second) == 0);
    silt_log_close(second);

    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    silt_config_t own[] = { { "segment.bytes", "100000" }, { "segment.bytes", "1024" } };
    new_log.configs = own;
    new_log.config_count = 2;
    EXPECT(SILT_OK, silt_engine_create_log(engine, "small", 2, &new_log, &second, NULL));
    CHECK(rolls(second) == 3);

    /* One that is refused changes nothing, nor does it what is good beside it. */
    silt_error_t error = SILT_ERROR_INIT;
    silt_config_t unknown[] = { { "segment.bytes", "100000" }, { "segment.byte", "1" } };
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_set_config(engine, "small", unknown, 2, &error));
    CHECK(strstr(error.message, "\"segment.byte\"") != NULL);
    CHECK(rolls(second) == 3);
    unknown[1].name = "log.segment.bytes";
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_set_config(engine, "small", unknown, 2, &error));
    CHECK(strstr(error.message, "\"log.segment.bytes\"") != NULL);
    new_log.configs = unknown;
    silt_log_t *none = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_engine_create_log(engine, "small", 3, &new_log, &none, &error));
    CHECK(strstr(error.message, "\"log.segment.bytes\"") != NULL);
    EXPECT(SILT_E_NOT_FOUND, silt_engine_log(engine, "small", 3, &none, NULL));

    /* What is not set any more is the engine's. */
    EXPECT(SILT_OK, silt_engine_set_config(engine, "small", NULL, 0, NULL));
    CHECK(rolls(second) == 0 && none == NULL);
    silt_log_close(first);
    silt_log_close(second);
    EXPECT(SILT_OK, silt_engine_stop(engine, -1, 1, NULL, NULL));
    silt_engine_close(engine);

    engine = open_engine(0);
    EXPECT(SILT_OK, silt_engine_log(engine, "small", 0, &first, NULL));
    CHECK(rolls(first) > 0);
    silt_log_close(first);
    silt_engine_close(engine);
}

/* What a progress function was told, and when it ends the load. */
struct heard {
    int calls, end;
    uint64_t done, total;
};

static int32_t hear(void *ctx, uint64_t done, uint64_t total) {
    struct heard *heard = ctx;
    CHECK(done >= heard->done && done <= total);
    heard->done = done;
    heard->total = total;
    return ++heard->calls == heard->end ? 9 : 0;
}

/* A load tells how far it is, and is ended by whoever hears it. */
static void loads_as_long_as_it_may(void) {
    static char dir[4096];
    snprintf(dir, sizeof dir, "%s/loaded", home);
    const char *paths[1] = { dir };
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    silt_engine_t *engine = NULL;
    EXPECT(SILT_OK, silt_engine_open(paths, 1, &options, &engine, NULL));
    silt_log_t *log = create(engine, "orders", 0);
    rolls(log);
    silt_log_close(log);
    silt_engine_close(engine);

    struct heard heard = { 0, 1, 0, 0 };
    silt_error_t error = SILT_ERROR_INIT;
    engine = NULL;
    options.progress = hear;
    options.progress_ctx = &heard;
    EXPECT(SILT_E_CANCELLED, silt_engine_open(paths, 1, &options, &engine, &error));
    CHECK(engine == NULL && error.detail_code == 9 && heard.calls == 1);
    heard.end = 0;
    EXPECT(SILT_OK, silt_engine_open(paths, 1, &options, &engine, &error));
    CHECK(heard.calls >= 2);
    EXPECT(SILT_OK, silt_engine_log(engine, "orders", 0, &log, NULL));
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
    CHECK(offsets.log_end_offset == 30);
    silt_log_close(log);
    silt_engine_close(engine);
    /* An older caller has no such function: what lies behind its struct is not looked at. */
    options.struct_size = offsetof(silt_engine_options_t, progress);
    heard.calls = 0;
    EXPECT(SILT_OK, silt_engine_open(paths, 1, &options, &engine, NULL));
    CHECK(heard.calls == 0);
    silt_engine_close(engine);
}

static int64_t end_of(silt_log_t *log) {
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
    return offsets.log_end_offset;
}

/* A log grows beside the current one until it takes its place, or is given up; one that is moved
 * aside, and those of a directory that the host takes offline, are there no more. */
static void moves_logs(void) {
    static char one[4096], two[4096];
    snprintf(one, sizeof one, "%s/one", home);
    snprintf(two, sizeof two, "%s/two", home);
    const char *paths[2] = { one, two };
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    silt_engine_t *engine = NULL;
    silt_log_t *log = NULL, *future = NULL, *found = NULL;
    EXPECT(SILT_OK, silt_engine_open(paths, 2, &options, &engine, NULL));
    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    new_log.dir = one;
    EXPECT(SILT_OK, silt_engine_create_log(engine, "orders", 0, &new_log, &log, NULL));
    rolls(log);
    EXPECT(SILT_E_NOT_FOUND, silt_engine_future_log(engine, "orders", 0, &found, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_replace_log(engine, "orders", 0, 5000, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_delete_future(engine, "orders", 0, 5000, NULL));
    new_log.flags = SILT_NEW_LOG_FUTURE;
    EXPECT(SILT_E_CONFLICT, silt_engine_create_log(engine, "orders", 0, &new_log, &future, NULL));
    new_log.dir = two;
    for (int round = 0; round < 2; round++) {
        EXPECT(SILT_OK, silt_engine_create_log(engine, "orders", 0, &new_log, &future, NULL));
        EXPECT(SILT_OK, silt_engine_future_log(engine, "orders", 0, &found, NULL));
        rolls(found);
        CHECK(end_of(future) == 30 && stats_of(engine).future_logs == 1);
        silt_log_close(found);
        silt_log_close(future);
        if (round == 0) {
            EXPECT(SILT_OK, silt_engine_delete_future(engine, "orders", 0, 5000, NULL));
            CHECK(stats_of(engine).future_logs == 0);
        }
    }
    EXPECT(SILT_OK, silt_engine_replace_log(engine, "orders", 0, 5000, NULL));
    silt_log_close(log);
    EXPECT(SILT_OK, silt_engine_log(engine, "orders", 0, &log, NULL));
    CHECK(end_of(log) == 30 && stats_of(engine).future_logs == 0);
    rolls(log);
    CHECK(end_of(log) == 60);
    silt_log_close(log);

    new_log.flags = 0;
    new_log.dir = one;
    EXPECT(SILT_OK, silt_engine_create_log(engine, "old", 0, &new_log, &log, NULL));
    silt_log_close(log);
    EXPECT(SILT_OK, silt_engine_mark_stray(engine, "old", 0, 5000, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_mark_stray(engine, "old", 0, 5000, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_log(engine, "old", 0, &log, NULL));

    EXPECT(SILT_E_NOT_FOUND, silt_engine_take_offline(engine, home, NULL));
    EXPECT(SILT_OK, silt_engine_take_offline(engine, two, NULL));
    EXPECT(SILT_E_NOT_FOUND, silt_engine_take_offline(engine, two, NULL));
    EXPECT(SILT_E_IO, silt_engine_log(engine, "orders", 0, &log, NULL));
    CHECK(stats_of(engine).offline_dirs == 1);
    uint32_t clean = 0;
    EXPECT(SILT_E_IO, silt_engine_stop(engine, -1, 1, &clean, NULL));
    CHECK(clean == 1);
    EXPECT(SILT_E_CLOSED, silt_engine_take_offline(engine, one, NULL));
    silt_engine_close(engine);
}

/* A directory whose disk fails is offline, and so are its logs; without any other there is no
 * engine. Here no file can grow when an index has to be made anew. */
static void goes_on_without_a_disk(void) {
    static char sound[4096], bad[4096], path[8200];
    snprintf(sound, sizeof sound, "%s/sound", home);
    snprintf(bad, sizeof bad, "%s/bad", home);
    const char *paths[2] = { sound, bad };
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    silt_engine_t *engine = NULL;
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_engine_open(paths, 2, &options, &engine, NULL));
    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    new_log.dir = bad;
    EXPECT(SILT_OK, silt_engine_create_log(engine, "orders", 0, &new_log, &log, NULL));
    rolls(log);
    silt_log_close(log);
    silt_engine_close(engine);
    snprintf(path, sizeof path, "%s/orders-0/00000000000000000000.timeindex", bad);
    CHECK(unlink(path) == 0);

    struct rlimit limit, none;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    none = limit;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    silt_error_t error = SILT_ERROR_INIT;
    silt_status_t status = silt_engine_open(paths, 2, &options, &engine, &error);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    EXPECT(SILT_OK, status);
    log = NULL;
    EXPECT(SILT_E_IO, silt_engine_log(engine, "orders", 0, &log, &error));
    CHECK(log == NULL && strstr(error.message, "offline") != NULL);
    CHECK(stats_of(engine).offline_dirs == 1 && stats_of(engine).shut_logs == 1);
    silt_engine_close(engine);
    engine = NULL;
    snprintf(path, sizeof path, "%s/file", home);
    make_file(path, "", 0);
    paths[0] = path;
    EXPECT(SILT_E_IO, silt_engine_open(paths, 1, &options, &engine, &error));
    CHECK(engine == NULL && error.message[0] != 0);
}

static void refuses(void) {
    silt_engine_t *engine = NULL;
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    const char *paths[2] = { dirs[0], NULL };
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(NULL, 1, &options, &engine, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 0, &options, &engine, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 2, &options, &engine, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 1, NULL, &engine, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 1, &options, NULL, NULL));
    silt_topic_config_t wrong = { "orders", "segment.bytes", "none" };
    options.topic_configs = &wrong;
    options.topic_config_count = 1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 1, &options, &engine, NULL));
    options.topic_config_count = 0;
    options.cluster_id = "another-cluster";
    EXPECT(SILT_E_CONFLICT, silt_engine_open(paths, 1, &options, &engine, NULL));
    options.cluster_id = NULL;
    options.flags = 1;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 1, &options, &engine, NULL));
    options.flags = 0;
    options.struct_size = 8;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_open(paths, 1, &options, &engine, NULL));
    struct {
        silt_engine_options_t known;
        uint64_t later;
    } newer = { SILT_ENGINE_OPTIONS_INIT, 1 };
    newer.known.struct_size = sizeof newer;
    EXPECT(SILT_E_UNSUPPORTED, silt_engine_open(paths, 1, &newer.known, &engine, NULL));
    CHECK(engine == NULL);

    engine = open_engine(0);
    silt_log_t *log = NULL;
    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_log(engine, NULL, 0, &log, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_log(engine, "orders", 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_create_log(engine, "a", 0, NULL, &log, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_create_log(engine, "a", 0, &new_log, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_create_log(engine, "a/b", 0, &new_log, &log, NULL));
    new_log.flags = 4;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_create_log(engine, "a", 0, &new_log, &log, NULL));
    new_log.flags = 0;
    new_log.dir = "/nowhere";
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_create_log(engine, "a", 0, &new_log, &log, NULL));
    silt_config_t config = { "segment.bytes", "x" };
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_set_config(engine, "a", &config, 1, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_stats(engine, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_due(engine, 0, NULL, 1, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_partitions(engine, NULL, 1, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_engine_checkpoint(NULL, NULL));
    silt_engine_close(engine);
    silt_engine_close(NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    snprintf(dirs[0], sizeof dirs[0], "%s/a", home);
    snprintf(dirs[1], sizeof dirs[1], "%s/b", home);
    lives();
    keeps_what_was_set_last();
    begins_transactions();
    loads_as_long_as_it_may();
    moves_logs();
    goes_on_without_a_disk();
    refuses();
    puts("ok");
    return 0;
}
