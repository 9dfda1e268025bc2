/* Records of remote storage, the parts of an upload, and replicas rebuilt from them. The argument is
 * an empty directory. */
#include "home.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* An id whose text is 21 times 'B' and an 'A'. */
static void put_id(uint8_t *id) {
    for (int i = 0; i < 16; i++) {
        id[i] = (uint8_t)"\4\20\101"[i % 3];
    }
}
#define ID_TEXT "BBBBBBBBBBBBBBBBBBBBBA"

static char topic[] = "orders";
static uint8_t custom[] = { 1, 2, 3 };
static silt_epoch_t epochs[] = { { 100, 3, 0 }, { 140, 5, 0 } };

static silt_remote_record_t record_of(uint32_t kind) {
    silt_remote_record_t record = SILT_REMOTE_RECORD_INIT;
    record.kind = kind;
    record.partition = 7;
    record.broker_id = 2;
    record.size_bytes = 4096;
    record.start_offset = 100;
    record.end_offset = 199;
    record.max_timestamp_ms = 5000;
    record.event_timestamp_ms = 6000;
    put_id(record.topic_id);
    put_id(record.segment_id);
    record.flags = SILT_REMOTE_TXN_INDEX_EMPTY;
    record.epochs = epochs;
    record.epoch_count = 2;
    record.topic = topic;
    record.topic_size_bytes = 6;
    record.custom = custom;
    record.custom_size_bytes = 3;
    return record;
}

static void records_come_back_as_they_were(void) {
    for (uint32_t kind = 0; kind < 4; kind++) {
        silt_remote_record_t record = record_of(kind);
        record.state = (int32_t)kind % 3;
        unsigned char bytes[256], again[256];
        uint64_t size = 0, size_again = 0;
        EXPECT(SILT_E_SHORT_BUFFER, silt_remote_record_encode(&record, NULL, 0, &size, NULL));
        CHECK(size > 20 && size < sizeof bytes);
        EXPECT(SILT_E_SHORT_BUFFER,
               silt_remote_record_encode(&record, bytes, size - 1, &size, NULL));
        EXPECT(SILT_OK, silt_remote_record_encode(&record, bytes, size, &size, NULL));
        CHECK(bytes[0] == 1 && bytes[1] == kind && bytes[2] == 0);

        silt_remote_record_t read = SILT_REMOTE_RECORD_INIT;
        char name[8];
        uint8_t extra[8];
        silt_epoch_t found[8];
        EXPECT(SILT_E_SHORT_BUFFER, silt_remote_record_decode(bytes, size, &read, NULL));
        CHECK(read.kind == kind && read.topic_capacity == 0 && read.epochs == NULL);
        read.topic = name;
        read.topic_capacity = sizeof name;
        read.custom = extra;
        read.custom_capacity = sizeof extra;
        read.epochs = found;
        read.epoch_capacity = 8;
        EXPECT(SILT_OK, silt_remote_record_decode(bytes, size, &read, NULL));
        CHECK(read.state == record.state && read.event_timestamp_ms == 6000);
        CHECK(read.broker_id == 2 && read.topic == name && read.custom_capacity == 8);
        if (kind != SILT_REMOTE_SNAPSHOT) {
            CHECK(read.partition == 7 && read.topic_size_bytes == 6);
            CHECK(memcmp(name, topic, 6) == 0 && memcmp(read.topic_id, record.topic_id, 16) == 0);
        }
        if (kind != SILT_REMOTE_PARTITION_DELETE) {
            CHECK(read.custom_size_bytes == 3 && memcmp(extra, custom, 3) == 0);
            CHECK(memcmp(read.segment_id, record.segment_id, 16) == 0);
        } else {
            CHECK(read.custom_size_bytes == -1);
        }
        if (kind == SILT_REMOTE_SEGMENT || kind == SILT_REMOTE_SNAPSHOT) {
            CHECK(read.start_offset == 100 && read.end_offset == 199 && read.size_bytes == 4096);
            CHECK(read.flags == SILT_REMOTE_TXN_INDEX_EMPTY && read.max_timestamp_ms == 5000);
            CHECK(read.epoch_count == 2 && found[1].epoch == 5 && found[1].start_offset == 140);
        }
        EXPECT(SILT_OK,
               silt_remote_record_encode(&read, again, sizeof again, &size_again, NULL));
        CHECK(size_again == size && memcmp(bytes, again, size) == 0);

        /* Cut anywhere it is no record, and with more behind it neither. */
        for (uint64_t cut = 0; cut < size; cut++) {
            EXPECT(SILT_E_CORRUPT, silt_remote_record_decode(bytes, cut, &read, NULL));
        }
        EXPECT(SILT_E_CORRUPT, silt_remote_record_decode(bytes, size + 1, &read, NULL));
        bytes[1] = 9;
        EXPECT(SILT_E_UNSUPPORTED, silt_remote_record_decode(bytes, size, &read, NULL));
    }
}

static void records_that_cannot_be_are_refused(void) {
    unsigned char bytes[256];
    uint64_t size = 0;
    silt_remote_record_t good = record_of(SILT_REMOTE_SEGMENT), record;
#define REFUSES(change)                                                                      \
    record = good;                                                                           \
    change;                                                                                  \
    EXPECT(SILT_E_INVALID_ARGUMENT,                                                          \
           silt_remote_record_encode(&record, bytes, sizeof bytes, &size, NULL))
    REFUSES(record.kind = 4);
    REFUSES(record.state = 4);
    REFUSES(record.state = -1);
    REFUSES(record.flags = 2);
    REFUSES(record.custom_size_bytes = -2);
    REFUSES(record.custom = NULL);
    REFUSES(record.topic = NULL);
    REFUSES(record.epochs = NULL);
    REFUSES(record.epoch_count = 0);
    REFUSES(record.end_offset = 99);
    REFUSES(record.topic = (char *)"\xff\xff\xff\xff\xff\xff");
    REFUSES(record.struct_size = 8);
    REFUSES(record.kind = SILT_REMOTE_PARTITION_DELETE; record.state = 3);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_remote_record_encode(NULL, bytes, 256, &size, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_remote_record_encode(&good, NULL, 256, &size, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_remote_record_encode(&good, bytes, 256, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_remote_record_decode(bytes, 10, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_remote_record_decode(NULL, 10, &record, NULL));

    uint8_t id[16];
    put_id(id);
    CHECK(silt_remote_metadata_partition(id, 7, 50) < 50);
    CHECK(silt_remote_metadata_partition(id, 7, 1) == 0);
    CHECK(silt_remote_metadata_partition(id, 7, 0) == 0);
    CHECK(silt_remote_metadata_partition(NULL, 7, 50) == 0);
}

/* A log of segments of 20, 20 and 10 batches, all committed. */
static silt_log_t *log_of_50(const char *name, int has_topic_id) {
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    silt_config_t remote = { "remote.storage.enable", "true" };
    options.configs = &remote;
    options.config_count = 1;
    if (has_topic_id) {
        put_id(options.topic_id);
    }
    silt_error_t error = SILT_ERROR_INIT;
    silt_log_t *log = NULL;
    if (silt_log_open(path_of(name), &options, &log, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    EXPECT(SILT_OK, silt_log_assign_epoch(log, 3, 0, NULL));
    for (int i = 0; i < 50; i++) {
        unsigned char bytes[256];
        size_t size = make_batch(bytes, 0, 1000 + i, 77, i, 40);
        silt_append_t request = SILT_APPEND_INIT;
        request.leader_epoch = 3;
        silt_appended_t appended = SILT_APPENDED_INIT;
        EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
        if (i == 19 || i == 39) {
            EXPECT(SILT_OK, silt_log_roll(log, 0, NULL, NULL));
        }
    }
    EXPECT(SILT_OK, silt_log_flush(log, 0, NULL));
    EXPECT(SILT_OK, silt_log_set_high_watermark(log, 50, NULL, NULL));
    return log;
}

static silt_upload_options_t upload_options(void) {
    silt_upload_options_t options = SILT_UPLOAD_OPTIONS_INIT;
    options.broker_id = 2;
    options.now_ms = 6000;
    put_id(options.segment_id);
    return options;
}

static const char *const suffixes[] = { ".log",      ".index",    ".timeindex",
                                        ".txnindex", ".snapshot", ".leader_epoch_checkpoint" };

/* Where a part lies in the folder that stands for the object store. */
static const char *object_of(uint32_t part) {
    static char name[256];
    snprintf(name, sizeof name, "store/kafka-tiered-storage/orders-0-%s/%020d-%s%s", ID_TEXT, 20,
             ID_TEXT, suffixes[part]);
    return path_of(name);
}

/* Uploads a part. */
static void put_part(const silt_part_t *part) {
    FILE *file = fopen(object_of(part->part), "wb");
    CHECK(file != NULL);
    static unsigned char bytes[1 << 20];
    CHECK(part->size_bytes <= sizeof bytes);
    const void *from = part->bytes;
    if (from == NULL) {
        ssize_t got = pread(part->fd, bytes, part->size_bytes, (off_t)part->position);
        CHECK(got == (ssize_t)part->size_bytes);
        from = bytes;
    } else {
        CHECK(part->fd == -1);
    }
    CHECK(fwrite(from, 1, part->size_bytes, file) == part->size_bytes && fclose(file) == 0);
}

static void an_upload_outlives_its_log(silt_remote_record_t *uploaded) {
    silt_log_t *log = log_of_50("orders-0", 1);
    silt_upload_options_t options = upload_options();
    silt_upload_t *upload = NULL;
    EXPECT(SILT_OK, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    silt_part_t parts[6];
    uint32_t count = 0;
    EXPECT(SILT_E_SHORT_BUFFER, silt_upload_parts(upload, NULL, 0, &count, NULL));
    EXPECT(SILT_OK, silt_upload_parts(upload, parts, 6, &count, NULL));
    CHECK(count == 5 && parts[0].part == SILT_PART_LOG && parts[0].fd >= 0);
    CHECK(parts[0].size_bytes == 20 * batch_size(40));
    CHECK(parts[3].part == SILT_PART_PRODUCER_SNAPSHOT && parts[3].size_bytes > 0);
    CHECK(parts[4].part == SILT_PART_LEADER_EPOCHS && parts[4].bytes != NULL);
    CHECK(silt_upload_is_intact(upload) == 1);
    EXPECT(SILT_E_SHORT_BUFFER, silt_upload_segment(upload, uploaded, NULL));
    CHECK(uploaded->epoch_count == 1 && uploaded->topic_size_bytes == 6);
    static char name[8];
    static silt_epoch_t found[2];
    uploaded->topic = name;
    uploaded->topic_capacity = sizeof name;
    uploaded->epochs = found;
    uploaded->epoch_capacity = 2;
    EXPECT(SILT_OK, silt_upload_segment(upload, uploaded, NULL));
    CHECK(uploaded->kind == SILT_REMOTE_SEGMENT && uploaded->state == SILT_REMOTE_COPY_STARTED);
    CHECK(uploaded->start_offset == 20 && uploaded->end_offset == 39 && found[0].epoch == 3);
    CHECK(uploaded->flags == SILT_REMOTE_TXN_INDEX_EMPTY && uploaded->custom_size_bytes == -1);

    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    silt_log_close(log);
    CHECK(mkdir(path_of("store"), 0755) == 0);
    CHECK(mkdir(path_of("store/kafka-tiered-storage"), 0755) == 0);
    CHECK(mkdir(path_of("store/kafka-tiered-storage/orders-0-" ID_TEXT), 0755) == 0);
    for (uint32_t i = 0; i < count; i++) {
        put_part(&parts[i]);
    }
    silt_upload_close(upload);
    silt_upload_close(NULL);
    uploaded->state = SILT_REMOTE_COPY_FINISHED;
}

static void uploads_that_cannot_be_are_refused(void) {
    silt_log_t *log = log_of_50("orders-1", 1);
    silt_upload_options_t options = upload_options();
    silt_upload_t *upload = NULL;
    EXPECT(SILT_E_NOT_FOUND, silt_tier_manifest(log, 5, 40, &options, &upload, NULL));
    EXPECT(SILT_E_CONFLICT, silt_tier_manifest(log, 20, 50, &options, &upload, NULL));
    EXPECT(SILT_E_CONFLICT, silt_tier_manifest(log, 40, 50, &options, &upload, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_manifest(NULL, 20, 40, &options, &upload, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_manifest(log, 20, 40, NULL, &upload, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_manifest(log, 20, 40, &options, NULL, NULL));
    options.flags = 2;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    options.flags = 0;
    options.topic_id[0] = 9;
    EXPECT(SILT_E_CONFLICT, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    memset(options.topic_id, 0, 16);
    char snapshot[] = "orders-1/00000000000000000040.snapshot";
    CHECK(unlink(path_of(snapshot)) == 0);
    EXPECT(SILT_E_NOT_FOUND, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    options.flags = SILT_UPLOAD_REBUILD_SNAPSHOT;
    EXPECT(SILT_OK, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    silt_part_t parts[6];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_upload_parts(upload, parts, 6, &count, NULL));
    CHECK(count == 5 && parts[3].fd == -1 && parts[3].bytes != NULL && parts[3].size_bytes > 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_upload_parts(upload, NULL, 6, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_upload_parts(upload, parts, 6, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_upload_parts(NULL, parts, 6, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_upload_segment(upload, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_upload_parts((const silt_upload_t *)(const void *)log, parts, 6, &count, NULL));
    EXPECT(SILT_OK, silt_log_truncate_to(log, 30, 0, NULL));
    CHECK(silt_upload_is_intact(upload) == 0 && silt_upload_is_intact(NULL) == 0);
    silt_upload_close(upload);
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    EXPECT(SILT_E_CLOSED, silt_tier_manifest(log, 0, 20, &options, &upload, NULL));
    silt_log_close(log);

    log = log_of_50("orders-2", 0);
    options = upload_options();
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    put_id(options.topic_id);
    memset(options.segment_id, 0, 16);
    EXPECT(SILT_OK, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    silt_remote_record_t record = SILT_REMOTE_RECORD_INIT;
    EXPECT(SILT_E_SHORT_BUFFER, silt_upload_segment(upload, &record, NULL));
    uint8_t none[16] = { 0 };
    CHECK(memcmp(record.segment_id, none, 16) != 0);
    silt_upload_close(upload);

    /* What readers do not see yet is not uploaded; nor is a damaged index. */
    char index[] = "orders-2/00000000000000000000.timeindex";
    CHECK(truncate(path_of(index), 5) == 0);
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_CORRUPT, silt_tier_manifest(log, 0, 20, &options, &upload, &error));
    CHECK(error.message[0] != 0);
    silt_log_close(log);
    silt_log_options_t open = SILT_LOG_OPTIONS_INIT;
    EXPECT(SILT_OK, silt_log_open(path_of("orders-2"), &open, &log, NULL));
    EXPECT(SILT_E_CONFLICT, silt_tier_manifest(log, 20, 40, &options, &upload, NULL));
    silt_log_close(log);
}

static silt_rebuild_options_t rebuild_options(void) {
    silt_rebuild_options_t options = SILT_REBUILD_OPTIONS_INIT;
    static char store[1024];
    snprintf(store, sizeof store, "%s", path_of("store"));
    options.store_dir = store;
    return options;
}

static void replicas_are_rebuilt(const silt_remote_record_t *uploaded) {
    silt_rebuild_options_t options = rebuild_options();
    options.threads = 2;
    CHECK(mkdir(path_of("other"), 0755) == 0 && mkdir(path_of("third"), 0755) == 0);
    static char dir[1024];
    snprintf(dir, sizeof dir, "%s", path_of("other/orders-0"));
    silt_log_t *log = log_of_50("third/orders-0", 1);
    silt_remote_record_t started = *uploaded, lost = *uploaded, update = *uploaded;
    started.state = SILT_REMOTE_COPY_STARTED;
    lost.segment_id[0] = 9;
    update.kind = SILT_REMOTE_UPDATE;
    silt_rebuild_t items[] = {
        { NULL, dir, uploaded, 20, 7, 7, 7, 7, 7 },
        { log, NULL, uploaded, 25, 7, 7, 7, 7, 7 },
        { log, NULL, uploaded, 25, 7, 7, 7, 7, 7 },   /* named twice */
        { NULL, NULL, uploaded, 20, 7, 7, 7, 7, 7 },  /* of nothing */
        { log, dir, uploaded, 20, 7, 7, 7, 7, 7 },    /* of two */
        { NULL, "x-1", &started, 20, 7, 7, 7, 7, 7 }, /* not uploaded */
        { NULL, "x-2", &lost, 20, 7, 7, 7, 7, 7 },    /* not there */
        { NULL, "x-3", &update, 20, 7, 7, 7, 7, 7 },  /* no segment */
        { NULL, "x-4", NULL, 20, 7, 7, 7, 7, 7 },
        { NULL, "x-5", uploaded, 40, 7, 7, 7, 7, 7 }, /* behind its end */
    };
    silt_status_t status[10];
    EXPECT(SILT_OK, silt_tier_rebuild(items, 10, &options, status, NULL));
    EXPECT(SILT_OK, status[0]);
    CHECK(items[0].next_offset == 40 && items[0].producer_count == 1 && items[0].bytes_read > 0);
    CHECK(items[0].first_open_offset == -1 && items[0].flags == 0);
    EXPECT(SILT_OK, status[1]);
    EXPECT(SILT_E_CONFLICT, status[2]);
    CHECK(items[2].next_offset == -1 && items[2].producer_count == 0);
    EXPECT(SILT_E_INVALID_ARGUMENT, status[3]);
    EXPECT(SILT_E_INVALID_ARGUMENT, status[4]);
    EXPECT(SILT_E_NOT_FOUND, status[5]);
    CHECK(items[5].flags == 0);
    EXPECT(SILT_E_NOT_FOUND, status[6]);
    CHECK(items[6].flags == SILT_REBUILD_RETRYABLE);
    EXPECT(SILT_E_INVALID_ARGUMENT, status[7]);
    EXPECT(SILT_E_INVALID_ARGUMENT, status[8]);
    EXPECT(SILT_E_NOT_FOUND, status[9]);

    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
    CHECK(offsets.log_end_offset == 40 && offsets.local_log_start_offset == 40);
    CHECK(offsets.log_start_offset == 25);
    silt_log_close(log);
    silt_log_options_t open = SILT_LOG_OPTIONS_INIT;
    open.log_start_offset = 20;
    silt_config_t remote = { "remote.storage.enable", "true" };
    open.configs = &remote;
    open.config_count = 1;
    EXPECT(SILT_OK, silt_log_open(dir, &open, &log, NULL));
    EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
    CHECK(offsets.log_end_offset == 40 && offsets.log_start_offset == 20);
    silt_log_close(log);

    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_rebuild(NULL, 1, &options, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_rebuild(items, 1, NULL, status, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_rebuild(items, 1, &options, NULL, NULL));
    options.threads = UINT32_MAX;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_rebuild(items, 1, &options, status, NULL));
    options.threads = 0;
    options.io = 9;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_rebuild(items, 1, &options, status, NULL));
    options.io = 0;
    options.store_dir = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_tier_rebuild(items, 1, &options, status, NULL));
    options = rebuild_options();
    options.prefix = "elsewhere/";
    EXPECT(SILT_OK, silt_tier_rebuild(items, 1, &options, status, NULL));
    EXPECT(SILT_E_NOT_FOUND, status[0]);
    EXPECT(SILT_OK, silt_tier_rebuild(NULL, 0, &options, NULL, NULL));

    CHECK(truncate(object_of(SILT_PART_PRODUCER_SNAPSHOT), 3) == 0);
    options = rebuild_options();
    EXPECT(SILT_OK, silt_tier_rebuild(items, 1, &options, status, NULL));
    EXPECT(SILT_E_CORRUPT, status[0]);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    records_come_back_as_they_were();
    records_that_cannot_be_are_refused();
    silt_remote_record_t uploaded = SILT_REMOTE_RECORD_INIT;
    an_upload_outlives_its_log(&uploaded);
    uploads_that_cannot_be_are_refused();
    replicas_are_rebuilt(&uploaded);
    puts("ok");
    return 0;
}
