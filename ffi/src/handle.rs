//! What is behind an opaque pointer?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::error::{CLOSED, FORKED, Failure, Outcome, SiltError, Status, guard, guard_or, invalid};
use crate::fork;

/// What a closed object has in the place of its magic.
const DEAD: u64 = 0x6465_6164_7369_6c74;

/// A kind of object.
pub trait Object: Sync {
    /// What says that an object is of this kind.
    const MAGIC: u64;

    /// Whether a call that panicked had it in hand without its pointer.
    fn is_poisoned(&self) -> bool {
        false
    }
}

/// Words at the front of memory that is free, where allocators keep their links: four in glibc.
const LINKS: usize = 4;

/// An object of the caller's. Whatever its kind, its magic is at the same place: a pointer to
/// another kind is looked at there, too. It is behind what an allocator writes when the memory is
/// given back, so that who uses an object after that is told, as long as nobody else has the
/// memory.
#[repr(C)]
pub struct Handle<T> {
    _links: [u64; LINKS],
    magic: AtomicU64,
    generation: u32,
    /// A call on it panicked: nothing but its end is to be expected of it.
    is_poisoned: AtomicBool,
    object: T,
}

impl<T: Object> Handle<T> {
    /// Makes the pointer that the caller gets.
    pub fn give(object: T) -> *mut Handle<T> {
        Box::into_raw(Box::new(Handle {
            _links: [0; LINKS],
            magic: AtomicU64::new(T::MAGIC),
            generation: fork::watch(),
            is_poisoned: AtomicBool::new(false),
            object,
        }))
    }

    /// Looks at an object.
    ///
    /// # Safety
    /// `handle` is NULL or came from [`give`](Self::give), and is not closed meanwhile.
    pub unsafe fn get<'a>(handle: *const Handle<T>) -> Outcome<&'a T> {
        // SAFETY: the caller's promise.
        let handle = unsafe { Self::look(handle)? };
        if handle.is_poisoned.load(Ordering::Relaxed) || handle.object.is_poisoned() {
            let why = "an earlier call on the object met a fault of the library";
            return Err(Failure::Call(CLOSED, why));
        }
        Ok(&handle.object)
    }

    /// The same, of one that a call panicked on, too.
    ///
    /// # Safety
    /// That of [`get`](Self::get).
    unsafe fn look<'a>(handle: *const Handle<T>) -> Outcome<&'a Handle<T>> {
        if handle.is_null() {
            return invalid("the object is NULL");
        }
        if !handle.is_aligned() {
            return invalid("the object is none of this library");
        }
        // SAFETY: not NULL, aligned, and made by `give`.
        let handle = unsafe { &*handle };
        match handle.magic.load(Ordering::Relaxed) {
            magic if magic == T::MAGIC => {}
            DEAD => return Err(Failure::Call(CLOSED, "the object is closed")),
            _ => return invalid("the object is none of this kind"),
        }
        if handle.generation != fork::current() {
            return Err(Failure::Call(FORKED, "the object belongs to the parent process"));
        }
        Ok(handle)
    }

    /// Ends an object. In a forked child it is left as it is: its files are the parent's.
    ///
    /// # Safety
    /// As of [`get`](Self::get); the pointer is not used again.
    pub unsafe fn close(handle: *mut Handle<T>) {
        // SAFETY: the caller's promise.
        let Ok(found) = (unsafe { Self::look(handle) }) else { return };
        if found.magic.swap(DEAD, Ordering::Relaxed) != T::MAGIC {
            // Another thread is closing it, against the manual.
            return;
        }
        // SAFETY: it came from `give`, and is not used again.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Gives an object back: the body of each function that does so.
///
/// # Safety
/// That of [`Handle::close`].
pub unsafe fn close<T: Object>(handle: *mut Handle<T>) {
    let body = || {
        // SAFETY: the caller's promise.
        unsafe { Handle::close(handle) };
        Ok(())
    };
    // SAFETY: nobody is told.
    unsafe { guard(std::ptr::null_mut(), body) };
}

/// Takes what one call at a time may use; `None` while another has it. What a call that panicked
/// had in hand is taken as it is.
pub fn try_hold<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Has an object of no more use than to be closed, as a call that panicked had it in hand.
///
/// # Safety
/// That of [`Handle::get`].
pub unsafe fn poison<T: Object>(handle: *const Handle<T>) {
    // SAFETY: the caller's promise.
    if let Ok(handle) = unsafe { Handle::<T>::look(handle) } {
        handle.is_poisoned.store(true, Ordering::Relaxed);
    }
}

/// Runs a function on an object, which is poisoned when that panics.
///
/// # Safety
/// Those of [`Handle::get`] and [`guard`](crate::error::guard).
pub unsafe fn on<'a, T: Object + 'a>(
    handle: *const Handle<T>,
    err: *mut SiltError,
    body: impl FnOnce(&'a T) -> Outcome<()>,
) -> Status {
    let poison = || {
        // SAFETY: the caller's promise.
        unsafe { poison(handle) };
    };
    let run = || {
        // SAFETY: the caller's promise.
        let object = unsafe { Handle::get(handle)? };
        body(object)
    };
    // SAFETY: the caller's promise.
    unsafe { guard_or(err, poison, run) }
}

/// A function of the header on an object: its parameters between the object and the error, and what
/// it does.
macro_rules! object_function {
    (fn $name:ident($object:ident: $kind:ty $(, $arg:ident: $type:ty)*) |$it:ident| $body:expr) => {
        /// See the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $object: *const crate::handle::Handle<$kind>,
            $($arg: $type,)*
            err: *mut crate::error::SiltError,
        ) -> crate::error::Status {
            let body = |$it: &$kind| $body;
            // SAFETY: an object of the caller's, and a struct of the header or NULL.
            unsafe { crate::handle::on($object, err, body) }
        }
    };
}
pub(crate) use object_function;
