//! `hapax reconcile`: repairs collections in a Redis or Valkey Cluster that has lost acknowledged writes, and lists the
//! documents that are stored twice because of this.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::cluster::configuration;
use super::exit::ExitStatus;
use super::plural::plural;
use super::progress;
use crate::collections::cluster::ClusterCollections;
use crate::collections::{KeptTwice, Reconciled, Told};
use crate::cpu::CpuPool;
use crate::types::CollectionName;

/// Repair collections in a Redis or Valkey Cluster that has lost writes.
///
/// Use it after a failure that the cluster does not survive without a loss: a primary was lost with its replicas, or a
/// replica took over that did not have all acknowledged writes. Servers may run
/// meanwhile. It adds the postings and ids that stored documents have lost, and removes those that lead to no document. Then it prints each pair of stored
/// documents of which only one should be stored, as a line of JSON. It deletes no document. Stop inserts until it has
/// ended: they do not see documents whose postings are lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax reconcile --config hapax.toml
  hapax reconcile --config hapax.toml --collection news --rate 10000 > twice.jsonl

A line: {\"collection\": \"news\", \"id\": \"b\", \"seq\": 1000000007, \"other\": \"a\",
\"other_seq\": 1000000003, \"similarity\": 0.94}. Two documents with one id have no similarity. Delete
the one that you do not need, with `DELETE …/documents?id=`.

Exit status: 0 no pair was found, 1 pairs were printed, 2 it failed.")]
pub struct Args {
    /// Configuration file of the servers of the cluster
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Repair only this collection [default: all]
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// How many records are read in a second, at most
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'a> {
    collection: &'a str,
    id: &'a str,
    seq: u64,
    other: &'a str,
    other_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let asked = args.collection.as_ref().map(|name| CollectionName::new(name));
    let asked = asked.transpose().map_err(|error| anyhow!("--collection: {error}"))?;
    let (config, redis) = configuration("--config", &args.config)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start threads")?;
    runtime.block_on(async {
        let collections = ClusterCollections::connect(config.collections, redis, CpuPool::new(config.cpu)).await?;
        let names = match asked {
            Some(name) => vec![name],
            None => collections.list().await?.into_iter().map(|described| described.name).collect(),
        };
        let mut status = ExitStatus::Fine;
        for name in names {
            if reconcile(&collections, &name, args.rate).await? > 0 {
                status = ExitStatus::Found;
            }
        }
        Ok(status)
    })
}

/// Repairs one collection. Returns how many pairs were printed.
async fn reconcile(collections: &ClusterCollections, name: &CollectionName, rate: u64) -> Result<u64> {
    let bar = progress::of_steps(0, "{bar:30.cyan/dim} {percent:>3} %  {human_pos} numbers, {per_sec}  {eta} left");
    let (mut found, mut written) = (0, Ok(()));
    let tell = |told: Told<'_>| match told {
        Told::Progress { done, all } => {
            bar.set_length(all);
            bar.set_position(done);
        }
        Told::Found(twice) => {
            found += 1;
            let line = bar.suspend(|| print(name, twice));
            written = std::mem::replace(&mut written, Ok(())).and(line);
        }
    };
    let done = collections.reconcile(name, rate, tell).await;
    bar.finish_and_clear();
    written.context("cannot write the pairs")?;
    let Reconciled { documents, postings, ids, dangling, left_out } =
        done.with_context(|| format!("collection `{name}` is not repaired; start the command again"))?;
    writeln!(
        io::stderr().lock(),
        "collection `{name}`: looked at {documents} document{}; added {postings} posting{} and {ids} id{}; removed \
         {dangling} posting{} and ids that led to no document; {found} pair{} of which only one should be stored",
        plural(documents),
        plural(postings),
        plural(ids),
        plural(dangling),
        plural(found),
    )?;
    if left_out > 0 {
        writeln!(
            io::stderr().lock(),
            "{left_out} comparison{} of documents that share a band were left out, because there are more than \
             limits.candidates_max",
            plural(left_out)
        )?;
    }
    Ok(found)
}

fn print(name: &CollectionName, twice: &KeptTwice) -> io::Result<()> {
    let KeptTwice { id, seq, other, other_seq, similarity } = twice;
    let line = Line {
        collection: name.as_str(),
        id: id.as_str(),
        seq: seq.0,
        other: other.as_str(),
        other_seq: other_seq.0,
        similarity: *similarity,
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &line)?;
    out.write_all(b"\n")
}
