//! The real binary, without hapax's variables from the environment of the tests.

use std::process::{Command, Output, Stdio};

/// Returns the command `hapax` with these arguments and an empty stdin.
pub fn hapax(arguments: &[&str]) -> Command {
    by(&[], arguments)
}

/// Returns the binary under test: `HAPAX_BINARY`, or the one just built.
pub fn binary() -> String {
    std::env::var("HAPAX_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_hapax").to_owned())
}

/// Does the same as [`hapax`], through a command that executes its last arguments.
pub fn by(words: &[&str], arguments: &[&str]) -> Command {
    let binary = binary();
    let words = [words, &[&*binary], arguments].concat();
    let mut command = Command::new(words[0]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HAPAX")) {
        command.env_remove(name);
    }
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// Runs `hapax` with these arguments until it ends.
pub fn run(arguments: &[&str]) -> Output {
    hapax(arguments).output().expect("the binary runs")
}
