//! `hapax collection merge` and `delete-label`: starts a job on the server, and waits until the job has ended.

use std::io::Write;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::HumanCount;
use serde::Deserialize;
use serde_json::json;
use ureq::http::Method;

use super::named::{Named, Output, describe, foreign, path};
use crate::cli::client::{Client, encode};
use crate::cli::exit::ExitStatus;
use crate::cli::plural::plural;
use crate::cli::progress;
use crate::cli::retry::patiently;

/// The time between two requests for the progress.
const LOOK: Duration = Duration::from_millis(200);

/// Insert the documents of one collection into another
#[derive(Debug, clap::Args)]
#[command(after_help = "The server merges in the background, and continues if this command is interrupted. The
reports on the documents are at /v1/jobs/{job}/reports.

Exit status: 0 the merge has ended, or (with --no-wait) has begun; 1 documents were refused, or the
merge was aborted; 2 an error.")]
pub(super) struct MergeArgs {
    #[command(flatten)]
    into: Named,
    /// Collection whose documents are inserted. This collection is not changed
    #[arg(long, value_name = "NAME")]
    from: String,
    /// Action for a document that duplicates a stored document: skip, link or store
    #[arg(long, value_name = "WHAT")]
    on_duplicate: Option<String>,
    /// Action for a document whose id is already stored with other content: conflict, replace or keep
    #[arg(long, value_name = "WHAT")]
    on_existing: Option<String>,
    #[command(flatten)]
    wait: Wait,
}

/// Delete all documents with a label
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The documents disappear from all answers at once. The server then removes them from its disk in
the background, and continues if this command is interrupted.

Exit status: 0 the documents are removed, or (with --no-wait) the removal has begun; 2 an error, or
--yes is missing."
)]
pub(super) struct DeleteLabelArgs {
    #[command(flatten)]
    named: Named,
    /// The label, as NAME:VALUE, for example crawl:2026-48
    label: String,
    /// Confirm the deletion. Without this option, nothing is deleted
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, clap::Args)]
struct Wait {
    /// Return when the job has begun, without waiting for its end
    #[arg(long)]
    no_wait: bool,
}

/// The fields of a job that a progress bar needs.
#[derive(Debug, Deserialize)]
struct Job {
    job: String,
    state: String,
    #[serde(default)]
    detail: Option<String>,
    documents: u64,
    done: u64,
    #[serde(default)]
    outcomes: Outcomes,
}

#[derive(Debug, Default, Deserialize)]
struct Outcomes {
    #[serde(default)]
    refused: u64,
}

pub(super) fn merge(args: &MergeArgs) -> Result<ExitStatus> {
    let MergeArgs { into, from, on_duplicate, on_existing, wait } = args;
    let client = Client::new(&into.output.server)?;
    let mut body = json!({ "from": from });
    for (name, value) in [("on_duplicate", on_duplicate), ("on_existing", on_existing)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let (_, begun) = client.send(Method::POST, &format!("{}/merge", path(&into.name)), Some(&body.to_string()))?;
    finish(&client, &into.output, begun, wait)
}

pub(super) fn delete_label(args: &DeleteLabelArgs) -> Result<ExitStatus> {
    let DeleteLabelArgs { named, label, yes, wait } = args;
    if !yes {
        bail!("this deletes all documents of {} with the label {label}; to confirm that, give --yes", named.name);
    }
    let client = Client::new(&named.output.server)?;
    let of_label = format!("{}/documents?label={}", path(&named.name), encode(label));
    let (_, begun) = client.send(Method::DELETE, &of_label, None)?;
    finish(&client, &named.output, begun, wait)
}

/// Waits until the job has ended, unless `--no-wait` is given, and prints the job.
fn finish(client: &Client, output: &Output, begun: String, wait: &Wait) -> Result<ExitStatus> {
    let (job, text) = if wait.no_wait { (parsed(client, &begun)?, begun) } else { ended(client, begun)? };
    describe(output, &text)?;
    Ok(if job.state == "aborted" || job.outcomes.refused > 0 { ExitStatus::Found } else { ExitStatus::Fine })
}

/// Waits until the job has ended, even if the server restarts. Returns the job and its text.
fn ended(client: &Client, begun: String) -> Result<(Job, String)> {
    let (mut job, mut text) = (parsed(client, &begun)?, begun);
    let template = "{bar:30.cyan/dim} {human_pos} of {human_len} documents{msg}  {elapsed} elapsed, {eta} left";
    let bar = progress::of_steps(job.documents, template);
    while job.state == "running" {
        bar.set_position(job.done);
        bar.set_message(why(&job));
        thread::sleep(LOOK);
        let path = format!("/v1/jobs/{}", job.job);
        text = patiently(|| client.get_whole(&path))
            .with_context(|| format!("the server continues the job, but its result is not known; see {path}"))?;
        job = parsed(client, &text)?;
    }
    bar.finish_and_clear();
    let (state, done, documents) = (&job.state, HumanCount(job.done), HumanCount(job.documents));
    let (plural, why) = (plural(job.documents), why(&job));
    writeln!(std::io::stderr().lock(), "{state}, {done} of {documents} document{plural}{why}")?;
    Ok((job, text))
}

/// Returns how many documents were refused, and the reason why a job waits or was aborted.
fn why(job: &Job) -> String {
    let refused = match job.outcomes.refused {
        0 => String::new(),
        refused => {
            let refused = HumanCount(refused);
            format!(", {refused} refused")
        }
    };
    let detail = job.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
    refused + &detail
}

fn parsed(client: &Client, text: &str) -> Result<Job> {
    serde_json::from_str(text).with_context(|| foreign(client))
}
