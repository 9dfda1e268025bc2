//! Does it bear an object store that fails, lies or changes? A target that does as told: for tests.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::target::{ObjectBytes, ObjectInfo, ObjectTarget};
use crate::error::{Error, Kind, Result};

/// What is asked of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetOperation {
    /// [`ObjectTarget::get`].
    Get,
    /// [`ObjectTarget::size`].
    Size,
    /// [`ObjectTarget::put`].
    Put,
    /// [`ObjectTarget::delete`].
    Delete,
    /// [`ObjectTarget::list`].
    List,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetCall {
    /// What was asked.
    pub operation: TargetOperation,
    /// The object, or the prefix of a listing.
    pub name: String,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetFault {
    /// It fails, and does nothing.
    Fails(Kind),
    /// It is done, and fails all the same: the answer was lost.
    AnswerLost,
    /// A get gives so many bytes less.
    Shorter(usize),
    /// A get gives so many bytes more.
    Longer(usize),
    /// A get gives this byte with all bits turned over, counted from its first.
    Flipped(usize),
    /// A get gives these bytes.
    Instead(Vec<u8>),
}

/// Which calls a fault is for.
#[derive(Clone, Debug)]
struct Plan {
    operation: TargetOperation,
    /// What the name ends with.
    suffix: String,
    /// So many calls are left alone first.
    passed: usize,
    /// So many are hit then.
    count: usize,
    fault: TargetFault,
}

type Hook = Arc<dyn Fn(&TargetCall) + Send + Sync>;

/// A target in front of another one: it fails where it was told to, keeps a list of what it was
/// asked, and can do something before each call, such as to wait or to change an object.
pub struct FaultyTarget {
    inner: Arc<dyn ObjectTarget>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plans: Vec<Plan>,
    calls: Vec<TargetCall>,
    hook: Option<Hook>,
}

impl FaultyTarget {
    /// A target that does all that `inner` does, as long as nothing else is planned.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectTarget>) -> Self {
        FaultyTarget { inner, state: Mutex::default() }
    }

    /// Plans a fault of the next call of this operation on a name that ends so.
    pub fn fault_once(&self, operation: TargetOperation, suffix: &str, fault: TargetFault) {
        self.fault(operation, suffix, 0..1, fault);
    }

    /// Plans a fault of some of the calls of this operation on names that end so: the next one is
    /// number 0.
    pub fn fault(
        &self,
        operation: TargetOperation,
        suffix: &str,
        numbers: Range<usize>,
        fault: TargetFault,
    ) {
        let (passed, count) = (numbers.start, numbers.len());
        let suffix = suffix.to_owned();
        self.state().plans.push(Plan { operation, suffix, passed, count, fault });
    }

    /// Calls this before each call from now on.
    pub fn before_each(&self, hook: impl Fn(&TargetCall) + Send + Sync + 'static) {
        self.state().hook = Some(Arc::new(hook));
    }

    /// Forgets all plans, and the list of calls.
    pub fn reset(&self) {
        *self.state() = State::default();
    }

    /// What was asked so far.
    #[must_use]
    pub fn calls(&self) -> Vec<TargetCall> {
        self.state().calls.clone()
    }

    /// How many calls of this operation there were on names that end so.
    #[must_use]
    pub fn count(&self, operation: TargetOperation, suffix: &str) -> usize {
        let is_counted =
            |call: &&TargetCall| call.operation == operation && call.name.ends_with(suffix);
        self.state().calls.iter().filter(is_counted).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one call.
    fn call<T>(
        &self,
        operation: TargetOperation,
        name: &str,
        act: impl FnOnce() -> Result<T>,
        change: impl FnOnce(&mut T, &TargetFault),
    ) -> Result<T> {
        let call = TargetCall { operation, name: name.to_owned() };
        let (hook, fault) = {
            let state = &mut *self.state();
            state.calls.push(call.clone());
            (state.hook.clone(), state.next_fault(&call))
        };
        if let Some(hook) = hook {
            hook(&call);
        }
        let fail = |kind| Error::new(kind, format!("{operation:?} of {name} fails as planned"));
        match fault {
            None => act(),
            Some(TargetFault::Fails(kind)) => Err(fail(kind)),
            Some(TargetFault::AnswerLost) => act().and_then(|_| Err(fail(Kind::Io))),
            Some(fault) => act().map(|mut answer| {
                change(&mut answer, &fault);
                answer
            }),
        }
    }
}

impl State {
    fn next_fault(&mut self, call: &TargetCall) -> Option<TargetFault> {
        let mut found = None;
        for plan in &mut self.plans {
            if plan.operation != call.operation || !call.name.ends_with(&plan.suffix) {
                continue;
            }
            if plan.passed > 0 {
                plan.passed -= 1;
            } else if plan.count > 0 && found.is_none() {
                plan.count -= 1;
                found = Some(plan.fault.clone());
            }
        }
        self.plans.retain(|plan| plan.count > 0);
        found
    }
}

impl fmt::Debug for FaultyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyTarget").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl ObjectTarget for FaultyTarget {
    fn get(&self, name: &str, range: Option<Range<u64>>, size_limit_bytes: u64) -> Result<Vec<u8>> {
        let act = || self.inner.get(name, range, size_limit_bytes);
        self.call(TargetOperation::Get, name, act, |bytes, fault| match fault {
            TargetFault::Shorter(count) => bytes.truncate(bytes.len().saturating_sub(*count)),
            TargetFault::Longer(count) => bytes.resize(bytes.len().saturating_add(*count), 0),
            TargetFault::Flipped(at) => {
                bytes.iter_mut().skip(*at).take(1).for_each(|it| *it = !*it)
            }
            TargetFault::Instead(other) => bytes.clone_from(other),
            TargetFault::Fails(_) | TargetFault::AnswerLost => {}
        })
    }

    fn size(&self, name: &str) -> Result<u64> {
        self.call(TargetOperation::Size, name, || self.inner.size(name), |_, _| {})
    }

    fn put(&self, name: &str, parts: &[ObjectBytes<'_>]) -> Result<()> {
        self.call(TargetOperation::Put, name, || self.inner.put(name, parts), |(), _| {})
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.call(TargetOperation::Delete, name, || self.inner.delete(name), |(), _| {})
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>> {
        self.call(TargetOperation::List, prefix, || self.inner.list(prefix), |_, _| {})
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::io::SimDisk;
    use crate::tier::{LocalTarget, get_exact};

    #[test]
    fn calls_go_through_but_for_those_that_were_planned() {
        use TargetOperation::{Delete, Get, Put};
        let local = Arc::new(LocalTarget::new(Arc::new(SimDisk::new()), "/"));
        let store = FaultyTarget::new(local.clone());
        store.put("a.log", &[ObjectBytes::Memory(b"abc")]).unwrap();
        store.fault(Get, ".log", 1..3, TargetFault::Fails(Kind::Io));
        store.fault_once(Get, ".log", TargetFault::Shorter(1));
        let get = || store.get("a.log", None, 9);
        let short = get_exact(&store, "a.log", 1..3).unwrap_err();
        assert_eq!((short.kind(), short.position()), (Kind::Corrupt, Some(1)));
        assert_eq!((get().unwrap_err().kind(), get().unwrap_err().kind()), (Kind::Io, Kind::Io));
        assert_eq!(get().unwrap(), b"abc");
        assert_eq!(get_exact(&store, "a.log", 1..3).unwrap(), b"bc");
        store.fault_once(Get, ".log", TargetFault::Longer(2));
        assert_eq!(get().unwrap(), b"abc\0\0");
        store.fault_once(Get, ".log", TargetFault::Flipped(0));
        assert_eq!(get().unwrap(), b"\x9ebc");
        store.fault_once(Get, ".log", TargetFault::Instead(b"x".to_vec()));
        assert_eq!(get().unwrap(), b"x");
        store.fault_once(Delete, "a.log", TargetFault::AnswerLost);
        assert!(store.delete("a.log").is_err());
        assert!(local.list("").unwrap().is_empty());
        store.fault_once(Put, "", TargetFault::Fails(Kind::Limit));
        assert_eq!(store.put("b", &[]).unwrap_err().kind(), Kind::Limit);
        assert!(local.list("").unwrap().is_empty());
        assert_eq!((store.count(Get, ".log"), store.count(Put, "")), (8, 2));
        // An object can change between two calls.
        let hooked = Arc::clone(&local);
        store.reset();
        store.before_each(move |_| hooked.put("b", &[ObjectBytes::Memory(b"late")]).unwrap());
        assert_eq!(store.get("b", None, 9).unwrap(), b"late");
    }
}
