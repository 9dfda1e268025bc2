// The C++ wrapper: what it owns goes with it, what fails is an exception.
#include <siltstone.hpp>

#include "check.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

static void owns_what_it_opens(const std::string &home) {
    siltstone::Log log(home + "/wrapped-0");
    unsigned char bytes[256];
    silt_append_t request = SILT_APPEND_INIT;
    for (int i = 0; i < 10; i++) {
        const std::size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        CHECK(log.append_leader(bytes, size, request).first_offset == i);
    }
    log.flush(0);
    CHECK(log.set_high_watermark(10) == 10);
    CHECK(log.roll(0) == 10);
    CHECK(log.segments().size() == 2);
    CHECK(log.epochs().size() == 1);
    CHECK(log.aborted(0, 10).empty());
    CHECK(log.offsets().log_end_offset == 10);

    siltstone::Range range = log.locate(4, 4096, SILT_UP_TO_HIGH_WATERMARK);
    siltstone::Range moved(std::move(range));
    CHECK(range.empty() && range.fd() == -1 && range.get().lease == 0);
    CHECK(!moved.empty() && moved.base_offset() == 4 && moved.is_intact());
    siltstone::Log other(std::move(log));
    other.truncate_to(2, 0);
    CHECK(!moved.is_intact());
    const std::vector<unsigned char> snapshot = siltstone::write_snapshot(other.producers());
    CHECK(siltstone::read_snapshot(snapshot.data(), snapshot.size()).empty());
    silt_scan_t scan = SILT_SCAN_INIT;
    const std::size_t size = make_batch(bytes, 7, 1000, 5, 0, 40);
    CHECK(siltstone::scan_segment(bytes, size, scan).next_offset == 8);
    const int fd = moved.fd();
    other.stop();
    moved = siltstone::Range();
    CHECK(other.get() != nullptr && fd >= 0);
    siltstone::Log next(home + "/wrapped-1");
    other = std::move(next);
    // The one that was held is closed, and not kept by the other.
    CHECK(next.get() == nullptr && other.segments().size() == 1);
    siltstone::Log &same = other;
    other = std::move(same);
    CHECK(other.get() != nullptr);
}

static void releases_what_is_replaced(const std::string &home) {
    siltstone::Log log(home + "/replaced-0");
    unsigned char bytes[256];
    silt_append_t request = SILT_APPEND_INIT;
    log.append_leader(bytes, make_batch(bytes, 0, 1000, -1, 0, 40), request);
    siltstone::Range first = log.locate(0, 4096, SILT_UP_TO_LOG_END);
    const int fd = first.fd();
    CHECK(fd >= 0);
    siltstone::Log other(home + "/replaced-1");
    log = std::move(other);
    siltstone::Range none;
    first = std::move(none);
    CHECK(first.empty() && none.empty());
    CHECK(pread(fd, bytes, 1, 0) == -1 && errno == EBADF);
}

static void cuts_no_text_at_a_nul(const std::string &home) {
    const std::string name("/nul-0\0x", 8);
    try {
        siltstone::Log log(home + name);
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT);
    }
    CHECK(access((home + "/nul-0").c_str(), F_OK) == -1);
}

static std::int32_t throws_a_number(void *ctx, std::uint64_t, std::uint64_t) {
    throw *static_cast<int *>(ctx);
}

// What a progress function throws comes out of the call, and the object is as before.
static void lets_progress_functions_throw(const std::string &home) {
    CHECK(mkdir((home + "/thrown").c_str(), 0755) == 0);
    { siltstone::Log log(home + "/thrown/orders-0"); }
    siltstone::Dir dir({home + "/thrown"});
    silt_verify_options_t verify = SILT_VERIFY_OPTIONS_INIT;
    silt_recover_options_t recover = SILT_RECOVER_OPTIONS_INIT;
    silt_engine_options_t open = SILT_ENGINE_OPTIONS_INIT;
    int number = 42;
    open.progress = throws_a_number;
    open.progress_ctx = &number;
    int caught = 0;
    for (int call = 0; call < 3; call++) {
        try {
            if (call == 0) {
                static_cast<void>(dir.verify(verify, throws_a_number, &number));
            } else if (call == 1) {
                static_cast<void>(dir.recover(recover, throws_a_number, &number));
            } else {
                siltstone::Engine engine({home + "/thrown"}, open);
            }
        } catch (int thrown) {
            caught += thrown;
        }
    }
    CHECK(caught == 3 * 42);
    CHECK(dir.recover(recover).size() == 1);
}

static void reads_and_cuts_at_both_ends(const std::string &home) {
    siltstone::Log log(home + "/both-ends-0");
    unsigned char bytes[256];
    std::size_t size = 0;
    for (int i = 0; i < 10; i++) {
        size = make_batch(bytes, i, 1000 + i, -1, 0, 40);
        CHECK(log.append_follower(bytes, size, 0, 0).last_offset == i);
        CHECK(i != 4 || log.roll(0) == 5);
    }
    CHECK(log.epoch_end(0) == std::make_pair(0, std::int64_t{10}));
    CHECK(log.epoch_end(7) == std::make_pair(-1, std::int64_t{-1}));
    log.assign_epoch(7, 10);
    CHECK(log.epoch_end(7) == std::make_pair(7, std::int64_t{10}));
    CHECK(log.offset_for_time(1004).offset == 4);

    unsigned char copy[256];
    const siltstone::Range range = log.read(9, SILT_UP_TO_LOG_END, copy, sizeof copy);
    CHECK(range.base_offset() == 9 && range.size_bytes() == size && range.fd() == -1);
    CHECK(std::memcmp(copy, bytes, size) == 0);

    CHECK(log.set_high_watermark(10) == 10);
    log.advance_start(7);
    CHECK(log.retain(0) == 1 && log.segments().size() == 1);
    CHECK(log.delete_due_files(INT64_MAX) > 0);
    log.truncate_fully(20, 0);
    CHECK(log.offsets().log_start_offset == 20 && log.offsets().log_end_offset == 20);
    log.truncate_fully(30, 0, 25);
    CHECK(log.offsets().log_start_offset == 25 && log.offsets().log_end_offset == 30);
    log.stop();
}

static void begins_and_ends_transactions(const std::string &home) {
    silt_log_options_t options = SILT_LOG_OPTIONS_INIT;
    options.topic_id[15] = 7;
    options.producer_expiration_ms = 1000;
    siltstone::Log log(home + "/transactions-0", &options);
    CHECK(log.topic_id()[0] == 0 && log.topic_id()[15] == 7);
    unsigned char bytes[256];
    const std::size_t size = make_batch(bytes, 0, 1000, 9, 0, 40);
    put_in_transaction(bytes, size);
    silt_append_t request = SILT_APPEND_INIT;
    request.verification = log.start_verification(9, 0, 0, 0, 1000);
    CHECK(log.append_leader(bytes, size, request).first_offset == 0);
    silt_end_marker_t marker = SILT_END_MARKER_INIT;
    marker.flags = SILT_END_ABORT;
    marker.producer_id = 9;
    marker.timestamp_ms = 2000;
    std::vector<unsigned char> batch = siltstone::write_end_marker(marker);
    request = SILT_APPEND_INIT;
    request.origin = SILT_ORIGIN_COORDINATOR;
    request.transaction_version = 1;
    CHECK(log.append_leader(batch.data(), batch.size(), request).last_offset == 1);
    CHECK(log.set_high_watermark(2) == 2 && log.aborted(0, 2).size() == 1);
    CHECK(log.producers().size() == 1);
    log.expire_producers(3000);
    CHECK(log.producers().empty());
    log.set_highest_remote(1);
    CHECK(log.offsets().highest_remote_offset == 1);
}

static void works_on_many_logs_at_once(const std::string &home) {
    siltstone::Log first(home + "/many-0"), second(home + "/many-1");
    unsigned char bytes[3][256];
    std::vector<silt_append_item_t> items(3);
    for (int i = 0; i < 3; i++) {
        items[i].log = i == 1 ? second.get() : first.get();
        items[i].records = bytes[i];
        items[i].size_bytes = make_batch(bytes[i], 0, 1000, 9, 0, 40);
        put_in_transaction(bytes[i], items[i].size_bytes);
    }
    items[2].records = nullptr;
    const siltstone::Appends done =
        siltstone::append_many(items, {first.start_verification(9, 0, 0, 0, 0)});
    CHECK(done.status[0] == SILT_OK && done.results[0].last_offset == 0);
    CHECK(done.status[1] == SILT_E_CONFLICT);
    CHECK(done.results[1].detail_code == SILT_DETAIL_INVALID_TXN_STATE);
    CHECK(done.status[2] == SILT_E_INVALID_ARGUMENT && siltstone::append_many({}).status.empty());
    try {
        items[2] = items[1];
        static_cast<void>(siltstone::append_many(items));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT);
    }
    const silt_fetch_t fetch = {first.get(), 0, 1 << 20, SILT_UP_TO_LOG_END, 0, 0, nullptr};
    std::vector<silt_fetch_t> fetches = {fetch, fetch};
    fetches[1].log = nullptr;
    const siltstone::Located located = siltstone::locate_within(fetches, 50);
    CHECK(located.status[0] == SILT_OK && located.ranges[0].size_bytes() == 50);
    CHECK(located.status[1] == SILT_E_INVALID_ARGUMENT && located.ranges[1].empty());
}

static void reads_bytes() {
    std::vector<unsigned char> bytes;
    for (int i = 0; i < 100; i++) {
        unsigned char batch[256];
        const std::size_t size = make_batch(batch, i, 1000 + i, -1, 0, 40);
        bytes.insert(bytes.end(), batch, batch + size);
    }
    const siltstone::Batches found = siltstone::parse_batches(bytes.data(), bytes.size() - 1);
    CHECK(found.batches.size() == 99 && found.batches[98].base_offset == 98);
    CHECK(found.consumed_bytes == 99 * batch_size(40));
    std::uint64_t valid_bytes = 0;
    siltstone::validate_batches(bytes.data(), bytes.size(), &valid_bytes);
    CHECK(valid_bytes == bytes.size());
    for (const std::uint32_t interval : {0u, 1u}) {
        const siltstone::RebuiltSegment made =
            siltstone::rebuild_segment(bytes.data(), bytes.size(), 0, interval);
        CHECK(made.rebuilt.next_offset == 100 && made.rebuilt.batch_count == 100);
        // One behind every 38 batches, and the largest timestamp; or one for each but the first.
        CHECK(made.offset_index.size() == 8 * (interval == 0 ? 2 : 99));
        CHECK(made.time_index.size() == 12 * (interval == 0 ? 3 : 99));
        CHECK(made.offset_index[3] != 0 && made.time_index.back() == 99);
    }
    bytes[50 * batch_size(40) + 8] = 0xff;
    try {
        static_cast<void>(siltstone::parse_batches(bytes.data(), bytes.size()));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_CORRUPT);
    }
    try {
        siltstone::validate_batches(bytes.data(), bytes.size());
        CHECK(false);
    } catch (const siltstone::Error &error) {
        const auto position = static_cast<std::int64_t>(50 * batch_size(40));
        CHECK(error.code() == SILT_E_CORRUPT && error.get().position == position);
    }
    try {
        static_cast<void>(siltstone::rebuild_segment(bytes.data(), bytes.size(), 1000));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_OUT_OF_RANGE);
    }
}

static void throws_what_fails(const std::string &home) {
    try {
        siltstone::Log log(home + "/nothing");
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT && error.what()[0] != 0);
        CHECK(error.os_errno() == 0 && error.detail_code() == 0);
    }
    siltstone::Log log(home + "/wrapped-1");
    try {
        static_cast<void>(log.locate(5, 100, SILT_UP_TO_LOG_END));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_OUT_OF_RANGE);
    }
}

static void holds_an_index(const std::string &home) {
    const std::string path = home + "/0.index";
    siltstone::Index made(path, SILT_INDEX_OFFSET, 100, 80);
    siltstone::Index index(std::move(made));
    index.append(105, 7);
    index.append(110, 900);
    CHECK(index.lookup(109) == ((5LL << 32) | 7) && index.entry(1).offset == 110);
    CHECK(index.upper_bound(0, 8) == ((10LL << 32) | 900));
    CHECK(index.counters().entry_count == 2);
    index.flush(path);
    CHECK(!index.resize(path, 80));
    index.truncate_to(path, 110);
    index.trim(path);
    index.sanity_check();
    index.shut();
    CHECK(index.lookup(109) == SILT_E_CLOSED && index.get() != nullptr);

    siltstone::Index times(home + "/0.timeindex", SILT_INDEX_TIME, 0, 120);
    CHECK(times.append_time(10, 5) && !times.append_time(10, 6, true));
    CHECK(times.lookup_time(11).offset == 5);
    const std::string txns = home + "/0.txnindex";
    siltstone::Index aborted(txns, SILT_INDEX_TXN, 0, 0);
    aborted.append_aborted(txns, {7, 1, 2, 3});
    bool is_complete = true;
    CHECK(aborted.collect_aborted(0, 10, &is_complete).size() == 1 && !is_complete);
    try {
        siltstone::Index missing(home + "/1.index", SILT_INDEX_OFFSET, 0, 80, SILT_INDEX_READ_ONLY);
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_NOT_FOUND);
    }
}

static void holds_an_engine(const std::string &home) {
    silt_engine_options_t options = SILT_ENGINE_OPTIONS_INIT;
    siltstone::Engine made({home + "/engine"}, options);
    siltstone::Engine engine(std::move(made));
    silt_new_log_t new_log = SILT_NEW_LOG_INIT;
    siltstone::Log log = engine.create_log("orders", 0, new_log);
    unsigned char bytes[256], copy[256];
    siltstone::Ring ring;
    silt_op_t ops[2] = {};
    ops[0].kind = SILT_OP_APPEND;
    ops[0].flags = SILT_OP_FLUSH;
    ops[0].log = log.get();
    ops[0].bytes = bytes;
    ops[0].size_bytes = make_batch(bytes, 0, 1000, -1, 0, 40);
    ops[1].kind = SILT_OP_READ;
    ops[1].log = log.get();
    ops[1].bytes = copy;
    ops[1].size_bytes = ops[1].max_bytes = sizeof copy;
    ring.submit(ops, 2);
    silt_done_t done[2];
    CHECK(ring.fd() >= 0 && ring.get() != nullptr && ring.poll(done, 2, -1) == 2);
    CHECK(done[0].status == SILT_OK && done[1].range.size_bytes == batch_size(40));
    CHECK(engine.log("orders", 0).offsets().log_end_offset == 1);
    engine.set_config("orders", {{"segment.bytes", "1048576"}});
    CHECK(engine.partitions().size() == 1 && engine.stats().logs == 1);
    engine.checkpoint();
    const std::vector<silt_work_t> work = engine.due(10000000);
    CHECK(work.size() > 1);
    engine.run(work[0], 10000000);
    engine.drop_work(work[1]);
    const std::string second = home + "/second";
    siltstone::Engine two({home + "/first", second}, options);
    const std::string first = home + "/first";
    new_log.dir = first.c_str();
    two.create_log("orders", 0, new_log);
    new_log.dir = second.c_str();
    new_log.flags = SILT_NEW_LOG_FUTURE;
    two.create_log("orders", 0, new_log);
    two.delete_future("orders", 0, 0);
    two.create_log("orders", 0, new_log);
    CHECK(two.future_log("orders", 0).offsets().log_end_offset == 0);
    two.replace_log("orders", 0, 0);
    two.mark_stray("orders", 0, 0);
    two.take_offline(second);
    CHECK(two.stats().offline_dirs == 1 && two.stats().logs == 0);
    engine.delete_log("orders", 0, 0);
    CHECK(engine.stop(5, 2) == 1 && engine.get() != nullptr);
}

static void asks_of_remote_storage() {
    const std::int64_t bases[] = {0, 10, 20};
    const std::uint64_t ends[] = {3};
    std::uint8_t reasons[3];
    silt_tier_columns_t columns = SILT_TIER_COLUMNS_INIT;
    columns.partition_count = 1;
    columns.segment_count = 3;
    columns.base_offset = bases;
    columns.segment_end = ends;
    columns.reason = reasons;
    siltstone::tier_eligible(columns);
    CHECK(reasons[1] == SILT_WAITS_NOT && reasons[2] == SILT_WAITS_ACTIVE);

    unsigned char transaction[34] = {0};
    transaction[9] = 7;   // producer id
    transaction[25] = 90; // last offset
    silt_direct_request_t request = SILT_DIRECT_REQUEST_INIT;
    request.end_offset = 99;
    request.log_size_bytes = 1000;
    request.transaction_index = transaction;
    request.transaction_index_size_bytes = sizeof transaction;
    request.offset = 50;
    request.limit_offset = 100;
    const siltstone::DirectRead found = siltstone::tier_direct_read(request);
    CHECK(found.read.size_bytes == 1000 && found.read.next_offset == 100);
    CHECK(found.aborted.size() == 1 && found.aborted[0].producer_id == 7);
    try {
        request.offset = 100;
        static_cast<void>(siltstone::tier_direct_read(request));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_OUT_OF_RANGE);
    }
}

static void uploads_and_rebuilds(const std::string &home) {
    siltstone::Log log(home + "/wrapped-2");
    unsigned char bytes[256];
    silt_append_t request = SILT_APPEND_INIT;
    for (int i = 0; i < 4; i++) {
        const std::size_t size = make_batch(bytes, 0, 1000 + i, -1, 0, 40);
        static_cast<void>(log.append_leader(bytes, size, request));
    }
    static_cast<void>(log.roll(0));
    static_cast<void>(log.set_high_watermark(4));
    silt_upload_options_t options = SILT_UPLOAD_OPTIONS_INIT;
    options.topic_id[3] = 5;
    siltstone::Upload upload(log, 0, 4, options);
    siltstone::Upload moved(std::move(upload));
    CHECK(moved.is_intact() && !upload.is_intact() && moved.parts().size() == 5);
    siltstone::RemoteRecord segment = moved.segment();
    CHECK(segment.topic() == "wrapped" && segment.epochs().size() == 1);
    CHECK(segment.custom().empty() && segment.fields().custom_size_bytes == -1);
    segment.set_custom({1, 2, 3});
    const std::vector<std::uint8_t> value = segment.encode();
    siltstone::RemoteRecord read = siltstone::RemoteRecord::decode(value.data(), value.size());
    CHECK(read.topic() == "wrapped" && read.custom().size() == 3 && read.encode() == value);
    CHECK(read.fields().end_offset == 3 && read.fields().state == SILT_REMOTE_COPY_STARTED);
    read.set_topic("other");
    read.set_epochs({{0, 1, 0}, {2, 0, 0}});
    try {
        static_cast<void>(read.encode());
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT);
    }

    const silt_remote_record_t record = segment.get();
    const std::string dir = home + "/wrapped-3";
    std::vector<silt_rebuild_t> items = {{nullptr, dir.c_str(), &record, 0, 0, 0, 0, 0, 0}};
    silt_rebuild_options_t rebuild = SILT_REBUILD_OPTIONS_INIT;
    rebuild.store_dir = home.c_str();
    CHECK(siltstone::tier_rebuild(items, rebuild)[0] == SILT_E_NOT_FOUND);
}

static void decides_for_replicas() {
    silt_bounds_t bounds = SILT_BOUNDS_INIT;
    bounds.log_end_offset = 7;
    bounds.high_watermark = 5;
    silt_fetch_state_t state = {0, 0, 0, 0, 0, 0};
    silt_follower_event_t event = SILT_FOLLOWER_EVENT_INIT;
    event.kind = SILT_EVENT_NEW_LEADER;
    event.fetch_offset = INT64_MIN;
    CHECK(siltstone::follower_step(bounds, state, event).kind == SILT_ACTION_ADOPT);
    CHECK(state.fetch_offset == 5 && (state.flags & SILT_FETCH_STATE_THERE) != 0);
    event.kind = SILT_EVENT_LOG_FAILED;
    CHECK(siltstone::follower_step(bounds, state, event).kind == SILT_ACTION_FAIL);
    CHECK(state.flags == 0);
    CHECK(siltstone::leader_fetch(bounds, true, 6, -1, -1).kind == SILT_VERDICT_SERVE);
    CHECK(siltstone::leader_fetch(bounds, false, 8, -1, -1).error_code == 1);

    const std::int32_t committed[] = {1, 2};
    silt_isr_t isr = SILT_ISR_INIT;
    isr.committed = committed;
    isr.committed_count = isr.replica_count = 2;
    isr.min_insync_replicas = 2;
    isr.log_end_offset = 9;
    const std::vector<silt_progress_t> followers = {{0, 4, 0, 0, -1, -1, 1, 2, 0}};
    CHECK(siltstone::isr_watermark(isr, followers).high_watermark == 4);
    CHECK(siltstone::isr_verdicts(isr, followers)[0] == SILT_FOLLOWER_MEMBER);
    CHECK(siltstone::isr_acks(isr, -1, 4) == SILT_ACKS_WAIT);
    CHECK(siltstone::isr_acks(isr, 1, 4) == SILT_ACKS_DONE);
    CHECK(siltstone::isr_answered(isr, 0, 0, 0, 1) == SILT_ALTER_IGNORED);
    silt_progress_t follower = followers[0];
    siltstone::progress_record(follower, 9, 0, 1, 9, 500);
    CHECK(follower.log_end_offset == 9 && follower.last_fetch_ms == 500);
    const siltstone::LeaderOffset latest =
        siltstone::leader_offset(bounds, -1, 7, SILT_UP_TO_LOG_END);
    CHECK(latest.error_code == 0 && latest.offset.offset == bounds.log_end_offset);
    try {
        isr.change = 9;
        static_cast<void>(siltstone::isr_verdicts(isr, followers));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT);
    }
}

static void elects_leaders() {
    siltstone::Partition partition;
    partition.replicas = partition.isr = {1, 2, 3};
    partition.fields.leader = 1;
    const std::int32_t available[] = {2, 3};
    silt_partition_event_t event = SILT_PARTITION_EVENT_INIT;
    event.kind = SILT_PARTITION_BROKER_FENCED;
    event.broker = 1;
    event.min_insync_replicas = 3;
    event.available = available;
    event.available_count = 2;
    CHECK(siltstone::partition_step(partition, event) == -1);
    CHECK(partition.fields.leader == 2 && partition.isr == std::vector<std::int32_t>({2, 3}));
    CHECK(partition.elr == std::vector<std::int32_t>({1}) && partition.replicas.size() == 3);
    CHECK(siltstone::partition_step(partition, event) == 0);
    // A set that is larger than the assignment needs more room than there was.
    const std::int32_t target[] = {2, 3, 1, 4};
    event.kind = SILT_PARTITION_CHANGE;
    event.flags = SILT_PARTITION_EVENT_TARGET_ISR;
    event.target_isr = target;
    event.target_isr_count = 4;
    static_cast<void>(siltstone::partition_step(partition, event));
    CHECK(partition.isr.size() == 4 && partition.isr[3] == 4);
    try {
        event.election = 9;
        static_cast<void>(siltstone::partition_step(partition, event));
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_INVALID_ARGUMENT && partition.isr.size() == 4);
    }
}

static void repairs_directories(const std::string &home) {
    CHECK(mkdir((home + "/rest").c_str(), 0755) == 0);
    { siltstone::Log log(home + "/rest/orders-0"); }
    siltstone::Dir made({home + "/rest"});
    siltstone::Dir dir(std::move(made));
    CHECK(dir.scan().size() == 1 && dir.get() != nullptr);
    silt_verify_options_t verify = SILT_VERIFY_OPTIONS_INIT;
    CHECK(dir.verify(verify).size() == dir.problems().size());
    silt_recover_options_t recover = SILT_RECOVER_OPTIONS_INIT;
    CHECK(dir.recover(recover)[0].outcome == SILT_RECOVERY_SOUND);
    CHECK(dir.plan().size() == dir.recoveries()[0].step_count);
    CHECK(dir.recover_step(recover) == 0);
    try {
        siltstone::Dir missing({home + "/nowhere"});
        CHECK(false);
    } catch (const siltstone::Error &error) {
        CHECK(error.code() == SILT_E_NOT_FOUND);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    owns_what_it_opens(argv[1]);
    releases_what_is_replaced(argv[1]);
    cuts_no_text_at_a_nul(argv[1]);
    lets_progress_functions_throw(argv[1]);
    reads_and_cuts_at_both_ends(argv[1]);
    begins_and_ends_transactions(argv[1]);
    works_on_many_logs_at_once(argv[1]);
    reads_bytes();
    throws_what_fails(argv[1]);
    holds_an_index(argv[1]);
    holds_an_engine(argv[1]);
    asks_of_remote_storage();
    uploads_and_rebuilds(argv[1]);
    decides_for_replicas();
    elects_leaders();
    repairs_directories(argv[1]);
    puts("ok");
    return 0;
}
