/* Operations whose answers are polled. The argument is an empty directory. */
#include "home.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static silt_log_t *open_log(const char *name) {
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_log_open(path_of(name), NULL, &log, NULL));
    return log;
}

static silt_op_t op_of(uint64_t user_data, uint32_t kind, silt_log_t *log) {
    silt_op_t op;
    memset(&op, 0, sizeof op);
    op.user_data = user_data;
    op.kind = kind;
    op.log = log;
    return op;
}

static int is_readable(const silt_ring_t *ring) {
    struct pollfd poll_of = { 0, POLLIN, 0 };
    EXPECT(SILT_OK, silt_ring_fd(ring, &poll_of.fd, NULL));
    return poll(&poll_of, 1, 0) == 1;
}

enum { APPENDS = 4, OPS = APPENDS + 6 };

static void runs_in_order(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    CHECK(!is_readable(ring));
    silt_log_t *one = open_log("one-0"), *two = open_log("two-0");
    unsigned char bytes[APPENDS][256], copy[1024];
    silt_op_t ops[OPS];
    for (int i = 0; i < APPENDS; i++) {
        ops[i] = op_of(100 + (uint64_t)i, SILT_OP_APPEND, i % 2 == 0 ? one : two);
        ops[i].bytes = bytes[i];
        ops[i].size_bytes = make_batch(bytes[i], 0, 1000 + i, -1, 0, 40);
        ops[i].flags = SILT_OP_FLUSH;
    }
    bytes[3][100] ^= 1;
    ops[APPENDS] = op_of(200, SILT_OP_READ, one);
    ops[APPENDS].bytes = copy;
    ops[APPENDS].size_bytes = sizeof copy;
    ops[APPENDS].max_bytes = 1 << 20;
    ops[APPENDS + 1] = op_of(201, SILT_OP_LOCATE, two);
    ops[APPENDS + 1].max_bytes = 1 << 20;
    ops[APPENDS + 2] = op_of(202, SILT_OP_WARM, two);
    ops[APPENDS + 2].max_bytes = 10;
    ops[APPENDS + 3] = op_of(203, SILT_OP_SYNC, one);
    ops[APPENDS + 4] = op_of(204, SILT_OP_LOCATE, one);
    ops[APPENDS + 4].offset = 99;
    ops[APPENDS + 5] = op_of(205, SILT_OP_SYNC, NULL);
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, OPS, NULL));
    CHECK(is_readable(ring));

    silt_done_t done[OPS];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_ring_poll(ring, done, APPENDS + 1, 0, &count, NULL));
    CHECK(count == APPENDS + 1 && is_readable(ring));
    for (int i = 0; i < 3; i++) {
        CHECK(done[i].user_data == 100 + (uint64_t)i && done[i].status == SILT_OK);
        CHECK(done[i].kind == SILT_OP_APPEND && done[i].first_offset == i / 2);
        CHECK(done[i].range.size_bytes == batch_size(40));
    }
    CHECK(done[3].status == SILT_E_CORRUPT && done[3].detail_code == SILT_DETAIL_CORRUPT_MESSAGE);
    CHECK(done[3].first_offset == -1);
    CHECK(done[4].status == SILT_OK && done[4].range.size_bytes == 2 * batch_size(40));
    uint64_t valid = 0;
    EXPECT(SILT_OK, silt_batch_validate(copy, done[4].range.size_bytes, &valid, NULL));
    CHECK(valid == 2 * batch_size(40));
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(one, &offsets, NULL));
    CHECK(offsets.log_end_offset == 2 && offsets.recovery_point == 2);

    EXPECT(SILT_OK, silt_ring_poll(ring, done, OPS, -1, &count, NULL));
    CHECK(count == 5 && !is_readable(ring));
    CHECK(done[0].status == SILT_OK && done[0].range.fd >= 0 && done[0].range.lease != 0);
    EXPECT(SILT_OK, silt_leases_release(&done[0].range.lease, 1, NULL));
    CHECK(done[1].status == SILT_OK && done[1].range.size_bytes == 10 && done[1].range.fd == -1);
    CHECK(done[2].status == SILT_OK && done[3].status == SILT_E_OUT_OF_RANGE);
    CHECK(done[4].status == SILT_E_INVALID_ARGUMENT && done[4].user_data == 205);
    EXPECT(SILT_OK, silt_ring_poll(ring, done, OPS, 0, &count, NULL));
    CHECK(count == 0);
    EXPECT(SILT_OK, silt_ring_poll(ring, done, OPS, 20, &count, NULL));
    CHECK(count == 0);
    silt_log_close(two);
    silt_log_close(one);
    silt_ring_close(ring);
}

/* What waits for a log that is closed meanwhile does not touch it: another may have the directory. */
static void runs_nothing_on_closed_logs(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    silt_log_t *log = open_log("again-0"), *other = open_log("other-0");
    unsigned char bytes[3][256], copy[1024];
    silt_op_t ops[4];
    for (int i = 0; i < 2; i++) {
        ops[i] = op_of((uint64_t)i, SILT_OP_APPEND, i == 0 ? log : other);
        ops[i].bytes = bytes[i];
        ops[i].size_bytes = make_batch(bytes[i], 0, 1000, -1, 0, 40);
        ops[i].flags = SILT_OP_FLUSH;
    }
    ops[2] = op_of(2, SILT_OP_READ, log);
    ops[2].bytes = copy;
    ops[2].size_bytes = sizeof copy;
    ops[2].max_bytes = 1 << 20;
    ops[3] = op_of(3, SILT_OP_SYNC, log);
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 4, NULL));
    silt_log_close(log);
    log = open_log("again-0");
    silt_append_t request = SILT_APPEND_INIT;
    silt_appended_t appended = SILT_APPENDED_INIT;
    size_t size = make_batch(bytes[2], 0, 2000, -1, 0, 50);
    EXPECT(SILT_OK, silt_log_append_leader(log, bytes[2], size, &request, &appended, NULL));
    silt_done_t done[4];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_ring_poll(ring, done, 4, 0, &count, NULL));
    CHECK(count == 4);
    for (int i = 0; i < 4; i++) {
        EXPECT(i == 1 ? SILT_OK : SILT_E_CLOSED, done[i].status);
    }
    silt_fetch_t fetch = { log, 0, 1 << 20, SILT_UP_TO_LOG_END, 0, 0, NULL };
    silt_range_t range;
    EXPECT(SILT_OK, silt_log_read(&fetch, copy, sizeof copy, &range, NULL));
    CHECK(range.size_bytes == size && memcmp(copy, bytes[2], size) == 0);
    silt_log_close(log);
    silt_log_close(other);
    silt_ring_close(ring);
}

/* Of appends that wait together, those that share bytes, and no other. */
static void refuses_what_shares_bytes(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    silt_log_t *log = open_log("shared-0");
    unsigned char bytes[4][256];
    silt_op_t ops[5];
    for (int i = 0; i < 5; i++) {
        ops[i] = op_of((uint64_t)i, SILT_OP_APPEND, log);
        ops[i].bytes = bytes[i % 4];
        ops[i].size_bytes = make_batch(bytes[i % 4], 0, 1000, -1, 0, 40);
    }
    /* The first reaches into the second; the last is the first again. */
    ops[0].size_bytes = sizeof bytes[0] + 1;
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 5, NULL));
    silt_done_t done[5];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_ring_poll(ring, done, 5, 0, &count, NULL));
    CHECK(count == 5);
    for (int i = 0; i < 5; i++) {
        EXPECT(i == 2 || i == 3 ? SILT_OK : SILT_E_INVALID_ARGUMENT, done[i].status);
    }
    CHECK(done[3].first_offset == 1);
    silt_log_close(log);
    silt_ring_close(ring);
}

static void tells_what_is_wrong(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    silt_log_t *log = open_log("wrong-0");
    unsigned char bytes[256], small[10];
    silt_op_t ops[8];
    for (int i = 0; i < 8; i++) {
        ops[i] = op_of((uint64_t)i, SILT_OP_APPEND, log);
        ops[i].bytes = bytes;
        ops[i].size_bytes = make_batch(bytes, 0, 1000, -1, 0, 40);
    }
    /* The first two share bytes. */
    ops[2].kind = 9;
    ops[3].flags = 16;
    ops[4].kind = SILT_OP_SYNC;
    ops[5].bytes = NULL;
    ops[6].kind = SILT_OP_READ;
    ops[6].up_to = 7;
    ops[7].kind = SILT_OP_LOCATE;
    ops[7].flags = SILT_OP_FLUSH;
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 8, NULL));
    silt_done_t done[8];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_ring_poll(ring, done, 8, 0, &count, NULL));
    CHECK(count == 8);
    for (int i = 0; i < 8; i++) {
        EXPECT(i == 4 ? SILT_OK : SILT_E_INVALID_ARGUMENT, done[i].status);
    }
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_OK, silt_log_offsets(log, &offsets, NULL));
    CHECK(offsets.log_end_offset == 0);

    /* A first batch that does not fit, and a log that was stopped. */
    ops[0].flags = SILT_OP_FLUSH;
    ops[1] = op_of(1, SILT_OP_READ, log);
    ops[1].bytes = small;
    ops[1].size_bytes = sizeof small;
    ops[1].max_bytes = 100;
    ops[1].flags = SILT_OP_MIN_ONE;
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 2, NULL));
    EXPECT(SILT_OK, silt_ring_poll(ring, done, 8, 0, &count, NULL));
    CHECK(count == 2 && done[0].status == SILT_OK && done[1].status == SILT_E_SHORT_BUFFER);
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 2, NULL));
    EXPECT(SILT_OK, silt_ring_poll(ring, done, 8, 0, &count, NULL));
    CHECK(count == 2 && done[0].status == SILT_E_CLOSED && done[1].status == SILT_E_CLOSED);

    EXPECT(SILT_E_INVALID_ARGUMENT, silt_ring_new(NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_ring_fd(ring, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_ring_submit(NULL, ops, 1, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_ring_submit(ring, NULL, 1, NULL));
    EXPECT(SILT_OK, silt_ring_submit(ring, NULL, 0, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_ring_poll(ring, NULL, 1, 0, &count, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_ring_poll(ring, done, 1, 0, NULL, NULL));
    silt_log_close(log);
    silt_ring_close(ring);
    silt_ring_close(NULL);
}

/* The first batch of a transaction needs the number of its verification. */
static void appends_verified_transactions(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    silt_log_t *log = open_log("verified-0");
    uint64_t verification = 0;
    EXPECT(SILT_OK, silt_log_start_verification(log, 9, 0, 0, 0, 0, &verification, NULL));
    unsigned char bytes[2][256];
    silt_op_t ops[2];
    for (int i = 0; i < 2; i++) {
        ops[i] = op_of((uint64_t)i, SILT_OP_APPEND, log);
        ops[i].bytes = bytes[i];
        ops[i].size_bytes = make_batch(bytes[i], 0, 1000, 9, 0, 40);
        ops[i].offset = (int64_t)verification;
        put_in_transaction(bytes[i], ops[i].size_bytes);
    }
    ops[1].flags = SILT_OP_VERIFIED;
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 2, NULL));
    silt_done_t done[2];
    uint32_t count = 0;
    EXPECT(SILT_OK, silt_ring_poll(ring, done, 2, 0, &count, NULL));
    CHECK(count == 2 && done[0].status == SILT_E_CONFLICT);
    CHECK(done[0].detail_code == SILT_DETAIL_INVALID_TXN_STATE);
    CHECK(done[1].status == SILT_OK && done[1].first_offset == 0);
    silt_log_close(log);
    silt_ring_close(ring);
}

static silt_ring_t *shared;

enum { MANY = 2000 };

static void *poll_all(void *unused) {
    (void)unused;
    silt_done_t done[32];
    for (int seen = 0; seen < MANY;) {
        uint32_t count = 0;
        EXPECT(SILT_OK, silt_ring_poll(shared, done, 32, -1, &count, NULL));
        for (uint32_t i = 0; i < count; i++) {
            CHECK(done[i].status == SILT_OK && done[i].user_data == (uint64_t)seen);
            CHECK(done[i].first_offset == seen);
            seen++;
        }
    }
    return NULL;
}

/* One thread submits while another sleeps on the ring and polls. */
static void wakes_whoever_polls(void) {
    EXPECT(SILT_OK, silt_ring_new(&shared, NULL));
    silt_log_t *log = open_log("busy-0");
    pthread_t poller;
    CHECK(pthread_create(&poller, NULL, poll_all, NULL) == 0);
    unsigned char *bytes = malloc(MANY * 256);
    silt_op_t *ops = malloc(MANY * sizeof *ops);
    CHECK(bytes != NULL && ops != NULL);
    for (int i = 0; i < MANY; i++) {
        ops[i] = op_of((uint64_t)i, SILT_OP_APPEND, log);
        ops[i].bytes = bytes + 256 * i;
        ops[i].size_bytes = make_batch(bytes + 256 * i, 0, 1000, -1, 0, 40);
        EXPECT(SILT_OK, silt_ring_submit(shared, ops + i, 1, NULL));
    }
    CHECK(pthread_join(poller, NULL) == 0);
    free(ops);
    free(bytes);
    silt_log_close(log);
    silt_ring_close(shared);
}

/* What the library of tests has beside the operations of the header. */
enum { OP_PANIC = 1000 };

/* What had nothing to do with a fault but that it was polled together with it. */
static void ends_all_that_a_fault_had_in_hand(void) {
    silt_ring_t *ring = NULL;
    EXPECT(SILT_OK, silt_ring_new(&ring, NULL));
    silt_log_t *appended = open_log("appended-0"), *faulty = open_log("faulty-0");
    silt_log_t *waiting = open_log("waiting-0");
    unsigned char bytes[256];
    silt_op_t ops[4];
    ops[0] = op_of(1, SILT_OP_APPEND, appended);
    ops[0].bytes = bytes;
    ops[0].size_bytes = make_batch(bytes, 0, 1000, -1, 0, 40);
    ops[1] = op_of(2, SILT_OP_LOCATE, appended);
    ops[1].max_bytes = 1 << 20;
    ops[2] = op_of(3, OP_PANIC, faulty);
    ops[3] = op_of(4, SILT_OP_SYNC, waiting);
    EXPECT(SILT_OK, silt_ring_submit(ring, ops, 4, NULL));

    silt_done_t done[3];
    uint32_t count = 77;
    silt_error_t error = SILT_ERROR_INIT;
    EXPECT(SILT_E_BUG, silt_ring_poll(ring, done, 3, 0, &count, &error));
    CHECK(strstr(error.message, "as it was asked to") != NULL && count == 77);
    silt_offsets_t offsets = SILT_OFFSETS_INIT;
    EXPECT(SILT_E_CLOSED, silt_log_offsets(appended, &offsets, NULL));
    EXPECT(SILT_E_CLOSED, silt_log_stop(appended, NULL));
    EXPECT(SILT_E_CLOSED, silt_log_offsets(faulty, &offsets, NULL));
    EXPECT(SILT_OK, silt_log_offsets(waiting, &offsets, NULL));
    EXPECT(SILT_E_CLOSED, silt_ring_poll(ring, done, 3, 0, &count, NULL));
    silt_ring_close(ring);
    silt_log_close(appended);
    silt_log_close(faulty);
    EXPECT(SILT_OK, silt_log_stop(waiting, NULL));
    silt_log_close(waiting);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    home = argv[1];
    runs_in_order();
    runs_nothing_on_closed_logs();
    refuses_what_shares_bytes();
    tells_what_is_wrong();
    appends_verified_transactions();
    wakes_whoever_polls();
    ends_all_that_a_fault_had_in_hand();
    puts("ok");
    return 0;
}
