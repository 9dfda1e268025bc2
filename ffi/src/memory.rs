//! How is the caller's memory read and written?

use std::ffi::{CStr, OsStr, c_char};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Failure, Outcome, Status, UNSUPPORTED, fits, invalid};

/// A struct that begins with its size and may grow at its end.
///
/// # Safety
/// `repr(C)` without padding, the first field is `struct_size: u32`, and every pattern of bits is a
/// value.
pub unsafe trait Growing: Copy {
    /// What its `_INIT` macro makes, but for the size.
    const INIT: Self;
    /// Its size in the first version of the header.
    const FIRST_SIZE: usize;
}

/// No struct is larger: a size above that is that of a struct that nobody has filled.
pub const STRUCT_SIZE_MAX: usize = 4096;

/// The size that the caller says a struct has.
///
/// # Safety
/// `at` is NULL or points to the struct.
unsafe fn size_at<T: Growing>(at: *const T) -> Outcome<usize> {
    if at.is_null() {
        return invalid("a struct is NULL");
    }
    if !at.is_aligned() {
        return invalid("a struct is not aligned");
    }
    // SAFETY: not NULL and aligned; the size is the first field.
    let size = unsafe { at.cast::<u32>().read() };
    match usize::try_from(size) {
        Ok(size) if (T::FIRST_SIZE..=STRUCT_SIZE_MAX).contains(&size) => Ok(size),
        _ => invalid("struct_size is none of the struct: was it made by its _INIT macro?"),
    }
}

/// Reads options, with the defaults for what the caller's header does not know. What this library
/// does not know must be 0.
///
/// # Safety
/// `from` is NULL or points to as many bytes as its `struct_size` says.
pub unsafe fn read_struct<T: Growing>(from: *const T) -> Outcome<T> {
    // SAFETY: the caller's promise.
    let size = unsafe { size_at(from)? };
    let mut options = T::INIT;
    let known = size.min(size_of::<T>());
    // SAFETY: both have that many bytes, and any bytes are a value.
    unsafe { from.cast::<u8>().copy_to_nonoverlapping((&raw mut options).cast(), known) };
    // SAFETY: the struct has `size` bytes by the caller's promise, and `known` is at most that.
    let rest = unsafe { from.cast::<u8>().add(known) };
    // SAFETY: those bytes.
    let rest = unsafe { std::slice::from_raw_parts(rest, size - known) };
    if rest.iter().any(|&byte| byte != 0) {
        let why = "the struct asks for something that this version of the library does not know";
        return Err(Failure::Call(UNSUPPORTED, why));
    }
    Ok(options)
}

/// Whether a result struct can be written; to be asked before anything is done.
///
/// # Safety
/// `to` is NULL or points to as many bytes as its `struct_size` says.
pub unsafe fn check_struct<T: Growing>(to: *mut T) -> Outcome<()> {
    // SAFETY: the caller's promise.
    unsafe { size_at(to.cast_const()) }.map(drop)
}

/// Writes a result: as much of it as the caller's header knows. Its `struct_size` stays.
///
/// # Safety
/// `to` points to as many bytes as its `struct_size` says.
pub unsafe fn write_struct<T: Growing>(to: *mut T, value: &T) -> Outcome<()> {
    // SAFETY: the caller's promise.
    let size = unsafe { size_at(to.cast_const())? };
    let known = size.min(size_of::<T>()) - size_of::<u32>();
    // SAFETY: a struct is larger than its size field.
    let from = unsafe { std::ptr::from_ref(value).cast::<u8>().add(size_of::<u32>()) };
    // SAFETY: the same.
    let to = unsafe { to.cast::<u8>().add(size_of::<u32>()) };
    // SAFETY: both have that many bytes behind their size field.
    unsafe { from.copy_to_nonoverlapping(to, known) };
    Ok(())
}

/// The caller's bytes.
///
/// # Safety
/// `bytes` is NULL or points to `size` bytes that nobody changes during the call.
pub unsafe fn bytes_of<'a>(bytes: *const u8, size: u64) -> Outcome<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { items_of(bytes, size) }
}

/// The caller's array.
///
/// # Safety
/// `items` is NULL or points to `count` of them that nobody changes during the call.
pub unsafe fn items_of<'a, T>(items: *const T, count: u64) -> Outcome<&'a [T]> {
    let Some(count) = checked_count::<T>(count) else { return invalid("an array is too large") };
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return invalid("an array is NULL");
    }
    if !items.is_aligned() {
        return invalid("an array is not aligned");
    }
    // SAFETY: not NULL, aligned, and as long as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// The caller's array, to be written to.
///
/// # Safety
/// `items` is NULL or points to `count` of them that nobody else looks at during the call; they
/// need not be initialised when every pattern of bits is a value.
pub unsafe fn items_of_mut<'a, T>(items: *mut T, count: u64) -> Outcome<&'a mut [T]> {
    let Some(count) = checked_count::<T>(count) else { return invalid("an array is too large") };
    if count == 0 {
        return Ok(&mut []);
    }
    if items.is_null() {
        return invalid("an array is NULL");
    }
    if !items.is_aligned() {
        return invalid("an array is not aligned");
    }
    // SAFETY: not NULL, aligned, and as long as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts_mut(items, count) })
}

/// As many items as an array may have.
fn checked_count<T>(count: u64) -> Option<usize> {
    let count = usize::try_from(count).ok()?;
    let size = count.checked_mul(size_of::<T>())?;
    (isize::try_from(size).is_ok()).then_some(count)
}

/// Writes a plain result, if the caller wants it.
///
/// # Safety
/// `to` is NULL or points to a value.
pub unsafe fn write_if_wanted<T>(to: *mut T, value: T) -> Outcome<()> {
    if to.is_null() {
        return Ok(());
    }
    if !to.is_aligned() {
        return invalid("a result is not aligned");
    }
    // SAFETY: not NULL, aligned, and the caller's.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a plain result that must be taken.
///
/// # Safety
/// As of [`write_if_wanted`].
pub unsafe fn write_plain<T>(to: *mut T, value: T) -> Outcome<()> {
    if to.is_null() {
        return invalid("a result is NULL");
    }
    // SAFETY: the caller's promise.
    unsafe { write_if_wanted(to, value) }
}

/// Reads a plain struct of the caller.
///
/// # Safety
/// `from` is NULL or points to a value.
pub unsafe fn read_plain<T: Copy>(from: *const T) -> Outcome<T> {
    // SAFETY: the caller's promise.
    match unsafe { items_of(from, 1)? } {
        [value] => Ok(*value),
        _ => invalid("a struct is NULL"),
    }
}

/// Fills an array of the caller with `items`, and says how many there are.
///
/// # Safety
/// `out` is NULL or points to `capacity` items, `count` is NULL or points to a number.
pub unsafe fn fill<T>(
    out: *mut T,
    capacity: u32,
    count: *mut u32,
    items: impl ExactSizeIterator<Item = T>,
) -> Outcome<()> {
    // SAFETY: the caller's promise.
    let slots = unsafe { items_of_mut(out, u64::from(capacity))? };
    let Ok(found) = u32::try_from(items.len()) else { return invalid("too many items") };
    // SAFETY: the caller's promise.
    unsafe { write_plain(count, found)? };
    for (slot, item) in slots.iter_mut().zip(items) {
        *slot = item;
    }
    fits(found <= capacity, "the array is too small")
}

/// Copies what fits into an array of the caller; whether that is all.
///
/// # Safety
/// `to` is NULL or points to `capacity` items.
pub unsafe fn put<T: Copy>(to: *mut T, capacity: u32, items: &[T]) -> Outcome<bool> {
    // SAFETY: the caller's promise.
    let slots = unsafe { items_of_mut(to, u64::from(capacity))? };
    for (slot, item) in slots.iter_mut().zip(items) {
        *slot = *item;
    }
    Ok(items.len() <= slots.len())
}

/// Copies bytes, which go whole or not at all, and tells their size in any case.
///
/// # Safety
/// `size_bytes` is NULL or points to a number.
pub unsafe fn put_whole(
    room: &mut [u8],
    bytes: &[u8],
    size_bytes: *mut u64,
    why_not: &'static str,
) -> Outcome<()> {
    // SAFETY: the caller's promise.
    unsafe { write_plain(size_bytes, u64_of(bytes.len()))? };
    let room = room.get_mut(..bytes.len());
    fits(room.map(|room| room.copy_from_slice(bytes)).is_some(), why_not)
}

/// What many items are read from, where their answers go, and where their statuses.
pub type Columns<'a, I, O> = (&'a [I], &'a mut [O], &'a mut [Status]);

/// The caller's arrays of as many items, answers and statuses.
///
/// # Safety
/// Those of [`items_of`] and [`items_of_mut`].
pub unsafe fn columns_of<'a, I, O>(
    items: *const I,
    count: u32,
    out: *mut O,
    status: *mut Status,
) -> Outcome<Columns<'a, I, O>> {
    let count = u64::from(count);
    // SAFETY: the caller's promise.
    let items = unsafe { items_of(items, count)? };
    // SAFETY: the caller's promise.
    let answers = unsafe { items_of_mut(out, count)? };
    // SAFETY: the caller's promise.
    let statuses = unsafe { items_of_mut(status, count)? };
    Ok((items, answers, statuses))
}

/// Whether there is a place for an object; to be asked before it is made.
pub fn check_place<T>(to: *mut T, why_not: &'static str) -> Outcome<()> {
    match to.is_null() || !to.is_aligned() {
        true => invalid(why_not),
        false => Ok(()),
    }
}

/// More threads than that are asked for by mistake.
const THREADS_MAX: u32 = 1024;

/// On how many threads the caller wants a call to work; 0 is the caller's own, too.
pub fn threads_of(threads: u32) -> Outcome<usize> {
    match usize::try_from(threads) {
        Ok(count) if threads <= THREADS_MAX => Ok(count.max(1)),
        _ => invalid("more than 1024 threads"),
    }
}

/// How many, as C is told.
pub fn u32_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// How many or how large, as C is told.
pub fn u64_of(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// The flags that are set.
pub fn flags_of(flags: &[(bool, u32)]) -> u32 {
    flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum()
}

/// A text of the caller.
///
/// # Safety
/// `text` is NULL or ends with a NUL.
pub unsafe fn text<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return invalid("a text is NULL");
    }
    // SAFETY: not NULL, and it ends with a NUL.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().or_else(|_| invalid("a text is not UTF-8"))
}

/// A path of the caller, which may have any bytes.
///
/// # Safety
/// That of [`text`].
pub unsafe fn path<'a>(path: *const c_char) -> Outcome<&'a Path> {
    if path.is_null() {
        return invalid("a path is NULL");
    }
    // SAFETY: not NULL, and it ends with a NUL.
    let path = unsafe { CStr::from_ptr(path) };
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}

/// Writes a text with its NUL, cut between two characters where it is too long.
pub fn write_text(to: &mut [u8], text: fmt::Arguments<'_>) {
    struct Cut<'a> {
        left: &'a mut [u8],
    }
    impl fmt::Write for Cut<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = self.left.len().saturating_sub(1);
            let end = text.floor_char_boundary(room.min(text.len()));
            let left = std::mem::take(&mut self.left);
            let Some((head, rest)) = left.split_at_mut_checked(end) else { return Err(fmt::Error) };
            head.copy_from_slice(text.get(..end).unwrap_or_default().as_bytes());
            self.left = rest;
            if end < text.len() { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut cut = Cut { left: to };
    // An error says that it was cut.
    let _is_whole = cut.write_fmt(text);
    if let Some(end) = cut.left.first_mut() {
        *end = 0;
    }
}
