/*
 * siltstone.h - the storage engine for Kafka-format logs, for C and everything that calls C.
 *
 * What is on disk is byte for byte what Apache Kafka 4.3.1 writes and reads. This header is the
 * manual; docs/ABI.md says how the interface grows.
 *
 * FIRST STEPS
 *
 *     silt_error_t error = SILT_ERROR_INIT;
 *     silt_log_t *log = NULL;
 *     if (silt_log_open("/var/lib/broker/orders-0", NULL, &log, &error) != SILT_OK) {
 *         fprintf(stderr, "%s\n", error.message);
 *         return 1;
 *     }
 *     ... silt_log_append_leader, silt_locate, silt_log_flush ...
 *     silt_log_stop(log, now_ms, &error);
 *     silt_log_close(log);
 *
 * ERRORS
 *
 * Every function that can fail returns a silt_status_t: SILT_OK, or one of the negative SILT_E_
 * codes. Its last parameter is the caller's silt_error_t, which may be NULL; it is written when the
 * function fails, and left alone when it does not. Results are written on success alone, but for
 * calls that take many items: those write the status of each item in any case.
 *
 * MEMORY
 *
 * All memory is the caller's, but for the opaque objects. Nothing that the library returns is ever
 * given to free(). Where a function fills an array, *count says how many items there are; when that
 * is more than the capacity, SILT_E_SHORT_BUFFER comes back, *count is set and the array holds the
 * first of them. A capacity of 0 with a NULL array asks for the count.
 * A NULL pointer where something must be is SILT_E_INVALID_ARGUMENT, never a crash.
 *
 * THREADS
 *
 *     object              calls at the same time
 *     ------------------  -----------------------------------------------------------------
 *     silt_log_t          any number of readers; one that writes (append, roll, truncate, retain),
 *                         a second one gets SILT_E_CONFLICT and nothing happens
 *     silt_engine_t       any
 *     silt_index_t        any number of look-ups; one that writes, as above
    silt_ring_t         any that submit, and one that polls
 *     leases              any
 *     plain structs       the caller's business
 *
 * No call may run on an object while another thread closes it, or after that: what is found out of
 * such misuse gets SILT_E_CLOSED. Leases and the ranges that they keep open outlive the log. The
 * library starts no thread and calls nobody but the progress function that it is given, on the
 * caller's thread. It keeps no errors or objects by thread, has no signal handler, and prints
 * nothing but, on standard error, the place of a fault of its own (SILT_E_BUG). After fork() the
 * objects of the parent cannot be used in the child: SILT_E_FORKED.
 *
 * SIGNALS
 *
 * No file is mapped: what the library looks at is read into memory of its own, so a file that
 * shrinks or a disk that fails is an error code and not SIGBUS. The exception is memory that the
 * caller gives: if that is a map of a file, its faults are the caller's.
 *
 * GROWTH
 *
 * A struct that begins with struct_size is made by its _INIT macro. Structs only grow at their end,
 * and 0 is the default of every field that is added: a caller of an older header works with a newer
 * library, and a newer caller with an older library is told SILT_E_UNSUPPORTED when it asks for what
 * that library does not know. Codes keep their numbers for ever.
 */
#ifndef SILTSTONE_H
#define SILTSTONE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(SILT_STATIC)
#define SILT_API __attribute__((visibility("default")))
#else
#define SILT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* For the _INIT macros. */
#ifdef __cplusplus
#define SILT_SIZE_OF(type) static_cast<uint32_t>(sizeof(type))
#else
#define SILT_SIZE_OF(type) (uint32_t)sizeof(type)
#endif

#define SILT_VERSION_MAJOR 0
#define SILT_VERSION_MINOR 1
#define SILT_VERSION_PATCH 0

/* The version of this interface: silt_abi_version() of the library must be the same. */
#define SILT_ABI_VERSION 1

/* ---- Status codes and errors ------------------------------------------------------------------ */

typedef int32_t silt_status_t;

enum {
    SILT_OK = 0,
    SILT_E_IO = -1,               /* the system refused: see os_errno */
    SILT_E_CORRUPT = -2,          /* bytes are not what their format says */
    SILT_E_NOT_FOUND = -3,        /* a file, segment or offset that is not there */
    SILT_E_OUT_OF_RANGE = -4,     /* an offset, position or slot outside of what there is */
    SILT_E_INVALID_ARGUMENT = -5, /* a call that makes no sense */
    SILT_E_CONFLICT = -6,         /* somebody else holds it, or the state does not allow it now */
    SILT_E_UNSUPPORTED = -7,      /* a version, magic, codec or struct that this library lacks */
    SILT_E_LIMIT = -8,            /* a limit of size, memory or count was reached */
    SILT_E_CLOSED = -9,           /* the object is closed */
    SILT_E_CANCELLED = -10,       /* the caller cancelled */
    SILT_E_SHORT_BUFFER = -11,    /* the array is too small; the count that is needed was set */
    SILT_E_BUG = -12,             /* a fault of the library; the object cannot be used any more */
    SILT_E_FORKED = -13           /* the object belongs to the parent process */
};

/* Why an append was refused, in detail_code; the comment has Kafka's protocol error code. */
enum {
    SILT_DETAIL_NONE = 0,
    SILT_DETAIL_CORRUPT_MESSAGE = 2,                /* 2 */
    SILT_DETAIL_MESSAGE_TOO_LARGE = 10,             /* 10 */
    SILT_DETAIL_RECORD_LIST_TOO_LARGE = 18,         /* 18 */
    SILT_DETAIL_INVALID_TIMESTAMP = 32,             /* 32 */
    SILT_DETAIL_UNSUPPORTED_FOR_MESSAGE_FORMAT = 43,/* 43 */
    SILT_DETAIL_OUT_OF_ORDER_SEQUENCE = 45,         /* 45 */
    SILT_DETAIL_INVALID_PRODUCER_EPOCH = 47,        /* 47 */
    SILT_DETAIL_INVALID_TXN_STATE = 48,             /* 48 */
    SILT_DETAIL_TRANSACTION_COORDINATOR_FENCED = 52,/* 52 */
    SILT_DETAIL_UNSUPPORTED_COMPRESSION_TYPE = 76,  /* 76 */
    SILT_DETAIL_INVALID_RECORD = 87,                /* 87 */
    SILT_DETAIL_UNEXPECTED_APPEND_OFFSET = 1001     /* no code of the protocol */
};

/* What went wrong. Numbers that are not known are -1. */
typedef struct silt_error {
    uint32_t struct_size;
    silt_status_t code;
    int32_t os_errno;    /* 0 when no system call failed */
    int32_t detail_code; /* SILT_DETAIL_ */
    int64_t offset;      /* of the log */
    int64_t position;    /* byte of the file */
    char message[224];   /* UTF-8, cut where it is too long, always with its NUL */
} silt_error_t;

#define SILT_ERROR_INIT { SILT_SIZE_OF(silt_error_t), 0, 0, 0, -1, -1, { 0 } }

/* The name of a code, such as "SILT_E_IO"; "SILT_E_?" for a number that is none. */
SILT_API const char *silt_status_name(silt_status_t status);

/* ---- The library ------------------------------------------------------------------------------ */

/* SILT_ABI_VERSION of the library. */
SILT_API uint32_t silt_abi_version(void);

/* The version of the library, "0.1.0". */
SILT_API const char *silt_version(void);

enum {
    SILT_BUILD_IO_URING = 1 /* the kernel and its sandbox allow io_uring here and now */
};

typedef struct silt_build_info {
    uint32_t struct_size;
    uint32_t abi_version;
    uint32_t flags; /* SILT_BUILD_ */
    uint32_t reserved;
    char target[48]; /* "x86_64-linux" */
} silt_build_info_t;

#define SILT_BUILD_INFO_INIT { SILT_SIZE_OF(silt_build_info_t), 0, 0, 0, { 0 } }

/* What the library was built for and found on this machine. Asks the kernel once a call. */
SILT_API silt_status_t silt_build_info(silt_build_info_t *out, silt_error_t *err);

/* ---- Bytes: pure functions over the caller's memory --------------------------------------------- */

/* CRC-32C of some bytes, going on from the one of those before; 0 to begin with. */
SILT_API uint32_t silt_crc32c(uint32_t crc, const void *bytes, uint64_t size_bytes);

enum {
    SILT_BATCH_TRANSACTIONAL = 1,
    SILT_BATCH_CONTROL = 2,
    SILT_BATCH_LOG_APPEND_TIME = 4,
    SILT_BATCH_DELETE_HORIZON = 8 /* base_timestamp_ms is the delete horizon */
};

/* The header of a record batch. What an old format does not have is -1. */
typedef struct silt_batch {
    int64_t base_offset;
    int64_t last_offset; /* inclusive */
    int64_t base_timestamp_ms;
    int64_t max_timestamp_ms;
    int64_t producer_id;
    uint64_t position; /* its first byte in the bytes that were given */
    uint32_t size_bytes;
    uint32_t crc;
    int32_t leader_epoch;
    int32_t base_sequence;
    int32_t record_count;
    int16_t producer_epoch;
    int8_t magic;
    uint8_t codec; /* 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd */
    uint32_t flags; /* SILT_BATCH_ */
    uint32_t reserved;
} silt_batch_t;

/*
 * Reads the headers of the batches that lie in some bytes. Checksums are not looked at. Ends at the
 * first batch that is not whole: *consumed_bytes says where that is. At most `capacity` headers are
 * written; SILT_E_SHORT_BUFFER says that there are more, and *consumed_bytes where they begin.
 * SILT_E_CORRUPT for bytes that are no batch, with their position.
 */
SILT_API silt_status_t silt_batch_parse(const void *bytes, uint64_t size_bytes, silt_batch_t *out,
                                        uint32_t capacity, uint32_t *count,
                                        uint64_t *consumed_bytes, silt_error_t *err);

/*
 * Checks frames and checksums. *valid_bytes is where the last good batch ends, and is written in any
 * case: SILT_E_CORRUPT tells what is wrong behind it.
 */
SILT_API silt_status_t silt_batch_validate(const void *bytes, uint64_t size_bytes,
                                           uint64_t *valid_bytes, silt_error_t *err);

/* What a walk over the bytes of a .log file has found. */
typedef struct silt_rebuilt {
    uint32_t struct_size;
    uint32_t batch_count;
    uint64_t valid_bytes; /* where the log must be cut */
    int64_t next_offset;
    int64_t max_timestamp_ms;  /* -1 for none */
    uint64_t offset_index_size_bytes;
    uint64_t time_index_size_bytes;
} silt_rebuilt_t;

#define SILT_REBUILT_INIT { SILT_SIZE_OF(silt_rebuilt_t), 0, 0, 0, -1, 0, 0 }

/*
 * Walks the bytes of a whole segment and makes its offset and time index as Kafka's recovery does:
 * an entry behind every `index_interval_bytes` of log, of at most `index_size_bytes_max` each (0:
 * Kafka's defaults). A tail that is torn or damaged ends the walk and is no error: valid_bytes
 * says where. The indexes go to `offset_index` and `time_index`; either may be NULL with capacity 0
 * when its bytes are not wanted. SILT_E_SHORT_BUFFER when one does not fit: the sizes in *out are
 * those that are needed.
 */
SILT_API silt_status_t silt_segment_rebuild(const void *bytes, uint64_t size_bytes,
                                            int64_t base_offset, uint32_t index_interval_bytes,
                                            uint32_t index_size_bytes_max, void *offset_index,
                                            uint64_t offset_index_capacity, void *time_index,
                                            uint64_t time_index_capacity, silt_rebuilt_t *out,
                                            silt_error_t *err);

/* ---- One partition ------------------------------------------------------------------------------ */

typedef struct silt_log silt_log_t;

/* A setting of a topic, by Kafka's name and in its text form: { "segment.bytes", "1048576" }. */
typedef struct silt_config {
    const char *name;
    const char *value;
} silt_config_t;

enum {
    SILT_LOG_UNCLEAN = 1,  /* the directory was not stopped cleanly: recover from the recovery point */
    SILT_LOG_KEEP_LOST = 2 /* keep what recovery cuts off beside, in .log.lost files */
};

enum {
    SILT_IO_DEFAULT = 0, /* io_uring where it pays and is allowed, else system calls */
    SILT_IO_SYSCALLS = 1,
    SILT_IO_URING = 2    /* SILT_E_UNSUPPORTED where it is not allowed */
};

typedef struct silt_log_options {
    uint32_t struct_size;
    uint32_t flags; /* SILT_LOG_ */
    const silt_config_t *configs;
    uint32_t config_count;
    uint32_t io;              /* SILT_IO_ */
    int64_t recovery_point;   /* the line of recovery-point-offset-checkpoint */
    int64_t log_start_offset; /* the line of log-start-offset-checkpoint */
    int64_t now_ms;
    uint8_t topic_id[16];     /* all 0: not known */
    uint32_t open_files_max;  /* 0: 100 */
    uint32_t reserved;
} silt_log_options_t;

#define SILT_LOG_OPTIONS_INIT \
    { SILT_SIZE_OF(silt_log_options_t), 0, NULL, 0, 0, 0, 0, 0, { 0 }, 0, 0 }

/*
 * Opens the log of a partition directory such as ".../orders-0"; a directory that is missing is
 * made, its parent must be there. NULL options: the defaults, after a clean stop.
 * Errors: SILT_E_INVALID_ARGUMENT for a name that is no partition's or a setting that Kafka would
 * refuse; SILT_E_CONFLICT for another topic id; SILT_E_CORRUPT, SILT_E_IO.
 */
SILT_API silt_status_t silt_log_open(const char *dir, const silt_log_options_t *options,
                                     silt_log_t **log, silt_error_t *err);

/*
 * Ends a log as a clean stop does: makes it durable and writes its snapshot. Then every call on it
 * but silt_log_close gives SILT_E_CLOSED. Not for logs of an engine, which stops them itself.
 */
SILT_API silt_status_t silt_log_stop(silt_log_t *log, silt_error_t *err);

/* Gives the object back. NULL is fine. What was not flushed may be lost in a crash of the machine. */
SILT_API void silt_log_close(silt_log_t *log);

/* Who appends. */
enum {
    SILT_ORIGIN_CLIENT = 0,
    SILT_ORIGIN_COORDINATOR = 1 /* markers of transactions, and Kafka's own topics */
};

typedef struct silt_append {
    uint32_t struct_size;
    int32_t leader_epoch;
    int64_t now_ms;
    uint32_t origin;            /* SILT_ORIGIN_ */
    int32_t transaction_version; /* of who wrote a marker: 1 or 2; 0 when it is not known */
} silt_append_t;

#define SILT_APPEND_INIT { SILT_SIZE_OF(silt_append_t), 0, 0, 0, 0 }

enum {
    SILT_APPENDED_DUPLICATE = 1, /* it was there already, with these offsets; nothing was written */
    SILT_APPENDED_ROLLED = 2,    /* a segment was begun: a flush of those before is due */
    SILT_APPENDED_FLUSH_DUE = 4  /* as many messages wait as flush.messages allows */
};

typedef struct silt_appended {
    uint32_t struct_size;
    uint32_t flags;              /* SILT_APPENDED_ */
    int64_t first_offset;        /* -1 when nothing was appended */
    int64_t last_offset;         /* inclusive; -1 when nothing was appended */
    int64_t max_timestamp_ms;
    int64_t log_append_time_ms;  /* -1 unless the topic's records have the time of the append */
    int64_t log_start_offset;
    uint64_t size_bytes;
} silt_appended_t;

#define SILT_APPENDED_INIT { SILT_SIZE_OF(silt_appended_t), 0, -1, -1, -1, -1, -1, 0 }

/*
 * Appends what a producer has sent: one batch. It is held against the rules of the topic and against
 * the producer's sequences, and gets its offsets, leader epoch and, where the topic says so, its
 * timestamp in `records` itself; these bytes are what is written, unless the topic has another codec.
 * A refused append changes neither the log nor `records`; detail_code says why.
 */
SILT_API silt_status_t silt_log_append_leader(silt_log_t *log, void *records, uint64_t size_bytes,
                                              const silt_append_t *append, silt_appended_t *out,
                                              silt_error_t *err);

/*
 * Appends what a leader has sent, offsets and all: the bytes are written as they are. Batches of a
 * later epoch than `leader_epoch` and a last batch that is not whole are left out; size_bytes says
 * what was written.
 */
SILT_API silt_status_t silt_log_append_follower(silt_log_t *log, const void *records,
                                                uint64_t size_bytes, int32_t leader_epoch,
                                                int64_t now_ms, silt_appended_t *out,
                                                silt_error_t *err);

/* Makes durable what was appended before the call. After an error the log must be opened again. */
SILT_API silt_status_t silt_log_flush(silt_log_t *log, int64_t now_ms, silt_error_t *err);

/* Begins a new segment at the log end; its base offset goes to *base_offset, which may be NULL. */
SILT_API silt_status_t silt_log_roll(silt_log_t *log, int64_t now_ms, int64_t *base_offset,
                                     silt_error_t *err);

/* Removes everything from `offset` on. */
SILT_API silt_status_t silt_log_truncate_to(silt_log_t *log, int64_t offset, int64_t now_ms,
                                            silt_error_t *err);

/*
 * Removes everything and goes on at `offset`. The log start is `log_start_offset`, which is below it
 * where remote storage has the offsets between, and -1 for `offset` itself.
 */
SILT_API silt_status_t silt_log_truncate_fully(silt_log_t *log, int64_t offset,
                                               int64_t log_start_offset, int64_t now_ms,
                                               silt_error_t *err);

typedef struct silt_offsets {
    uint32_t struct_size;
    uint32_t segment_count;
    int64_t log_start_offset;
    int64_t local_log_start_offset;
    int64_t high_watermark;      /* exclusive */
    int64_t last_stable_offset;  /* exclusive */
    int64_t log_end_offset;      /* the offset of the next record */
    int64_t recovery_point;      /* what lies before is durable: for the checkpoint */
    int64_t highest_remote_offset; /* -1 when nothing is known to be uploaded */
    uint64_t size_bytes;
} silt_offsets_t;

#define SILT_OFFSETS_INIT { SILT_SIZE_OF(silt_offsets_t), 0, -1, -1, -1, -1, -1, -1, -1, 0 }

/* The offsets of a log, each as it is at the moment it is looked at. */
SILT_API silt_status_t silt_log_offsets(const silt_log_t *log, silt_offsets_t *out,
                                        silt_error_t *err);

/* Sets the high watermark, within log start and log end; *set, which may be NULL, gets what it is. */
SILT_API silt_status_t silt_log_set_high_watermark(silt_log_t *log, int64_t high_watermark,
                                                   int64_t *set, silt_error_t *err);

/* Raises the log start, up to the high watermark; a lower offset changes nothing. */
SILT_API silt_status_t silt_log_advance_start(silt_log_t *log, int64_t offset, silt_error_t *err);

/* Removes the segments that the topic's retention does not keep; *removed, which may be NULL, gets
 * their number. Their files go with silt_log_delete_due_files. */
SILT_API silt_status_t silt_log_retain(silt_log_t *log, int64_t now_ms, uint64_t *removed,
                                       silt_error_t *err);

/* Unlinks files whose file.delete.delay.ms is over; *removed, which may be NULL, gets their number. */
SILT_API silt_status_t silt_log_delete_due_files(silt_log_t *log, int64_t now_ms,
                                                 uint64_t *removed, silt_error_t *err);

typedef struct silt_segment {
    int64_t base_offset;
    uint64_t size_bytes;
    int64_t max_timestamp_ms; /* -1 for none, or not known without reading the index */
    int64_t reserved;
} silt_segment_t;

/* The segments by rising base offset; the last one is written to. */
SILT_API silt_status_t silt_log_segments(const silt_log_t *log, silt_segment_t *out,
                                         uint32_t capacity, uint32_t *count, silt_error_t *err);

typedef struct silt_epoch {
    int64_t start_offset;
    int32_t epoch;
    int32_t reserved;
} silt_epoch_t;

/* The leader epochs, rising. */
SILT_API silt_status_t silt_log_epochs(const silt_log_t *log, silt_epoch_t *out, uint32_t capacity,
                                       uint32_t *count, silt_error_t *err);

/*
 * Where an epoch ends, exclusive: the answer to OffsetForLeaderEpoch. `found` gets the largest epoch
 * that is not above the one asked for, and -1 with an end of -1 where there is none.
 */
SILT_API silt_status_t silt_log_epoch_end(const silt_log_t *log, int32_t epoch, int32_t *found,
                                          int64_t *end_offset, silt_error_t *err);

/* Says that batches from `start_offset` on are of `epoch`: what a new leader does first. */
SILT_API silt_status_t silt_log_assign_epoch(silt_log_t *log, int32_t epoch, int64_t start_offset,
                                             silt_error_t *err);

typedef struct silt_time_offset {
    int64_t timestamp_ms;
    int64_t offset;
    int32_t leader_epoch; /* -1 when it is not known */
    int32_t reserved;
} silt_time_offset_t;

/* The first record that is as late as `timestamp_ms` or later; SILT_E_NOT_FOUND where there is none. */
SILT_API silt_status_t silt_log_offset_for_time(const silt_log_t *log, int64_t timestamp_ms,
                                                silt_time_offset_t *out, silt_error_t *err);

/* ---- Reading -------------------------------------------------------------------------------------- */

/* Up to where a reader may see. */
enum {
    SILT_UP_TO_LOG_END = 0,        /* followers */
    SILT_UP_TO_HIGH_WATERMARK = 1, /* readers of uncommitted data */
    SILT_UP_TO_LAST_STABLE = 2     /* readers of committed data */
};

enum {
    SILT_FETCH_MIN_ONE = 1 /* a first batch larger than max_bytes is given whole */
};

/* An aborted transaction: the reader leaves out this producer's records from its first offset on. */
typedef struct silt_aborted {
    int64_t producer_id;
    int64_t first_offset;
    int64_t last_offset; /* of the abort marker */
} silt_aborted_t;

typedef struct silt_fetch {
    const silt_log_t *log;
    int64_t offset;
    uint32_t max_bytes;
    uint32_t up_to; /* SILT_UP_TO_ */
    uint32_t flags; /* SILT_FETCH_ */
    uint32_t aborted_capacity;
    silt_aborted_t *aborted; /* for SILT_UP_TO_LAST_STABLE; NULL when they are not wanted */
} silt_fetch_t;

enum {
    SILT_RANGE_FIRST_INCOMPLETE = 1 /* the first batch is larger than max_bytes and not whole */
};

/*
 * Bytes of a log in an open file, to be sent by sendfile, splice or io_uring. The file stays open,
 * through roll, deletion, truncation and close, until its lease is released. size_bytes 0: there is
 * nothing to be seen, fd is -1 and lease is 0.
 */
typedef struct silt_range {
    int32_t fd;
    uint32_t flags; /* SILT_RANGE_ */
    uint64_t position;
    uint64_t size_bytes;
    int64_t base_offset;         /* of the first batch, which may begin below the offset asked for */
    int64_t segment_base_offset;
    uint64_t lease;
    uint32_t truncations;        /* for silt_range_is_intact */
    uint32_t aborted_count;      /* how many there are, also beyond the capacity */
} silt_range_t;

/*
 * Looks up many fetches, of one log or of many. Each item has its own status in status[i], which is
 * written in any case; SILT_E_OUT_OF_RANGE is an offset that the log does not have. A range whose
 * status is SILT_E_SHORT_BUFFER is good, but not all of its aborted transactions fitted. The call
 * itself fails for NULL arrays alone.
 */
SILT_API silt_status_t silt_locate(const silt_fetch_t *fetches, uint32_t count, silt_range_t *out,
                                   silt_status_t *status, silt_error_t *err);

/* 1 when the log was not cut since the range was looked up, 0 when other bytes may stand there now:
 * to be asked after the bytes were read. The lease must not have been released. */
SILT_API int32_t silt_range_is_intact(const silt_range_t *range);

/* Gives leases back; those that are 0 are passed over. Each may be released once. */
SILT_API silt_status_t silt_leases_release(const uint64_t *leases, uint32_t count,
                                           silt_error_t *err);

/*
 * Copies what a fetch gives into `bytes`, at most `capacity` and `max_bytes` of it. *out is as
 * silt_locate has it, with no file and no lease; its size_bytes is what was copied.
 */
SILT_API silt_status_t silt_log_read(const silt_fetch_t *fetch, void *bytes, uint64_t capacity,
                                     silt_range_t *out, silt_error_t *err);

/* The aborted transactions that a reader of the offsets from `from` to `to`, exclusive, must know. */
SILT_API silt_status_t silt_log_aborted(const silt_log_t *log, int64_t from, int64_t to,
                                        silt_aborted_t *out, uint32_t capacity, uint32_t *count,
                                        silt_error_t *err);

/* ---- Indexes by themselves ------------------------------------------------------------------------ */

/*
 * One offset, time or transaction index without the log around it, for hosts that have a log of
 * their own. It is as Kafka's own: a file that is missing is made, full of zeros up to its largest
 * size, and holds no entry; one that exists is taken to be full of entries up to its length.
 *
 * The entries stand in memory (8 bytes each of an offset index, 16 of a time index): look-ups wait
 * for nobody, and nothing that happens to the file reaches them. No descriptor is held. The host
 * may rename the file at any time: what touches it takes the path that it has now.
 *
 * Unlike with other objects, silt_index_shut may be called while other threads use the index: they
 * get SILT_E_CLOSED from then on. silt_index_close gives the object back, as ever when nobody uses
 * it any more.
 */
typedef struct silt_index silt_index_t;

enum {
    SILT_INDEX_OFFSET = 0,
    SILT_INDEX_TIME = 1,
    SILT_INDEX_TXN = 2
};

enum {
    SILT_INDEX_READ_ONLY = 1 /* what writes gets SILT_E_CONFLICT, and a missing file is not made */
};

/*
 * Opens or makes an index. `kind` is SILT_INDEX_, `max_size_bytes` the size of a file that is made,
 * rounded down to whole entries; a transaction index has none, and its file comes with its first
 * entry. Errors: SILT_E_INVALID_ARGUMENT for a new file without room for one entry,
 * SILT_E_NOT_FOUND for a missing one that is only read, SILT_E_LIMIT for 2^31 bytes or more,
 * SILT_E_IO. What the entries say is not looked at: see silt_index_sanity_check.
 */
SILT_API silt_status_t silt_index_open(const char *path, uint32_t kind, int64_t base_offset,
                                       uint32_t max_size_bytes, uint32_t flags,
                                       silt_index_t **index, silt_error_t *err);

/* Lets go of the index: every other call on it but silt_index_close gives SILT_E_CLOSED. What was
 * not flushed or trimmed is not written. May be called again. */
SILT_API silt_status_t silt_index_shut(const silt_index_t *index, silt_error_t *err);

/* Gives the object back. NULL is fine. */
SILT_API void silt_index_close(silt_index_t *index);

/*
 * Of an offset index: the last entry whose offset is at most `offset`, as one number: its offset
 * above the base in the upper 32 bits, its position in the lower. 0 where there is none: a scan
 * from the first byte meets the offset. A negative number is a status: SILT_E_CORRUPT for an entry
 * whose numbers are negative.
 */
SILT_API int64_t silt_index_lookup(const silt_index_t *index, int64_t offset);

/*
 * Of an offset index: an entry behind the bytes of a fetch, in the same form, for the search of
 * aborted transactions; SILT_E_NOT_FOUND where the index does not go that far. The end of the fetch
 * is counted in 32 bits and wraps, as Kafka counts it.
 */
SILT_API int64_t silt_index_upper_bound(const silt_index_t *index, int32_t position,
                                        int32_t size_bytes);

/* An entry of an offset index, with a timestamp of -1, or of a time index, with a position of -1. */
typedef struct silt_index_entry {
    int64_t offset;
    int64_t timestamp_ms;
    int32_t position;
    int32_t reserved;
} silt_index_entry_t;

/* Of a time index: the last entry whose timestamp is at most `timestamp_ms`; the base offset with a
 * timestamp of -1 where there is none. */
SILT_API silt_status_t silt_index_lookup_time(const silt_index_t *index, int64_t timestamp_ms,
                                              silt_index_entry_t *out, silt_error_t *err);

/* The entry in a slot of an offset or time index; SILT_E_OUT_OF_RANGE behind the last. */
SILT_API silt_status_t silt_index_entry(const silt_index_t *index, uint32_t slot,
                                        silt_index_entry_t *out, silt_error_t *err);

/*
 * Appends to an offset index. Errors, which change nothing: SILT_E_LIMIT when it is full,
 * SILT_E_INVALID_ARGUMENT when `offset` is not above the last one, SILT_E_OUT_OF_RANGE when it is
 * not within 2^31 of the base. The entry is found at once, and in the file after a flush.
 */
SILT_API silt_status_t silt_index_append(const silt_index_t *index, int64_t offset,
                                         int32_t position, silt_error_t *err);

/*
 * Appends to a time index, if the timestamp is above the last one: *appended, which may be NULL,
 * gets 1 then. The last slot is kept for an append with `is_forced`. Errors as above, for an offset
 * or timestamp that goes back.
 */
SILT_API silt_status_t silt_index_append_time(const silt_index_t *index, int64_t timestamp_ms,
                                              int64_t offset, int32_t is_forced, int32_t *appended,
                                              silt_error_t *err);

/* An aborted transaction as a transaction index has it. */
typedef struct silt_aborted_entry {
    int64_t producer_id;
    int64_t first_offset;
    int64_t last_offset;        /* of the abort marker */
    int64_t last_stable_offset; /* up to where, exclusive, every transaction had ended then */
} silt_aborted_entry_t;

/* Appends to a transaction index and its file. SILT_E_INVALID_ARGUMENT when the last offset is not
 * above that of the entry before. */
SILT_API silt_status_t silt_index_append_aborted(const silt_index_t *index, const char *path,
                                                 const silt_aborted_entry_t *entry,
                                                 silt_error_t *err);

/*
 * Of a transaction index: what a reader from offset `from` of a range that ends before
 * `upper_bound` must know. *is_complete, which may be NULL, gets 0 when the next segment may have
 * more. All entries: from INT64_MIN to INT64_MAX.
 */
SILT_API silt_status_t silt_index_collect_aborted(const silt_index_t *index, int64_t from,
                                                  int64_t upper_bound, silt_aborted_entry_t *out,
                                                  uint32_t capacity, uint32_t *count,
                                                  int32_t *is_complete, silt_error_t *err);

/* Removes every entry at or above `offset`; all of them for INT64_MIN. `path` is for transaction
 * indexes, whose file is cut; the file of another keeps its length, and `path` may be NULL. */
SILT_API silt_status_t silt_index_truncate_to(const silt_index_t *index, const char *path,
                                              int64_t offset, silt_error_t *err);

/*
 * Gives the file of an offset or time index another length, rounded down to whole entries, and
 * writes what was appended. A file that is missing is made. *is_changed, which may be NULL, gets
 * whether the length is another one. SILT_E_INVALID_ARGUMENT when the entries need more.
 */
SILT_API silt_status_t silt_index_resize(const silt_index_t *index, const char *path,
                                         uint32_t size_bytes, int32_t *is_changed,
                                         silt_error_t *err);

/* The same, to the size of the entries: what Kafka does before it closes an index. */
SILT_API silt_status_t silt_index_trim(const silt_index_t *index, const char *path,
                                       silt_error_t *err);

/* Writes what was appended and makes it durable. SILT_E_NOT_FOUND when there is no file at `path`:
 * nothing is lost, and the call may be repeated with the path that the file has now. */
SILT_API silt_status_t silt_index_flush(const silt_index_t *index, const char *path,
                                        silt_error_t *err);

/* Kafka's own check of the ends and the length: SILT_E_CORRUPT; SILT_E_UNSUPPORTED for a version of
 * a transaction index that Kafka refuses. */
SILT_API silt_status_t silt_index_sanity_check(const silt_index_t *index, silt_error_t *err);

/* What may be read at any time without a call, each number by itself, until silt_index_close. */
typedef struct silt_index_counters {
    int64_t entry_count;
    int64_t max_entries;       /* of a time index, the last is for is_forced */
    int64_t file_size_bytes;   /* as it was set or found last */
    int64_t last_offset;       /* the base offset when there is no entry */
    int64_t last_timestamp_ms; /* of a time index, -1 when there is no entry */
    int64_t is_closed;
} silt_index_counters_t;

/* Where the counters of an offset or time index are. */
SILT_API silt_status_t silt_index_counters(const silt_index_t *index,
                                           const silt_index_counters_t **out, silt_error_t *err);

/* ---- Many logs in one call ------------------------------------------------------------------------ */

enum {
    SILT_APPEND_FOLLOWER = 1 /* as silt_log_append_follower; else as silt_log_append_leader */
};

typedef struct silt_append_item {
    silt_log_t *log;
    void *records; /* no two items may share bytes */
    uint64_t size_bytes;
    int64_t now_ms;
    int32_t leader_epoch;
    uint32_t origin;             /* SILT_ORIGIN_ */
    int32_t transaction_version; /* as in silt_append_t */
    uint32_t flags;              /* SILT_APPEND_ */
} silt_append_item_t;

/* What silt_appended_t says, for an array. */
typedef struct silt_append_result {
    int64_t first_offset;
    int64_t last_offset;
    int64_t max_timestamp_ms;
    int64_t log_append_time_ms;
    int64_t log_start_offset;
    uint64_t size_bytes;
    uint32_t flags;      /* SILT_APPENDED_ */
    int32_t detail_code; /* SILT_DETAIL_, of an item that was refused */
} silt_append_result_t;

/*
 * Appends to many logs, or many times to one: each item by itself, those of one log in their order,
 * but the disk gets all writes at once. Each item has its own status, which is written in any case:
 * one that is refused keeps out no other, but for later items of a follower, which would leave a
 * gap. The call itself fails for NULL arrays and for records that overlap, and then does nothing.
 */
SILT_API silt_status_t silt_append_many(const silt_append_item_t *items, uint32_t count,
                                        silt_append_result_t *out, silt_status_t *status,
                                        silt_error_t *err);

/*
 * As silt_locate, but all ranges together have at most `max_bytes`: what one fetch gets is not left
 * for those behind it. SILT_FETCH_MIN_ONE holds until a fetch has got bytes; the first may exceed
 * `max_bytes` by that.
 */
SILT_API silt_status_t silt_locate_within(const silt_fetch_t *fetches, uint32_t count,
                                          uint64_t max_bytes, silt_range_t *out,
                                          silt_status_t *status, silt_error_t *err);

/* ---- The log directories of a broker -------------------------------------------------------------- */

/*
 * All logs of a broker: opened together, and recovered where the stop was not a clean one. An
 * engine starts no thread that stays. What has to be done now and then is handed out as work, which
 * the host runs where and when it likes:
 *
 *     silt_work_t work[64];
 *     uint32_t count;
 *     silt_engine_due(engine, now_ms, work, 64, &count, &error);
 *     for (uint32_t i = 0; i < count; i++) {
 *         silt_engine_run(engine, work[i].id, now_ms, &error);
 *     }
 *
 * Logs that an engine gives are objects of their own, each closed by silt_log_close, before or
 * after the engine. silt_log_stop is not for them.
 */
typedef struct silt_engine silt_engine_t;

/* A setting of one topic. */
typedef struct silt_topic_config {
    const char *topic;
    const char *name;
    const char *value;
} silt_topic_config_t;

enum {
    SILT_ENGINE_KEEP_LOST = 2 /* keep what recovery cuts off beside, in .log.lost files */
};

typedef struct silt_engine_options {
    uint32_t struct_size;
    uint32_t flags; /* SILT_ENGINE_ */
    const silt_config_t *configs; /* as in server.properties: { "log.segment.bytes", "1048576" } */
    const silt_topic_config_t *topic_configs;
    uint32_t config_count;
    uint32_t topic_config_count;
    const char *cluster_id; /* whose the directories must be; NULL: not looked at */
    int32_t node_id;        /* the same, with a cluster_id */
    uint32_t threads;       /* to load with; 0 and 1: the caller's own */
    int64_t now_ms;
    uint32_t io;             /* SILT_IO_ */
    uint32_t open_files_max; /* 0: 10,000 */
} silt_engine_options_t;

#define SILT_ENGINE_OPTIONS_INIT \
    { SILT_SIZE_OF(silt_engine_options_t), 0, NULL, NULL, 0, 0, NULL, 0, 0, 0, 0, 0 }

/*
 * Takes log directories and opens all logs in them. A directory that is missing is made; one whose
 * disk fails is offline from the start, and a log that cannot be opened is left as it is: see
 * silt_engine_stats. Errors: SILT_E_CONFLICT when another process holds a directory or they do not
 * belong together, SILT_E_INVALID_ARGUMENT for a setting that Kafka would refuse, SILT_E_IO when no
 * directory is left.
 */
SILT_API silt_status_t silt_engine_open(const char *const *dirs, uint32_t dir_count,
                                        const silt_engine_options_t *options,
                                        silt_engine_t **engine, silt_error_t *err);

/*
 * Ends an engine as a clean stop does: makes all logs durable, writes checkpoints and marks each
 * directory of which every log was opened and closed without an error; *clean_dirs, which may be
 * NULL, gets their number. `broker_epoch` is -1 for none. Work that was handed out is void, and
 * every other call on the engine and its logs but the closing ones gives SILT_E_CLOSED, also after
 * an error.
 */
SILT_API silt_status_t silt_engine_stop(silt_engine_t *engine, int64_t broker_epoch,
                                        uint32_t threads, uint32_t *clean_dirs, silt_error_t *err);

/* Gives the object back. NULL is fine. Without a stop before, the next start recovers. */
SILT_API void silt_engine_close(silt_engine_t *engine);

/* The log of a partition. SILT_E_NOT_FOUND when there is none; else what keeps it from being open,
 * such as SILT_E_IO for a directory that is offline. */
SILT_API silt_status_t silt_engine_log(silt_engine_t *engine, const char *topic, int32_t partition,
                                       silt_log_t **log, silt_error_t *err);

enum {
    SILT_NEW_LOG_NEW = 1,   /* the replica is known to be new: it may be made while a directory is
                               offline */
    SILT_NEW_LOG_FUTURE = 2 /* it grows beside the current log, in another directory */
};

typedef struct silt_new_log {
    uint32_t struct_size;
    uint32_t flags;               /* SILT_NEW_LOG_ */
    const silt_config_t *configs; /* of the topic, above those of the engine */
    uint32_t config_count;
    uint32_t reserved;
    uint8_t topic_id[16]; /* all 0: not known */
    const char *dir;      /* the log directory; NULL: the one with the fewest logs */
    int64_t now_ms;
} silt_new_log_t;

#define SILT_NEW_LOG_INIT { SILT_SIZE_OF(silt_new_log_t), 0, NULL, 0, 0, { 0 }, NULL, 0 }

/* The log of a partition, made now if there is none. SILT_E_CONFLICT for another topic id. */
SILT_API silt_status_t silt_engine_create_log(silt_engine_t *engine, const char *topic,
                                              int32_t partition, const silt_new_log_t *new_log,
                                              silt_log_t **log, silt_error_t *err);

/* Deletes the log of a partition: its directory is renamed now, and goes with the work that is due
 * later. */
SILT_API silt_status_t silt_engine_delete_log(silt_engine_t *engine, const char *topic,
                                              int32_t partition, int64_t now_ms,
                                              silt_error_t *err);

/* Gives the logs of a topic other settings, above those of the engine. */
SILT_API silt_status_t silt_engine_set_config(silt_engine_t *engine, const char *topic,
                                              const silt_config_t *configs, uint32_t config_count,
                                              silt_error_t *err);

typedef struct silt_engine_partition {
    char topic[252]; /* with its NUL */
    int32_t partition;
} silt_engine_partition_t;

/* The partitions whose logs are open, by topic and number; the future ones behind the others. */
SILT_API silt_status_t silt_engine_partitions(silt_engine_t *engine, silt_engine_partition_t *out,
                                              uint32_t capacity, uint32_t *count,
                                              silt_error_t *err);

enum {
    SILT_WORK_FLUSH = 1,
    SILT_WORK_DELETE_FILES = 2,
    SILT_WORK_DELETE_FOLDER = 3,
    SILT_WORK_RETENTION = 4,
    SILT_WORK_EXPIRE_PRODUCERS = 5,
    SILT_WORK_COMPACT = 6,
    SILT_WORK_RECOVERY_POINTS = 7, /* checkpoints, from here on */
    SILT_WORK_LOG_STARTS = 8,
    SILT_WORK_HIGH_WATERMARKS = 9,
    SILT_WORK_COMPACTED_ENDS = 10
};

typedef struct silt_work {
    uint64_t id;
    uint32_t kind; /* SILT_WORK_ */
    uint32_t reserved;
} silt_work_t;

/*
 * Hands out work that is due, at most `capacity` pieces; what does not fit is due the next time. It
 * is not handed out again before it was run or dropped.
 */
SILT_API silt_status_t silt_engine_due(silt_engine_t *engine, int64_t now_ms, silt_work_t *out,
                                       uint32_t capacity, uint32_t *count, silt_error_t *err);

/* Does a piece of work on this thread; many threads may each do one. What fails is due again a
 * little later. SILT_E_NOT_FOUND for an id that was not handed out, or was run already. */
SILT_API silt_status_t silt_engine_run(silt_engine_t *engine, uint64_t work, int64_t now_ms,
                                       silt_error_t *err);

/* Gives a piece of work back: it is due again at once. */
SILT_API silt_status_t silt_engine_drop_work(silt_engine_t *engine, uint64_t work,
                                             silt_error_t *err);

/* Writes all checkpoints now, durably. */
SILT_API silt_status_t silt_engine_checkpoint(silt_engine_t *engine, silt_error_t *err);

typedef struct silt_engine_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t logs;             /* open ones, with the future ones */
    uint64_t future_logs;
    uint64_t shut_logs;        /* there, but not open: refused, or in a directory that is offline */
    uint64_t failed_logs;      /* they take no writes, since a sync failed */
    uint64_t uncleanable_logs; /* with what compaction cannot read */
    uint64_t offline_dirs;
    uint64_t segments;
    uint64_t size_bytes;
    uint64_t dirty_bytes;      /* of segments that are not known to be durable */
    uint64_t open_segments;
    uint64_t open_files;
    uint64_t waiting_folders;  /* of deleted logs */
    int64_t previous_broker_epoch; /* of a clean stop of all directories, else -1 */
} silt_engine_stats_t;

#define SILT_ENGINE_STATS_INIT \
    { SILT_SIZE_OF(silt_engine_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1 }

/* Counts. It looks at every segment, so it is for now and then. */
SILT_API silt_status_t silt_engine_stats(silt_engine_t *engine, silt_engine_stats_t *out,
                                         silt_error_t *err);

/* ---- Operations whose answers are polled ---------------------------------------------------------- */

/*
 * A queue for hosts with a loop of events. Operations are the caller's memory: an operation, and the
 * bytes that it names, stay where they are and are left alone until its answer was polled. They run
 * when somebody polls, on the thread that polls; appends that wait one behind the other go to the
 * disk together. A host that wants operations to run side by side has several rings.
 *
 * silt_ring_fd is readable as long as something waits: give it to epoll or another selector. Any
 * thread may submit; one polls, a second one gets SILT_E_CONFLICT. A log may be closed while its
 * operations wait. What waits when the ring is closed is not run.
 */
typedef struct silt_ring silt_ring_t;

enum {
    SILT_OP_APPEND = 1,
    SILT_OP_READ = 2,   /* as silt_log_read, into bytes and size_bytes */
    SILT_OP_LOCATE = 3, /* as silt_locate */
    SILT_OP_WARM = 4,   /* has the disk read what a fetch gives, and does not wait for it */
    SILT_OP_SYNC = 5    /* as silt_log_flush */
};

enum {
    SILT_OP_FOLLOWER = 1, /* append as silt_log_append_follower does, else as a leader */
    SILT_OP_FLUSH = 2,    /* the answer of an append comes when it is durable */
    SILT_OP_MIN_ONE = 4   /* of a fetch, as SILT_FETCH_MIN_ONE */
};

typedef struct silt_op {
    uint64_t user_data; /* comes back with the answer */
    uint32_t kind;      /* SILT_OP_ */
    uint32_t flags;
    const silt_log_t *log;
    void *bytes; /* records to append, or room for what is read */
    uint64_t size_bytes;
    int64_t offset; /* of a fetch */
    int64_t now_ms;
    int32_t leader_epoch;
    uint32_t origin;             /* SILT_ORIGIN_ */
    int32_t transaction_version; /* as in silt_append_t */
    uint32_t max_bytes;          /* of a fetch */
    uint32_t up_to;              /* SILT_UP_TO_ */
    uint32_t aborted_capacity;
    silt_aborted_t *aborted; /* as in silt_fetch_t */
    uint64_t opaque[4];      /* the library's */
} silt_op_t;

typedef struct silt_done {
    uint64_t user_data;
    uint32_t kind;
    silt_status_t status;
    int32_t detail_code; /* SILT_DETAIL_ */
    int32_t os_errno;
    int64_t first_offset; /* of what was appended, -1 for nothing */
    int64_t last_offset;
    silt_range_t range; /* of a fetch; of others, size_bytes is what was appended */
} silt_done_t;

SILT_API silt_status_t silt_ring_new(silt_ring_t **ring, silt_error_t *err);

/* Gives the object back. NULL is fine. */
SILT_API void silt_ring_close(silt_ring_t *ring);

/* The eventfd, which is the ring's and closed with it. */
SILT_API silt_status_t silt_ring_fd(const silt_ring_t *ring, int32_t *fd, silt_error_t *err);

/* Puts operations into the queue. What is wrong with one is in its answer. */
SILT_API silt_status_t silt_ring_submit(const silt_ring_t *ring, const silt_op_t *ops,
                                        uint32_t count, silt_error_t *err);

/*
 * Runs what waits, at most `capacity` operations, and gives their answers, in the order in which
 * they were submitted. When nothing waits, it waits for `timeout_ms`: 0 not at all, -1 for ever.
 */
SILT_API silt_status_t silt_ring_poll(const silt_ring_t *ring, silt_done_t *out, uint32_t capacity,
                                      int32_t timeout_ms, uint32_t *count, silt_error_t *err);

#ifdef __cplusplus
}
#endif

#endif /* SILTSTONE_H */
