//! `hapax keys`: adds, lists and revokes the keys of a keys file. A server that uses the file notices the change.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;

use super::exit::ExitStatus;
use crate::keys::{self, IfMissing, Key, KeyLimits, KeysFile, NewKey, Pattern, Scores};

/// Add, list and revoke the keys of clients.
///
/// A keys file has the name, the hash and the rights of each key. A server that is started with `auth.keys_file` reads
/// the file again within two seconds of a change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax keys add crawler --keys-file keys.toml --scopes check,insert > crawler.key
  HAPAX__AUTH__KEYS_FILE=keys.toml hapax serve
  hapax keys list --keys-file keys.toml
  hapax keys revoke crawler --keys-file keys.toml

To rotate a key: add another key with the same name, give the new key to the client, and revoke the
old key by its id.

Exit status: 0 done; 2 an error.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key, and print it once
    Add(Box<Add>),
    /// Show all keys, without secrets
    List(Place),
    /// Remove a key from the file, by its name or its id
    Revoke {
        #[arg(value_name = "NAME|ID")]
        key: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The keys file
    #[arg(long, value_name = "FILE", env = "HAPAX__AUTH__KEYS_FILE", hide_env_values = true)]
    keys_file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Add {
    /// Name of the key, for logs and metrics. Two keys may have the same name, so that a new key can replace an old key
    name: String,
    #[command(flatten)]
    place: Place,
    /// Scopes (rights) of the key, separated by commas: check, read, insert, delete, admin, metrics, sign, explain,
    /// load, keys
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    scopes: Vec<String>,
    /// Collections that the key may use, separated by commas: names, or beginnings of names with a * [default: those of
    /// the key that it replaces, or all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    collections: Vec<String>,
    /// Time at which the key expires: 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Parts of an answer that the key may see: full (all) or verdict (no scores) [default: as for the key that it
    /// replaces, or full]
    #[arg(long, value_name = "SCORES")]
    scores: Option<String>,
    /// Largest number of requests per second. If none of the four limits is given, the key gets the limits of the key
    /// that it replaces, or no limits
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    requests_per_second: Option<u64>,
    /// Largest number of bytes of requests per second
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    bytes_per_second: Option<u64>,
    /// Largest number of documents per second
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    documents_per_second: Option<u64>,
    /// Largest number of requests at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    requests_in_flight: Option<u64>,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    match &args.action {
        Action::Add(add) => self::add(add)?,
        Action::List(place) => list(place)?,
        Action::Revoke { key, place } => revoke(key, place)?,
    }
    Ok(ExitStatus::Fine)
}

fn add(args: &Add) -> Result<()> {
    let new = NewKey {
        name: args.name.clone(),
        scopes: trimmed(&args.scopes),
        collections: trimmed(&args.collections),
        expires: args.expires.clone(),
        scores: args.scores.clone(),
        limits: KeyLimits {
            requests_per_second: args.requests_per_second,
            bytes_per_second: args.bytes_per_second,
            documents_per_second: args.documents_per_second,
            requests_in_flight: args.requests_in_flight,
        },
    };
    let (key, text) =
        keys::add(&args.place.keys_file, &new, IfMissing::Create).map_err(|error| in_file(&args.place, &error))?;
    if let Err(error) = say(&text) {
        // The key was not printed, so no client has it, and it must not stay in the file.
        keys::revoke(&args.place.keys_file, key.id()).map_err(|error| in_file(&args.place, &error))?;
        return Err(error.context("no key was added"));
    }
    // Only the key is on stdout, so that it can be redirected to a file.
    let note =
        format!("added the key `{}` (id `{}`); the key is shown only once, and is stored nowhere", args.name, key.id());
    let _ = writeln!(std::io::stderr().lock(), "{note}");
    Ok(())
}

/// Removes white space, because people write a space after a comma.
fn trimmed(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.trim().to_owned()).collect()
}

fn list(place: &Place) -> Result<()> {
    let file = KeysFile::read(&place.keys_file).map_err(|error| in_file(place, &error))?;
    let mut rows = vec![["NAME", "ID", "SCOPES", "COLLECTIONS", "CREATED", "EXPIRES", "LIMITS"].map(str::to_owned)];
    rows.extend(file.keys().iter().map(|key| row(key, key.is_expired(file.read_at()))));
    let widths = std::array::from_fn::<_, 7, _>(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0));
    let line = |row: &[String; 7]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let table: String = rows.iter().map(line).collect();
    match std::io::stdout().lock().write_all(table.as_bytes()) {
        // The reader of the pipe, for example `head`, has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Returns the limits of a key, and whether it sees only verdicts.
fn limits(key: &Key) -> String {
    let numbers = key.limits().named().map(|(name, limit)| format!("{name}={limit}"));
    let scores = (key.scores() == Scores::Verdict).then(|| "scores=verdict".to_owned());
    let all: Vec<_> = numbers.chain(scores).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(",") }
}

fn row(key: &Key, expired: bool) -> [String; 7] {
    let names = |all: &[Pattern]| all.iter().map(Pattern::to_string).collect::<Vec<_>>().join(",");
    let expires = key.expires().map_or_else(|| "never".to_owned(), |at| at.to_string());
    [
        key.name().to_owned(),
        key.id().to_owned(),
        key.scopes().words().collect::<Vec<_>>().join(","),
        key.collections().map_or_else(|| "all".to_owned(), names),
        key.created().map_or_else(|| "-".to_owned(), |at| at.to_string()),
        if expired { format!("{expires} (expired)") } else { expires },
        limits(key),
    ]
}

fn revoke(key: &str, place: &Place) -> Result<()> {
    for (name, id) in keys::revoke(&place.keys_file, key).map_err(|error| in_file(place, &error))? {
        say(&format!("revoked the key `{name}` (id `{id}`)"))?;
    }
    Ok(())
}

fn in_file(place: &Place, error: &keys::KeysError) -> anyhow::Error {
    anyhow!("{}: {error}", place.keys_file.display())
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{line}").context("cannot write to stdout")
}
