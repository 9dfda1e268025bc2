package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** What followers, leaders and controllers decide. */
class ReplicaTest {
    private static final int FENCED_LEADER_EPOCH = 74;
    private static final int OFFSET_MOVED = 109;

    @TempDir
    Path home;

    private final FetchState state = new FetchState();
    private final FollowerAction action = new FollowerAction();

    /** A log of 100 records, of epochs 1 and 3. */
    private static Bounds logOf100() {
        return new Bounds(2).addEpoch(1, 0).addEpoch(3, 50).leaderEpoch(5).logEndOffset(100)
                .highWatermark(90).lastStableOffset(80);
    }

    private static SiltstoneException fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    /** The action must be of this kind; its state is kept. */
    private void step(Bounds follower, FollowerEvent event, int kind) {
        follower.followerStep(state, event, action);
        assertEquals(kind, action.kind());
        FetchState next = new FetchState();
        action.state(next);
        if (next.isThere()) {
            action.state(state);
        }
    }

    private static FollowerEvent event(int kind) {
        return new FollowerEvent().kind(kind);
    }

    @Test
    void aFollowerFetchesAppendsAndCuts() {
        Bounds follower = logOf100();
        step(follower, event(Codes.EVENT_NEW_LEADER).leaderEpoch(5).fetchOffset(Long.MIN_VALUE),
                Codes.ACTION_ADOPT);
        assertEquals(100, state.fetchOffset());
        assertEquals(5, state.leaderEpoch());
        assertEquals(3, state.lastFetchedEpoch());
        FollowerEvent response = event(Codes.EVENT_RESPONSE).leaderEpoch(5).fetchOffset(100)
                .highWatermark(95);
        step(follower, response, Codes.ACTION_APPEND);
        assertEquals(5, action.epoch());
        follower.logEndOffset(110);
        step(follower, event(Codes.EVENT_APPENDED).highWatermark(105), Codes.ACTION_ADVANCE);
        assertEquals(105, action.highWatermark());
        assertEquals(0, action.logStartOffset());
        assertEquals(110, state.fetchOffset());
        step(follower, response.fetchOffset(7), Codes.ACTION_IGNORE);
        follower.followerStep(null, response, action);
        assertEquals(Codes.ACTION_IGNORE, action.kind());
        step(follower, response.fetchOffset(110).answer(Codes.ANSWER_DIVERGING).epoch(3)
                .endOffset(70), Codes.ACTION_TRUNCATE);
        assertEquals(70, action.offset());
        assertEquals(70, state.fetchOffset());
    }

    @Test
    void aFollowerWaitsFailsAndAsks() {
        Bounds follower = logOf100();
        state.isThere(true).fetchOffset(100).lag(-1).leaderEpoch(5).lastFetchedEpoch(3);
        FollowerEvent response = event(Codes.EVENT_RESPONSE).leaderEpoch(5).fetchOffset(100)
                .answer(Codes.ANSWER_ERROR).errorCode(6);
        step(follower, response, Codes.ACTION_DELAY);
        assertEquals(Codes.REASON_ANSWER, action.reason());
        assertEquals(6, action.errorCode());
        assertTrue(state.isDelayed());
        step(follower, event(Codes.EVENT_DELAY_OVER), Codes.ACTION_ADOPT);
        assertFalse(state.isDelayed() || state.isTruncating() || state.hasTieredStartFailed());
        step(follower, response.errorCode(FENCED_LEADER_EPOCH), Codes.ACTION_FAIL);
        assertEquals(Codes.REASON_FENCED, action.reason());
        step(follower, response.errorCode(1), Codes.ACTION_ASK);
        assertEquals(Codes.QUERY_LATEST, action.query());
        step(follower, response.latest(500), Codes.ACTION_ASK);
        assertEquals(Codes.QUERY_EARLIEST, action.query());
        step(follower, response.earliest(200), Codes.ACTION_RESTART);
        assertEquals(200, action.offset());
        assertEquals(300, state.lag());
        step(follower, event(Codes.EVENT_LOG_FAILED).failure(Codes.FAILURE_INVALID_RECORDS),
                Codes.ACTION_DELAY);
        assertEquals(Codes.REASON_INVALID_RECORDS, action.reason());
    }

    @Test
    void anEmptyFollowerIsBuiltFromRemoteStorage() {
        Bounds follower = new Bounds(2).hasRemoteStorage(true);
        state.isThere(true).fetchOffset(0).lag(-1).leaderEpoch(5).lastFetchedEpoch(-1);
        FollowerEvent moved = event(Codes.EVENT_RESPONSE).leaderEpoch(5)
                .answer(Codes.ANSWER_ERROR).errorCode(OFFSET_MOVED);
        step(follower, moved.latest(100).earliest(0), Codes.ACTION_ASK);
        assertEquals(Codes.QUERY_EARLIEST_LOCAL, action.query());
        step(follower, moved.earliestLocal(60, 3), Codes.ACTION_ASK);
        assertEquals(Codes.QUERY_EPOCH_END, action.query());
        assertEquals(2, action.epoch());
        step(follower, moved.epochEnd(2, 1, 50), Codes.ACTION_BUILD_AUX);
        assertEquals(60, action.offset());
        assertEquals(59, action.previousOffset());
        assertEquals(3, action.epoch());
        assertEquals(100, action.leaderLogEndOffset());
        follower.logEndOffset(60).localLogStartOffset(60).addEpoch(1, 0).addEpoch(3, 50);
        step(follower, event(Codes.EVENT_AUX_INSTALLED).logEndOffset(100), Codes.ACTION_ADOPT);
        assertEquals(40, state.lag());

        Bounds tiered = new Bounds(0).hasRemoteStorage(true).startsAtTiered(true);
        state.fetchOffset(0).lag(-1).lastFetchedEpoch(-1);
        moved.forgetAnswers().latest(100).earliest(0);
        step(tiered, moved, Codes.ACTION_ASK);
        assertEquals(Codes.QUERY_EARLIEST_PENDING_UPLOAD, action.query());
        step(tiered.isCompacted(true), moved, Codes.ACTION_ASK);
        assertEquals(Codes.QUERY_EARLIEST_LOCAL, action.query());
        moved.earliestPendingUpload(60, 3).latestTiered(59, 3);
        tiered.followerStep(state, moved, action);
    }

    @Test
    void aLeaderAnswers() {
        Bounds leader = logOf100();
        FetchVerdict verdict = new FetchVerdict();
        leader.leaderFetch(true, 60, 5, 3, verdict);
        assertEquals(Codes.VERDICT_SERVE, verdict.kind());
        assertEquals(90, verdict.highWatermark());
        leader.leaderFetch(true, 60, 4, 3, verdict);
        assertEquals(Codes.VERDICT_REFUSE, verdict.kind());
        assertEquals(FENCED_LEADER_EPOCH, verdict.errorCode());
        leader.leaderFetch(true, 60, 5, 2, verdict);
        assertEquals(Codes.VERDICT_DIVERGING, verdict.kind());
        assertEquals(1, verdict.epoch());
        assertEquals(50, verdict.endOffset());
        leader.hasRemoteStorage(true).localLogStartOffset(40).highestRemoteOffset(59);
        leader.leaderFetch(true, 20, 5, -1, verdict);
        assertEquals(Codes.VERDICT_MOVED, verdict.kind());
        assertEquals(100, verdict.logEndOffset());
        assertEquals(0, verdict.logStartOffset());
        leader.leaderFetch(false, 20, 5, -1, verdict);
        assertEquals(Codes.VERDICT_READ_REMOTE, verdict.kind());

        TimeOffset found = new TimeOffset();
        short version = 11;
        UpTo upTo = UpTo.HIGH_WATERMARK;
        assertEquals(0, leader.leaderOffset(-1, version, upTo, null, found));
        assertEquals(90, found.offset());
        assertEquals(0, leader.leaderOffset(-6, version, upTo, null, found));
        assertEquals(60, found.offset());
        assertEquals(3, found.leaderEpoch());
        assertEquals(0, leader.leaderOffset(6000, version, upTo, found, new TimeOffset()));
        assertEquals(42, leader.leaderOffset(-7, version, upTo, null, found));
        assertEquals(78, leader.leaderEpochStartOffset(95)
                .leaderOffset(-1, version, upTo, null, found));
    }

    @Test
    void anOpenLogTellsItsOwnBounds() {
        Bounds bounds = new Bounds(0).leaderEpoch(3);
        FetchVerdict verdict = new FetchVerdict();
        try (Log log = Log.open(home.resolve("orders-0"), new LogOptions())) {
            Samples.fill(log, 3);
            bounds.log(log).leaderFetch(true, 3, 3, 3, verdict);
            assertEquals(Codes.VERDICT_SERVE, verdict.kind());
            bounds.leaderFetch(true, 4, 3, 3, verdict);
            assertEquals(Codes.VERDICT_DIVERGING, verdict.kind());
            assertEquals(3, verdict.endOffset());
            step(bounds, event(Codes.EVENT_NEW_LEADER).leaderEpoch(5)
                    .fetchOffset(Long.MIN_VALUE), Codes.ACTION_ADOPT);
            assertEquals(3, state.fetchOffset());
        }
        fails(Kind.CLOSED, () -> bounds.leaderFetch(true, 3, 3, 3, verdict));
        bounds.log(null).leaderFetch(true, 0, 3, -1, verdict);
    }

    /** Replicas 1 (the leader), 2 and 3, of which two are to be in sync. */
    private static Isr isr(int... committed) {
        return new Isr(3).setCommitted(committed).partitionEpoch(8).minInsyncReplicas(2)
                .replicaCount(3).logEndOffset(100).highWatermark(50).nowMs(100_000)
                .lagMaxMs(30_000);
    }

    private static Followers followers() {
        Followers followers = new Followers(2);
        followers.logEndOffset(followers.add(2, 9), 70);
        followers.logEndOffset(followers.add(3, 9), 60);
        return followers.brokerEpoch(0, 9).brokerEpoch(1, 9);
    }

    @Test
    void whatIsInSyncIsCommitted() {
        Followers followers = followers();
        Watermark watermark = new Watermark();
        isr(1, 2).watermark(followers, watermark);
        assertEquals(Codes.WATERMARK_ADVANCE, watermark.kind());
        assertEquals(70, watermark.highWatermark());
        assertEquals(2, watermark.heldBy());
        followers.lastCaughtUpMs(1, 90_000);
        isr(1, 2).watermark(followers, watermark);
        assertEquals(60, watermark.highWatermark(), "who is about to join is waited for");
        isr(1, 2).watermark(followers.isFenced(1, true), watermark);
        assertEquals(70, watermark.highWatermark());
        isr(1).watermark(followers, watermark);
        assertEquals(Codes.WATERMARK_UNDER_MIN_ISR, watermark.kind());
        short all = -1;
        assertEquals(Codes.ACKS_REFUSE, isr(1).acks(all, Long.MIN_VALUE));
        assertEquals(Codes.ACKS_UNDER_REPLICATED, isr(1).acks(all, 50));
        assertEquals(Codes.ACKS_WAIT, isr(1, 2).acks(all, 51));
        assertEquals(Codes.ACKS_DONE, isr(1, 2).acks(all, 50));
        assertArrayEquals(new int[] {1, 2}, isr(1, 2).committed());
        fails(Kind.INVALID_ARGUMENT,
                () -> isr(1, 2).change(Codes.ISR_EXPAND).watermark(followers, watermark));
    }

    @Test
    void followersJoinAndLeave() {
        Followers followers = followers();
        Isr isr = isr(1, 2);
        isr.verdicts(followers);
        assertEquals(Codes.FOLLOWER_LEAVES, isr.verdict(0));
        assertEquals(Codes.FOLLOWER_JOINS, isr.verdict(1));
        followers.lastCaughtUpMs(0, 80_000).registeredEpoch(1, -1).isShuttingDown(0, false);
        isr.verdicts(followers);
        assertEquals(Codes.FOLLOWER_MEMBER, isr.verdict(0));
        assertEquals(Codes.FOLLOWER_NOT_ELIGIBLE, isr.verdict(1));
        isr.change(Codes.ISR_EXPAND).setChanged(3).verdicts(followers);
        assertEquals(Codes.FOLLOWER_IN_FLIGHT, isr.verdict(1));
        assertEquals(Codes.ALTER_COMMITTED, isr.answered(5, 0, 5, 9));
        assertEquals(Codes.ALTER_IGNORED, isr.answered(5, 0, 6, 9));
        assertEquals(Codes.ALTER_REVERTED, isr.answered(5, 107, 0, 0));
        assertEquals(Codes.ALTER_WAITING, isr.answered(5, 95, 0, 0));
        assertEquals(Codes.ALTER_RETRY, isr.answered(5, 41, 0, 0));
        fails(Kind.LIMIT, () -> new Isr(1).verdicts(followers));
        assertThrows(IllegalArgumentException.class, () -> new Isr(1).setCommitted(1, 2));
        assertThrows(IndexOutOfBoundsException.class, () -> isr.verdict(3));

        followers.clear();
        int row = followers.add(2, 9);
        assertEquals(-1, followers.logEndOffset(row));
        followers.record(row, 100, 5, 9, 100, 7000);
        assertEquals(100, followers.logEndOffset(row));
        assertEquals(5, followers.logStartOffset(row));
        assertEquals(7000, followers.lastCaughtUpMs(row));
        assertEquals(7000, followers.lastFetchMs(row));
        assertEquals(100, followers.leaderEndAtFetch(row));
        assertEquals(9, followers.brokerEpoch(row));
        assertEquals(2, followers.replica(row));
        fails(Kind.CONFLICT, () -> followers.record(row, 120, 5, 8, 120, 8000));
        followers.add(3, 9);
        fails(Kind.LIMIT, () -> followers.add(4, 9));
        assertThrows(IndexOutOfBoundsException.class,
                () -> followers.record(2, 120, 5, 9, 120, 8000));
    }

    @Test
    void whoMayLeadWithoutLosingAnything() {
        PartitionState partition = new PartitionState(4).setReplicas(1, 2, 3).setIsr(1, 2, 3)
                .leader(1);
        PartitionEvent event = new PartitionEvent(4).kind(Codes.PARTITION_BROKER_FENCED)
                .minInsyncReplicas(2);
        int[] available = {1, 2, 3};
        for (int broker = 1; broker <= 3; broker++) {
            available[broker - 1] = 0;
            assertEquals(-1, partition.step(event.broker(broker).setAvailable(available)));
        }
        assertEquals(-1, partition.leader());
        assertArrayEquals(new int[0], partition.isr());
        assertEquals(2, partition.elr().length);
        assertEquals(3, partition.partitionEpoch());
        assertTrue(partition.leaderEpoch() > 0);
        event.kind(Codes.PARTITION_BROKER_UNFENCED).broker(2).setAvailable(2);
        assertEquals(-1, partition.step(event));
        assertEquals(2, partition.leader());
        assertArrayEquals(new int[] {2}, partition.isr());
        assertEquals(0, partition.step(event));
        event.kind(Codes.PARTITION_ELECT).election(Codes.ELECTION_UNCLEAN);
        assertEquals(84, partition.step(event), "ELECTION_NOT_NEEDED");
        event.kind(Codes.PARTITION_CLEAR_ELR).election(Codes.ELECTION_ONLINE);
        assertEquals(-1, partition.step(event));
        event.kind(Codes.PARTITION_CHANGE).setTargetIsr(2, 3).hasTargetIsr(true);
        assertEquals(-1, partition.step(event));
        assertArrayEquals(new int[] {1, 2, 3}, partition.replicas());
        assertEquals(0, partition.adding().length + partition.removing().length);
        assertEquals(0, partition.lastKnownElr().length);
        assertFalse(partition.isRecovering());
        int epoch = partition.partitionEpoch();
        fails(Kind.INVALID_ARGUMENT, () -> partition.step(event.kind(8)));
        fails(Kind.INVALID_ARGUMENT, () -> partition.step(event.kind(0).recovering(2)));
        assertEquals(epoch, partition.partitionEpoch());
        assertArrayEquals(new int[] {1, 2, 3}, partition.replicas());
    }

    @Test
    void decisionsWithoutSenseAreRefused() {
        Bounds follower = logOf100();
        fails(Kind.LIMIT, () -> follower.addEpoch(4, 60));
        FollowerEvent event = event(Codes.EVENT_RESPONSE).answer(9);
        state.isThere(true);
        fails(Kind.INVALID_ARGUMENT, () -> follower.followerStep(state, event, action));
        fails(Kind.INVALID_ARGUMENT, () -> follower.clearEpochs().addEpoch(1, -5)
                .followerStep(state, event(Codes.EVENT_DELAY_OVER), action));
        assertThrows(NullPointerException.class, () -> follower.followerStep(state, null, action));
        assertThrows(IllegalArgumentException.class, () -> new Bounds(-1));
        assertThrows(IllegalArgumentException.class, () -> new PartitionState(-1));
    }
}
