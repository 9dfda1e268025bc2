//! Big-endian integers out of and into byte slices: the only place where byte order is spelt out.

macro_rules! getter {
    ($name:ident, $type:ty, $size:literal) => {
        #[doc = concat!("The big-endian `", stringify!($type), "` at `at`; `None` when the slice ends before it does.")]
        #[inline]
        #[must_use]
        pub fn $name(bytes: &[u8], at: usize) -> Option<$type> {
            let end = at.checked_add($size)?;
            Some(<$type>::from_be_bytes(bytes.get(at..end)?.try_into().ok()?))
        }
    };
}

getter!(get_u8, u8, 1);
getter!(get_i8, i8, 1);
getter!(get_u16, u16, 2);
getter!(get_i16, i16, 2);
getter!(get_u32, u32, 4);
getter!(get_i32, i32, 4);
getter!(get_u64, u64, 8);
getter!(get_i64, i64, 8);

/// The little-endian `u32` at `at`, as the compressed formats have it; `None` when the slice ends
/// before it does.
#[inline]
#[must_use]
pub fn get_u32_le(bytes: &[u8], at: usize) -> Option<u32> {
    get_u32(bytes, at).map(u32::swap_bytes)
}

/// The little-endian bytes of `value`, as the compressed formats have it.
#[inline]
#[must_use]
pub fn u32_le(value: u32) -> [u8; 4] {
    value.swap_bytes().to_be_bytes()
}

/// Overwrites the bytes at `at` with `value`'s; `false`, and nothing written, when they do not fit.
#[inline]
#[must_use]
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> bool {
    let Some(end) = at.checked_add(value.len()) else { return false };
    match bytes.get_mut(at..end) {
        Some(target) => {
            target.copy_from_slice(value);
            true
        }
        None => false,
    }
}
