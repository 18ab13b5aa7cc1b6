//! Durable inserts by many clients, compared with the same load on a server that stores nothing. Both servers run all
//! the time and take turns. In each round, both get the same documents, and each client sends one request after the
//! other. Other work of the machine thus affects both, and the ratio of a round compares neighbours.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::server::{Server, agent, buckets, sum};
use crate::text::Texts;
use crate::{Latencies, in_threads, latencies, nanos, report};

/// The directory of the server that stores nothing, if it exists: a file system without a disk.
const MEMORY_DIR: &str = "/dev/shm";
const COMMIT_DOCUMENTS: &str = "hapax_commit_documents";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Program of the server, which is started on empty directories
    #[arg(long, default_value = "target/release/hapax")]
    binary: PathBuf,
    /// Number of clients, each with one request at a time
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Rounds to measure, after one that is not counted
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Documents in each round
    #[arg(long, default_value_t = 10_000)]
    documents: usize,
    /// Bytes of each document
    #[arg(long, default_value_t = 2048)]
    bytes: usize,
    /// Value of `commit.window_ms` [default: the server's]
    #[arg(long)]
    window_ms: Option<u64>,
    /// Directory for the data of the server that stores documents [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    disk_dir: Option<PathBuf>,
    /// Seed of the documents
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fail if the median ratio is lower than this
    #[arg(long, default_value_t = 0.0)]
    ratio_min: f64,
}

/// One of the two servers, with its measurements.
struct Side {
    name: &'static str,
    server: Server,
    /// Documents per second, by round.
    rates: Vec<f64>,
    /// Transactions per second, by round.
    commits: Vec<f64>,
    /// A histogram of the documents in a transaction: upper bounds and cumulative counts.
    sizes: Vec<(f64, f64)>,
    latencies: Latencies,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let disk_dir = args.disk_dir.clone().unwrap_or_else(std::env::temp_dir);
    let memory_dir = Some(Path::new(MEMORY_DIR)).filter(|dir| dir.is_dir()).unwrap_or(&disk_dir);
    let mut disk = Side::start(args, "disk", &disk_dir)?;
    let mut memory = Side::start(args, "memory", memory_dir)?;
    let texts = Texts::new(args.seed, args.bytes);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{} rounds of {} inserts by {} clients, {} bytes each, seed {}; commit.window_ms {}",
        args.rounds,
        args.documents,
        args.clients,
        args.bytes,
        args.seed,
        args.window_ms.map_or("default".to_owned(), |window| window.to_string()),
    )?;
    for round in 0..=args.rounds {
        let bodies = bodies(args, &texts, round);
        // The order changes each round, so that neither server always comes after the other's last writes.
        let sides = if round % 2 == 0 { [&mut disk, &mut memory] } else { [&mut memory, &mut disk] };
        for side in sides {
            side.round(args, &bodies, round > 0)?;
        }
        if let (Some(disk), Some(memory)) = (disk.rates.last(), memory.rates.last()) {
            writeln!(out, "round {round}: {disk:.0}/s on disk, {memory:.0}/s in memory, {:.3}", disk / memory)?;
        }
    }
    for side in [&disk, &memory] {
        let at = |share: f64| size_at(&side.sizes, share);
        let syncs = if side.name == "disk" { "one sync each" } else { "none synced" };
        writeln!(
            out,
            "{:<9} {:.0} inserts/s, {:.0} commits/s ({syncs})",
            side.name,
            median(&side.rates),
            median(&side.commits)
        )?;
        writeln!(
            out,
            "{:<9} documents a commit: p50 <= {}, p99 <= {}, max <= {}",
            side.name,
            at(0.5),
            at(0.99),
            at(1.0)
        )?;
        report(&mut out, side.name, "inserts", &side.latencies)?;
    }
    let ratios: Vec<f64> = disk.rates.iter().zip(&memory.rates).map(|(disk, memory)| disk / memory).collect();
    let (ratio, least) = (median(&ratios), ratios.iter().copied().fold(f64::INFINITY, f64::min));
    let most = ratios.iter().copied().fold(0.0, f64::max);
    writeln!(out, "ratio     {ratio:.3} of the speed in memory (median; {least:.3} to {most:.3})")?;
    if ratio < args.ratio_min {
        bail!("the ratio is below the minimum of {}", args.ratio_min);
    }
    Ok(())
}

/// Makes documents that differ from each other, so that every insert stores one.
fn bodies(args: &Args, texts: &Texts, round: usize) -> Vec<String> {
    let first = (round * args.documents) as u64;
    (first..first + args.documents as u64)
        .map(|n| serde_json::json!({ "id": format!("doc-{n}"), "text": texts.document(n) }).to_string())
        .collect()
}

impl Side {
    fn start(args: &Args, name: &'static str, parent: &Path) -> Result<Self> {
        let window = args.window_ms.map(|window| window.to_string());
        let mut settings = vec![("HAPAX__DATA__STORE", name)];
        settings.extend(window.iter().map(|window| ("HAPAX__COMMIT__WINDOW_MS", window.as_str())));
        let server = Server::start_in(&args.binary, parent, &settings)?;
        Ok(Self { name, server, rates: Vec::new(), commits: Vec::new(), sizes: Vec::new(), latencies: latencies()? })
    }

    fn round(&mut self, args: &Args, bodies: &[String], counts: bool) -> Result<()> {
        let scraper = agent(1);
        let before = self.server.scrape(&scraper)?;
        let url = format!("{}/v1/collections/default/documents?on_duplicate=store&limit=1", self.server.url);
        let (next, all) = (AtomicUsize::new(0), Mutex::new(latencies()?));
        let begun = Instant::now();
        in_threads(args.clients, || {
            let (agent, mut own) = (agent(1), latencies()?);
            while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
                let sent = Instant::now();
                let mut answer = agent.post(&url).content_type("application/json").send(body.as_str())?;
                let text = answer.body_mut().read_to_string()?;
                own.saturating_record(nanos(sent.elapsed()));
                if !text.contains("\"stored\":true") {
                    bail!("a document was not stored: {text}");
                }
            }
            all.lock().expect("no thread panics with it").add(&own).context("equal ranges")
        })?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = self.server.scrape(&scraper)?;
        if counts {
            let count = format!("{COMMIT_DOCUMENTS}_count");
            self.rates.push(bodies.len() as f64 / seconds);
            self.commits.push((sum(&after, &count) - sum(&before, &count)) / seconds);
            self.latencies.add(all.into_inner().expect("no thread panics with it")).context("equal ranges")?;
            self.count_sizes(&buckets(&before, COMMIT_DOCUMENTS), &buckets(&after, COMMIT_DOCUMENTS));
        }
        // A pause, so that the other server does not pay for this one's background checkpoint.
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    }

    fn count_sizes(&mut self, before: &[(f64, f64)], after: &[(f64, f64)]) {
        self.sizes.resize(after.len(), (0.0, 0.0));
        for (at, (bound, count)) in after.iter().enumerate() {
            let earlier = before.get(at).map_or(0.0, |(_, count)| *count);
            self.sizes[at] = (*bound, self.sizes[at].1 + count - earlier);
        }
    }
}

/// Returns the upper bound of the bucket that this share of the observations does not exceed.
fn size_at(buckets: &[(f64, f64)], share: f64) -> f64 {
    let total = buckets.last().map_or(0.0, |(_, count)| *count);
    buckets.iter().find(|(_, count)| *count >= share * total).map_or(0.0, |(bound, _)| *bound)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_give_bounds() {
        let scrape = "x_bucket{collection=\"default\",le=\"1\"} 2\nx_bucket{collection=\"default\",le=\"2\"} 8\n\
                      x_bucket{collection=\"default\",le=\"+Inf\"} 8\nx_sum{collection=\"default\"} 14\n";
        let read = buckets(scrape, "x");
        assert_eq!(read, [(1.0, 2.0), (2.0, 8.0), (f64::INFINITY, 8.0)]);
        assert_eq!([0.25, 0.5, 1.0].map(|share| size_at(&read, share)), [1.0, 2.0, 2.0]);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    }
}
