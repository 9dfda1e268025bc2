/* Every kind of object made and closed over and over, rightly and wrongly: nothing stays open or
 * mapped. The argument is an empty directory. */
#include "home.h"
#include "leaks.h"

#include <sys/stat.h>

static void use_log(void) {
    silt_log_t *log = NULL;
    unsigned char bytes[256];
    silt_append_t request = SILT_APPEND_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    EXPECT(SILT_OK, silt_log_open(path_of("rest/orders-0"), NULL, &log, NULL));
    size_t size = make_batch(bytes, 0, 1000, -1, 0, 40);
    EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    EXPECT(SILT_OK, silt_log_roll(log, 0, NULL, NULL));
    silt_fetch_t fetch = { log, appended.first_offset, 4096, SILT_UP_TO_LOG_END, 0, 0, NULL };
    silt_range_t range;
    silt_status_t status;
    EXPECT(SILT_OK, silt_locate(&fetch, 1, &range, &status, NULL));
    EXPECT(SILT_OK, status);
    make_batch(bytes, 0, 1000, -1, 0, 40);
    bytes[100] ^= 1;
    EXPECT(SILT_E_CORRUPT, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));

    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    silt_op_t ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].kind = SILT_OP_SYNC;
    ops[1].kind = SILT_OP_LOCATE;
    ops[0].log = ops[1].log = log;
    ops[1].max_bytes = 100;
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 2, NULL));
    silt_done_t done;
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_ring_poll(ring, &done, 1, 0, &count, NULL));
    /* The second one is not run any more. */
    silt_ring_close(ring);
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    silt_log_close(log);
    EXPECT(SILT_OK, silt_leases_release(&range.lease, 1, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_log_open(path_of("rest/none"), NULL, &log, NULL));
}

static void use_index(void) {
    silt_index_t *index = NULL;
    EXPECT(SILT_OK, silt_index_open(path_of("0.index"), SILT_INDEX_OFFSET, 0, 800, 0, &index, NULL));
    /* From the second round on the file is there, and so it is full. */
    silt_status_t status = silt_index_append(index, 5, 0, NULL);
    CHECK(status == SILT_OK || status == SILT_E_LIMIT);
    EXPECT(SILT_OK, silt_index_flush(index, path_of("0.index"), NULL));
    silt_index_close(index);
    EXPECT(SILT_E_IO, silt_index_open(home, SILT_INDEX_OFFSET, 0, 80, 0, &index, NULL));
}

static void use_directories(void) {
    const char *paths[1] = { path_of("rest") };
    silt_dir_t *dir = NULL;
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_dir_open(paths, 1, NULL, &dir, NULL));
    silt_verify_options_t verify = SILT_VERIFY_OPTIONS_INIT;
    verify.threads = 2;
    EXPECT(SILT_OK, silt_dir_verify(dir, &verify, NULL, NULL, &count, NULL));
    silt_recover_options_t recover = SILT_RECOVER_OPTIONS_INIT;
    recover.flags = SILT_RECOVER_REPAIR;
    recover.threads = 2;
    EXPECT(SILT_OK, silt_dir_recover(dir, &recover, NULL, NULL, NULL));
    silt_dir_close(dir);
}

static void use_engine(void) {
    const char *paths[1] = { path_of("live") };
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    options.threads = 2;
    silt_engine_t *engine = NULL, *second = NULL;
    silt_log_t *log = NULL;
    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    silt_work_t work[8];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_engine_open(paths, 1, &options, &engine, NULL));
    EXPECT(SILT_E_CONFLICT, silt_engine_open(paths, 1, &options, &second, NULL));
    EXPECT(SILT_OK, silt_engine_create_log(engine, "orders", 0, &new_log, &log, NULL));
    EXPECT(SILT_OK, silt_engine_due(engine, 1000000, work, 8, &count, NULL));
    EXPECT(SILT_OK, silt_engine_checkpoint(engine, NULL));
    EXPECT(SILT_OK, silt_engine_stop(engine, 7, 2, NULL, NULL));
    /* The log outlives it. */
    silt_engine_close(engine);
    silt_log_close(log);
}

static void use_all(void) {
    use_log();
    use_index();
    use_directories();
    use_engine();
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    CHECK(mkdir(path_of("rest"), 0755) == 0);
    for (int i = 0; i < 3; i++) {
        use_all();
    }
    held_t before = count_held();
    for (int i = 0; i < rounds(10); i++) {
        use_all();
    }
    expect_no_more(before);
    puts("ok");
    return 0;
}
