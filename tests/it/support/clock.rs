//! Clocks of processes that differ.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use super::sources::root;

/// The library that puts the clock of a process ahead.
static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("clock-{}.so", std::process::id()));
    let source = root().join("tests/it/support/clock.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "cc compiles clock.c");
    library.into_os_string().into_string().expect("UTF-8")
});

/// Returns the variables of a process whose clock is so many seconds ahead.
pub fn ahead(seconds: &str) -> [(&str, &str); 2] {
    [("LD_PRELOAD", &LIBRARY), ("CLOCK_AHEAD_S", seconds)]
}
