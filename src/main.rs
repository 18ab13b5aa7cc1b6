//! Runs the command line. All work is in the library, except the choice of the allocator. Tests and benchmarks that
//! link the library choose their own allocator. Tests with loom use the system's allocator: loom runs threads on small
//! stacks, on which jemalloc crashes.

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options that jemalloc reads when it starts. Buffers of 256 KiB and more go back to the system when they are
/// freed, and other pages after a second. The defaults are 8 MiB and 10 s. A page that goes back no longer counts as
/// memory of the process. Without `muzzy_decay_ms:0`, it would count until the system needs the page.
// SAFETY: nothing else has this name. jemalloc declares it as a pointer to a C string.
#[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
#[unsafe(export_name = "malloc_conf")]
static ALLOCATOR_OPTIONS: &u8 = &b"oversize_threshold:262144,dirty_decay_ms:1000,muzzy_decay_ms:0\0"[0];

fn main() -> ExitCode {
    hapax::cli::run()
}
