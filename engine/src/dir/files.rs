//! What are the small files of a log directory called?

/// Up to where each log was flushed.
pub const RECOVERY_POINT_FILE: &str = "recovery-point-offset-checkpoint";
/// Where each log starts, when that is not where its first segment starts.
pub const LOG_START_FILE: &str = "log-start-offset-checkpoint";
/// The high watermark of each replica.
pub const REPLICATION_FILE: &str = "replication-offset-checkpoint";
/// Up to where each compacted log is clean.
pub const CLEANER_FILE: &str = "cleaner-offset-checkpoint";
/// The marker of a clean stop.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
/// The file that a running broker holds locked.
pub const LOCK_FILE: &str = ".lock";
/// Whose directory it is.
pub const META_FILE: &str = "meta.properties";
