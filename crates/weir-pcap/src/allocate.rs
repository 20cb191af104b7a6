//! Memory that C releases.

use std::ptr;

/// Copies `items` to memory of malloc; null if there is none left.
pub(crate) fn copy<T: Copy>(items: &[T]) -> *mut T {
    // SAFETY: malloc takes any size.
    let memory: *mut T = unsafe { libc::malloc(size_of_val(items).max(1)) }.cast();
    if !memory.is_null() {
        // SAFETY: the memory has this size, malloc's alignment, and nobody else's pointers (C3).
        unsafe { ptr::copy_nonoverlapping(items.as_ptr(), memory, items.len()) };
    }
    memory
}

/// Moves `item` to memory of malloc; null if there is none left.
pub(crate) fn place<T>(item: T) -> *mut T {
    // SAFETY: malloc takes any size.
    let memory: *mut T = unsafe { libc::malloc(size_of::<T>()) }.cast();
    if !memory.is_null() {
        // SAFETY: as in `copy`.
        unsafe { memory.write(item) };
    }
    memory
}

/// Releases memory of malloc, or null.
///
/// # Safety
///
/// Nobody uses it any more.
pub(crate) unsafe fn release<T>(memory: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory.cast()) }
}
