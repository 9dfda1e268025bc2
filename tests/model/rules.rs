//! The rules that can be broken on purpose.

/// A rule that the model keeps, unless it is the one that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// All rules are kept.
    Nothing,
    /// A build leaves no mark, and a log that lacks its history is not looked for.
    Mark,
    /// The local log is dropped before the objects are read, and a log that lacks its history is
    /// not looked for.
    ReadBeforeDrop,
    /// Segments are uploaded before their records are committed, and a log that is cut does not
    /// forget what was uploaded of it: either alone does no harm.
    UploadsAreCommitted,
    /// Local segments go whether they are in remote storage or not.
    DeletesAreUploaded,
    /// What is known to be in remote storage is still known after it was switched off.
    SwitchedOffIsForgotten,
    /// Any segment will do.
    SegmentReachesTheStart,
    /// A build does not install the leader epochs.
    EpochsAreInstalled,
    /// A build does not install the snapshot of producers.
    SnapshotIsInstalled,
    /// Asked again, a rule remembers what it said.
    RulesKeepNothing,
    /// The answer to another fetch is acted on.
    StaleAnswersAreIgnored,
    /// The leader's high watermark is taken as it is.
    HighWatermarkIsClamped,
    /// A follower that tries again moves its fetch offset.
    RetryChangesNothing,
    /// The leader serves what is no longer on its disk as if it were.
    LocalStartIsMinded,
    /// Where nothing below the start is uploaded, a follower looks for a segment all the same.
    StartAtLogStart,
    /// A follower outside of the in-sync replicas may lead.
    LeadersAreInSync,
    /// A replica with a new disk is still taken to be in sync.
    ReplacedIsOutOfSync,
}

impl Broken {
    /// Whether this rule is kept.
    pub(crate) fn keeps(self, rule: Broken) -> bool {
        self != rule
    }
}
