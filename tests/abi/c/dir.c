/* Log directories at rest: what is there, what is wrong, what recovery would do and does. The argument
 * is an empty directory. */
#include "home.h"

#include <sys/stat.h>
#include <unistd.h>

/* A log of ten batches that ends as in a crash: half a batch behind the last whole one. */
static void make_torn_log(const char *name) {
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_log_open(path_of(name), NULL, &log, NULL));
    unsigned char bytes[256];
    size_t size = 0;
    for (int i = 0; i < 10; i++) {
        size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    }
    EXPECT(SILT_OK, silt_log_flush(log, 0, NULL));
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    silt_log_close(log);
    char file[256];
    snprintf(file, sizeof file, "%s/00000000000000000000.log", name);
    FILE *end = fopen(path_of(file), "ab");
    CHECK(end != NULL && fwrite(bytes, 1, size / 2, end) == size / 2 && fclose(end) == 0);
}

static silt_dir_t *open_dirs(void) {
    const char *paths[] = { path_of("one"), path_of("two") };
    silt_dir_t *dir = NULL;
    EXPECT(SILT_OK, silt_dir_open(paths, 2, NULL, &dir, NULL));
    return dir;
}

static int32_t calls;

static int32_t ends_with(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
    calls++;
    CHECK(done_bytes <= total_bytes);
    return *(int32_t *)ctx;
}

/* It asks for the same object while that is at work. */
static int32_t comes_back(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
    uint32_t count = 0;
    (void)done_bytes, (void)total_bytes;
    EXPECT(SILT_E_CONFLICT, silt_dir_problems(ctx, NULL, 0, &count, NULL));
    return 0;
}

static void finds_what_is_there(const silt_dir_t *dir) {
    silt_partition_dir_t partitions[3];
    uint32_t count = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_dir_scan(dir, NULL, 0, &count, NULL));
    CHECK(count == 3);
    EXPECT(SILT_OK, silt_dir_scan(dir, partitions, 3, &count, NULL));
    CHECK(partitions[0].dir == 0 && strcmp(partitions[0].topic, "orders") == 0);
    CHECK(partitions[0].partition == 0 && partitions[1].partition == 1);
    CHECK(partitions[2].dir == 1 && partitions[2].log_start_offset == -1);
    CHECK(partitions[2].log_size_bytes > 10 * batch_size(40) && partitions[2].flags == 0);
}

static void finds_what_is_wrong(const silt_dir_t *dir) {
    silt_verify_options_t options = SILT_VERIFY_OPTIONS_INIT;
    uint32_t count = 0, again = 0;
    EXPECT(SILT_OK, silt_dir_verify(dir, &options, NULL, NULL, &count, NULL));
    silt_problem_t problems[64];
    CHECK(count >= 3 && count <= 64);
    EXPECT(SILT_E_SHORT_BUFFER, silt_dir_problems(dir, problems, 1, &again, NULL));
    CHECK(again == count);
    EXPECT(SILT_OK, silt_dir_problems(dir, problems, 64, &again, NULL));
    int torn = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(problems[i].code, "torn_batch") == 0) {
            torn++;
            CHECK(problems[i].position == (int64_t)(10 * batch_size(40)));
            CHECK(problems[i].number < 3 && problems[i].detail[0] != 0);
            CHECK(strcmp(problems[i].file, "00000000000000000000.log") == 0);
        }
    }
    CHECK(torn == 3);
    int32_t go_on = 0, stop = 42;
    options.threads = UINT32_MAX;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_verify(dir, &options, NULL, NULL, NULL, NULL));
    options.threads = 2;
    options.flags = SILT_VERIFY_BATCHES;
    EXPECT(SILT_OK, silt_dir_verify(dir, &options, ends_with, &go_on, NULL, NULL));
    CHECK(calls > 0);
    EXPECT(SILT_OK, silt_dir_verify(dir, &options, comes_back, (void *)(uintptr_t)dir, NULL, NULL));
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CANCELLED, silt_dir_verify(dir, &options, ends_with, &stop, NULL, &error));
    CHECK(error.detail_code == 42 && error.code == SILT_E_CANCELLED && error.message[0] != 0);
    options.flags = 2;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_verify(dir, &options, NULL, NULL, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_verify(dir, NULL, NULL, NULL, NULL, NULL));
}

static void plans_before_it_repairs(const silt_dir_t *dir) {
    silt_recover_options_t options = SILT_RECOVER_OPTIONS_INIT;
    struct stat before, after;
    CHECK(stat(path_of("one/orders-0/00000000000000000000.log"), &before) == 0);
    options.threads = 1025;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    options.threads = 0;
    EXPECT(SILT_OK, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    CHECK(stat(path_of("one/orders-0/00000000000000000000.log"), &after) == 0);
    CHECK(before.st_size == after.st_size && access(path_of("one/.lock"), F_OK) != 0);
    silt_recovery_t recoveries[3];
    silt_plan_step_t steps[64];
    uint32_t count = 0, step_count = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_dir_recoveries(dir, NULL, 0, &count, NULL));
    EXPECT(SILT_OK, silt_dir_recoveries(dir, recoveries, 3, &count, NULL));
    EXPECT(SILT_OK, silt_dir_plan(dir, steps, 64, &step_count, NULL));
    CHECK(count == 3 && step_count >= 3);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(recoveries[i].outcome == SILT_RECOVERY_SOUND && recoveries[i].cut_offset == 10);
        CHECK(recoveries[i].cut_bytes == batch_size(40) / 2 && recoveries[i].step_count > 0);
        CHECK(recoveries[i].log_end_offset == 10 && strcmp(recoveries[i].topic, "orders") == 0);
    }
    CHECK(steps[0].number == 0 && steps[0].kind == SILT_STEP_CUT && steps[0].offset == 10);
    CHECK(steps[0].position == (int64_t)(10 * batch_size(40)));

    int32_t stop = -7;
    silt_error_t error = SILT_ERROR_INIT;
    options.flags = SILT_RECOVER_REPAIR;
    EXPECT(SILT_E_CANCELLED, silt_dir_recover(dir, &options, ends_with, &stop, &error));
    CHECK(error.detail_code == -7);
    CHECK(stat(path_of("one/orders-0/00000000000000000000.log"), &after) == 0);
    CHECK(before.st_size == after.st_size);

    /* One directory at a time. */
    silt_topic_settings_t topics[] = { { NULL, 4096, 1024, 0, 0 }, { "orders", 0, 0, 0, 0 } };
    options.topics = topics;
    options.topic_count = 2;
    uint32_t left = 9;
    EXPECT(SILT_OK, silt_dir_recover_step(dir, &options, &left, NULL));
    CHECK(left == 1 && access(path_of("one/.kafka_cleanshutdown"), F_OK) == 0);
    CHECK(access(path_of("two/.kafka_cleanshutdown"), F_OK) != 0);
    EXPECT(SILT_OK, silt_dir_recover_step(dir, &options, &left, NULL));
    CHECK(left == 0 && access(path_of("two/.kafka_cleanshutdown"), F_OK) == 0);
    EXPECT(SILT_OK, silt_dir_recoveries(dir, recoveries, 3, &count, NULL));
    CHECK(count == 3 && recoveries[2].dir == 1);
    CHECK(stat(path_of("one/orders-0/00000000000000000000.log"), &after) == 0);
    CHECK((uint64_t)after.st_size == 10 * batch_size(40));

    int32_t go_on = 0;
    EXPECT(SILT_OK, silt_dir_recover(dir, &options, ends_with, &go_on, NULL));
    EXPECT(SILT_OK, silt_dir_recoveries(dir, recoveries, 3, &count, NULL));
    CHECK(count == 3 && recoveries[0].cut_offset == -1 && recoveries[0].step_count == 0);

    options.flags = 32;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    options.flags = 0;
    topics[0].flags = 2;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recover_step(dir, &options, &left, NULL));
    options.topics = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recover(dir, NULL, NULL, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recover_step(NULL, &options, &left, NULL));
}

/* What a broker holds is not repaired, but looked at. */
static void leaves_a_broker_alone(void) {
    const char *paths[] = { path_of("held") };
    silt_engine_options_t engine_options = SILT_ENGINE_OPTIONS_INIT;
    silt_engine_t *engine = NULL;
    EXPECT(SILT_OK, silt_engine_open(paths, 1, &engine_options, &engine, NULL));
    silt_dir_t *dir = NULL;
    EXPECT(SILT_OK, silt_dir_open(paths, 1, NULL, &dir, NULL));
    silt_recover_options_t options = SILT_RECOVER_OPTIONS_INIT;
    EXPECT(SILT_OK, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    options.flags = SILT_RECOVER_REPAIR;
    EXPECT(SILT_E_CONFLICT, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    silt_engine_close(engine);
    EXPECT(SILT_OK, silt_dir_recover(dir, &options, NULL, NULL, NULL));
    silt_dir_close(dir);
}

static void takes_no_nonsense(silt_dir_t *dir) {
    const char *paths[] = { path_of("nowhere"), NULL };
    silt_dir_t *other = NULL;
    uint32_t count = 0;
    silt_dir_options_t options = SILT_DIR_OPTIONS_INIT;
    EXPECT(SILT_E_NOT_FOUND, silt_dir_open(paths, 1, NULL, &other, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_open(paths + 1, 1, NULL, &other, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_open(NULL, 1, NULL, &other, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_open(NULL, 0, NULL, NULL, NULL));
    options.io = 7;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_open(NULL, 0, &options, &other, NULL));
    options.struct_size = 4;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_open(NULL, 0, &options, &other, NULL));
    CHECK(other == NULL);
    make_file(path_of("file"), "", 0);
    paths[0] = path_of("file");
    EXPECT(SILT_E_IO, silt_dir_open(paths, 1, NULL, &other, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_scan(NULL, NULL, 0, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_scan(dir, NULL, 3, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_scan(dir, NULL, 0, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_problems(NULL, NULL, 0, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_recoveries(NULL, NULL, 0, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_dir_plan(NULL, NULL, 0, &count, NULL));
    silt_dir_close(NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    CHECK(mkdir(path_of("one"), 0755) == 0 && mkdir(path_of("two"), 0755) == 0);
    make_torn_log("one/orders-0");
    make_torn_log("one/orders-1");
    make_torn_log("two/orders-2");
    silt_dir_t *dir = open_dirs();
    finds_what_is_there(dir);
    finds_what_is_wrong(dir);
    plans_before_it_repairs(dir);
    leaves_a_broker_alone();
    takes_no_nonsense(dir);
    silt_dir_close(dir);
    puts("ok");
    return 0;
}
