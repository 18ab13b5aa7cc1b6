//! The arguments of a verb that another verb runs: its files, and the default of each option.

use std::ffi::OsStr;

use clap::Parser;

/// The arguments of a verb, as a command of their own.
#[derive(Parser)]
struct Alone<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// Returns the arguments of `verb FILE…`.
pub(super) fn usual<A: clap::Args>(files: &[impl AsRef<OsStr>]) -> A {
    let words = [OsStr::new("hapax"), OsStr::new("--")].into_iter().chain(files.iter().map(AsRef::as_ref));
    Alone::parse_from(words).args
}
