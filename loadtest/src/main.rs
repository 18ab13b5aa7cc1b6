//! Load scenarios. The default one imports documents, then looks documents up at a fixed rate, then one after another.
//! At a fixed rate, latency counts from the time when a request was due, not from the time when it was sent. If the
//! server stalls, every request that had to wait counts (no coordinated omission).

mod durable;
mod server;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use hdrhistogram::Histogram;
use ureq::Agent;

use server::{Server, agent};
use text::Texts;

/// Lines of one bulk request.
const BULK_LINES: u64 = 2_000;

/// Measure a server under load: import documents, then measure lookups. Other scenarios have a subcommand.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    scenario: Option<Scenario>,
    /// Program of the server, which is started on an empty directory
    #[arg(long, default_value = "target/release/hapax", conflicts_with = "server")]
    binary: PathBuf,
    /// URL of a running server to use instead, with an empty collection `default`
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Documents to import
    #[arg(long, default_value_t = 100_000)]
    documents: u64,
    /// Bytes of each document
    #[arg(long, default_value_t = 2048)]
    bytes: usize,
    /// Connections for the import
    #[arg(long, default_value_t = 4)]
    importers: usize,
    /// Lookups per second in the part with a fixed rate
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Seconds for the part with a fixed rate, and for the part with one client
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Connections for the part with a fixed rate
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Seed of the documents
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, clap::Subcommand)]
enum Scenario {
    /// Measure durable inserts by many clients, compared with a server that stores nothing
    Durable(durable::Args),
}

type Latencies = Histogram<u64>;

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(Scenario::Durable(args)) = &args.scenario {
        return durable::run(args);
    }
    let server = match &args.server {
        Some(url) => Server::running(url),
        None => Server::start(&args.binary)?,
    };
    let texts = Texts::new(args.seed, args.bytes);
    let agent = agent(args.connections.max(args.importers));
    let mut out = std::io::stdout().lock();
    writeln!(out, "documents {}, {} bytes each, 30 % near duplicates, seed {}", args.documents, args.bytes, args.seed)?;

    let before = server.metric(&agent, "process_resident_memory_bytes")?;
    let begun = Instant::now();
    preload(&args, &server, &agent, &texts)?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = server.metric(&agent, "process_resident_memory_bytes")?;
    let indexed = server.metric(&agent, "hapax_index_bytes")?;
    let stored = server.metric(&agent, "hapax_documents")?;
    writeln!(out, "preload   {:.1} s, {:.0} documents/s, {stored} stored", seconds, args.documents as f64 / seconds)?;
    writeln!(
        out,
        "memory    {:.1} MB before, {:.1} MB after: {:.0} bytes a stored document; index {:.0} bytes a stored document",
        before / 1e6,
        after / 1e6,
        (after - before) / stored,
        indexed / stored
    )?;

    report(&mut out, "one client", "lookups", &closed_loop(&args, &server, &texts)?)?;
    report(&mut out, &format!("{}/s", args.rate), "lookups", &open_loop(&args, &server, &agent, &texts)?)?;
    Ok(())
}

/// Stores all documents, including duplicates, so that the collection has the requested size.
fn preload(args: &Args, server: &Server, agent: &Agent, texts: &Texts) -> Result<()> {
    let url = format!("{}/v1/collections/default/bulk?op=insert&on_duplicate=store&limit=1", server.url);
    let next = AtomicU64::new(0);
    in_threads(args.importers, || {
        loop {
            let first = next.fetch_add(BULK_LINES, Ordering::Relaxed);
            if first >= args.documents {
                return Ok(());
            }
            let mut body = Vec::new();
            for n in first..(first + BULK_LINES).min(args.documents) {
                let line = serde_json::json!({ "id": format!("doc-{n}"), "text": texts.document(n) });
                serde_json::to_writer(&mut body, &line)?;
                body.push(b'\n');
            }
            let mut answer = agent.post(&url).content_type("application/x-ndjson").send(&body[..])?;
            let text = answer.body_mut().with_config().limit(1 << 30).read_to_string()?;
            let last = text.lines().last().unwrap_or_default();
            let summary: serde_json::Value = serde_json::from_str(last).context("the bulk answer has no summary")?;
            if summary["kind"] != "summary" || summary["summary"]["errors"] != 0 {
                bail!("documents were refused: {summary}");
            }
        }
    })
}

/// Sends one request after the other, with one client.
fn closed_loop(args: &Args, server: &Server, texts: &Texts) -> Result<Latencies> {
    let agent = agent(1);
    let mut latencies = latencies()?;
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut n = args.documents;
    while Instant::now() < end {
        let text = texts.document(n);
        n += 1;
        let begun = Instant::now();
        check(&agent, server, &text)?;
        latencies.saturating_record(nanos(begun.elapsed()));
    }
    Ok(latencies)
}

/// Sends requests that are due at equal intervals. Each uses a connection that is free.
fn open_loop(args: &Args, server: &Server, agent: &Agent, texts: &Texts) -> Result<Latencies> {
    let total = (args.rate * args.seconds as f64) as u64;
    let next = AtomicU64::new(0);
    let all = Mutex::new(latencies()?);
    let begun = Instant::now();
    in_threads(args.connections, || {
        let mut own = latencies()?;
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= total {
                break;
            }
            // The text is made before it is due, because the client's own work does not count as latency.
            let text = texts.document(args.documents + n);
            let due = begun + Duration::from_secs_f64(n as f64 / args.rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            check(agent, server, &text)?;
            own.saturating_record(nanos(due.elapsed()));
        }
        all.lock().expect("no thread panics with it").add(&own).context("equal ranges")
    })?;
    Ok(all.into_inner().expect("no thread panics with it"))
}

fn check(agent: &Agent, server: &Server, text: &str) -> Result<()> {
    let url = format!("{}/v1/collections/default/check", server.url);
    let body = serde_json::json!({ "text": text });
    let answer = agent.post(url).send_json(body)?.body_mut().read_to_string()?;
    if !answer.contains("\"verdict\"") {
        bail!("the answer has no verdict: {answer}");
    }
    Ok(())
}

/// Runs `work` in `count` threads, and returns the first error.
fn in_threads(count: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("threads return their errors"))
    })
}

/// Returns a histogram from 1 µs to 60 s, with three digits.
fn latencies() -> Result<Latencies> {
    Histogram::new_with_bounds(1_000, 60_000_000_000, 3).context("valid bounds")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn report(out: &mut impl Write, name: &str, what: &str, latencies: &Latencies) -> Result<()> {
    let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e6;
    writeln!(
        out,
        "{name:<9} {} {what}, ms: p50 {:.3}  p90 {:.3}  p99 {:.3}  p99.9 {:.3}  max {:.3}",
        latencies.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        latencies.max() as f64 / 1e6
    )?;
    Ok(())
}
