//! Runs the command line. All work is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    hapax::cli::run()
}
