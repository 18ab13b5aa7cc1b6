//! `hapax health`: is a server ready? For container health checks.

use std::io::Write;

use anyhow::Result;

use super::ExitStatus;
use super::client::{Client, ServerArgs};

/// Ask a server whether it is ready.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax health
  hapax health --server http://127.0.0.1:9000 && echo ready

Exit status: 0 ready, 1 not ready or not there, 2 wrong use.")]
pub struct Args {
    #[command(flatten)]
    server: ServerArgs,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    let client = Client::new(&args.server)?;
    let mut words = std::io::stderr().lock();
    match client.get("/readyz") {
        Ok((200, _)) => {
            writeln!(std::io::stdout().lock(), "ready")?;
            return Ok(ExitStatus::Fine);
        }
        Ok((status, text)) => writeln!(words, "not ready: {} answers {status}: {}", client.url(), text.trim_end())?,
        Err(error) => writeln!(words, "not ready: {error}")?,
    }
    Ok(ExitStatus::Found)
}
