//! `hapax collection`: creates, lists, describes, changes, merges and drops the collections of a running server, and
//! deletes documents by label.

mod jobs;
mod named;
mod settings;
mod shown;

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Map, Value};
use ureq::http::Method;

use super::api::Api;
use super::client::{Client, ServerArgs, encode};
use super::exit::ExitStatus;
use super::plural::plural;
use crate::input::Fields;
use jobs::{DeleteLabelArgs, MergeArgs};
use named::{Named, Output, describe, foreign, path, print};
pub(super) use settings::{BandingArgs, ComparingArgs, SpecArgs};
use settings::{ChangeArgs, FrozenArgs};

/// The status of the answer if the collection did not exist before and was created.
const CREATED: u16 = 201;
const NOT_FOUND: u16 = 404;

/// Create, list, describe, change, merge and drop collections.
///
/// A collection is a set of documents that are compared with each other. Settings that you leave out are taken from the
/// server's configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax collection create news --shingle word3 --threshold 0.7
  hapax collection list
  hapax collection describe news --json
  hapax collection set news --threshold 0.75 --ttl 30d
  hapax collection merge news --from crawl-2026-48
  hapax collection delete-label news crawl:2026-48 --yes
  hapax collection drop news

Exit status: 0 done; 1 the list has collections that the server cannot open, or a merge refused
documents or was aborted; 2 an error, or the action was not confirmed.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a collection. If it exists with the same settings, nothing changes
    Create(Box<Create>),
    /// List all collections
    List(List),
    /// Show the settings of a collection, and how many documents it has
    Describe(Named),
    /// Change settings of a collection. If the banding changes, the command waits until the server has built the new
    /// banding
    Set(Set),
    Merge(MergeArgs),
    DeleteLabel(DeleteLabelArgs),
    /// Drop a collection with all its documents
    Drop(DropArgs),
}

#[derive(Debug, clap::Args)]
struct Create {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    frozen: FrozenArgs,
    #[command(flatten)]
    changes: ChangeArgs,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    changes: ChangeArgs,
    /// Let the server choose the banding again, from the sketch and the threshold
    #[arg(long, conflicts_with = "bands")]
    auto_banding: bool,
}

#[derive(Debug, clap::Args)]
struct DropArgs {
    /// Name of the collection
    name: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// The arguments of other verbs that create a collection.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Creating the collection")]
pub(super) struct CreateArgs {
    /// Create the collection, with the settings below, if it does not exist
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    frozen: FrozenArgs,
    #[command(flatten)]
    changes: ChangeArgs,
}

/// Creates the collection called `name` if `--create` was given. An existing collection is used as it is, but it must
/// have the given settings.
pub(super) fn ensure(client: &dyn Api, name: &str, args: &CreateArgs) -> Result<()> {
    let settings = settings(&args.frozen, &args.changes)?;
    if !args.create {
        return match settings.keys().next() {
            None if client.get(&path(name))?.0 == NOT_FOUND => {
                bail!("there is no collection {name}; `hapax import --create` creates it")
            }
            None => Ok(()),
            Some(setting) => bail!("{setting} is a setting of a new collection: it needs --create"),
        };
    }
    if settings.is_empty() && client.get(&path(name))?.0 != NOT_FOUND {
        return Ok(());
    }
    put(client, name, settings).map(drop)
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    match &args.action {
        Action::Create(args) => create(args)?,
        Action::List(args) => return list(&args.output),
        Action::Describe(args) => {
            let text = Client::new(&args.output.server)?.get_whole(&path(&args.name))?;
            describe(&args.output, &text)?;
        }
        Action::Set(args) => set(args)?,
        Action::Merge(args) => return jobs::merge(args),
        Action::DeleteLabel(args) => return jobs::delete_label(args),
        Action::Drop(args) => remove(args)?,
    }
    Ok(ExitStatus::Fine)
}

fn create(args: &Create) -> Result<()> {
    let Named { name, output } = &args.named;
    let client = Client::new(&output.server)?;
    let (status, text) = put(&client, name, settings(&args.frozen, &args.changes)?)?;
    describe(output, &text)?;
    if status != CREATED {
        writeln!(std::io::stderr().lock(), "the collection {name} exists with these settings; nothing changed")?;
    }
    Ok(())
}

fn list(output: &Output) -> Result<ExitStatus> {
    #[derive(Deserialize)]
    struct Collections<'a> {
        #[serde(borrow)]
        collections: Vec<Fields<'a>>,
        #[serde(default)]
        damaged: Vec<Damaged>,
    }
    #[derive(Deserialize)]
    struct Damaged {
        name: String,
        detail: String,
    }
    let client = Client::new(&output.server)?;
    let text = client.get_whole("/v1/collections")?;
    let all: Collections<'_> = serde_json::from_str(&text).with_context(|| foreign(&client))?;
    if output.json {
        print(&format!("{text}\n"))?
    } else {
        print(&shown::table(&all.collections))?
    }
    for Damaged { name, detail } in &all.damaged {
        writeln!(std::io::stderr().lock(), "the server cannot open {name}: {detail}")?;
    }
    Ok(if all.damaged.is_empty() { ExitStatus::Fine } else { ExitStatus::Found })
}

fn set(args: &Set) -> Result<()> {
    let Named { name, output } = &args.named;
    let mut changes = Map::new();
    args.changes.add_to(&mut changes)?;
    if args.auto_banding {
        changes.insert("banding_by_hand".to_owned(), Value::from(false));
    }
    if changes.is_empty() {
        bail!("nothing to change: give --threshold, --bands and --rows, --auto-banding, --verify, --ttl or --touch");
    }
    let client = Client::new(&output.server)?;
    let (_, text) = client.send(Method::PATCH, &path(name), Some(&Value::from(changes).to_string()))?;
    describe(output, &text)
}

fn remove(args: &DropArgs) -> Result<()> {
    #[derive(Deserialize)]
    struct Description {
        documents: u64,
    }
    let name = &args.name;
    let client = Client::new(&args.server)?;
    let text = client.get_whole(&path(name))?;
    let Description { documents } = serde_json::from_str(&text).with_context(|| foreign(&client))?;
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            bail!("dropping {name} deletes {documents} document{}; to confirm that, give --yes", plural(documents));
        }
        let mut words = std::io::stderr().lock();
        write!(
            words,
            "Dropping {name} deletes {documents} document{}. To confirm that, type its name: ",
            plural(documents)
        )?;
        words.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("cannot read the confirmation")?;
        if answer.trim() != name {
            bail!("not confirmed; nothing was dropped");
        }
    }
    client.send(Method::DELETE, &format!("{}?confirm={}", path(name), encode(name)), None)?;
    writeln!(std::io::stderr().lock(), "dropped {name} with {documents} document{}", plural(documents))?;
    Ok(())
}

fn settings(frozen: &FrozenArgs, changes: &ChangeArgs) -> Result<Map<String, Value>> {
    let mut settings = Map::new();
    frozen.add_to(&mut settings);
    changes.add_to(&mut settings)?;
    Ok(settings)
}

fn put(client: &dyn Api, name: &str, settings: Map<String, Value>) -> Result<(u16, String)> {
    Ok(client.send(Method::PUT, &path(name), Some(&Value::from(settings).to_string()))?)
}
