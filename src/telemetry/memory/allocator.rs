//! Makes the allocator return memory that is no longer needed. It has no effect if the program's allocator is not
//! jemalloc. `main.rs` chooses the allocator, and says how long it keeps free pages.

/// Returns to the system the pages of all heaps that have been free for long enough. Without this call, the heaps of
/// threads that no longer allocate keep their free pages.
pub(super) fn give_back_old_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
    call(c"arena.4096.decay");
}

/// Returns all free pages of all heaps to the system. Threads that allocate meanwhile may wait for milliseconds.
pub(super) fn give_back_free_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
    call(c"arena.4096.purge");
}

/// Calls a control of jemalloc that has no value. In its name, 4096 means all heaps (`MALLCTL_ARENAS_ALL`).
#[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
fn call(control: &std::ffi::CStr) {
    use std::ptr::null_mut;
    // SAFETY: the name is a C string, and no value is read or written. The control takes the locks of the heaps one after
    // another, and touches only memory that is free.
    let failed = unsafe { tikv_jemalloc_sys::mallctl(control.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    debug_assert_eq!(failed, 0, "jemalloc does not know {control:?}");
}
