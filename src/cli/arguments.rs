//! The arguments of the process -> the verb that they name, and its exit status.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::exit::ExitStatus;
use super::{backup, check, export, health, import, restore, serve, tune, verify};

/// 2: it could not be done. clap uses the same for wrong usage.
const EXIT_ERROR: u8 = 2;

/// Have we seen this document, or nearly this document, before?
///
/// hapax keeps a signature of every document it is given and answers, in well under a millisecond, which earlier
/// ones a new document repeats.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, max_term_width = 110)]
#[command(after_help = "Start here:
  hapax serve                                    a server on 127.0.0.1:8080, data in ./hapax-data
  hapax import corpus.jsonl.zst                  documents into it: {\"id\": …, \"text\": …} lines
  hapax check new.jsonl                          which of these has it seen?
  hapax export --pairs                           stored duplicates, each with its original
  hapax backup nightly                           a checked copy of all of it; hapax restore brings it back
  hapax tune --threshold 0.8 --documents 1e7     what a banding finds, and what it costs

`hapax VERB --help` shows more examples.")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Serve(serve::Args),
    Import(import::Args),
    Check(check::Args),
    Export(export::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Tune(tune::Args),
    Health(health::Args),
    Verify(verify::Args),
}

/// Parses the process's arguments and does what they say.
pub fn run() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Backup(args) => backup::run(&args),
        Verb::Restore(args) => restore::run(&args),
        Verb::Tune(args) => tune::run(&args),
        Verb::Health(args) => health::run(&args),
        Verb::Verify(args) => verify::run(&args),
    };
    match result {
        Ok(ExitStatus::Fine) => ExitCode::SUCCESS,
        Ok(ExitStatus::Found) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to tell where stderr is closed.
            let _ = writeln!(std::io::stderr().lock(), "hapax: {error:#}");
            ExitCode::from(EXIT_ERROR)
        }
    }
}
