//! Runs the command line. All work is in the library, except the choice of the allocator: tests and benchmarks that
//! link the library have their own, and loom runs threads on small stacks, on which jemalloc crashes.

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options that jemalloc reads when it starts. Buffers of 256 KiB and more go back to the system when they are
/// freed, and other pages after a second; by default these are 8 MiB and 10 s. A page that goes back no longer counts
/// as the process's (`muzzy`: it would until the system needs it).
// SAFETY: nothing else has this name. jemalloc declares it as a pointer to a C string.
#[cfg(all(target_os = "linux", target_env = "gnu", not(hapax_loom)))]
#[unsafe(export_name = "malloc_conf")]
static ALLOCATOR_OPTIONS: &u8 = &b"oversize_threshold:262144,dirty_decay_ms:1000,muzzy_decay_ms:0\0"[0];

fn main() -> ExitCode {
    hapax::cli::run()
}
