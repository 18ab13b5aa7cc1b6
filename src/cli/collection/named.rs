//! The parts that the commands about collections share: the name of a collection, the server, and how an answer is
//! printed.

use std::io::Write;

use anyhow::{Context, Result};

use super::shown;
use crate::cli::client::{Client, ServerArgs, encode};
use crate::cli::output::is_broken_pipe;

#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// Name of the collection
    pub(super) name: String,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct Output {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print the server's answer, as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns the path of a collection in the API.
pub(super) fn path(name: &str) -> String {
    format!("/v1/collections/{}", encode(name))
}

/// Prints an answer that is one JSON object: unchanged with `--json`, otherwise one line for each field.
pub(super) fn describe(output: &Output, text: &str) -> Result<()> {
    if output.json {
        return print(&format!("{text}\n"));
    }
    let fields = serde_json::from_str(text).context("the answer is not from a hapax server")?;
    print(&shown::description(&fields))
}

pub(super) fn foreign(client: &Client) -> String {
    format!("the answer from {} is not from a hapax server", client.url())
}

pub(super) fn print(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout") {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        written => written,
    }
}
