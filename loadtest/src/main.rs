//! Load scenarios. At a given rate, latency counts from the time when a request was due, not from the time when it was
//! sent. If the server stalls, every request that had to wait counts (no coordinated omission).

mod answers;
mod attacks;
mod bench;
mod bodies;
mod client;
mod memory;
mod options;
mod pinning;
mod queries;
mod report;
mod scenarios;
mod schedule;
mod scrape;
mod server;
mod texts;
mod works;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use scenarios::{bulk, check, cold, durable, hostile, hot, insert, latency, mixed, overload, sink, soak, tour};

/// Measure a server under load. The exit status is 1 if an answer is wrong, or recall is not as the theory expects.
#[derive(Debug, Parser)]
#[command(name = "hapax-loadtest", max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, clap::Subcommand)]
enum Scenario {
    /// Look documents up: by one client, then at a rate
    Check(options::Args),
    /// Look documents up at a rate, alone and while others name documents that only the disk has
    Cold(options::Args),
    /// Insert documents at a rate
    Insert(options::Args),
    /// Measure durable inserts by many clients, compared with a server that stores nothing
    Durable(durable::Args),
    /// Look documents up at half the capacity and near the full capacity, alone and during inserts, an import and
    /// backups
    Latency(options::Args),
    /// Send a crawler's mix: new pages, copies, unchanged pages, lookups, reads and deletes
    Mixed(options::Args),
    /// Look documents up at a rate, alone and during many bulk requests
    Bulk(Box<bulk::Args>),
    /// Look up pages of a template of which thousands are stored
    Hot(options::Args),
    /// Send many times the requests that the server can answer, with a prober at the same time
    Overload(Box<overload::Args>),
    /// Attack the server in many ways, with a prober at the same time
    Hostile(Box<hostile::Args>),
    /// Do everything that happens in production for a long time; memory must stay flat
    Soak(Box<soak::Args>),
    /// Go through the scenarios that need little time: all except cold, latency, durable and soak
    Tour(Box<tour::Args>),
    /// Measure the limit of this program itself, with a server that does nothing
    Sink(options::Args),
    /// Write the bodies of requests for another load generator
    Bodies(bodies::Args),
}

fn main() -> Result<ExitCode> {
    let met = match Cli::parse().scenario {
        Scenario::Check(args) => check::run(&args),
        Scenario::Cold(args) => cold::run(&args),
        Scenario::Insert(args) => insert::run(&args),
        Scenario::Durable(args) => durable::run(&args),
        Scenario::Latency(args) => latency::run(&args),
        Scenario::Mixed(args) => mixed::run(&args),
        Scenario::Bulk(args) => bulk::run(&args),
        Scenario::Hot(args) => hot::run(&args),
        Scenario::Overload(args) => overload::run(&args),
        Scenario::Hostile(args) => hostile::run(&args),
        Scenario::Soak(args) => soak::run(&args),
        Scenario::Tour(args) => tour::run(&args),
        Scenario::Sink(args) => sink::run(&args),
        Scenario::Bodies(args) => bodies::run(&args),
    }?;
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
