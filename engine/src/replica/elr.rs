//! Who may lead a partition, and what does a change of its replicas make of it? (KIP-966)
//!
//! While fewer than `min.insync.replicas` replicas are in sync, nothing more is committed. So a
//! replica that leaves the in-sync set below that size still holds all that is, and stays eligible
//! as a leader until it loses data: the eligible leader replicas.

/// No leader.
pub const NO_LEADER: i32 = -1;

/// A partition as the controller keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Partition {
    /// All replicas, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Those in sync.
    pub isr: Vec<i32>,
    /// Those that hold all that is committed though they are not in sync.
    pub elr: Vec<i32>,
    /// The last leader before there was none; without that rule, those that were once eligible.
    pub last_known_elr: Vec<i32>,
    /// Replicas that a reassignment adds.
    pub adding: Vec<i32>,
    /// Replicas that a reassignment removes.
    pub removing: Vec<i32>,
    /// The leader, or [`NO_LEADER`].
    pub leader: i32,
    /// Whether the leader recovers from an unclean election.
    pub recovering: bool,
    /// Grows whenever the leader is set, to the same one too.
    pub leader_epoch: i32,
    /// Grows with every change.
    pub partition_epoch: i32,
}

/// How hard a leader is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Election {
    /// The first replica is to lead if it can.
    Preferred,
    /// Whoever leads goes on; else one that holds all that is committed.
    #[default]
    Online,
    /// As the last resort, one that may lack committed records.
    Unclean,
}

/// What a cluster has switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElrOptions {
    /// `eligible.leader.replicas.version` is 1.
    pub elr: bool,
    /// The last leader of a partition without eligible replicas may lead again, as if elected
    /// uncleanly.
    pub last_known_leader: bool,
    /// A replica that leaves the in-sync set bumps the leader epoch: metadata versions before 3.6.
    pub bump_on_shrink: bool,
}

impl Default for ElrOptions {
    /// As a new cluster of 4.3.1 has them.
    fn default() -> Self {
        ElrOptions { elr: true, last_known_leader: true, bump_on_shrink: false }
    }
}

/// The level of metadata version 3.6-IV0, the first that leaves the leader epoch alone when a
/// replica leaves the in-sync set.
pub const FIRST_LEVEL_WITHOUT_BUMP: i16 = 12;

/// What is to be made of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeRequest {
    /// Who shall be in sync; none for the same as now.
    pub target_isr: Option<Vec<i32>>,
    /// Replicas that have lost data.
    pub unclean: Vec<i32>,
    /// How hard a leader is looked for.
    pub election: Election,
    /// See [`effective_min_isr`](super::high_watermark::effective_min_isr).
    pub min_isr: usize,
    /// Set when the leader says whether it still recovers.
    pub recovering: Option<bool>,
}

/// What becomes of a partition; a field that is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionChange {
    /// All replicas.
    pub replicas: Option<Vec<i32>>,
    /// Those in sync.
    pub isr: Option<Vec<i32>>,
    /// Those that are eligible.
    pub elr: Option<Vec<i32>>,
    /// See [`Partition::last_known_elr`].
    pub last_known_elr: Option<Vec<i32>>,
    /// Replicas that a reassignment adds.
    pub adding: Option<Vec<i32>>,
    /// Replicas that a reassignment removes.
    pub removing: Option<Vec<i32>>,
    /// The leader; the same one as before to bump its epoch.
    pub leader: Option<i32>,
    /// Whether the leader recovers.
    pub recovering: Option<bool>,
}

/// A change that does not fit its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadState {
    /// The leader is none of the replicas.
    LeaderIsNoReplica,
    /// The leader is not in sync.
    LeaderIsNotInSync,
}

/// Who was elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elected {
    leader: i32,
    unclean: bool,
}

fn without(set: &[i32], removed: &[i32]) -> Vec<i32> {
    set.iter().copied().filter(|replica| !removed.contains(replica)).collect()
}

fn union(sets: &[&[i32]]) -> Vec<i32> {
    let mut all: Vec<i32> = Vec::new();
    for &replica in sets.iter().copied().flatten() {
        if !all.contains(&replica) {
            all.push(replica);
        }
    }
    all
}

/// The sets that a change aims at.
struct Targets {
    replicas: Vec<i32>,
    isr: Vec<i32>,
    elr: Vec<i32>,
    last_known: Vec<i32>,
}

impl Targets {
    fn new(partition: &Partition, request: &ChangeRequest, options: ElrOptions) -> Self {
        let wanted = request.target_isr.as_ref().unwrap_or(&partition.isr);
        let (mut replicas, mut isr) = (partition.replicas.clone(), wanted.clone());
        if completes_reassignment(partition, wanted) {
            replicas = without(&replicas, &partition.removing);
            isr = without(&isr, &partition.removing);
        }
        // spec: replication 4.1
        let min_isr = request.min_isr.min(replicas.len());
        let (mut elr, mut last_known) = (Vec::new(), Vec::new());
        if options.elr && isr.len() < min_isr {
            let held = union(&[&partition.elr, &partition.isr]);
            elr = without(&without(&held, &isr), &request.unclean);
            elr.retain(|replica| replicas.contains(replica));
            let all = union(&[&held, &partition.last_known_elr]);
            last_known = without(&without(&all, &isr), &elr);
            // Kafka's order is that of hash sets, which for small ids is this one.
            elr.sort_unstable();
            last_known.sort_unstable();
        }
        Targets { replicas, isr, elr, last_known }
    }

    // spec: replication 4.2
    fn elect(
        &self,
        partition: &Partition,
        election: Election,
        options: ElrOptions,
        is_ok: &dyn Fn(i32) -> bool,
    ) -> Elected {
        let is_member = |replica: i32| {
            self.isr.contains(&replica) || (self.isr.is_empty() && self.elr.contains(&replica))
        };
        let is_valid = |replica: i32| is_ok(replica) && is_member(replica);
        let preferred = self.replicas.first().copied().filter(|_| election == Election::Preferred);
        let current = Some(partition.leader).filter(|&leader| self.replicas.contains(&leader));
        let candidates = preferred.into_iter().chain(current).chain(self.replicas.iter().copied());
        for leader in candidates {
            if is_valid(leader) {
                return Elected { leader, unclean: false };
            }
        }
        let nobody_is_safe = self.isr.is_empty() && self.elr.is_empty();
        if let [last] = *partition.last_known_elr
            && options.elr
            && options.last_known_leader
            && nobody_is_safe
            && is_ok(last)
        {
            return Elected { leader: last, unclean: true };
        }
        let any = self.replicas.iter().copied().find(|&replica| is_ok(replica));
        match any.filter(|_| election == Election::Unclean) {
            Some(leader) => Elected { leader, unclean: true },
            None => Elected { leader: NO_LEADER, unclean: false },
        }
    }
}

fn completes_reassignment(partition: &Partition, target_isr: &[i32]) -> bool {
    let is_going_on = !partition.adding.is_empty() || !partition.removing.is_empty();
    is_going_on
        && partition.adding.iter().all(|replica| target_isr.contains(replica))
        && target_isr.iter().any(|replica| !partition.removing.contains(replica))
}

/// What becomes of `partition`, or none if nothing does; `is_ok` says whether a replica is
/// registered, not fenced, not shutting down, and its directory online.
// spec: replication 4
#[must_use]
pub fn plan_partition_change(
    partition: &Partition,
    request: &ChangeRequest,
    options: ElrOptions,
    is_ok: &dyn Fn(i32) -> bool,
) -> Option<PartitionChange> {
    let mut targets = Targets::new(partition, request, options);
    let is_sound = |replica: i32| is_ok(replica) && !request.unclean.contains(&replica);
    let elected = targets.elect(partition, request.election, options, &is_sound);
    let mut recovering = request.recovering.unwrap_or(partition.recovering);
    if elected.unclean {
        (targets.isr, targets.elr) = (vec![elected.leader], Vec::new());
        recovering = true;
    } else if targets.elr.contains(&elected.leader) {
        targets.isr = vec![elected.leader];
        targets.elr.retain(|&replica| replica != elected.leader);
    }
    // Without eligible replicas, the last one in sync is remembered by staying.
    if !options.elr && targets.isr.is_empty() {
        targets.isr.clone_from(&partition.isr);
    }
    let last_known = last_known(partition, &targets, elected, options);
    let leader = leader_field(partition, &targets, elected, options);
    let changed = |old: &Vec<i32>, new: Vec<i32>| (*old != new).then_some(new);
    let is_done = targets.replicas != partition.replicas;
    let cleared = |old: &Vec<i32>| (is_done && !old.is_empty()).then(Vec::new);
    let change = PartitionChange {
        adding: cleared(&partition.adding),
        removing: cleared(&partition.removing),
        replicas: changed(&partition.replicas, targets.replicas),
        isr: changed(&partition.isr, targets.isr),
        elr: changed(&partition.elr, targets.elr),
        last_known_elr: changed(&partition.last_known_elr, last_known),
        leader,
        recovering: (recovering != partition.recovering).then_some(recovering),
    };
    (change != PartitionChange::default()).then_some(change)
}

// spec: replication 4.3
fn last_known(
    partition: &Partition,
    targets: &Targets,
    elected: Elected,
    options: ElrOptions,
) -> Vec<i32> {
    if !options.elr || elected.unclean {
        return Vec::new();
    }
    if !options.last_known_leader {
        return without(&targets.last_known, &targets.isr);
    }
    if elected.leader != NO_LEADER {
        Vec::new()
    } else if partition.leader != NO_LEADER && partition.last_known_elr.is_empty() {
        vec![partition.leader]
    } else {
        partition.last_known_elr.clone()
    }
}

fn leader_field(
    partition: &Partition,
    targets: &Targets,
    elected: Elected,
    options: ElrOptions,
) -> Option<i32> {
    let shrinks = partition.isr.iter().any(|replica| !targets.isr.contains(replica));
    let unassigns = partition.replicas.iter().any(|replica| !targets.replicas.contains(replica));
    let bumps = unassigns || (options.bump_on_shrink && shrinks);
    let is_new = elected.leader != partition.leader;
    (is_new || bumps).then_some(elected.leader)
}

/// The partition after a change.
///
/// # Errors
/// A change that gives it a leader who cannot be one.
pub fn merge_change(
    partition: &Partition,
    change: &PartitionChange,
) -> Result<Partition, BadState> {
    // spec: replication 1
    let taken = |new: &Option<Vec<i32>>, old: &Vec<i32>| new.as_ref().unwrap_or(old).clone();
    let merged = Partition {
        replicas: taken(&change.replicas, &partition.replicas),
        isr: taken(&change.isr, &partition.isr),
        elr: taken(&change.elr, &partition.elr),
        last_known_elr: taken(&change.last_known_elr, &partition.last_known_elr),
        adding: taken(&change.adding, &partition.adding),
        removing: taken(&change.removing, &partition.removing),
        leader: change.leader.unwrap_or(partition.leader),
        recovering: change.recovering.unwrap_or(partition.recovering),
        leader_epoch: partition.leader_epoch.saturating_add(i32::from(change.leader.is_some())),
        partition_epoch: partition.partition_epoch.saturating_add(1),
    };
    if merged.leader != NO_LEADER && !merged.replicas.contains(&merged.leader) {
        return Err(BadState::LeaderIsNoReplica);
    }
    if merged.leader != NO_LEADER && !merged.isr.contains(&merged.leader) {
        return Err(BadState::LeaderIsNotInSync);
    }
    Ok(merged)
}
