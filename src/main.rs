//! Parses, runs, exits; all work is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    hapax::cli::run()
}
