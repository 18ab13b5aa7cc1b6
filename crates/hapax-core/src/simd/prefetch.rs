//! A hint to the processor, which changes nothing in a program except its speed.

/// Asks the processor to fetch this address from memory, because it will be read soon. Only speed changes.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has the instruction; it touches nothing and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: every 64-bit ARM has the instruction; it touches nothing, never faults, and leaves registers and flags as
    // they are.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) std::ptr::from_ref(place), options(nostack, readonly, preserves_flags));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}
