//! Parses the arguments of the process, runs the command that they name, and returns its exit status.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::exit::ExitStatus;
use super::{
    audit, backup, check, collection, contain, copy, dedup, export, health, import, keys, load, pairs, reconcile,
    restore, serve, signals, spans, tune, verify,
};

/// The exit status of a command that failed. clap uses the same status if the arguments are wrong.
const EXIT_ERROR: u8 = 2;
/// The exit status of a command that a signal has ended.
const EXIT_INTERRUPTED: u8 = 130;

/// Have we seen this document, or nearly this document, before?
///
/// hapax stores a signature of each document. It finds the stored documents that a new document repeats, in well under
/// a millisecond.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, max_term_width = 110)]
#[command(after_help = "Start here:
  hapax serve                                    start a server on 127.0.0.1:8080
  hapax import corpus.jsonl.zst                  import lines of {\"id\": …, \"text\": …}, or WARC
  hapax load signatures.parquet --collection c   make a collection from precomputed signatures
  hapax copy --from DIR --to FILE --collection c make a collection in a Redis Cluster from another one
  hapax collection create news --shingle word3   create a collection with its own settings
  hapax check new.jsonl                          look up which documents are duplicates
  hapax dedup corpus.jsonl -o kept.jsonl         write the documents without their duplicates, with no server
  hapax pairs corpus.jsonl -o pairs.jsonl        list all pairs of similar documents, with no server
  hapax contain corpus.jsonl --benchmarks b.jsonl --dropped d.jsonl   find test items in a corpus, with no server
  hapax spans corpus.jsonl -o spans.jsonl        list the passages that earlier documents have, with no server
  hapax export --pairs                           list stored duplicates, each with its original
  hapax backup nightly                           make a checked copy; hapax restore restores it
  hapax keys add crawler --scopes check,insert   make a key for a client; --keys-file names the file
  hapax audit /var/lib/hapax/audit --id page-7   show the logged decisions on a document
  hapax tune --threshold 0.8 --documents 1e7     show the recall and the cost of a banding

`hapax VERB --help` shows all options of a verb, and examples.")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Serve(serve::Args),
    Import(Box<import::Args>),
    Load(load::Args),
    Copy(copy::Args),
    Check(check::Args),
    Dedup(Box<dedup::Args>),
    Pairs(Box<pairs::Args>),
    Contain(Box<contain::Args>),
    Spans(spans::Args),
    Collection(Box<collection::Args>),
    Export(export::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Tune(tune::Args),
    Health(health::Args),
    Verify(verify::Args),
    Reconcile(reconcile::Args),
    Keys(keys::Args),
    Audit(audit::Args),
}

/// Parses the arguments of the process and runs the command.
pub fn run() -> ExitCode {
    let verb = Arguments::parse().verb;
    let result = signals::survive_file_limit().and_then(|()| match verb {
        Verb::Serve(args) => serve::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Load(args) => load::run(&args),
        Verb::Copy(args) => copy::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Dedup(args) => dedup::run(&args),
        Verb::Pairs(args) => pairs::run(&args),
        Verb::Contain(args) => contain::run(&args),
        Verb::Spans(args) => spans::run(&args),
        Verb::Collection(args) => collection::run(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Backup(args) => backup::run(&args),
        Verb::Restore(args) => restore::run(&args),
        Verb::Tune(args) => tune::run(&args),
        Verb::Health(args) => health::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Reconcile(args) => reconcile::run(&args),
        Verb::Keys(args) => keys::run(&args),
        Verb::Audit(args) => audit::run(&args),
    });
    match result {
        Ok(ExitStatus::Fine) => ExitCode::SUCCESS,
        Ok(ExitStatus::Found) => ExitCode::FAILURE,
        Ok(ExitStatus::Interrupted) => ExitCode::from(EXIT_INTERRUPTED),
        Err(error) => {
            // If stderr is closed, there is no way left to report the error.
            let _ = writeln!(std::io::stderr().lock(), "hapax: {error:#}");
            ExitCode::from(EXIT_ERROR)
        }
    }
}
