//! Locks and atomics: those of the standard library, or, under a model checker, its own.
//!
//! `--cfg loom` tries every order of a few steps, `--cfg shuttle` random orders of many; see
//! `.ci/orders`. Both know only what goes through here, so whatever threads share in `segment` and
//! `log` does.

#[cfg(not(any(loom, shuttle)))]
mod imp {
    pub(crate) use arc_swap::{ArcSwap, ArcSwapOption};
    pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

    /// A number of this thread: those that run side by side mostly have different ones. For what
    /// would else be written by all of them; nothing may depend on it.
    pub(crate) fn thread_number() -> usize {
        use atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        NUMBER.try_with(|number| *number).unwrap_or(0)
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    #[cfg(loom)]
    pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
    #[cfg(shuttle)]
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

    use std::sync::{Arc, PoisonError};

    /// What arc-swap does, by a lock: the checkers cannot look into it.
    #[derive(Debug)]
    pub(crate) struct Swap<P>(Mutex<P>);

    pub(crate) type ArcSwap<T> = Swap<Arc<T>>;
    pub(crate) type ArcSwapOption<T> = Swap<Option<Arc<T>>>;

    /// The same for all: the checkers' threads come one after the other.
    pub(crate) fn thread_number() -> usize {
        0
    }

    impl<P: Clone> Swap<P> {
        pub(crate) fn new(value: P) -> Self {
            Swap(Mutex::new(value))
        }

        pub(crate) fn load(&self) -> P {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }

        pub(crate) fn load_full(&self) -> P {
            self.load()
        }

        pub(crate) fn swap(&self, value: P) -> P {
            std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), value)
        }

        pub(crate) fn store(&self, value: P) {
            // What goes may take the lock again as it is dropped.
            drop(self.swap(value));
        }
    }

    impl<T> Swap<Arc<T>> {
        pub(crate) fn from_pointee(value: T) -> Self {
            Swap::new(Arc::new(value))
        }
    }

    impl<T> Swap<Option<Arc<T>>> {
        pub(crate) fn empty() -> Self {
            Swap::new(None)
        }
    }
}

pub(crate) use imp::{ArcSwap, ArcSwapOption, Mutex, MutexGuard, atomic, thread_number};
