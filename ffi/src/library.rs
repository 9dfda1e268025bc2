//! The library itself: versions, and what it finds on this machine.

use std::ffi::c_char;

use engine::io::{IoChoice, open_disk};

use crate::error::{SiltError, Status, guard, name_of};
use crate::memory::{Growing, check_struct, write_struct, write_text};
use crate::types::{BuildInfo, IO_URING_HERE};

/// `SILT_ABI_VERSION`.
pub const ABI_VERSION: u32 = 1;

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn silt_status_name(status: Status) -> *const c_char {
    name_of(status).as_ptr().cast()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn silt_abi_version() -> u32 {
    ABI_VERSION
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn silt_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_build_info(out: *mut BuildInfo, err: *mut SiltError) -> Status {
    let body = || {
        // SAFETY: a struct of the header, as its manual asks.
        unsafe { check_struct(out)? };
        let has_ring = open_disk(IoChoice::Uring).is_ok();
        let flags = if has_ring { IO_URING_HERE } else { 0 };
        let mut info = BuildInfo { abi_version: ABI_VERSION, flags, ..BuildInfo::INIT };
        let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
        write_text(&mut info.target, format_args!("{arch}-{system}"));
        // SAFETY: the same.
        unsafe { write_struct(out, &info) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// Panics, so that hosts can see that they live on.
///
/// # Safety
/// That of [`guard`].
#[cfg(feature = "test")]
#[unsafe(no_mangle)]
#[expect(clippy::panic, reason = "it is asked to")]
pub unsafe extern "C" fn silt_test_panic(err: *mut SiltError) -> Status {
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, || panic!("as it was asked to")) }
}

/// The same on a log, which is poisoned by it.
///
/// # Safety
/// That of [`on`](crate::handle::on).
#[cfg(feature = "test")]
#[unsafe(no_mangle)]
#[expect(clippy::panic, reason = "it is asked to")]
pub unsafe extern "C" fn silt_test_panic_on_log(
    log: *mut crate::handle::Handle<crate::log::LogObject>,
    err: *mut SiltError,
) -> Status {
    // SAFETY: an object of the caller's, and a struct of the header or NULL.
    unsafe { crate::handle::on(log, err, |_: &crate::log::LogObject| panic!("as it was asked to")) }
}

#[cfg(feature = "test")]
static PANICS_NEXT: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Has the next call of any function panic.
#[cfg(feature = "test")]
#[unsafe(no_mangle)]
pub extern "C" fn silt_test_panic_next() {
    PANICS_NEXT.store(true, std::sync::atomic::Ordering::SeqCst);
}

/// Panics when the caller wants this call to.
#[cfg(feature = "test")]
#[expect(clippy::panic, reason = "it is asked to")]
pub fn panic_if_asked() {
    if PANICS_NEXT.swap(false, std::sync::atomic::Ordering::SeqCst) {
        panic!("as it was asked to");
    }
}

/// The layouts of the structs, to be compared with the header.
#[cfg(feature = "test")]
#[unsafe(no_mangle)]
pub extern "C" fn silt_test_layouts() -> *const c_char {
    use std::ffi::CString;
    use std::sync::OnceLock;
    static TEXT: OnceLock<CString> = OnceLock::new();
    let all = || {
        let parts = [
            crate::error::layouts(),
            crate::index::layout(),
            crate::types::layouts(),
            crate::tier::types::layouts(),
            crate::replica::types::layouts(),
            crate::dir::types::layouts(),
        ];
        CString::new(parts.join("\n")).unwrap_or_default()
    };
    TEXT.get_or_init(all).as_ptr()
}
