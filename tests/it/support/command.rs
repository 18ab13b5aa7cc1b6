//! The real binary, without the variables of whoever runs the tests.

use std::process::{Command, Output, Stdio};

/// `hapax` with these arguments, and nothing on its stdin.
pub fn hapax(arguments: &[&str]) -> Command {
    by(&[], arguments)
}

/// The same by way of a command that becomes the one that its last arguments name.
pub fn by(words: &[&str], arguments: &[&str]) -> Command {
    let words = [words, &[env!("CARGO_BIN_EXE_hapax")], arguments].concat();
    let mut command = Command::new(words[0]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HAPAX")) {
        command.env_remove(name);
    }
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str]) -> Output {
    hapax(arguments).output().expect("the binary runs")
}
