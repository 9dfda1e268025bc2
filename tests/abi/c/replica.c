/* The rules for replicas: followers, leaders, who is in sync, who may lead. The argument is an empty
 * directory. */
#include "check.h"

static silt_epoch_t epochs[] = { { 0, 1, 0 }, { 50, 3, 0 } };

/* A log of 100 records, of epochs 1 and 3. */
static silt_bounds_t log_of_100(void) {
    silt_bounds_t bounds = SILT_BOUNDS_INIT;
    bounds.epochs = epochs;
    bounds.epoch_count = 2;
    bounds.leader_epoch = 5;
    bounds.log_end_offset = 100;
    bounds.high_watermark = 90;
    bounds.last_stable_offset = 80;
    return bounds;
}

static silt_follower_action_t step(const silt_bounds_t *follower, silt_fetch_state_t *state,
                                   const silt_follower_event_t *event, uint32_t kind) {
    silt_follower_action_t action = SILT_FOLLOWER_ACTION_INIT;
    silt_error_t error = SILT_ERROR_INIT;
    if (silt_follower_step(follower, state, event, &action, &error) != SILT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    if (action.kind != kind) {
        fprintf(stderr, "action %u instead of %u\n", action.kind, kind);
        exit(1);
    }
    if (action.state.flags & SILT_FETCH_STATE_THERE) {
        *state = action.state;
    }
    return action;
}

static silt_follower_event_t event_of(uint32_t kind) {
    silt_follower_event_t event = SILT_FOLLOWER_EVENT_INIT;
    event.kind = kind;
    return event;
}

static void a_follower_fetches_and_appends(void) {
    silt_bounds_t follower = log_of_100();
    silt_fetch_state_t state = { 0, 0, 0, 0, 0, 0 };
    silt_follower_event_t event = event_of(SILT_EVENT_NEW_LEADER);
    event.leader_epoch = 5;
    event.fetch_offset = INT64_MIN;
    step(&follower, &state, &event, SILT_ACTION_ADOPT);
    CHECK(state.fetch_offset == 100 && state.leader_epoch == 5 && state.last_fetched_epoch == 3);

    event = event_of(SILT_EVENT_RESPONSE);
    event.fetch_offset = 100;
    event.leader_epoch = 5;
    event.high_watermark = 95;
    silt_follower_action_t action = step(&follower, &state, &event, SILT_ACTION_APPEND);
    CHECK(action.epoch == 5);
    follower.log_end_offset = 110;
    event = event_of(SILT_EVENT_APPENDED);
    event.high_watermark = 105;
    action = step(&follower, &state, &event, SILT_ACTION_ADVANCE);
    CHECK(action.high_watermark == 105 && action.log_start_offset == 0);
    CHECK(state.fetch_offset == 110);

    /* An answer to another fetch is about nothing. */
    event = event_of(SILT_EVENT_RESPONSE);
    event.fetch_offset = 7;
    event.leader_epoch = 5;
    step(&follower, &state, &event, SILT_ACTION_IGNORE);
    step(&follower, NULL, &event, SILT_ACTION_IGNORE);

    /* The leader's epoch 3 ends earlier. */
    event.fetch_offset = 110;
    event.answer = SILT_ANSWER_DIVERGING;
    event.epoch = 3;
    event.end_offset = 70;
    action = step(&follower, &state, &event, SILT_ACTION_TRUNCATE);
    CHECK(action.offset == 70 && state.fetch_offset == 70);
}

static void a_follower_waits_fails_and_asks(void) {
    silt_bounds_t follower = log_of_100();
    silt_fetch_state_t state = { 100, -1, 5, 3, SILT_FETCH_STATE_THERE, 0 };
    silt_follower_event_t event = event_of(SILT_EVENT_RESPONSE);
    event.fetch_offset = 100;
    event.leader_epoch = 5;
    event.answer = SILT_ANSWER_ERROR;
    event.error_code = 6;
    silt_follower_action_t action = step(&follower, &state, &event, SILT_ACTION_DELAY);
    CHECK(action.reason == SILT_REASON_ANSWER && action.error_code == 6);
    CHECK(state.flags == (SILT_FETCH_STATE_THERE | SILT_FETCH_STATE_DELAYED));
    step(&follower, &state, &event, SILT_ACTION_IGNORE);
    silt_follower_event_t over = event_of(SILT_EVENT_DELAY_OVER);
    step(&follower, &state, &over, SILT_ACTION_ADOPT);
    CHECK(state.flags == SILT_FETCH_STATE_THERE);

    event.error_code = 74;
    CHECK(step(&follower, &state, &event, SILT_ACTION_FAIL).reason == SILT_REASON_FENCED);

    /* Out of range: what the leader has is asked for, one answer after the other. */
    event.error_code = 1;
    CHECK(step(&follower, &state, &event, SILT_ACTION_ASK).query == SILT_QUERY_LATEST);
    event.known.known = SILT_QUERY_LATEST;
    event.known.latest = 500;
    CHECK(step(&follower, &state, &event, SILT_ACTION_ASK).query == SILT_QUERY_EARLIEST);
    event.known.known |= SILT_QUERY_EARLIEST;
    event.known.earliest = 200;
    action = step(&follower, &state, &event, SILT_ACTION_RESTART);
    CHECK(action.offset == 200 && state.fetch_offset == 200 && state.lag == 300);
    CHECK(state.last_fetched_epoch == -1);

    silt_follower_event_t failed = event_of(SILT_EVENT_LOG_FAILED);
    CHECK(step(&follower, &state, &failed, SILT_ACTION_FAIL).reason == SILT_REASON_STORAGE);
    failed.failure = SILT_FAILURE_INVALID_RECORDS;
    action = step(&follower, &state, &failed, SILT_ACTION_DELAY);
    CHECK(action.reason == SILT_REASON_INVALID_RECORDS);
    failed = event_of(SILT_EVENT_QUERY_FAILED);
    step(&follower, &state, &failed, SILT_ACTION_IGNORE);
    failed.leader_epoch = 5;
    action = step(&follower, &state, &failed, SILT_ACTION_DELAY);
    CHECK(action.reason == SILT_REASON_QUERY_FAILED);
}

static void an_empty_follower_is_built_from_remote_storage(void) {
    silt_bounds_t follower = SILT_BOUNDS_INIT;
    follower.flags = SILT_REPLICA_REMOTE_STORAGE;
    silt_fetch_state_t state = { 0, -1, 5, -1, SILT_FETCH_STATE_THERE, 0 };
    silt_follower_event_t event = event_of(SILT_EVENT_RESPONSE);
    event.leader_epoch = 5;
    event.answer = SILT_ANSWER_ERROR;
    event.error_code = 109;
    silt_leader_answers_t *known = &event.known;
    known->latest = 100;
    known->earliest_local = 60;
    known->earliest_local_epoch = 3;
    known->epoch_asked = 2;
    known->epoch_found = 1;
    known->epoch_end_offset = 50;
    const uint32_t queries[] = { SILT_QUERY_LATEST, SILT_QUERY_EARLIEST,
                                 SILT_QUERY_EARLIEST_LOCAL, SILT_QUERY_EPOCH_END };
    for (int i = 0; i < 4; i++) {
        silt_follower_action_t ask = step(&follower, &state, &event, SILT_ACTION_ASK);
        CHECK(ask.query == queries[i] && (i < 3 || ask.epoch == 2));
        known->known |= queries[i];
    }
    silt_follower_action_t action = step(&follower, &state, &event, SILT_ACTION_BUILD_AUX);
    CHECK(action.offset == 60 && action.previous_offset == 59 && action.epoch == 3);
    CHECK(action.log_start_offset == 0 && action.leader_log_end_offset == 100);

    silt_follower_event_t failed = event_of(SILT_EVENT_AUX_FAILED);
    failed.failure = SILT_FAILURE_SEGMENT_NOT_FOUND;
    action = step(&follower, &state, &failed, SILT_ACTION_DELAY);
    CHECK(action.reason == SILT_REASON_SEGMENT_NOT_FOUND);
    follower.log_end_offset = 60;
    follower.local_log_start_offset = 60;
    follower.epochs = epochs;
    follower.epoch_count = 2;
    silt_follower_event_t installed = event_of(SILT_EVENT_AUX_INSTALLED);
    installed.log_end_offset = 100;
    step(&follower, &state, &installed, SILT_ACTION_ADOPT);
    CHECK(state.fetch_offset == 60 && state.lag == 40);

    /* KIP-1023: where the uploads end. */
    silt_bounds_t empty = SILT_BOUNDS_INIT;
    empty.flags = SILT_REPLICA_REMOTE_STORAGE | SILT_REPLICA_STARTS_AT_TIERED;
    silt_fetch_state_t fresh = { 0, -1, 5, -1, SILT_FETCH_STATE_THERE, 0 };
    known->known = SILT_QUERY_LATEST | SILT_QUERY_EARLIEST;
    action = step(&empty, &fresh, &event, SILT_ACTION_ASK);
    CHECK(action.query == SILT_QUERY_EARLIEST_PENDING_UPLOAD);
    empty.flags |= SILT_REPLICA_COMPACTED;
    CHECK(step(&empty, &fresh, &event, SILT_ACTION_ASK).query == SILT_QUERY_EARLIEST_LOCAL);
}

static void a_step_that_makes_no_sense_is_refused(void) {
    silt_bounds_t follower = log_of_100(), bad;
    silt_fetch_state_t state = { 100, -1, 5, 3, SILT_FETCH_STATE_THERE, 0 };
    silt_follower_event_t event = event_of(SILT_EVENT_DELAY_OVER), wrong;
    silt_follower_action_t action = SILT_FOLLOWER_ACTION_INIT;
#define REFUSES(follower, state, event, action) \
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_follower_step(follower, state, event, action, NULL))
    REFUSES(NULL, &state, &event, &action);
    REFUSES(&follower, &state, NULL, &action);
    REFUSES(&follower, &state, &event, NULL);
    bad = follower, bad.flags = 8;
    REFUSES(&bad, &state, &event, &action);
    bad = follower, bad.epochs = NULL;
    REFUSES(&bad, &state, &event, &action);
    silt_epoch_t negative = { -5, 1, 0 };
    bad = follower, bad.epochs = &negative, bad.epoch_count = 1;
    REFUSES(&bad, &state, &event, &action);
    bad = follower, bad.struct_size = 4;
    REFUSES(&bad, &state, &event, &action);
    state.flags = 16;
    REFUSES(&follower, &state, &event, &action);
    state.flags = SILT_FETCH_STATE_THERE;
    for (uint32_t kind = 0; kind < 12; kind++) {
        wrong = event_of(kind);
        wrong.failure = 9;
        wrong.answer = 9;
        silt_status_t status = silt_follower_step(&follower, &state, &wrong, &action, NULL);
        int takes_any = kind == 0 || kind == 2 || kind == 4 || kind == 6 || kind == 8;
        EXPECT(takes_any ? SILT_OK : SILT_E_INVALID_ARGUMENT, status);
    }
    wrong = event_of(SILT_EVENT_RESPONSE);
    wrong.answer = SILT_ANSWER_ERROR; /* of which no error */
    REFUSES(&follower, &state, &wrong, &action);
    wrong.error_code = 100000;
    REFUSES(&follower, &state, &wrong, &action);
    wrong = event_of(SILT_EVENT_EPOCH_END);
    wrong.known.known = 64;
    REFUSES(&follower, &state, &wrong, &action);
#undef REFUSES
}

static void a_leader_answers(void) {
    silt_bounds_t leader = log_of_100();
    silt_fetch_verdict_t verdict = SILT_FETCH_VERDICT_INIT;
    EXPECT(SILT_OK, silt_leader_fetch(&leader, 1, 60, 5, 3, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_SERVE && verdict.high_watermark == 90);
    EXPECT(SILT_OK, silt_leader_fetch(&leader, 1, 60, 4, 3, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_REFUSE && verdict.error_code == 74);
    EXPECT(SILT_OK, silt_leader_fetch(&leader, 1, 101, -1, -1, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_REFUSE && verdict.error_code == 1);
    EXPECT(SILT_OK, silt_leader_fetch(&leader, 1, 60, 5, 2, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_DIVERGING && verdict.epoch == 1);
    CHECK(verdict.end_offset == 50);
    leader.flags = SILT_REPLICA_REMOTE_STORAGE;
    leader.local_log_start_offset = 40;
    leader.highest_remote_offset = 59;
    EXPECT(SILT_OK, silt_leader_fetch(&leader, 1, 20, 5, -1, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_MOVED && verdict.error_code == 109);
    CHECK(verdict.log_end_offset == 100);
    EXPECT(SILT_OK, silt_leader_fetch(&leader, 0, 20, 5, -1, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_READ_REMOTE);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leader_fetch(NULL, 0, 20, 5, -1, &verdict, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leader_fetch(&leader, 0, 20, 5, -1, NULL, NULL));

    silt_time_offset_t at, found = { 7000, 33, 1, 0 };
    int32_t code = 7;
#define ASKS(timestamp, version, found, offset_, epoch_, code_)                              \
    EXPECT(SILT_OK, silt_leader_offset(&leader, timestamp, version, SILT_UP_TO_HIGH_WATERMARK, \
                                       found, &at, &code, NULL));                             \
    CHECK(at.offset == (offset_) && at.leader_epoch == (epoch_) && code == (code_))
    ASKS(-1, 11, NULL, 90, 3, 0);
    ASKS(-2, 11, NULL, 0, 1, 0);
    ASKS(-4, 11, NULL, 40, 1, 0);
    ASKS(-5, 11, NULL, 59, 3, 0);
    ASKS(-6, 11, NULL, 60, 3, 0);
    ASKS(-6, 10, NULL, -1, -1, 35);
    ASKS(-7, 11, NULL, -1, -1, 42);
    ASKS(6000, 11, &found, 33, 1, 0);
    ASKS(6000, 11, NULL, -1, -1, 0);
    leader.leader_epoch_start_offset = 95;
    ASKS(-1, 11, NULL, -1, -1, 78);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leader_offset(&leader, -1, 1, 3, NULL, &at, &code, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leader_offset(&leader, -1, 1, 0, NULL, NULL, &code, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leader_offset(&leader, -1, 1, 0, NULL, &at, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_leader_offset(NULL, -1, 1, 0, NULL, &at, &code, NULL));
}

static void an_open_log_tells_its_own_bounds(const char *home) {
    char path[4096];
    snprintf(path, sizeof path, "%s/orders-0", home);
    silt_log_t *log = NULL;
    EXPECT(SILT_OK, silt_log_open(path, NULL, &log, NULL));
    EXPECT(SILT_OK, silt_log_assign_epoch(log, 4, 0, NULL));
    unsigned char bytes[256];
    for (int i = 0; i < 3; i++) {
        size_t size = make_batch(bytes, 0, 1000, -1, 0, 10);
        silt_append_t request = SILT_APPEND_INIT;
        silt_appended_t appended = SILT_APPENDED_INIT;
        request.leader_epoch = 4;
        EXPECT(SILT_OK, silt_log_append_leader(log, bytes, size, &request, &appended, NULL));
    }
    silt_bounds_t bounds = SILT_BOUNDS_INIT;
    bounds.log = log;
    bounds.leader_epoch = 4;
    silt_fetch_verdict_t verdict = SILT_FETCH_VERDICT_INIT;
    EXPECT(SILT_OK, silt_leader_fetch(&bounds, 1, 3, 4, 4, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_SERVE);
    EXPECT(SILT_OK, silt_leader_fetch(&bounds, 1, 4, 4, 4, &verdict, NULL));
    CHECK(verdict.kind == SILT_VERDICT_DIVERGING && verdict.end_offset == 3);
    silt_fetch_state_t state = { 0, 0, 0, 0, 0, 0 };
    silt_follower_event_t event = event_of(SILT_EVENT_NEW_LEADER);
    event.leader_epoch = 5;
    event.fetch_offset = INT64_MIN;
    step(&bounds, &state, &event, SILT_ACTION_ADOPT);
    CHECK(state.fetch_offset == 3 && state.last_fetched_epoch == 4);
    EXPECT(SILT_OK, silt_log_stop(log, NULL));
    EXPECT(SILT_E_CLOSED, silt_leader_fetch(&bounds, 1, 3, 4, 4, &verdict, NULL));
    silt_log_close(log);
}

/* Replicas 1 (the leader), 2 and 3, of which two are to be in sync. */
static const int32_t all[] = { 1, 2, 3 };

static silt_isr_t isr_of(uint32_t count) {
    silt_isr_t isr = SILT_ISR_INIT;
    isr.committed = all;
    isr.committed_count = count;
    isr.partition_epoch = 8;
    isr.min_insync_replicas = 2;
    isr.replica_count = 3;
    isr.log_end_offset = 100;
    isr.high_watermark = 50;
    isr.now_ms = 100000;
    isr.lag_max_ms = 30000;
    return isr;
}

static silt_progress_t progress_of(int32_t replica, int64_t log_end_offset) {
    silt_progress_t progress = { 0, log_end_offset, 0, 0, -1, -1, 9, replica, 0 };
    return progress;
}

static void what_is_in_sync_is_committed(void) {
    silt_isr_t isr = isr_of(2);
    silt_progress_t followers[] = { progress_of(2, 70), progress_of(3, 60) };
    silt_watermark_t watermark = SILT_WATERMARK_INIT;
    EXPECT(SILT_OK, silt_isr_watermark(&isr, followers, 2, &watermark, NULL));
    CHECK(watermark.kind == SILT_WATERMARK_ADVANCE && watermark.high_watermark == 70);
    CHECK(watermark.held_by == 2);
    followers[1].last_caught_up_ms = 90000; /* about to join: it is waited for */
    EXPECT(SILT_OK, silt_isr_watermark(&isr, followers, 2, &watermark, NULL));
    CHECK(watermark.high_watermark == 60 && watermark.held_by == 3);
    followers[1].flags = SILT_BROKER_FENCED;
    EXPECT(SILT_OK, silt_isr_watermark(&isr, followers, 2, &watermark, NULL));
    CHECK(watermark.high_watermark == 70);
    isr.high_watermark = 70;
    EXPECT(SILT_OK, silt_isr_watermark(&isr, followers, 2, &watermark, NULL));
    CHECK(watermark.kind == SILT_WATERMARK_HELD && watermark.high_watermark == 70);
    isr = isr_of(1);
    EXPECT(SILT_OK, silt_isr_watermark(&isr, followers, 2, &watermark, NULL));
    CHECK(watermark.kind == SILT_WATERMARK_UNDER_MIN_ISR && watermark.high_watermark == 50);

    uint32_t verdict = 9;
#define ACKS(acks, offset, expected)                                        \
    EXPECT(SILT_OK, silt_isr_acks(&isr, acks, offset, &verdict, NULL));      \
    CHECK(verdict == (expected))
    ACKS(-1, INT64_MIN, SILT_ACKS_REFUSE);
    ACKS(1, INT64_MIN, SILT_ACKS_DONE);
    ACKS(-1, 50, SILT_ACKS_UNDER_REPLICATED);
    isr = isr_of(2);
    ACKS(-1, INT64_MIN, SILT_ACKS_DONE);
    ACKS(-1, 51, SILT_ACKS_WAIT);
    ACKS(-1, 50, SILT_ACKS_DONE);

    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_watermark(NULL, followers, 2, &watermark, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_watermark(&isr, NULL, 2, &watermark, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_watermark(&isr, followers, 2, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_acks(&isr, -1, 5, NULL, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_acks(NULL, -1, 5, &verdict, NULL));
    isr.change = SILT_ISR_EXPAND; /* of nobody */
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_watermark(&isr, followers, 2, &watermark, NULL));
    isr.change = 3;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_acks(&isr, -1, 5, &verdict, NULL));
    isr.change = 0;
    isr.committed = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_acks(&isr, -1, 5, &verdict, NULL));
}

static void followers_join_and_leave(void) {
    silt_isr_t isr = isr_of(2);
    silt_progress_t followers[] = { progress_of(2, 70), progress_of(3, 60) };
    uint8_t verdicts[2] = { 9, 9 };
    EXPECT(SILT_OK, silt_isr_verdicts(&isr, followers, 2, verdicts, NULL));
    CHECK(verdicts[0] == SILT_FOLLOWER_LEAVES && verdicts[1] == SILT_FOLLOWER_JOINS);
    followers[0].last_caught_up_ms = 80000;
    followers[1].registered_epoch = -1;
    EXPECT(SILT_OK, silt_isr_verdicts(&isr, followers, 2, verdicts, NULL));
    CHECK(verdicts[0] == SILT_FOLLOWER_MEMBER && verdicts[1] == SILT_FOLLOWER_NOT_ELIGIBLE);
    followers[1] = progress_of(3, 49);
    EXPECT(SILT_OK, silt_isr_verdicts(&isr, followers, 2, verdicts, NULL));
    CHECK(verdicts[1] == SILT_FOLLOWER_BEHIND);
    isr.change = SILT_ISR_EXPAND;
    isr.changed = all + 2;
    isr.changed_count = 1;
    EXPECT(SILT_OK, silt_isr_verdicts(&isr, followers, 2, verdicts, NULL));
    CHECK(verdicts[0] == SILT_FOLLOWER_IN_FLIGHT && verdicts[1] == SILT_FOLLOWER_IN_FLIGHT);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_verdicts(&isr, followers, 2, NULL, NULL));

    uint32_t outcome = 9;
#define ANSWERED(code, leader, partition, expected)                                            \
    EXPECT(SILT_OK, silt_isr_answered(&isr, 5, code, leader, partition, &outcome, NULL));       \
    CHECK(outcome == (expected))
    ANSWERED(0, 5, 9, SILT_ALTER_COMMITTED);
    ANSWERED(0, 6, 9, SILT_ALTER_IGNORED);
    ANSWERED(0, 5, 7, SILT_ALTER_IGNORED);
    ANSWERED(107, 0, 0, SILT_ALTER_REVERTED);
    ANSWERED(95, 0, 0, SILT_ALTER_WAITING);
    ANSWERED(41, 0, 0, SILT_ALTER_RETRY);
    isr.change = SILT_ISR_NO_CHANGE;
    isr.changed_count = 0;
    ANSWERED(0, 5, 9, SILT_ALTER_IGNORED);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_answered(&isr, 5, 99999, 0, 0, &outcome, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_isr_answered(&isr, 5, 0, 0, 0, NULL, NULL));

    silt_progress_t follower = progress_of(2, -1);
    follower.broker_epoch = INT64_MIN;
    EXPECT(SILT_OK, silt_progress_record(&follower, 100, 5, 9, 100, 7000, NULL));
    CHECK(follower.log_end_offset == 100 && follower.last_caught_up_ms == 7000);
    CHECK(follower.log_start_offset == 5 && follower.broker_epoch == 9 && follower.replica == 2);
    EXPECT(SILT_E_CONFLICT, silt_progress_record(&follower, 120, 5, 8, 120, 8000, NULL));
    CHECK(follower.log_end_offset == 100);
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_progress_record(NULL, 100, 5, 9, 100, 7000, NULL));
}

static void who_may_lead_without_losing_anything(void) {
    int32_t replicas[4] = { 1, 2, 3 }, isr[4] = { 1, 2, 3 }, elr[4], last[4], add[4], gone[4];
    silt_partition_t partition = SILT_PARTITION_INIT;
    partition.replicas = replicas;
    partition.isr = isr;
    partition.elr = elr;
    partition.last_known_elr = last;
    partition.adding = add;
    partition.removing = gone;
    partition.replica_count = partition.isr_count = 3;
    partition.capacity = 4;
    partition.leader = 1;
    int32_t available[] = { 1, 2, 3 };
    silt_partition_event_t event = SILT_PARTITION_EVENT_INIT;
    event.kind = SILT_PARTITION_BROKER_FENCED;
    event.min_insync_replicas = 2;
    event.available = available;
    event.available_count = 3;
    int32_t outcome = 9;
    for (int32_t broker = 1; broker <= 3; broker++) {
        event.broker = broker;
        available[broker - 1] = 0;
        EXPECT(SILT_OK, silt_partition_step(&partition, &event, &partition, &outcome, NULL));
        CHECK(outcome == -1);
    }
    /* All are gone; the last two that were in sync are eligible. */
    CHECK(partition.leader == -1 && partition.isr_count == 0 && partition.elr_count == 2);
    CHECK(elr[0] + elr[1] == 5 && partition.leader_epoch > 0 && partition.partition_epoch == 3);
    event.broker = 2;
    event.kind = SILT_PARTITION_BROKER_UNFENCED;
    available[0] = 2;
    EXPECT(SILT_OK, silt_partition_step(&partition, &event, &partition, &outcome, NULL));
    CHECK(outcome == -1 && partition.leader == 2 && partition.isr_count == 1 && isr[0] == 2);
    EXPECT(SILT_OK, silt_partition_step(&partition, &event, &partition, &outcome, NULL));
    CHECK(outcome == 0);
    event.kind = SILT_PARTITION_ELECT;
    event.election = SILT_ELECTION_UNCLEAN;
    EXPECT(SILT_OK, silt_partition_step(&partition, &event, &partition, &outcome, NULL));
    CHECK(outcome == 84);
    event.kind = SILT_PARTITION_CLEAR_ELR;
    event.election = SILT_ELECTION_ONLINE;
    EXPECT(SILT_OK, silt_partition_step(&partition, &event, &partition, &outcome, NULL));
    CHECK(outcome == -1 && partition.elr_count == 0);
    const int32_t target[] = { 2, 3 };
    event.kind = SILT_PARTITION_CHANGE;
    event.flags = SILT_PARTITION_EVENT_TARGET_ISR;
    event.target_isr = target;
    event.target_isr_count = 2;
    partition.capacity = 1;
    EXPECT(SILT_E_SHORT_BUFFER, silt_partition_step(&partition, &event, &partition, &outcome, NULL));
    CHECK(outcome == -1 && partition.isr_count == 2 && partition.replica_count == 3);
    partition.capacity = 4;
    EXPECT(SILT_OK, silt_partition_step(&partition, &event, &partition, &outcome, NULL));

#define REFUSES(change)                                                                       \
    wrong = event;                                                                            \
    change;                                                                                   \
    EXPECT(SILT_E_INVALID_ARGUMENT,                                                           \
           silt_partition_step(&partition, &wrong, &partition, &outcome, NULL))
    silt_partition_event_t wrong;
    REFUSES(wrong.kind = 8);
    REFUSES(wrong.flags = 16);
    REFUSES(wrong.election = 3);
    REFUSES(wrong.recovering = 2);
    REFUSES(wrong.target_isr = NULL);
    REFUSES(wrong.struct_size = 60);
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_partition_step(NULL, &event, &partition, &outcome, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_partition_step(&partition, NULL, &partition, &outcome, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT, silt_partition_step(&partition, &event, NULL, &outcome, NULL));
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_partition_step(&partition, &event, &partition, NULL, NULL));
    partition.isr = NULL;
    EXPECT(SILT_E_INVALID_ARGUMENT,
           silt_partition_step(&partition, &event, &partition, &outcome, NULL));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    a_follower_fetches_and_appends();
    a_follower_waits_fails_and_asks();
    an_empty_follower_is_built_from_remote_storage();
    a_step_that_makes_no_sense_is_refused();
    a_leader_answers();
    an_open_log_tells_its_own_bounds(argv[1]);
    what_is_in_sync_is_committed();
    followers_join_and_leave();
    who_may_lead_without_losing_anything();
    puts("ok");
    return 0;
}
