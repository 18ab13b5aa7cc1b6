//! Parses, runs, exits; all work is in the library.

use std::process::ExitCode;

/// Threads that sign and index allocate all the time; mimalloc gives them heaps of their own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hapax::cli::run()
}
