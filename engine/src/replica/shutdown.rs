//! How did a broker's last life end, as the controller sees it when it registers again?

use crate::uuid::Uuid;

/// A broker's registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// A random id for each life of the process.
    pub incarnation: Uuid,
    /// The epoch that the controller gave it.
    pub broker_epoch: i64,
}

/// What is to be done about partitions when a broker registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownKind {
    /// Nothing: it is new, or the same life as before. That one keeps its epoch.
    None,
    /// It had stopped in order: all that it held is there.
    Clean,
    /// It may have lost what was not on its disk.
    Unclean,
}

/// How the life before this registration ended. `previous_broker_epoch` is what the broker found
/// in its [markers](crate::state::meta::agreed_broker_epoch), -1 for nothing.
#[must_use]
pub fn shutdown_kind(
    stored: Option<Registration>,
    incarnation: Uuid,
    previous_broker_epoch: i64,
) -> ShutdownKind {
    // spec: replication 4.5
    match stored {
        None => ShutdownKind::None,
        Some(stored) if stored.incarnation == incarnation => ShutdownKind::None,
        Some(stored) if stored.broker_epoch == previous_broker_epoch => ShutdownKind::Clean,
        Some(_) => ShutdownKind::Unclean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_clean_when_the_marker_has_the_epoch_of_the_last_life() {
        // spec: tiered-behaviours RP23; replication 4.5
        let (life, next) = (Uuid([1; 16]), Uuid([2; 16]));
        let stored = Some(Registration { incarnation: life, broker_epoch: 7 });
        assert_eq!(shutdown_kind(stored, life, -1), ShutdownKind::None);
        assert_eq!(shutdown_kind(None, life, 7), ShutdownKind::None);
        assert_eq!(shutdown_kind(stored, next, 7), ShutdownKind::Clean);
        for previous in [-1, 6, 8] {
            assert_eq!(shutdown_kind(stored, next, previous), ShutdownKind::Unclean);
        }
    }
}
