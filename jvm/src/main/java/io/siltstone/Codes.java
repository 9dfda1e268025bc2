package io.siltstone;

/**
 * Numbers of the header that results and decisions are made of, by its names without {@code SILT_}.
 */
public final class Codes {
    // Why an append was refused: SiltstoneException.detail, Appends.detail.

    /** Nothing more is to be said. */
    public static final int DETAIL_NONE = 0;
    /** CORRUPT_MESSAGE of the protocol. */
    public static final int DETAIL_CORRUPT_MESSAGE = 2;
    /** MESSAGE_TOO_LARGE. */
    public static final int DETAIL_MESSAGE_TOO_LARGE = 10;
    /** RECORD_LIST_TOO_LARGE. */
    public static final int DETAIL_RECORD_LIST_TOO_LARGE = 18;
    /** INVALID_TIMESTAMP. */
    public static final int DETAIL_INVALID_TIMESTAMP = 32;
    /** UNSUPPORTED_FOR_MESSAGE_FORMAT. */
    public static final int DETAIL_UNSUPPORTED_FOR_MESSAGE_FORMAT = 43;
    /** OUT_OF_ORDER_SEQUENCE_NUMBER. */
    public static final int DETAIL_OUT_OF_ORDER_SEQUENCE = 45;
    /** INVALID_PRODUCER_EPOCH. */
    public static final int DETAIL_INVALID_PRODUCER_EPOCH = 47;
    /** INVALID_TXN_STATE. */
    public static final int DETAIL_INVALID_TXN_STATE = 48;
    /** TRANSACTION_COORDINATOR_FENCED. */
    public static final int DETAIL_TRANSACTION_COORDINATOR_FENCED = 52;
    /** UNSUPPORTED_COMPRESSION_TYPE. */
    public static final int DETAIL_UNSUPPORTED_COMPRESSION_TYPE = 76;
    /** INVALID_RECORD. */
    public static final int DETAIL_INVALID_RECORD = 87;
    /** An offset that is not the next one; the protocol has no code for it. */
    public static final int DETAIL_UNEXPECTED_APPEND_OFFSET = 1001;

    // What a piece of work does: Works.kind.

    /** Make a log durable. */
    public static final int WORK_FLUSH = 1;
    /** Unlink the files of removed segments. */
    public static final int WORK_DELETE_FILES = 2;
    /** Unlink the folder of a deleted log. */
    public static final int WORK_DELETE_FOLDER = 3;
    /** Remove the segments that are not to be kept. */
    public static final int WORK_RETENTION = 4;
    /** Forget producers that are silent for long. */
    public static final int WORK_EXPIRE_PRODUCERS = 5;
    /** Compact a log. */
    public static final int WORK_COMPACT = 6;
    /** Write the checkpoint of recovery points. */
    public static final int WORK_RECOVERY_POINTS = 7;
    /** Write the checkpoint of log starts. */
    public static final int WORK_LOG_STARTS = 8;
    /** Write the checkpoint of high watermarks. */
    public static final int WORK_HIGH_WATERMARKS = 9;
    /** Write the checkpoint of where compaction has come to. */
    public static final int WORK_COMPACTED_ENDS = 10;

    // Why a segment is not to be uploaded now: TierColumns.

    /** It is to be uploaded. */
    public static final int WAITS_NOT = 0;
    /** It is written to. */
    public static final int WAITS_ACTIVE = 1;
    /** Its end is not replicated, or in an open transaction. */
    public static final int WAITS_ABOVE_LAST_STABLE = 2;
    /** It was uploaded before. */
    public static final int WAITS_COPIED = 3;
    /** It ends before the log start. */
    public static final int WAITS_BEFORE_LOG_START = 4;
    /** The settings put it off. */
    public static final int WAITS_LAGGING = 5;
    /** They may put it off: its timestamp is not known. */
    public static final int WAITS_TIMESTAMP_UNKNOWN = 6;
    /** No leader epoch is known of it. */
    public static final int WAITS_OUTSIDE_LINEAGE = 7;
    /** It is damaged. */
    public static final int WAITS_DAMAGED = 8;
    /** A segment before it waits. */
    public static final int WAITS_BEHIND = 9;
    /** The last stable offset is negative: nothing is uploaded. */
    public static final int WAITS_INCONSISTENT = 10;

    // Kinds of what is said of remote storage: RemoteRecord.kind.

    /** What is said of a segment first. */
    public static final int REMOTE_SEGMENT = 0;
    /** Another state of a segment. */
    public static final int REMOTE_UPDATE = 1;
    /** How far the deletion of a partition is. */
    public static final int REMOTE_PARTITION_DELETE = 2;
    /** A segment in the file that a broker keeps of a partition. */
    public static final int REMOTE_SNAPSHOT = 3;

    // States of a segment: RemoteRecord.state.

    /** It is being uploaded; of a partition: it is marked for deletion. */
    public static final int REMOTE_COPY_STARTED = 0;
    /** It is uploaded; of a partition: its deletion has begun. */
    public static final int REMOTE_COPY_FINISHED = 1;
    /** It is being deleted; of a partition: it is deleted. */
    public static final int REMOTE_DELETE_STARTED = 2;
    /** It is deleted. */
    public static final int REMOTE_DELETE_FINISHED = 3;

    // Parts of an upload: Parts.part.

    /** The records. */
    public static final int PART_LOG = 0;
    /** The offset index. */
    public static final int PART_OFFSET_INDEX = 1;
    /** The time index. */
    public static final int PART_TIME_INDEX = 2;
    /** Only where a transaction was aborted. */
    public static final int PART_TRANSACTION_INDEX = 3;
    /** The producers behind the segment. */
    public static final int PART_PRODUCER_SNAPSHOT = 4;
    /** The leader epochs up to its end. */
    public static final int PART_LEADER_EPOCHS = 5;

    // What a follower may have to ask its leader: FollowerAction.query.

    /** ListOffsets of -1. */
    public static final int QUERY_LATEST = 1;
    /** ListOffsets of -2. */
    public static final int QUERY_EARLIEST = 2;
    /** ListOffsets of -4. */
    public static final int QUERY_EARLIEST_LOCAL = 4;
    /** ListOffsets of -6. */
    public static final int QUERY_EARLIEST_PENDING_UPLOAD = 8;
    /** ListOffsets of -5. */
    public static final int QUERY_LATEST_TIERED = 16;
    /** OffsetForLeaderEpoch. */
    public static final int QUERY_EPOCH_END = 32;

    // What has happened to a follower: FollowerEvent.kind.

    /** There is a leader: leaderEpoch; fetchOffset: where to begin, Long.MIN_VALUE: by the log. */
    public static final int EVENT_NEW_LEADER = 0;
    /**
     * A fetch was answered: fetchOffset and leaderEpoch of the request; answer; what the leader has
     * said.
     */
    public static final int EVENT_RESPONSE = 1;
    /** The records are in the log: highWatermark and logStartOffset of the response. */
    public static final int EVENT_APPENDED = 2;
    /** The append failed: failure, FAILURE_STORAGE or FAILURE_INVALID_RECORDS. */
    public static final int EVENT_LOG_FAILED = 3;
    /**
     * OffsetForLeaderEpoch was answered: leaderEpoch of the query; epoch, endOffset; what the
     * leader has said.
     */
    public static final int EVENT_EPOCH_END = 4;
    /** A query failed: leaderEpoch of the query; failure, FAILURE_FENCED or 0. */
    public static final int EVENT_QUERY_FAILED = 5;
    /**
     * The state behind a remote segment was built: logEndOffset, the leaderLogEndOffset of the
     * action.
     */
    public static final int EVENT_AUX_INSTALLED = 6;
    /** It was not: failure, any but FAILURE_INVALID_RECORDS. */
    public static final int EVENT_AUX_FAILED = 7;
    /** The delay is over. */
    public static final int EVENT_DELAY_OVER = 8;

    // What a leader has answered to a fetch: FollowerEvent.answer.

    /** Records: highWatermark and logStartOffset of the response. */
    public static final int ANSWER_RECORDS = 0;
    /** The logs diverge: epoch and endOffset of the response. */
    public static final int ANSWER_DIVERGING = 1;
    /** An error: errorCode, a number of the protocol. */
    public static final int ANSWER_ERROR = 2;

    // What has failed: FollowerEvent.failure.

    /** The disk, or the object store, has failed. */
    public static final int FAILURE_STORAGE = 0;
    /** The records cannot be appended. */
    public static final int FAILURE_INVALID_RECORDS = 1;
    /** What is known of remote storage is not complete yet. */
    public static final int FAILURE_REMOTE_NOT_READY = 2;
    /** There is no such segment in remote storage. */
    public static final int FAILURE_SEGMENT_NOT_FOUND = 3;
    /** FENCED_LEADER_EPOCH. */
    public static final int FAILURE_FENCED = 4;

    // What a follower is to do: FollowerAction.kind.

    /** Nothing. */
    public static final int ACTION_IGNORE = 0;
    /** Keep the state. */
    public static final int ACTION_ADOPT = 1;
    /** Append batches up to epoch, then tell EVENT_APPENDED. */
    public static final int ACTION_APPEND = 2;
    /** Set highWatermark, raise the log start, keep the state. */
    public static final int ACTION_ADVANCE = 3;
    /** Cut the log at offset, keep the state. */
    public static final int ACTION_TRUNCATE = 4;
    /** Drop everything, begin at offset, keep the state. */
    public static final int ACTION_RESTART = 5;
    /** Ask the leader the query (for epoch), then tell the same event again. */
    public static final int ACTION_ASK = 6;
    /**
     * Build the state behind the remote segment with previousOffset in epoch, for a start at
     * offset, with logStartOffset.
     */
    public static final int ACTION_BUILD_AUX = 7;
    /** Keep the state, tell EVENT_DELAY_OVER after a while; reason says why. */
    public static final int ACTION_DELAY = 8;
    /** Drop the state until there is a new leader; reason says why. */
    public static final int ACTION_FAIL = 9;

    // Why it waits or gives up: FollowerAction.reason.

    /** The leader has answered errorCode. */
    public static final int REASON_ANSWER = 1;
    /** The leader has no offset to tell yet. */
    public static final int REASON_OFFSET_NOT_AVAILABLE = 2;
    /** The answer is of an old leader epoch. */
    public static final int REASON_OLD_LEADER_EPOCH = 3;
    /** A query failed. */
    public static final int REASON_QUERY_FAILED = 4;
    /** The records cannot be appended. */
    public static final int REASON_INVALID_RECORDS = 5;
    /** The topic has no remote storage. */
    public static final int REASON_REMOTE_STORAGE_OFF = 6;
    /** What is known of remote storage is not complete yet. */
    public static final int REASON_REMOTE_NOT_READY = 7;
    /** There is no such segment in remote storage. */
    public static final int REASON_SEGMENT_NOT_FOUND = 8;
    /** Remote storage has failed. */
    public static final int REASON_REMOTE_STORAGE = 9;
    /** The disk has failed. */
    public static final int REASON_STORAGE = 10;
    /** The leader knows a later epoch. */
    public static final int REASON_FENCED = 11;

    // What a leader answers to a fetch: FetchVerdict.kind.

    /** From the local disk: highWatermark, logStartOffset. */
    public static final int VERDICT_SERVE = 0;
    /** From remote storage, for a consumer. */
    public static final int VERDICT_READ_REMOTE = 1;
    /** No records, but where the logs diverge: epoch, endOffset. */
    public static final int VERDICT_DIVERGING = 2;
    /** No: errorCode. */
    public static final int VERDICT_REFUSE = 3;
    /** OFFSET_MOVED_TO_TIERED_STORAGE, with three offsets. */
    public static final int VERDICT_MOVED = 4;

    // A change that the controller has not answered: Isr.change.

    /** Nothing was sent. */
    public static final int ISR_NO_CHANGE = 0;
    /** The one replica of changed is to be added. */
    public static final int ISR_EXPAND = 1;
    /** Those of changed are to be removed. */
    public static final int ISR_SHRINK = 2;

    // What becomes of a high watermark: Watermark.kind.

    /** It is held by the follower heldBy; -1: there is nothing new. */
    public static final int WATERMARK_HELD = 0;
    /** It advances. */
    public static final int WATERMARK_ADVANCE = 1;
    /** It stays while too few are in sync (KIP-966). */
    public static final int WATERMARK_UNDER_MIN_ISR = 2;

    // What becomes of a follower: Isr.verdict.

    /** It is in sync. */
    public static final int FOLLOWER_MEMBER = 0;
    /** It may be added. */
    public static final int FOLLOWER_JOINS = 1;
    /** Not while another change is. */
    public static final int FOLLOWER_IN_FLIGHT = 2;
    /** By the state of its broker. */
    public static final int FOLLOWER_NOT_ELIGIBLE = 3;
    /** It is not in sync, and not near enough. */
    public static final int FOLLOWER_BEHIND = 4;
    /** A member that has fallen behind. */
    public static final int FOLLOWER_LEAVES = 5;

    // What the controller's answer means: Isr.answered.

    /** The answer's set and epoch are the committed ones now. */
    public static final int ALTER_COMMITTED = 0;
    /** The change is off. */
    public static final int ALTER_REVERTED = 1;
    /** Until metadata says more. */
    public static final int ALTER_WAITING = 2;
    /** The same request is to be sent again. */
    public static final int ALTER_RETRY = 3;
    /** Nothing. */
    public static final int ALTER_IGNORED = 4;

    // What a producer is told: Isr.acks.

    /** It is done, or nothing speaks against the append. */
    public static final int ACKS_DONE = 0;
    /** It waits. */
    public static final int ACKS_WAIT = 1;
    /** NOT_ENOUGH_REPLICAS. */
    public static final int ACKS_REFUSE = 2;
    /** NOT_ENOUGH_REPLICAS_AFTER_APPEND. */
    public static final int ACKS_UNDER_REPLICATED = 3;

    // What has happened to a partition: PartitionEvent.kind.

    /** Somebody asks for it: targetIsr, unclean, recovering. */
    public static final int PARTITION_CHANGE = 0;
    /** The broker is fenced, or shuts down. */
    public static final int PARTITION_BROKER_FENCED = 1;
    /** The broker is no longer fenced. */
    public static final int PARTITION_BROKER_UNFENCED = 2;
    /** The broker is no longer registered. */
    public static final int PARTITION_BROKER_UNREGISTERED = 3;
    /** The broker has started again after a clean stop. */
    public static final int PARTITION_BROKER_RESTARTED = 4;
    /** It has started again after an unclean stop. */
    public static final int PARTITION_BROKER_LOST_DATA = 5;
    /** ElectLeaders of the protocol. */
    public static final int PARTITION_ELECT = 6;
    /** The topic has another min.insync.replicas. */
    public static final int PARTITION_CLEAR_ELR = 7;

    // Who may be elected: PartitionEvent.election.

    /** One of those that may lead. */
    public static final int ELECTION_ONLINE = 0;
    /** The preferred leader, where it may lead. */
    public static final int ELECTION_PREFERRED = 1;
    /** Also one that is not in sync. */
    public static final int ELECTION_UNCLEAN = 2;

    // How bad a problem is: Problems.severity.

    /** Worth knowing. */
    public static final int SEVERITY_NOTICE = 0;
    /** A derived file is wrong and can be made anew. */
    public static final int SEVERITY_REPAIRABLE = 1;
    /** Bytes of the log itself are wrong. */
    public static final int SEVERITY_CORRUPT = 2;
    /** Nothing can be said. */
    public static final int SEVERITY_REFUSED = 3;

    // What came of a partition: Recoveries.outcome.

    /** It is fit to start, or would be. */
    public static final int RECOVERY_SOUND = 0;
    /** It was left as it is: see reason. */
    public static final int RECOVERY_REFUSED = 1;
    /** It was refused and moved. */
    public static final int RECOVERY_QUARANTINED = 2;
    /** It could not be read or written: see status. */
    public static final int RECOVERY_FAILED = 3;

    // What a step of a plan does: PlanSteps.kind.

    /** A file is removed. */
    public static final int STEP_REMOVE = 0;
    /** A file is renamed to what stands in the detail. */
    public static final int STEP_RENAME = 1;
    /** A small file is written anew. */
    public static final int STEP_WRITE = 2;
    /** A small file is cut to sizeBytes. */
    public static final int STEP_SHORTEN = 3;
    /** sizeBytes of a log go, from position on: the records from offset on. */
    public static final int STEP_CUT = 4;
    /** A segment begins at position, with offset. */
    public static final int STEP_SPLIT = 5;

    private Codes() {}
}
