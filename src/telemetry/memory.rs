//! Tells how much memory this process may use, and makes the allocator return memory that is no longer needed.

use std::fs;

/// Returns the smaller of the installed memory and the limit of the control group, in bytes; `None` if neither is
/// known.
pub fn budget_bytes() -> Option<u64> {
    let installed = fs::read_to_string("/proc/meminfo").ok().and_then(|text| installed_bytes(&text));
    // In a container this is the container's own group. Elsewhere it is the root group, which has no such file.
    let allowed = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    installed.into_iter().chain(allowed).min()
}

/// Buffers above this size go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GIVEN_BACK_BYTES: i32 = 256 * 1024;

/// Makes the allocator return large buffers to the system as soon as they are freed. Call it before any thread starts.
///
/// By default, glibc does so only until the first such buffer is freed. After that it keeps buffers of up to 32 MiB, in
/// as many heaps as there are threads. After 64 lines of 16 MB, it kept 1.2 GB.
pub fn give_back_large_buffers() {
    // SAFETY: sets a parameter of the allocator, under its lock; any value is allowed.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
    }
}

fn installed_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_word_is_understood() {
        assert_eq!(installed_bytes("MemTotal:       24633348 kB\nMemFree: 1 kB\n"), Some(24_633_348 * 1024));
        assert_eq!(installed_bytes("MemFree: 1 kB\n"), None);
    }
}
