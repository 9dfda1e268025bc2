/* Objects that are used after they were closed, which the manual forbids: it is found out as long as
 * the memory is nobody else's. The argument is an empty directory. */
#include "home.h"

static int closed_count;

/* What is found out gets one of two statuses. */
static void is_told(silt_status_t status) {
    CHECK(status == SILT_E_CLOSED || status == SILT_E_INVALID_ARGUMENT);
    closed_count += status == SILT_E_CLOSED;
}

static void closes_logs_and_uploads(void) {
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_log_open(path_of("orders-0"), NULL, &log, NULL));
    unsigned char batch[256];
    silt_append_t append = SILT_APPEND_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    size_t size = make_batch(batch, 0, 1000, -1, 0, 40);
    EXPECT(SILT_OK, silt_log_append_leader(log, batch, size, &append, &appended, NULL));
    EXPECT(SILT_OK, silt_log_roll(log, 1000, NULL, NULL));
    EXPECT(SILT_OK, silt_log_set_high_watermark(log, 1, NULL, NULL));
    silt_upload_options_t options = SILT_UPLOAD_OPTIONS_INIT;
    options.topic_id[0] = 1;
    silt_upload_t *upload = NULL;
    EXPECT(SILT_OK, silt_tier_manifest(log, 0, 1, &options, &upload, NULL));
    uint32_t count = 0;
    silt_upload_close(upload);
    is_told(silt_upload_parts(upload, NULL, 0, &count, NULL));
    silt_upload_close(upload);

    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    silt_log_close(log);
    is_told(silt_log_offsets(log, &offsets, NULL));
    silt_log_close(log);
}

static void closes_indexes(void) {
    silt_index_t *index = NULL;
    EXPECT(SILT_OK, silt_index_open(path_of("0.index"), SILT_INDEX_OFFSET, 0, 80, 0, &index, NULL));
    silt_index_close(index);
    is_told(silt_index_sanity_check(index, NULL));
    is_told((silt_status_t)silt_index_lookup(index, 0));
    silt_index_close(index);
}

static void closes_rings(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    int32_t fd = 0;
    silt_ring_close(ring);
    is_told(silt_ring_fd(ring, &fd, NULL));
    silt_ring_close(ring);
}

static void closes_engines_and_directories(void) {
    const char *dirs[] = { path_of("data") };
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    silt_engine_t *engine = NULL;
    EXPECT(SILT_OK, silt_engine_open(dirs, 1, &options, &engine, NULL));
    EXPECT(SILT_OK, silt_engine_stop(engine, -1, 1, NULL, NULL));
    silt_engine_stats_t stats = SILT_ENGINE_STATS_INIT;
    silt_engine_close(engine);
    is_told(silt_engine_stats(engine, &stats, NULL));
    silt_engine_close(engine);

    silt_dir_t *dir = NULL;
    EXPECT(SILT_OK, silt_dir_open(dirs, 1, NULL, &dir, NULL));
    uint32_t count = 0;
    silt_dir_close(dir);
    is_told(silt_dir_scan(dir, NULL, 0, &count, NULL));
    silt_dir_close(dir);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    closes_logs_and_uploads();
    closes_indexes();
    closes_rings();
    closes_engines_and_directories();
#ifdef __GLIBC__
    CHECK(closed_count == 7);
#endif
    puts("ok");
    return 0;
}
