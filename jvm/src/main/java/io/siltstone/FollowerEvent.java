package io.siltstone;

import java.lang.foreign.Arena;

/**
 * What has happened to a follower, and what its leader has said so far: that is to be forgotten
 * when a step is over.
 */
public final class FollowerEvent extends Struct {
    private static final long KIND = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "kind");
    private static final long FETCH_OFFSET =
            Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "fetch_offset");
    private static final long HIGH_WATERMARK =
            Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "high_watermark");
    private static final long LOG_START_OFFSET =
            Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "log_start_offset");
    private static final long LOG_END_OFFSET =
            Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "log_end_offset");
    private static final long END_OFFSET = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "end_offset");
    private static final long LEADER_EPOCH =
            Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "leader_epoch");
    private static final long EPOCH = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "epoch");
    private static final long ANSWER = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "answer");
    private static final long ERROR_CODE = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "error_code");
    private static final long FAILURE = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "failure");
    private static final long KNOWN = Layouts.at(ReplicaLayouts.FOLLOWER_EVENT, "known");
    private static final long KNOWN_BITS = ofAnswer("known");
    private static final long LATEST = ofAnswer("latest");
    private static final long EARLIEST = ofAnswer("earliest");
    private static final long EARLIEST_LOCAL = ofAnswer("earliest_local");
    private static final long EARLIEST_LOCAL_EPOCH = ofAnswer("earliest_local_epoch");
    private static final long EARLIEST_PENDING_UPLOAD = ofAnswer("earliest_pending_upload");
    private static final long EARLIEST_PENDING_UPLOAD_EPOCH =
            ofAnswer("earliest_pending_upload_epoch");
    private static final long LATEST_TIERED = ofAnswer("latest_tiered");
    private static final long LATEST_TIERED_EPOCH = ofAnswer("latest_tiered_epoch");
    private static final long EPOCH_ASKED = ofAnswer("epoch_asked");
    private static final long EPOCH_FOUND = ofAnswer("epoch_found");
    private static final long EPOCH_END_OFFSET = ofAnswer("epoch_end_offset");

    /** Nothing yet, in memory that the garbage collector frees. */
    public FollowerEvent() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public FollowerEvent(Arena arena) {
        super(ReplicaLayouts.FOLLOWER_EVENT, arena);
    }

    /** What: {@code EVENT_} of {@link Codes}. */
    public int kind() {
        return intAt(KIND);
    }

    /** What: {@code EVENT_} of {@link Codes}. */
    public FollowerEvent kind(int value) {
        setInt(KIND, value);
        return this;
    }

    /** The offset of the request, or where to begin. */
    public long fetchOffset() {
        return longAt(FETCH_OFFSET);
    }

    /** The offset of the request, or where to begin. */
    public FollowerEvent fetchOffset(long value) {
        setLong(FETCH_OFFSET, value);
        return this;
    }

    /** The high watermark of the response. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** The high watermark of the response. */
    public FollowerEvent highWatermark(long value) {
        setLong(HIGH_WATERMARK, value);
        return this;
    }

    /** The log start of the response. */
    public long logStartOffset() {
        return longAt(LOG_START_OFFSET);
    }

    /** The log start of the response. */
    public FollowerEvent logStartOffset(long value) {
        setLong(LOG_START_OFFSET, value);
        return this;
    }

    /** The leader's log end, as the action had it. */
    public long logEndOffset() {
        return longAt(LOG_END_OFFSET);
    }

    /** The leader's log end, as the action had it. */
    public FollowerEvent logEndOffset(long value) {
        setLong(LOG_END_OFFSET, value);
        return this;
    }

    /** Where the epoch ends, exclusive. */
    public long endOffset() {
        return longAt(END_OFFSET);
    }

    /** Where the epoch ends, exclusive. */
    public FollowerEvent endOffset(long value) {
        setLong(END_OFFSET, value);
        return this;
    }

    /** The leader epoch, or that of the request. */
    public int leaderEpoch() {
        return intAt(LEADER_EPOCH);
    }

    /** The leader epoch, or that of the request. */
    public FollowerEvent leaderEpoch(int value) {
        setInt(LEADER_EPOCH, value);
        return this;
    }

    /** The epoch of the answer. */
    public int epoch() {
        return intAt(EPOCH);
    }

    /** The epoch of the answer. */
    public FollowerEvent epoch(int value) {
        setInt(EPOCH, value);
        return this;
    }

    /** What the leader has answered: {@code ANSWER_} of {@link Codes}. */
    public int answer() {
        return intAt(ANSWER);
    }

    /** What the leader has answered: {@code ANSWER_} of {@link Codes}. */
    public FollowerEvent answer(int value) {
        setInt(ANSWER, value);
        return this;
    }

    /** An error of the protocol. */
    public int errorCode() {
        return intAt(ERROR_CODE);
    }

    /** An error of the protocol. */
    public FollowerEvent errorCode(int value) {
        setInt(ERROR_CODE, value);
        return this;
    }

    /** What has failed: {@code FAILURE_} of {@link Codes}. */
    public int failure() {
        return intAt(FAILURE);
    }

    /** What has failed: {@code FAILURE_} of {@link Codes}. */
    public FollowerEvent failure(int value) {
        setInt(FAILURE, value);
        return this;
    }

    /** The leader has said where its log ends. */
    public FollowerEvent latest(long offset) {
        return known(Codes.QUERY_LATEST, LATEST, offset);
    }

    /** The leader has said where its log starts. */
    public FollowerEvent earliest(long offset) {
        return known(Codes.QUERY_EARLIEST, EARLIEST, offset);
    }

    /** The leader has said where its local log starts. */
    public FollowerEvent earliestLocal(long offset, int epoch) {
        setInt(EARLIEST_LOCAL_EPOCH, epoch);
        return known(Codes.QUERY_EARLIEST_LOCAL, EARLIEST_LOCAL, offset);
    }

    /** The leader has said which offset is the first to be uploaded; -1 for none. */
    public FollowerEvent earliestPendingUpload(long offset, int epoch) {
        setInt(EARLIEST_PENDING_UPLOAD_EPOCH, epoch);
        return known(Codes.QUERY_EARLIEST_PENDING_UPLOAD, EARLIEST_PENDING_UPLOAD, offset);
    }

    /** The leader has said which offset is the last that is uploaded; -1 for none. */
    public FollowerEvent latestTiered(long offset, int epoch) {
        setInt(LATEST_TIERED_EPOCH, epoch);
        return known(Codes.QUERY_LATEST_TIERED, LATEST_TIERED, offset);
    }

    /** The leader has said where the greatest epoch ends that is not above the one asked for. */
    public FollowerEvent epochEnd(int askedEpoch, int foundEpoch, long endOffset) {
        setInt(EPOCH_ASKED, askedEpoch);
        setInt(EPOCH_FOUND, foundEpoch);
        return known(Codes.QUERY_EPOCH_END, EPOCH_END_OFFSET, endOffset);
    }

    /** Forgets what the leader has said. */
    public FollowerEvent forgetAnswers() {
        setInt(KNOWN_BITS, 0);
        return this;
    }

    private FollowerEvent known(int bit, long field, long offset) {
        setLong(field, offset);
        setBit(KNOWN_BITS, bit, true);
        return this;
    }

    private static long ofAnswer(String field) {
        return KNOWN + Layouts.at(ReplicaLayouts.LEADER_ANSWERS, field);
    }
}
