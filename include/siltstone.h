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
 *     silt_log_stop(log, &error);
 *     silt_log_close(log);
 *
 * ERRORS
 *
 * Every function that can fail returns a silt_status_t: SILT_OK, or one of the negative SILT_E_
 * codes. Its last parameter is the caller's silt_error_t, which may be NULL; it is written when the
 * function fails, and left alone when it does not. Results are written on success alone, but for
 * calls that take many items: those write the status of each item in any case. What stands in an
 * array that a call which fails was to fill says nothing.
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
 *     silt_log_t          any number of readers; one that writes (append, roll, truncate, stop), a
 *                         second one gets SILT_E_CONFLICT and nothing happens. It waits for those
 *                         beside it: any number may flush, delete files or set highest_remote, may
 *                         move the high watermark or the log start, assign an epoch, start a
 *                         verification or expire producers (these wait for it, too), and may retain, compact or look at
 *                         producers (SILT_E_CONFLICT while it writes). A cut gets SILT_E_CONFLICT
 *                         while compaction replaces a segment
 *     silt_engine_t       any
 *     silt_index_t        any number of look-ups; one that writes, as above
 *     silt_ring_t         any that submit, and one that polls
 *     silt_upload_t       any
 *     silt_dir_t          any; a second long call gets SILT_E_CONFLICT and nothing happens
 *     leases              any
 *     plain structs       the caller's business
 *
 * No call may run on an object while another thread closes it, or after that: what is found out of
 * such misuse gets SILT_E_CLOSED. Leases and the ranges that they keep open outlive the log. The
 * library starts no thread but those that a call is asked to use, with a progress function too,
 * and that end with it. It calls nobody but the progress function that it is given, on the
 * caller's thread. It keeps no errors or objects by thread, has no signal handler, and prints
 * nothing but, on standard error, the place of a fault of its own (SILT_E_BUG). After fork() the
 * objects of the parent cannot be used in the child: SILT_E_FORKED. A library that is unloaded by
 * dlclose() stays until the threads that called it have ended.
 *
 * SIGNALS
 *
 * No file is mapped: what the library looks at is read into memory of its own, so a file that
 * shrinks or a disk that fails is an error code and not SIGBUS. There are two exceptions: memory
 * that the caller gives, if that is a map of a file, whose faults are the caller's; and logs that
 * are opened with SILT_LOG_MAP_SEALED or SILT_ENGINE_MAP_SEALED.
 *
 * GROWTH
 *
 * A struct that begins with struct_size is made by its _INIT macro. Structs only grow at their end,
 * and 0 is the default of every field that is added: a caller of an older header works with a newer
 * library, and a newer caller with an older library is told SILT_E_UNSUPPORTED when it asks for what
 * that library does not know. Codes keep their numbers for ever. No struct will have more than 4096
 * bytes: a larger struct_size, as one that was never set may be, is SILT_E_INVALID_ARGUMENT.
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
    SILT_E_BUG = -12,             /* a fault of the library; no object of the call can be used more */
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

/*
 * Hears how far a long call is: about fifty times a second, on the thread that called; the work is
 * done by others meanwhile, which end with the call. Anything but 0 ends the call with
 * SILT_E_CANCELLED, and is detail_code of the error. The function must return: what leaves it by an
 * exception or longjmp would leave those others at work (siltstone.hpp lets it throw). SILT_E_IO
 * with os_errno where the system has no thread for the work.
 */
typedef int32_t (*silt_progress_fn)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

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
 * Checks frames and checksums. *valid_bytes, which may be NULL, is where the last good batch ends,
 * and is written in any case: SILT_E_CORRUPT tells what is wrong behind it.
 */
SILT_API silt_status_t silt_batch_validate(const void *bytes, uint64_t size_bytes,
                                           uint64_t *valid_bytes, silt_error_t *err);

enum {
    SILT_END_ABORT = 1 /* the transaction is aborted; else it is committed */
};

/* What the marker at the end of a transaction says. */
typedef struct silt_end_marker {
    uint32_t struct_size;
    uint32_t flags; /* SILT_END_ */
    int64_t producer_id;
    int64_t timestamp_ms;
    int64_t base_offset;  /* an append as a leader gives it its own */
    int32_t coordinator_epoch;
    int32_t leader_epoch; /* the same; -1 for none */
    int32_t producer_epoch;
    uint32_t reserved;
} silt_end_marker_t;

#define SILT_END_MARKER_INIT { SILT_SIZE_OF(silt_end_marker_t), 0, 0, 0, 0, 0, -1, 0, 0 }

/*
 * Makes the batch that ends a transaction, byte for byte as Kafka's coordinator has it written: to
 * be appended with SILT_ORIGIN_COORDINATOR and a transaction_version. *size_bytes gets its size,
 * also with SILT_E_SHORT_BUFFER. SILT_E_INVALID_ARGUMENT for a producer id or epoch of -1, or a
 * timestamp below that.
 */
SILT_API silt_status_t silt_end_marker_write(const silt_end_marker_t *marker, void *bytes,
                                             uint64_t capacity, uint64_t *size_bytes,
                                             silt_error_t *err);

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
    SILT_LOG_KEEP_LOST = 2, /* keep what recovery cuts off beside, in .log.lost files */
    /*
     * Look-ups in a sealed segment that are made again and again go through a map of its log, as
     * long as it is open. For a host that owns the files alone and accepts that a page which the
     * disk fails to read, or that another process has cut off, is a SIGBUS. Nothing that is done
     * through this library makes one.
     */
    SILT_LOG_MAP_SEALED = 4
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
    int64_t producer_expiration_ms; /* 0: a day */
} silt_log_options_t;

#define SILT_LOG_OPTIONS_INIT \
    { SILT_SIZE_OF(silt_log_options_t), 0, NULL, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0 }

/*
 * Opens the log of a partition directory such as ".../orders-0"; a directory that is missing is
 * made, its parent must be there. NULL options: the defaults, after a clean stop.
 * Errors: SILT_E_INVALID_ARGUMENT for a name that is no partition's or a setting that Kafka would
 * refuse; SILT_E_CONFLICT for another topic id, and while a log of this directory that this process
 * has opened is neither stopped nor closed (other processes, and logs of an engine, are not looked
 * for); SILT_E_CORRUPT, SILT_E_IO.
 */
SILT_API silt_status_t silt_log_open(const char *dir, const silt_log_options_t *options,
                                     silt_log_t **log, silt_error_t *err);

/*
 * Ends a log as a clean stop does: makes it durable and writes its snapshot. Then every call on it
 * but silt_log_close gives SILT_E_CLOSED. SILT_E_CONFLICT for a log of an engine, which stops it
 * itself.
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
    uint64_t verification;       /* what silt_log_start_verification gave; 0 for nothing */
} silt_append_t;

#define SILT_APPEND_INIT { SILT_SIZE_OF(silt_append_t), 0, 0, 0, 0, 0 }

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

enum {
    SILT_VERIFY_EPOCH_BUMPS = 1 /* the producer gets a new epoch with each transaction */
};

/*
 * The first batch of a producer's transaction is refused (SILT_DETAIL_INVALID_TXN_STATE) unless it
 * was verified: the host calls this with the batch's fields, asks the coordinator of transactions
 * whether the transaction is open and has this partition, and appends the batch with the number that
 * goes to *verification. A marker that comes in between ends the verification. 0: the transaction is
 * open in this log, and nothing is to be asked. SILT_DETAIL_INVALID_PRODUCER_EPOCH for an epoch
 * before the one that is known. Writes, and waits for whoever does.
 */
SILT_API silt_status_t silt_log_start_verification(silt_log_t *log, int64_t producer_id,
                                                   int32_t base_sequence, int32_t producer_epoch,
                                                   uint32_t flags, int64_t now_ms,
                                                   uint64_t *verification, silt_error_t *err);

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

/* The id of the topic goes to topic_id[0] to [15]; all 0: the log was opened without one, and its
 * directory says none. */
SILT_API silt_status_t silt_log_topic_id(const silt_log_t *log, uint8_t *topic_id,
                                         silt_error_t *err);

/* Takes note that all up to `offset`, inclusive, is in remote storage: what local retention may
 * remove. It goes back by itself when the log is cut, and when remote storage is switched off: a host
 * that copies asks silt_upload_is_intact before it says so of what it has copied. */
SILT_API silt_status_t silt_log_set_highest_remote(silt_log_t *log, int64_t offset,
                                                   silt_error_t *err);

/* Forgets producers that have been silent for longer than producer.id.expiration.ms. Of an engine's
 * logs that is SILT_WORK_EXPIRE_PRODUCERS. Writes, as an append does. */
SILT_API silt_status_t silt_log_expire_producers(silt_log_t *log, int64_t now_ms,
                                                 silt_error_t *err);

/* Raises the log start, up to the high watermark or the local log start, whichever lies further; a
 * lower offset changes nothing. */
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
 * to be asked after the bytes were read. The lease must not have been released. 0 without a lease:
 * bytes that silt_log_read has copied are what the log held, and need not be asked for. */
SILT_API int32_t silt_range_is_intact(const silt_range_t *range);

/* Gives leases back; those that are 0 are passed over. Each may be released once. */
SILT_API silt_status_t silt_leases_release(const uint64_t *leases, uint32_t count,
                                           silt_error_t *err);

/*
 * Copies what a fetch gives into `bytes`, at most `capacity` and `max_bytes` of it. *out is as
 * silt_locate has it, with no file and no lease; its size_bytes is what was copied.
 * SILT_E_SHORT_BUFFER: when size_bytes is 0 the first batch is larger than the buffer; else the
 * bytes are there, and not all of the aborted transactions fitted. SILT_E_CORRUPT where the file is
 * shorter than the log, as when another process has cut it.
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
 * Unlike with other objects, silt_index_shut may be called while other threads use the index: it
 * waits for one that writes, and they get SILT_E_CLOSED from then on. silt_index_close gives the
 * object back, as ever when nobody uses it any more.
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
 * entry. Errors: SILT_E_INVALID_ARGUMENT for a new file without room for one entry or of 2^31 bytes
 * or more, SILT_E_NOT_FOUND for a missing one that is only read, SILT_E_LIMIT for one that has as
 * much, SILT_E_IO. What the entries say is not looked at: see silt_index_sanity_check.
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
 * above that of the entry that was appended before; the first one after an open is taken as it is. */
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
 * whether the length is another one. SILT_E_INVALID_ARGUMENT when the entries need more, and for
 * 2^31 bytes or more.
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

/* The same, where verifications[i] is what silt_log_start_verification gave for item i, and 0 for
 * nothing. */
SILT_API silt_status_t silt_append_many_verified(const silt_append_item_t *items,
                                                 const uint64_t *verifications, uint32_t count,
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
 * after the engine. silt_log_stop refuses them.
 */
typedef struct silt_engine silt_engine_t;

/* A setting of one topic. Names that no setting of a topic has are passed over, as Kafka does with
 * what a topic has from an older release. */
typedef struct silt_topic_config {
    const char *topic;
    const char *name;
    const char *value;
} silt_topic_config_t;

enum {
    SILT_ENGINE_KEEP_LOST = 2, /* keep what recovery cuts off beside, in .log.lost files */
    SILT_ENGINE_MAP_SEALED = 4 /* as SILT_LOG_MAP_SEALED, for all logs */
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
    uint32_t threads;       /* to load with, at most 1024; 0 and 1: the caller's own */
    int64_t now_ms;
    uint32_t io;             /* SILT_IO_ */
    uint32_t open_files_max; /* 0: 10,000 */
    silt_progress_fn progress; /* hears how far the load is, or NULL; a log counts as one byte more
                                * than recovery reads of it */
    void *progress_ctx;
} silt_engine_options_t;

#define SILT_ENGINE_OPTIONS_INIT \
    { SILT_SIZE_OF(silt_engine_options_t), 0, NULL, NULL, 0, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL }

/*
 * Takes log directories and opens all logs in them. A directory that is missing is made; one whose
 * disk fails is offline from the start, and a log that cannot be opened is left as it is: see
 * silt_engine_stats. Errors: SILT_E_CONFLICT when another process holds a directory or they do not
 * belong together, SILT_E_INVALID_ARGUMENT for a setting that Kafka would refuse, SILT_E_IO when no
 * directory is left; SILT_E_CANCELLED by the progress function: the next start recovers.
 */
SILT_API silt_status_t silt_engine_open(const char *const *dirs, uint32_t dir_count,
                                        const silt_engine_options_t *options,
                                        silt_engine_t **engine, silt_error_t *err);

/*
 * Ends an engine as a clean stop does: makes all logs durable, writes checkpoints and marks each
 * directory of which every log was opened and closed without an error; *clean_dirs, which may be
 * NULL, gets their number, also where the rest gives an error. `broker_epoch` is -1 for none,
 * `threads` are at most 1024. Work that was handed out is void, and every other call on the engine
 * and its logs but the closing ones gives SILT_E_CLOSED, also after an error.
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
    const silt_config_t *configs; /* of this log, above those of its topic */
    uint32_t config_count;
    uint32_t reserved;
    uint8_t topic_id[16]; /* all 0: not known */
    const char *dir;      /* the log directory; NULL: the one with the fewest logs */
    int64_t now_ms;
} silt_new_log_t;

#define SILT_NEW_LOG_INIT { SILT_SIZE_OF(silt_new_log_t), 0, NULL, 0, 0, { 0 }, NULL, 0 }

/* The log of a partition, made now if there is none. SILT_E_CONFLICT for another topic id,
 * SILT_E_INVALID_ARGUMENT for a setting that Kafka would refuse, also by its name. */
SILT_API silt_status_t silt_engine_create_log(silt_engine_t *engine, const char *topic,
                                              int32_t partition, const silt_new_log_t *new_log,
                                              silt_log_t **log, silt_error_t *err);

/* Deletes the log of a partition: its directory is renamed now, and goes with the work that is due
 * later. */
SILT_API silt_status_t silt_engine_delete_log(silt_engine_t *engine, const char *topic,
                                              int32_t partition, int64_t now_ms,
                                              silt_error_t *err);

/*
 * A log that moves to another directory: silt_engine_create_log with SILT_NEW_LOG_FUTURE makes the
 * future one, the host copies the current one into it as a follower does, and replaces the current
 * one when both have the same end. The future one is moved into place, and the current one's
 * directory goes as a deleted one does; a log object of it is to be closed. SILT_E_NOT_FOUND where
 * one of them is missing.
 */
SILT_API silt_status_t silt_engine_future_log(silt_engine_t *engine, const char *topic,
                                              int32_t partition, silt_log_t **log,
                                              silt_error_t *err);
SILT_API silt_status_t silt_engine_replace_log(silt_engine_t *engine, const char *topic,
                                               int32_t partition, int64_t now_ms,
                                               silt_error_t *err);

/* Gives up a move: as silt_engine_delete_log, of the future log. */
SILT_API silt_status_t silt_engine_delete_future(silt_engine_t *engine, const char *topic,
                                                 int32_t partition, int64_t now_ms,
                                                 silt_error_t *err);

/* Moves the log of a partition aside that is not assigned to this broker any more: its directory is
 * renamed, and stays. */
SILT_API silt_status_t silt_engine_mark_stray(silt_engine_t *engine, const char *topic,
                                              int32_t partition, int64_t now_ms,
                                              silt_error_t *err);

/* Takes a log directory offline of which the host knows that its disk fails: its logs are closed
 * without a write and give SILT_E_IO from now on. What the engine meets itself it acts on alone.
 * SILT_E_NOT_FOUND when no directory of that path is online. */
SILT_API silt_status_t silt_engine_take_offline(silt_engine_t *engine, const char *dir,
                                                silt_error_t *err);

/*
 * Gives the logs of a topic other settings, above those of the engine: they are in the place of all
 * that the topic was given before, when the engine was opened or by this function. What is not set
 * any more is the engine's. SILT_E_INVALID_ARGUMENT, and nothing is changed, for a setting that
 * Kafka would refuse; the message has its name.
 */
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
 * operations wait: their answer is SILT_E_CLOSED, and those that run have the log to their end. Of
 * appends that wait together, those that share bytes are SILT_E_INVALID_ARGUMENT. What waits when
 * the ring is closed is not run.
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
    SILT_OP_MIN_ONE = 4,  /* of a fetch, as SILT_FETCH_MIN_ONE */
    SILT_OP_VERIFIED = 8  /* of an append: offset is what silt_log_start_verification gave */
};

typedef struct silt_op {
    uint64_t user_data; /* comes back with the answer */
    uint32_t kind;      /* SILT_OP_ */
    uint32_t flags;
    const silt_log_t *log;
    void *bytes; /* records to append, or room for what is read */
    uint64_t size_bytes;
    int64_t offset; /* of a fetch; or see SILT_OP_VERIFIED */
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
 * they were submitted. When nothing waits, it waits for `timeout_ms`: 0 not at all, -1 for ever; a
 * signal that was handled ends that with no answer.
 */
SILT_API silt_status_t silt_ring_poll(const silt_ring_t *ring, silt_done_t *out, uint32_t capacity,
                                      int32_t timeout_ms, uint32_t *count, silt_error_t *err);

/* ---- Remote storage ------------------------------------------------------------------------------- */

/* Why a segment is not to be uploaded now. */
enum {
    SILT_WAITS_NOT = 0,               /* it is to be uploaded */
    SILT_WAITS_ACTIVE = 1,            /* it is written to */
    SILT_WAITS_ABOVE_LAST_STABLE = 2, /* its end is not replicated, or in an open transaction */
    SILT_WAITS_COPIED = 3,            /* it was uploaded before */
    SILT_WAITS_BEFORE_LOG_START = 4,
    SILT_WAITS_LAGGING = 5,           /* the settings put it off */
    SILT_WAITS_TIMESTAMP_UNKNOWN = 6, /* they may put it off: its timestamp is not known */
    SILT_WAITS_OUTSIDE_LINEAGE = 7,   /* no leader epoch is known of it */
    SILT_WAITS_DAMAGED = 8,
    SILT_WAITS_BEHIND = 9,            /* a segment before it waits */
    SILT_WAITS_INCONSISTENT = 10      /* the last stable offset is negative: nothing is uploaded */
};

/*
 * What is known of many logs, and where the answers go: columns, which are arrays of one number a
 * segment or one a partition. Any column may be NULL but base_offset and segment_end; what is not
 * known has the value in brackets then, and an answer that is not wanted is not made.
 */
typedef struct silt_tier_columns {
    uint32_t struct_size;
    uint32_t partition_count;
    uint64_t segment_count; /* of all partitions */
    int64_t now_ms;
    /* Of each segment: by partition, and within one by rising base offset. The last one of a
     * partition is written to. */
    const int64_t *base_offset;
    const uint64_t *start_bytes;      /* bytes of all segments before it: counted from anywhere */
    const int64_t *max_timestamp_ms;  /* -1: no record has one; INT64_MIN: not known [INT64_MIN] */
    /* Of each partition. */
    const uint64_t *segment_end;      /* the number of the segment behind its last, of all */
    const uint64_t *active_size_bytes;
    const int64_t *log_start_offset;  /* [0] */
    const int64_t *last_stable_offset; /* [no limit] */
    const int64_t *copied_offset;     /* the last one that is copied; -1 for none [-1] */
    const int64_t *lineage_start_offset; /* from where on leader epochs are known [0] */
    const int64_t *copy_lag_ms;       /* put off for so long; 0: not at all, -1: not by time [-1] */
    const int64_t *copy_lag_bytes;    /* until so much is behind it; the same [-1] */
    /* Segments that must not be uploaded: their rising numbers among all. */
    const uint64_t *damaged;
    uint64_t damaged_count;
    /* Answers for each segment. */
    uint8_t *eligible;                /* 1: it is to be uploaded, else 0 */
    uint8_t *reason;                  /* SILT_WAITS_ */
    /* Answers for each partition. Its candidates follow each other. */
    uint64_t *first_segment;          /* the number of the first candidate, or of who waits */
    uint64_t *eligible_count;
    uint8_t *stop;                    /* SILT_WAITS_ of the segment behind the last candidate */
    uint64_t *sum_bytes;              /* of the candidates; 0 without start_bytes */
    int64_t *oldest_timestamp_ms;     /* of the first candidate; INT64_MIN: not known, or none */
} silt_tier_columns_t;

#define SILT_TIER_COLUMNS_INIT \
    { SILT_SIZE_OF(silt_tier_columns_t), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
      NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/*
 * Says what is to be uploaded of many logs. Two searches a partition, and a look at each segment
 * where `eligible` or `reason` is wanted. Offsets and numbers that do not rise as they must are
 * found out where that costs nothing (SILT_E_INVALID_ARGUMENT) and give useless answers where it
 * does. The columns of answers must not lie in other columns.
 */
SILT_API silt_status_t silt_tier_eligible(const silt_tier_columns_t *columns, silt_error_t *err);

/* A reader that goes to a segment in remote storage by itself (KIP-1248). */
typedef struct silt_direct_request {
    uint32_t struct_size;
    uint32_t aborted_capacity;
    int64_t start_offset;      /* the segment's first offset */
    int64_t end_offset;        /* its last offset, inclusive */
    uint64_t log_size_bytes;
    const void *offset_index;  /* the bytes of the part */
    uint64_t offset_index_size_bytes;
    const void *transaction_index; /* NULL for readers of uncommitted data */
    uint64_t transaction_index_size_bytes;
    int64_t offset;            /* where it begins to read */
    int64_t limit_offset;      /* it may see what is before: high watermark or last stable offset */
    uint64_t max_bytes;        /* so many are enough; at least one place of the index is passed */
    silt_aborted_t *aborted;
} silt_direct_request_t;

#define SILT_DIRECT_REQUEST_INIT \
    { SILT_SIZE_OF(silt_direct_request_t), 0, 0, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, NULL }

enum {
    SILT_DIRECT_ABORTED_GO_ON = 1 /* the next segments may have aborted transactions of the range */
};

typedef struct silt_direct_read {
    uint32_t struct_size;
    uint32_t flags;             /* SILT_DIRECT_ */
    uint64_t position;          /* of the segment's log */
    uint64_t size_bytes;        /* 0: there is nothing to be seen */
    int64_t upper_bound_offset; /* no record of the range reaches it; -1 without a range */
    int64_t next_offset;        /* where to go on behind the segment; -1 without a range */
    uint32_t aborted_count;     /* how many there are, also beyond the capacity */
    uint32_t reserved;
} silt_direct_read_t;

#define SILT_DIRECT_READ_INIT { SILT_SIZE_OF(silt_direct_read_t), 0, 0, 0, -1, -1, 0, 0 }

/*
 * Which bytes of a remote segment hold the records from `offset` on: whole batches, of which the
 * first ones may end before it. A damaged index gives a range that is too large. In a compacted log
 * all batches of the range may end before it: the reader goes on at next_offset then.
 * A reader of committed data gives the bytes of the transaction index, and of a segment that has
 * none any pointer but NULL with a size of 0: what the range holds may still be aborted in the next
 * segments, which SILT_DIRECT_ABORTED_GO_ON says. With NULL nothing of transactions is told.
 * SILT_E_SHORT_BUFFER: the range is good, but not all of its aborted transactions fitted.
 * Errors: SILT_E_OUT_OF_RANGE for an offset that is none of the segment, SILT_E_UNSUPPORTED for a
 * transaction index of a version that Kafka refuses.
 */
SILT_API silt_status_t silt_tier_direct_read(const silt_direct_request_t *request,
                                             silt_direct_read_t *out, silt_error_t *err);

/* Kinds of records of __remote_log_metadata. */
enum {
    SILT_REMOTE_SEGMENT = 0,
    SILT_REMOTE_UPDATE = 1,           /* another state of a segment */
    SILT_REMOTE_PARTITION_DELETE = 2,
    SILT_REMOTE_SNAPSHOT = 3          /* a segment in the file that a broker keeps of a partition */
};

/* States of a segment; of a partition that is deleted 0 is marked, 1 started, 2 finished. */
enum {
    SILT_REMOTE_COPY_STARTED = 0,
    SILT_REMOTE_COPY_FINISHED = 1,
    SILT_REMOTE_DELETE_STARTED = 2,
    SILT_REMOTE_DELETE_FINISHED = 3
};

enum {
    SILT_REMOTE_TXN_INDEX_EMPTY = 1 /* it is known to have no aborted transaction */
};

/*
 * What is said of a segment in remote storage. The three arrays are the caller's: where the library
 * writes a record it fills them as far as their capacities go, says in the sizes what is needed, and
 * answers SILT_E_SHORT_BUFFER when one was too small. Where it reads a record, capacities do not
 * count. Which fields a kind does not have, is 0 or empty.
 */
typedef struct silt_remote_record {
    uint32_t struct_size;
    uint32_t kind;               /* SILT_REMOTE_SEGMENT ... */
    int32_t state;               /* SILT_REMOTE_COPY_STARTED ... */
    int32_t partition;
    int32_t broker_id;
    int32_t size_bytes;          /* of the log */
    int64_t start_offset;
    int64_t end_offset;          /* inclusive */
    int64_t max_timestamp_ms;
    int64_t event_timestamp_ms;
    uint8_t topic_id[16];
    uint8_t segment_id[16];      /* another for each attempt to upload it */
    uint32_t flags;              /* SILT_REMOTE_TXN_INDEX_EMPTY */
    uint32_t epoch_count;
    silt_epoch_t *epochs;        /* rising; the first begins at start_offset */
    char *topic;                 /* UTF-8, without a NUL */
    uint8_t *custom;             /* what the object store wants to be told again */
    uint32_t topic_size_bytes;
    int32_t custom_size_bytes;   /* -1: there is none */
    uint32_t epoch_capacity;
    uint32_t topic_capacity;
    uint32_t custom_capacity;
    uint32_t reserved;
} silt_remote_record_t;

#define SILT_REMOTE_RECORD_INIT \
    { SILT_SIZE_OF(silt_remote_record_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, NULL, \
      NULL, NULL, 0, -1, 0, 0, 0, 0 }

/*
 * Makes the value of a record, byte for byte as Kafka writes it. *size_bytes gets its size, also
 * with SILT_E_SHORT_BUFFER. SILT_E_INVALID_ARGUMENT for what Kafka would refuse.
 */
SILT_API silt_status_t silt_remote_record_encode(const silt_remote_record_t *record, void *bytes,
                                                 uint64_t capacity, uint64_t *size_bytes,
                                                 silt_error_t *err);

/*
 * Reads the value of a record. Errors: SILT_E_CORRUPT; SILT_E_UNSUPPORTED for a newer kind or
 * version; SILT_E_SHORT_BUFFER, with all but the arrays written.
 */
SILT_API silt_status_t silt_remote_record_decode(const void *bytes, uint64_t size_bytes,
                                                 silt_remote_record_t *record, silt_error_t *err);

/* Which of the partitions of __remote_log_metadata has the records of a partition; 0 for no id. */
SILT_API uint32_t silt_remote_metadata_partition(const uint8_t *topic_id, int32_t partition,
                                                 uint32_t partition_count);

/* The parts of one upload. Its files stay open, through deletion and close of the log, until it is
 * closed. */
typedef struct silt_upload silt_upload_t;

enum {
    SILT_UPLOAD_REBUILD_SNAPSHOT = 1 /* make a producer snapshot that is missing; Kafka does not */
};

typedef struct silt_upload_options {
    uint32_t struct_size;
    uint32_t flags;         /* SILT_UPLOAD_ */
    int64_t now_ms;
    uint8_t topic_id[16];   /* all 0: the log's own */
    uint8_t segment_id[16]; /* all 0: a new one */
    int32_t broker_id;
    uint32_t reserved;
} silt_upload_options_t;

#define SILT_UPLOAD_OPTIONS_INIT { SILT_SIZE_OF(silt_upload_options_t), 0, 0, { 0 }, { 0 }, 0, 0 }

/*
 * Gathers what is uploaded of the segment from `base_offset` to `next_offset`, the base offset of
 * the segment behind it, and reads its indexes: none that is damaged is uploaded.
 * Errors: SILT_E_NOT_FOUND for a segment or a snapshot that is not there; SILT_E_CONFLICT for one
 * that is written to, ends elsewhere, is not stable yet or has no leader epoch; SILT_E_CORRUPT for
 * an index; SILT_E_INVALID_ARGUMENT where no topic id is known.
 */
SILT_API silt_status_t silt_tier_manifest(const silt_log_t *log, int64_t base_offset,
                                          int64_t next_offset,
                                          const silt_upload_options_t *options,
                                          silt_upload_t **upload, silt_error_t *err);

/* The parts, in the order in which they are uploaded. */
enum {
    SILT_PART_LOG = 0,
    SILT_PART_OFFSET_INDEX = 1,
    SILT_PART_TIME_INDEX = 2,
    SILT_PART_TRANSACTION_INDEX = 3, /* only where a transaction was aborted */
    SILT_PART_PRODUCER_SNAPSHOT = 4,
    SILT_PART_LEADER_EPOCHS = 5
};

/* One part: bytes of an open file, or bytes in memory. Both live as long as the upload. */
typedef struct silt_part {
    uint32_t part;      /* SILT_PART_ */
    int32_t fd;         /* -1: the bytes are in memory */
    uint64_t position;
    uint64_t size_bytes;
    const void *bytes;  /* NULL: they are in the file */
} silt_part_t;

/* The parts; there are at most 6. */
SILT_API silt_status_t silt_upload_parts(const silt_upload_t *upload, silt_part_t *out,
                                         uint32_t capacity, uint32_t *count, silt_error_t *err);

/* What is to be said of the segment before it is uploaded: SILT_REMOTE_COPY_STARTED. */
SILT_API silt_status_t silt_upload_segment(const silt_upload_t *upload, silt_remote_record_t *out,
                                           silt_error_t *err);

/* 1 when the log was not cut since: to be asked when the parts were read. 0 for no upload. */
SILT_API int32_t silt_upload_is_intact(const silt_upload_t *upload);

/* Gives it back. NULL is fine. */
SILT_API void silt_upload_close(silt_upload_t *upload);

enum {
    SILT_REBUILD_RETRYABLE = 1 /* it may be otherwise the next time */
};

/* A replica to be rebuilt behind a segment in remote storage. */
typedef struct silt_rebuild {
    const silt_log_t *log;               /* an open log, or NULL */
    const char *dir;                     /* the directory of one that nobody has open, or NULL */
    const silt_remote_record_t *segment; /* a SILT_REMOTE_SEGMENT whose copy is finished */
    int64_t log_start_offset;            /* of the leader */
    /* What came of it. */
    int64_t next_offset;                 /* to be fetched; -1 when it failed */
    int64_t first_open_offset;           /* of the oldest open transaction; -1 for none */
    uint64_t bytes_read;
    uint32_t producer_count;
    uint32_t flags;                      /* SILT_REBUILD_ */
} silt_rebuild_t;

typedef struct silt_rebuild_options {
    uint32_t struct_size;
    uint32_t threads;          /* at most 1024, for this call alone; 0 and 1: the caller's own */
    const char *store_dir;     /* the folder that stands for the object store */
    const char *prefix;        /* of all names; NULL: that of Kafka's LocalTieredStorage */
    uint64_t held_bytes_max;   /* of objects at once; 0: 256 MiB */
    uint64_t object_bytes_max; /* of one object; 0: 64 MiB */
    int64_t now_ms;
    uint32_t partitions_max;   /* made durable together; 0: 4,096 */
    uint32_t io;               /* SILT_IO_ */
} silt_rebuild_options_t;

#define SILT_REBUILD_OPTIONS_INIT \
    { SILT_SIZE_OF(silt_rebuild_options_t), 0, NULL, NULL, 0, 0, 0, 0, 0 }

/*
 * Builds leader epochs and producers of many replicas from remote storage, and empties their logs,
 * which go on at next_offset: durable when it returns. Each item has its own status in status[i],
 * which is written unless the call itself fails; one that fails is what it was.
 * SILT_E_NOT_FOUND: the segment is none to begin behind, or an object is not there. SILT_E_CORRUPT:
 * an object is not what it must be. SILT_E_CONFLICT: the log is named twice, or somebody is at it.
 * Whoever gives directories holds the locks of the log directories around them.
 */
SILT_API silt_status_t silt_tier_rebuild(silt_rebuild_t *items, uint32_t count,
                                         const silt_rebuild_options_t *options,
                                         silt_status_t *status, silt_error_t *err);

/* ---- Replicas: rules alone -------------------------------------------------------------------------- */

/*
 * These functions decide and do nothing: numbers in, a decision out. The host sends the requests,
 * changes the log and keeps the state. They may be called from any thread.
 */

enum {
    SILT_REPLICA_REMOTE_STORAGE = 1, /* the topic has remote storage */
    SILT_REPLICA_COMPACTED = 2,      /* the topic is compacted */
    SILT_REPLICA_STARTS_AT_TIERED = 4 /* follower.fetch.last.tiered.offset.enable */
};

/*
 * A log as its leader or follower knows it. Where `log` is given, its epochs, its six offsets and
 * whether it has remote storage are the log's own, and what stands in the struct does not count.
 */
typedef struct silt_bounds {
    uint32_t struct_size;
    uint32_t flags;              /* SILT_REPLICA_ */
    const silt_log_t *log;       /* or NULL */
    const silt_epoch_t *epochs;  /* the leader epochs, rising */
    uint32_t epoch_count;
    int32_t leader_epoch;        /* of a leader: its own */
    int64_t log_start_offset;
    int64_t local_log_start_offset;
    int64_t log_end_offset;
    int64_t high_watermark;
    int64_t last_stable_offset;
    int64_t highest_remote_offset; /* -1 for none */
    int64_t leader_epoch_start_offset; /* of a leader: where its epoch began */
} silt_bounds_t;

#define SILT_BOUNDS_INIT \
    { SILT_SIZE_OF(silt_bounds_t), 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, -1, 0 }

enum {
    SILT_FETCH_STATE_THERE = 1,      /* without it there is no state, and nothing else counts */
    SILT_FETCH_STATE_TRUNCATING = 2, /* it compares its log with the leader's; else it fetches */
    SILT_FETCH_STATE_DELAYED = 4,    /* it waits before it tries again */
    SILT_FETCH_STATE_TIERED_START_FAILED = 8 /* the next start is the leader's local log start */
};

/* How far a follower is. The host keeps it from one step to the next. */
typedef struct silt_fetch_state {
    int64_t fetch_offset;
    int64_t lag;                /* records behind the leader; -1: not known */
    int32_t leader_epoch;
    int32_t last_fetched_epoch; /* -1 for none */
    uint32_t flags;             /* SILT_FETCH_STATE_ */
    uint32_t reserved;
} silt_fetch_state_t;

/* What a follower may have to ask its leader: bits, so that they say which answers are known. */
enum {
    SILT_QUERY_LATEST = 1,                 /* ListOffsets -1 */
    SILT_QUERY_EARLIEST = 2,               /* ListOffsets -2 */
    SILT_QUERY_EARLIEST_LOCAL = 4,         /* ListOffsets -4 */
    SILT_QUERY_EARLIEST_PENDING_UPLOAD = 8,/* ListOffsets -6 */
    SILT_QUERY_LATEST_TIERED = 16,         /* ListOffsets -5 */
    SILT_QUERY_EPOCH_END = 32              /* OffsetForLeaderEpoch */
};

/* What the leader has answered so far; all of it is to be forgotten when a step is over. Offsets and
 * epochs are -1 where the leader said so. */
typedef struct silt_leader_answers {
    int64_t latest;
    int64_t earliest;
    int64_t earliest_local;
    int64_t earliest_pending_upload;
    int64_t latest_tiered;
    int64_t epoch_end_offset;
    int32_t earliest_local_epoch;
    int32_t earliest_pending_upload_epoch;
    int32_t latest_tiered_epoch;
    int32_t epoch_asked;        /* of SILT_QUERY_EPOCH_END: the epoch that was asked for, */
    int32_t epoch_found;        /* and the greatest one not above it that the leader knows */
    uint32_t known;             /* SILT_QUERY_ */
} silt_leader_answers_t;

/* What has happened to a follower, and which fields tell more. */
enum {
    SILT_EVENT_NEW_LEADER = 0,   /* leader_epoch; fetch_offset: where to begin, INT64_MIN: by the log */
    SILT_EVENT_RESPONSE = 1,     /* fetch_offset and leader_epoch of the request; answer; known */
    SILT_EVENT_APPENDED = 2,     /* high_watermark and log_start_offset of the response */
    SILT_EVENT_LOG_FAILED = 3,   /* failure: SILT_FAILURE_STORAGE or _INVALID_RECORDS */
    SILT_EVENT_EPOCH_END = 4,    /* leader_epoch of the query; epoch, end_offset; known */
    SILT_EVENT_QUERY_FAILED = 5, /* leader_epoch of the query; failure: _FENCED or 0 */
    SILT_EVENT_AUX_INSTALLED = 6, /* log_end_offset: leader_log_end_offset of the action */
    SILT_EVENT_AUX_FAILED = 7,   /* failure: any but _INVALID_RECORDS */
    SILT_EVENT_DELAY_OVER = 8
};

enum {
    SILT_ANSWER_RECORDS = 0,   /* high_watermark and log_start_offset of the response */
    SILT_ANSWER_DIVERGING = 1, /* epoch and end_offset of the response */
    SILT_ANSWER_ERROR = 2      /* error_code: a number of the protocol */
};

enum {
    SILT_FAILURE_STORAGE = 0,
    SILT_FAILURE_INVALID_RECORDS = 1,
    SILT_FAILURE_REMOTE_NOT_READY = 2,
    SILT_FAILURE_SEGMENT_NOT_FOUND = 3,
    SILT_FAILURE_FENCED = 4 /* FENCED_LEADER_EPOCH */
};

typedef struct silt_follower_event {
    uint32_t struct_size;
    uint32_t kind; /* SILT_EVENT_ */
    int64_t fetch_offset;
    int64_t high_watermark;
    int64_t log_start_offset;
    int64_t log_end_offset;
    int64_t end_offset;
    int32_t leader_epoch;
    int32_t epoch;
    uint32_t answer; /* SILT_ANSWER_ */
    int32_t error_code;
    uint32_t failure; /* SILT_FAILURE_ */
    uint32_t reserved;
    silt_leader_answers_t known;
} silt_follower_event_t;

#define SILT_FOLLOWER_EVENT_INIT \
    { SILT_SIZE_OF(silt_follower_event_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } }

/* What the host is to do, and which fields tell more. */
enum {
    SILT_ACTION_IGNORE = 0,
    SILT_ACTION_ADOPT = 1,     /* keep `state` */
    SILT_ACTION_APPEND = 2,    /* batches up to `epoch`, then SILT_EVENT_APPENDED */
    SILT_ACTION_ADVANCE = 3,   /* set high_watermark, raise the log start, keep `state` */
    SILT_ACTION_TRUNCATE = 4,  /* cut the log at `offset`, keep `state`, which may be delayed:
                                * SILT_EVENT_DELAY_OVER after a while, as for SILT_ACTION_DELAY */
    SILT_ACTION_RESTART = 5,   /* drop everything, begin at `offset`, keep `state` */
    SILT_ACTION_ASK = 6,       /* the leader `query` (`epoch`), then the same event again */
    SILT_ACTION_BUILD_AUX = 7, /* from the remote segment with previous_offset in `epoch`, for a
                                * start at `offset`, with log_start_offset */
    SILT_ACTION_DELAY = 8,     /* keep `state`, SILT_EVENT_DELAY_OVER after a while; `reason` */
    SILT_ACTION_FAIL = 9       /* drop the state until there is a new leader; `reason` */
};

enum {
    SILT_REASON_ANSWER = 1, /* error_code */
    SILT_REASON_OFFSET_NOT_AVAILABLE = 2,
    SILT_REASON_OLD_LEADER_EPOCH = 3,
    SILT_REASON_QUERY_FAILED = 4,
    SILT_REASON_INVALID_RECORDS = 5,
    SILT_REASON_REMOTE_STORAGE_OFF = 6,
    SILT_REASON_REMOTE_NOT_READY = 7,
    SILT_REASON_SEGMENT_NOT_FOUND = 8,
    SILT_REASON_REMOTE_STORAGE = 9,
    SILT_REASON_STORAGE = 10,
    SILT_REASON_FENCED = 11
};

typedef struct silt_follower_action {
    uint32_t struct_size;
    uint32_t kind; /* SILT_ACTION_ */
    silt_fetch_state_t state;
    int64_t offset;
    int64_t high_watermark;
    int64_t log_start_offset;
    int64_t leader_log_end_offset; /* for SILT_EVENT_AUX_INSTALLED */
    int64_t previous_offset;
    int32_t epoch;
    uint32_t query;  /* SILT_QUERY_ */
    uint32_t reason; /* SILT_REASON_ */
    int32_t error_code;
} silt_follower_action_t;

#define SILT_FOLLOWER_ACTION_INIT \
    { SILT_SIZE_OF(silt_follower_action_t), 0, { -1, -1, -1, -1, 0, 0 }, -1, -1, -1, -1, -1, -1, \
      0, 0, 0 }

/*
 * What a follower does about an event (KIP-405, KIP-1023). `state` is what the action before had, or
 * NULL when there is none. Any numbers give an action.
 */
SILT_API silt_status_t silt_follower_step(const silt_bounds_t *follower,
                                          const silt_fetch_state_t *state,
                                          const silt_follower_event_t *event,
                                          silt_follower_action_t *out, silt_error_t *err);

enum {
    SILT_VERDICT_SERVE = 0,       /* from the local disk: high_watermark, log_start_offset */
    SILT_VERDICT_READ_REMOTE = 1, /* from remote storage, for a consumer */
    SILT_VERDICT_DIVERGING = 2,   /* no records: epoch, end_offset */
    SILT_VERDICT_REFUSE = 3,      /* error_code */
    SILT_VERDICT_MOVED = 4        /* OFFSET_MOVED_TO_TIERED_STORAGE, with three offsets */
};

typedef struct silt_fetch_verdict {
    uint32_t struct_size;
    uint32_t kind; /* SILT_VERDICT_ */
    int64_t high_watermark;
    int64_t log_start_offset;
    int64_t log_end_offset;
    int64_t end_offset;
    int32_t epoch;
    int32_t error_code; /* of the protocol */
} silt_fetch_verdict_t;

#define SILT_FETCH_VERDICT_INIT { SILT_SIZE_OF(silt_fetch_verdict_t), 0, -1, -1, -1, -1, -1, 0 }

/* What a leader answers to a fetch before it looks at a record. Epochs that the request does not say
 * are -1. */
SILT_API silt_status_t silt_leader_fetch(const silt_bounds_t *leader, uint8_t is_follower,
                                         int64_t fetch_offset, int32_t leader_epoch,
                                         int32_t last_fetched_epoch, silt_fetch_verdict_t *out,
                                         silt_error_t *err);

/*
 * What a leader answers to ListOffsets of this version, for a timestamp or a special one (-1 to -6).
 * `found` is what log and remote storage have for a timestamp from 0 on and for the largest one (-3),
 * or NULL. *error_code gets 0 or an error of the protocol; an offset of -1 says that there is none.
 */
SILT_API silt_status_t silt_leader_offset(const silt_bounds_t *leader, int64_t timestamp,
                                          int16_t version, uint32_t up_to,
                                          const silt_time_offset_t *found, silt_time_offset_t *out,
                                          int32_t *error_code, silt_error_t *err);

enum {
    SILT_BROKER_FENCED = 1,
    SILT_BROKER_SHUTTING_DOWN = 2
};

/* What a leader remembers of a follower, and what metadata says of its broker. */
typedef struct silt_progress {
    int64_t log_start_offset;    /* -1 until it fetches */
    int64_t log_end_offset;      /* -1 until it fetches */
    int64_t last_caught_up_ms;
    int64_t last_fetch_ms;
    int64_t leader_end_at_fetch; /* -1 until it fetches */
    int64_t broker_epoch;        /* of its last fetch; -1: it said none, INT64_MIN: no fetch yet */
    int64_t registered_epoch;    /* of its broker; -1: it is not registered */
    int32_t replica;
    uint32_t flags;              /* SILT_BROKER_ */
} silt_progress_t;

/* Takes note of a follower's fetch, at the leader's log end of that moment. SILT_E_CONFLICT for one
 * of an earlier life of the broker: NOT_LEADER_OR_FOLLOWER. */
SILT_API silt_status_t silt_progress_record(silt_progress_t *follower, int64_t offset,
                                            int64_t log_start_offset, int64_t broker_epoch,
                                            int64_t leader_log_end_offset, int64_t now_ms,
                                            silt_error_t *err);

enum {
    SILT_ISR_NO_CHANGE = 0,
    SILT_ISR_EXPAND = 1, /* the one replica of `changed` is to be added */
    SILT_ISR_SHRINK = 2  /* those of `changed` are to be removed */
};

/* A partition as its leader knows it. */
typedef struct silt_isr {
    uint32_t struct_size;
    uint32_t change;               /* SILT_ISR_: what was sent to the controller and not answered */
    const int32_t *committed;      /* who is in sync, by the controller */
    const int32_t *changed;
    uint32_t committed_count;
    uint32_t changed_count;
    int32_t partition_epoch;
    int32_t min_insync_replicas;
    uint32_t replica_count;        /* of the assignment, the leader among them */
    uint32_t reserved;
    int64_t log_end_offset;
    int64_t high_watermark;
    int64_t leader_epoch_start_offset;
    int64_t now_ms;
    int64_t lag_max_ms;            /* replica.lag.time.max.ms */
} silt_isr_t;

#define SILT_ISR_INIT \
    { SILT_SIZE_OF(silt_isr_t), 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

enum {
    SILT_WATERMARK_HELD = 0,         /* by the follower held_by; -1: there is nothing new */
    SILT_WATERMARK_ADVANCE = 1,
    SILT_WATERMARK_UNDER_MIN_ISR = 2 /* it stays while too few are in sync (KIP-966) */
};

typedef struct silt_watermark {
    uint32_t struct_size;
    uint32_t kind; /* SILT_WATERMARK_ */
    int64_t high_watermark;
    int32_t held_by; /* a replica; -1 for none */
    uint32_t reserved;
} silt_watermark_t;

#define SILT_WATERMARK_INIT { SILT_SIZE_OF(silt_watermark_t), 0, -1, -1, 0 }

/* Whether more is committed. `followers` are all replicas but the leader. */
SILT_API silt_status_t silt_isr_watermark(const silt_isr_t *isr, const silt_progress_t *followers,
                                          uint32_t count, silt_watermark_t *out,
                                          silt_error_t *err);

enum {
    SILT_FOLLOWER_MEMBER = 0,
    SILT_FOLLOWER_JOINS = 1,       /* it may be added */
    SILT_FOLLOWER_IN_FLIGHT = 2,   /* not while another change is */
    SILT_FOLLOWER_NOT_ELIGIBLE = 3, /* by the state of its broker */
    SILT_FOLLOWER_BEHIND = 4,
    SILT_FOLLOWER_LEAVES = 5       /* a member that has fallen behind */
};

/* Who may join the replicas in sync and who must leave: SILT_FOLLOWER_ for each follower. */
SILT_API silt_status_t silt_isr_verdicts(const silt_isr_t *isr, const silt_progress_t *followers,
                                         uint32_t count, uint8_t *verdicts, silt_error_t *err);

enum {
    SILT_ALTER_COMMITTED = 0, /* the answer's set and epoch are the committed ones now */
    SILT_ALTER_REVERTED = 1,  /* the change is off */
    SILT_ALTER_WAITING = 2,   /* until metadata says more */
    SILT_ALTER_RETRY = 3,     /* the same request is to be sent again */
    SILT_ALTER_IGNORED = 4
};

/* What the controller's answer to the change means: AlterPartition with this error code, or 0 and
 * the epochs of the answer. *outcome gets SILT_ALTER_. isr is as it is now; the answer to a request
 * of another partition epoch than its is to be dropped, though it asked for the same change. */
SILT_API silt_status_t silt_isr_answered(const silt_isr_t *isr, int32_t leader_epoch,
                                         int32_t error_code, int32_t answered_leader_epoch,
                                         int32_t answered_partition_epoch, uint32_t *outcome,
                                         silt_error_t *err);

enum {
    SILT_ACKS_DONE = 0,             /* or: nothing speaks against the append */
    SILT_ACKS_WAIT = 1,
    SILT_ACKS_REFUSE = 2,           /* NOT_ENOUGH_REPLICAS */
    SILT_ACKS_UNDER_REPLICATED = 3  /* NOT_ENOUGH_REPLICAS_AFTER_APPEND */
};

/* What a producer with these acks is told when its last record lies before `required_offset`;
 * INT64_MIN asks whether it may append at all. *verdict gets SILT_ACKS_. */
SILT_API silt_status_t silt_isr_acks(const silt_isr_t *isr, int16_t acks, int64_t required_offset,
                                     uint32_t *verdict, silt_error_t *err);

enum {
    SILT_PARTITION_RECOVERING = 1 /* the leader recovers from an unclean election */
};

/* A partition as the controller keeps it. Where the library writes one, each of its arrays has room
 * for `capacity` replicas; where it reads one, capacity does not count. */
typedef struct silt_partition {
    uint32_t struct_size;
    uint32_t flags;          /* SILT_PARTITION_RECOVERING */
    int32_t *replicas;       /* the preferred leader first */
    int32_t *isr;
    int32_t *elr;            /* eligible leader replicas */
    int32_t *last_known_elr;
    int32_t *adding;         /* by a reassignment */
    int32_t *removing;
    uint32_t replica_count;
    uint32_t isr_count;
    uint32_t elr_count;
    uint32_t last_known_elr_count;
    uint32_t adding_count;
    uint32_t removing_count;
    uint32_t capacity;
    int32_t leader;          /* -1 for none */
    int32_t leader_epoch;
    int32_t partition_epoch;
} silt_partition_t;

#define SILT_PARTITION_INIT \
    { SILT_SIZE_OF(silt_partition_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, \
      -1, 0, 0 }

enum {
    SILT_PARTITION_CHANGE = 0,              /* target_isr, unclean, recovering */
    SILT_PARTITION_BROKER_FENCED = 1,       /* broker; also when it shuts down */
    SILT_PARTITION_BROKER_UNFENCED = 2,
    SILT_PARTITION_BROKER_UNREGISTERED = 3,
    SILT_PARTITION_BROKER_RESTARTED = 4,    /* after a clean stop */
    SILT_PARTITION_BROKER_LOST_DATA = 5,    /* it restarted after an unclean stop */
    SILT_PARTITION_ELECT = 6,               /* ElectLeaders */
    SILT_PARTITION_CLEAR_ELR = 7            /* min.insync.replicas has changed */
};

enum {
    SILT_PARTITION_EVENT_NO_ELR = 1,         /* eligible.leader.replicas.version is 0 */
    SILT_PARTITION_EVENT_NO_LAST_KNOWN = 2,  /* the last known leader may not lead again */
    SILT_PARTITION_EVENT_BUMP_ON_SHRINK = 4, /* metadata versions before 3.6 */
    SILT_PARTITION_EVENT_TARGET_ISR = 8      /* target_isr counts */
};

enum {
    SILT_ELECTION_ONLINE = 0,
    SILT_ELECTION_PREFERRED = 1,
    SILT_ELECTION_UNCLEAN = 2
};

typedef struct silt_partition_event {
    uint32_t struct_size;
    uint32_t kind;     /* SILT_PARTITION_CHANGE ... */
    uint32_t flags;    /* SILT_PARTITION_EVENT_ */
    uint32_t election; /* SILT_ELECTION_ */
    int32_t broker;
    int32_t min_insync_replicas;
    const int32_t *target_isr;
    const int32_t *unclean;   /* replicas that have lost data */
    const int32_t *available; /* brokers that may lead */
    uint32_t target_isr_count;
    uint32_t unclean_count;
    uint32_t available_count;
    int32_t recovering;       /* what the leader says: 0, 1, or -1 for nothing */
} silt_partition_event_t;

#define SILT_PARTITION_EVENT_INIT \
    { SILT_SIZE_OF(silt_partition_event_t), 0, 0, 0, -1, 1, NULL, NULL, NULL, 0, 0, 0, -1 }

/*
 * What becomes of a partition (KIP-966). *outcome gets -1 when it changed, 0 when it did not, and the
 * protocol's error when an election was refused; *out is the partition after it in any case, and its
 * arrays may be those of `partition`. SILT_E_SHORT_BUFFER: the counts are right, the arrays are cut.
 */
SILT_API silt_status_t silt_partition_step(const silt_partition_t *partition,
                                           const silt_partition_event_t *event,
                                           silt_partition_t *out, int32_t *outcome,
                                           silt_error_t *err);

/* ---- Log directories at rest -------------------------------------------------------------------------- */

/*
 * Log directories that no broker has open. What the last verification or recovery has found stays in
 * the object and is read by silt_dir_problems, _recoveries and _plan. While one of these works, a
 * second one on the same object, from another thread or from the progress function, gets
 * SILT_E_CONFLICT.
 */
typedef struct silt_dir silt_dir_t;

typedef struct silt_dir_options {
    uint32_t struct_size;
    uint32_t io; /* SILT_IO_ */
} silt_dir_options_t;

#define SILT_DIR_OPTIONS_INIT { SILT_SIZE_OF(silt_dir_options_t), 0 }

/* Opens the directories of a broker's log.dirs. Nothing is locked or written. NULL options: the
 * defaults. SILT_E_IO or SILT_E_NOT_FOUND for one that cannot be listed. */
SILT_API silt_status_t silt_dir_open(const char *const *paths, uint32_t count,
                                     const silt_dir_options_t *options, silt_dir_t **dir,
                                     silt_error_t *err);

/* Gives the object back. NULL is fine. */
SILT_API void silt_dir_close(silt_dir_t *dir);

enum {
    SILT_PARTITION_DIR_CLEAN = 1,  /* its log directory was stopped cleanly */
    SILT_PARTITION_DIR_LOCKED = 2, /* a broker is running on its log directory */
    SILT_PARTITION_DIR_FUTURE = 4  /* a copy that is to replace the partition of another directory */
};

/* A partition that a broker would load. */
typedef struct silt_partition_dir {
    uint32_t dir;             /* the number of its log directory */
    int32_t partition;
    uint32_t flags;           /* SILT_PARTITION_DIR_ */
    uint32_t reserved;
    int64_t log_start_offset; /* by the checkpoint; -1 where it says none */
    uint64_t log_size_bytes;
    char topic[256];
} silt_partition_dir_t;

/* The partitions, by directory and name, as they are now. */
SILT_API silt_status_t silt_dir_scan(const silt_dir_t *dir, silt_partition_dir_t *out,
                                     uint32_t capacity, uint32_t *count, silt_error_t *err);

enum {
    SILT_SEVERITY_NOTICE = 0,
    SILT_SEVERITY_REPAIRABLE = 1, /* a derived file is wrong and can be made anew */
    SILT_SEVERITY_CORRUPT = 2,    /* bytes of the log itself are wrong */
    SILT_SEVERITY_REFUSED = 3     /* nothing can be said */
};

#define SILT_NO_PARTITION UINT32_MAX

typedef struct silt_problem {
    uint32_t dir;      /* the number of the log directory */
    uint32_t number;   /* of the partition, as silt_dir_scan or silt_dir_recoveries counts them;
                        * SILT_NO_PARTITION: the directory itself */
    uint32_t severity; /* SILT_SEVERITY_ */
    uint32_t reserved;
    int64_t position;  /* -1 where it has none */
    int64_t offset;    /* -1 where it has none */
    char code[32];     /* as the command line prints it, such as "torn_batch" */
    char file[128];
    char detail[256];  /* a sentence, cut where it is too long */
} silt_problem_t;

/* What the last verification or recovery has found. */
SILT_API silt_status_t silt_dir_problems(const silt_dir_t *dir, silt_problem_t *out,
                                         uint32_t capacity, uint32_t *count, silt_error_t *err);

enum {
    SILT_VERIFY_BATCHES = 1 /* look at headers and checksums, and not at every record */
};

typedef struct silt_verify_options {
    uint32_t struct_size;
    uint32_t flags;   /* SILT_VERIFY_ */
    int64_t now_ms;   /* 0: no timestamp lies in the future */
    uint32_t threads; /* 0: 1; at most 1024 */
    uint32_t reserved;
} silt_verify_options_t;

#define SILT_VERIFY_OPTIONS_INIT { SILT_SIZE_OF(silt_verify_options_t), 0, 0, 0, 0 }

/* Reads everything and writes nothing. What is wrong is no error: *problem_count, which may be NULL,
 * gets how much there is. `progress` may be NULL. */
SILT_API silt_status_t silt_dir_verify(const silt_dir_t *dir, const silt_verify_options_t *options,
                                       silt_progress_fn progress, void *ctx,
                                       uint32_t *problem_count, silt_error_t *err);

enum {
    SILT_TOPIC_REMOTE_STORAGE = 1 /* the log may start before its first local segment */
};

/* What recovery must know of a topic. */
typedef struct silt_topic_settings {
    const char *topic;             /* NULL: all that are not named */
    uint32_t index_interval_bytes; /* 0: Kafka's default */
    uint32_t index_size_bytes_max; /* 0: Kafka's default */
    uint32_t flags;                /* SILT_TOPIC_ */
    uint32_t reserved;
} silt_topic_settings_t;

enum {
    SILT_RECOVER_REPAIR = 1,       /* do it; without this it is only planned */
    SILT_RECOVER_ALL = 2,          /* read every batch */
    SILT_RECOVER_ALLOW_LOSS = 4,   /* whole batches behind damage may be cut away */
    SILT_RECOVER_DISCARD_LOST = 8, /* what is cut is not kept in .log.lost files */
    SILT_RECOVER_TAKE_FOR_CLEAN = 16
};

typedef struct silt_recover_options {
    uint32_t struct_size;
    uint32_t flags; /* SILT_RECOVER_ */
    int64_t now_ms;
    const char *quarantine; /* where refused partitions are moved; NULL: they stay */
    const silt_topic_settings_t *topics;
    uint32_t topic_count;
    uint32_t threads; /* 0: 1; at most 1024 */
    int64_t producer_expiration_ms; /* 0: a day */
} silt_recover_options_t;

#define SILT_RECOVER_OPTIONS_INIT \
    { SILT_SIZE_OF(silt_recover_options_t), 0, 0, NULL, NULL, 0, 0, 0 }

/*
 * Finds what must be done so that a broker can start on directories that were not stopped cleanly,
 * and with SILT_RECOVER_REPAIR does it. What comes of a partition is no error and stops no other.
 * Errors: SILT_E_CONFLICT when a broker holds a directory that is to be repaired; SILT_E_CANCELLED:
 * what was done until then is told, and is done.
 */
SILT_API silt_status_t silt_dir_recover(const silt_dir_t *dir,
                                        const silt_recover_options_t *options,
                                        silt_progress_fn progress, void *ctx, silt_error_t *err);

/* The same without a function: each call does one log directory, and *dirs_left, which may be NULL,
 * says how many are left. 0: the next call begins anew. A step that fails tells nothing; the next
 * call does its directory again. */
SILT_API silt_status_t silt_dir_recover_step(const silt_dir_t *dir,
                                             const silt_recover_options_t *options,
                                             uint32_t *dirs_left, silt_error_t *err);

enum {
    SILT_RECOVERY_SOUND = 0,       /* it is fit to start, or would be */
    SILT_RECOVERY_REFUSED = 1,     /* it was left as it is: see reason */
    SILT_RECOVERY_QUARANTINED = 2, /* it was refused and moved */
    SILT_RECOVERY_FAILED = 3       /* it could not be read or written: see status */
};

typedef struct silt_recovery {
    uint32_t dir;
    int32_t partition;      /* -1: the folder is none of a partition */
    uint32_t outcome;       /* SILT_RECOVERY_ */
    silt_status_t status;
    int64_t log_start_offset;
    int64_t log_end_offset; /* as they will be */
    int64_t last_stable_offset;
    int64_t cut_offset;     /* the first offset that goes; -1: none */
    uint64_t cut_bytes;
    uint64_t bytes_read;
    uint32_t step_count;
    uint32_t problem_count;
    char topic[256];
    char reason[256];
} silt_recovery_t;

/* What came of each partition, by directory and name. */
SILT_API silt_status_t silt_dir_recoveries(const silt_dir_t *dir, silt_recovery_t *out,
                                           uint32_t capacity, uint32_t *count, silt_error_t *err);

enum {
    SILT_STEP_REMOVE = 0,  /* the file */
    SILT_STEP_RENAME = 1,  /* to what stands in detail */
    SILT_STEP_WRITE = 2,   /* a small file anew */
    SILT_STEP_SHORTEN = 3, /* a small file to size_bytes */
    SILT_STEP_CUT = 4,     /* size_bytes of a log from position on: the records from offset on */
    SILT_STEP_SPLIT = 5    /* a segment begins at position, with offset */
};

/* One change that recovery makes, or would make. */
typedef struct silt_plan_step {
    uint32_t number;     /* of the partition, as silt_dir_recoveries counts them */
    uint32_t kind;       /* SILT_STEP_ */
    int64_t offset;      /* -1 where it has none */
    int64_t position;    /* -1 where it has none */
    uint64_t size_bytes;
    char file[128];
    char detail[256];
} silt_plan_step_t;

/* The changes, by partition and in the order in which they are made. */
SILT_API silt_status_t silt_dir_plan(const silt_dir_t *dir, silt_plan_step_t *out,
                                     uint32_t capacity, uint32_t *count, silt_error_t *err);

/* ---- State of producers --------------------------------------------------------------------------- */

/* What is known of a producer, as a snapshot has it. */
typedef struct silt_producer {
    int64_t producer_id;
    int64_t last_offset; /* of its newest batch, -1 when none is known */
    int64_t last_timestamp_ms;
    int64_t txn_first_offset; /* of its open transaction, -1 for none */
    int32_t last_sequence;    /* of its newest batch, -1 when none is known */
    int32_t offset_delta;     /* last less first offset of its newest batch */
    int32_t coordinator_epoch;
    int16_t producer_epoch;
    int16_t reserved;
} silt_producer_t;

/* The producers of a log. SILT_E_CONFLICT when another thread is writing. */
SILT_API silt_status_t silt_log_producers(const silt_log_t *log, silt_producer_t *out,
                                          uint32_t capacity, uint32_t *count, silt_error_t *err);

/* The bytes of a .snapshot file of these producers, in this order. *size_bytes is what they need,
 * also with SILT_E_SHORT_BUFFER. */
SILT_API silt_status_t silt_snapshot_write(const silt_producer_t *producers, uint32_t count,
                                           void *bytes, uint64_t capacity, uint64_t *size_bytes,
                                           silt_error_t *err);

/* The producers in the bytes of a .snapshot file. SILT_E_CORRUPT, with the position, for a file that
 * Kafka would delete. */
SILT_API silt_status_t silt_snapshot_read(const void *bytes, uint64_t size_bytes,
                                          silt_producer_t *out, uint32_t capacity, uint32_t *count,
                                          silt_error_t *err);

/* What a walk over a segment is to find; a table with capacity 0 is not wanted, and may be NULL. */
typedef struct silt_scan {
    uint32_t struct_size;
    uint32_t index_interval_bytes; /* 0: Kafka's default */
    int64_t base_offset;
    uint32_t index_size_bytes_max; /* 0: Kafka's default */
    uint32_t producers_before_count;
    const silt_producer_t *producers_before; /* what is known in front of the segment */
    void *offset_index;
    uint64_t offset_index_capacity;
    void *time_index;
    uint64_t time_index_capacity;
    void *txn_index;
    uint64_t txn_index_capacity;
    silt_producer_t *producers;
    uint32_t producers_capacity;
    uint32_t reserved;
} silt_scan_t;

#define SILT_SCAN_INIT \
    { SILT_SIZE_OF(silt_scan_t), 0, 0, 0, 0, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0, 0 }

/* Why a walk ended in front of a batch that is whole: it is the host's to decide. */
enum {
    SILT_SCAN_LEGACY = 1,   /* it is of message format 0 or 1 */
    SILT_SCAN_OFFSETS = 2,  /* its offsets are not within 2^31 of the base */
    SILT_SCAN_PRODUCERS = 4 /* its producer may not have written it */
};

typedef struct silt_scanned {
    uint32_t struct_size;
    uint32_t flags; /* SILT_SCAN_ */
    uint32_t batch_count;
    uint32_t producer_count;
    uint64_t valid_bytes; /* where the walk ended */
    int64_t next_offset;
    int64_t max_timestamp_ms; /* -1 for none */
    uint64_t offset_index_size_bytes;
    uint64_t time_index_size_bytes;
    uint64_t txn_index_size_bytes;
    int64_t first_undecided_offset; /* of the oldest open transaction, -1 for none */
} silt_scanned_t;

#define SILT_SCANNED_INIT { SILT_SIZE_OF(silt_scanned_t), 0, 0, 0, 0, -1, -1, 0, 0, 0, -1 }

/*
 * Walks the bytes of a segment once, as recovery does: checks frames and checksums, and makes all
 * that is derived from them: the three indexes as their files have them, and the producers behind
 * the segment. A tail that is torn or damaged ends the walk and is no error, nor is a batch that is
 * not for this function: *out says where and why. SILT_E_SHORT_BUFFER when a table is too small:
 * *out says what is needed.
 */
SILT_API silt_status_t silt_segment_scan(const void *bytes, uint64_t size_bytes,
                                         const silt_scan_t *scan, silt_scanned_t *out,
                                         silt_error_t *err);

#ifdef __cplusplus
}
#endif

#endif /* SILTSTONE_H */
