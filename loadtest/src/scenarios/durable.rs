//! Durable inserts by many clients, compared with the same load on a server that stores nothing. Both servers run all
//! the time and take turns. In each round, both get the same documents, and each client sends one request after the
//! other. Other work of the machine therefore affects both, and the ratio of a round compares times that are close
//! together.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use hyper::{Method, Uri};
use tokio::runtime::Runtime;

use crate::bench::runtime;
use crate::client::{Connection, Latencies, Pace, Plan, Request, Target, drive, latencies};
use crate::report::Percentiles;
use crate::scrape::{buckets, size_at, sum};
use crate::server::{Launch, Server};
use crate::texts::Texts;
use crate::works::Inserts;

/// The directory of the server that stores nothing, if it exists: a file system without a disk.
const MEMORY_DIR: &str = "/dev/shm";
const COMMIT_DOCUMENTS: &str = "hapax_commit_documents";
/// A round that takes longer than this is cancelled.
const ROUND_MAX: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
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
    documents: u64,
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
    /// The server. It ends when this is dropped.
    _server: Server,
    target: Arc<Target>,
    /// Documents per second, by round.
    rates: Vec<f64>,
    /// Transactions per second, by round.
    commits: Vec<f64>,
    /// A histogram of the number of documents in a transaction: upper bounds and cumulative counts.
    sizes: Vec<(f64, f64)>,
    latencies: Latencies,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let disk_dir = args.disk_dir.clone().unwrap_or_else(std::env::temp_dir);
    let memory_dir = Some(Path::new(MEMORY_DIR)).filter(|dir| dir.is_dir()).unwrap_or(&disk_dir);
    let mut disk = Side::start(args, "disk", &disk_dir)?;
    let mut memory = Side::start(args, "memory", memory_dir)?;
    let (runtime, texts) = (runtime(None, 0)?, Arc::new(Texts::new(args.seed, args.bytes)));
    let mut out = std::io::stdout().lock();
    let window = args.window_ms.map_or("default".to_owned(), |window| window.to_string());
    writeln!(
        out,
        "{} rounds of {} inserts by {} clients, {} bytes each, seed {}; commit.window_ms {window}",
        args.rounds, args.documents, args.clients, args.bytes, args.seed,
    )?;
    for round in 0..=args.rounds {
        // The order changes each round, so that neither server always comes after the other's last writes.
        let sides = if round % 2 == 0 { [&mut disk, &mut memory] } else { [&mut memory, &mut disk] };
        for side in sides {
            side.round(args, &runtime, &texts, round as u64)?;
        }
        if let (Some(disk), Some(memory)) = (disk.rates.last(), memory.rates.last()) {
            writeln!(out, "round {round}: {disk:.0}/s on disk, {memory:.0}/s in memory, {:.3}", disk / memory)?;
        }
    }
    for side in [&disk, &memory] {
        side.print(&mut out)?;
    }
    let ratios: Vec<f64> = disk.rates.iter().zip(&memory.rates).map(|(disk, memory)| disk / memory).collect();
    let (ratio, least) = (median(&ratios), ratios.iter().copied().fold(f64::INFINITY, f64::min));
    let most = ratios.iter().copied().fold(0.0, f64::max);
    writeln!(out, "ratio     {ratio:.3} of the speed in memory (median; {least:.3} to {most:.3})")?;
    if ratio < args.ratio_min {
        writeln!(out, "FAILED  the ratio is below the minimum of {}", args.ratio_min)?;
    }
    Ok(ratio >= args.ratio_min)
}

impl Side {
    fn start(args: &Args, name: &'static str, parent: &Path) -> Result<Self> {
        let mut settings = vec![("HAPAX__DATA__STORE".to_owned(), name.to_owned())];
        settings.extend(args.window_ms.map(|window| ("HAPAX__COMMIT__WINDOW_MS".to_owned(), window.to_string())));
        let launch =
            Launch { binary: args.binary.clone(), parent: parent.to_owned(), settings, processors: Vec::new() };
        let server = Server::start(launch)?;
        let target = Target::new(server.address, None, Duration::from_secs(60))?;
        let (rates, commits, sizes) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { name, _server: server, target, rates, commits, sizes, latencies: latencies() })
    }

    /// Sends the documents of a round. The first round is not counted.
    fn round(&mut self, args: &Args, runtime: &Runtime, texts: &Arc<Texts>, round: u64) -> Result<()> {
        let before = self.scrape(runtime)?;
        // Documents differ from each other, so every insert stores a document.
        let inserts = Inserts::new(texts, "default", "doc");
        let first = round * args.documents;
        let plan = Plan {
            pace: Pace::Closed,
            duration: ROUND_MAX,
            warm_up: Duration::ZERO,
            connections: args.clients,
            first,
            end: Some(first + args.documents),
        };
        let begun = Instant::now();
        let (tally, _) = drive(runtime, &self.target, &inserts, plan);
        let seconds = begun.elapsed().as_secs_f64();
        if let Some(error) = tally.kinds.values().find_map(|kind| kind.wrong.keys().next()) {
            bail!("a document was not stored: {error}");
        }
        let (good, after) = (tally.good(), self.scrape(runtime)?);
        if round > 0 {
            let count = format!("{COMMIT_DOCUMENTS}_count");
            // Refused documents are left out: on a busy machine the server refuses a few of the first documents.
            self.rates.push(good.len() as f64 / seconds);
            self.commits.push((sum(&after, &count) - sum(&before, &count)) / seconds);
            self.latencies.add(good).expect("equal bounds");
            self.count_sizes(&buckets(&before, COMMIT_DOCUMENTS), &buckets(&after, COMMIT_DOCUMENTS));
        }
        // A pause, so that the background checkpoint of this server does not slow the other one.
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    }

    fn scrape(&self, runtime: &Runtime) -> Result<String> {
        let request = Request::bare("metrics", Method::GET, Uri::from_static("/metrics"));
        let mut connection = Connection::new(Arc::clone(&self.target));
        Ok(String::from_utf8(runtime.block_on(connection.send(&request))?.body)?)
    }

    fn count_sizes(&mut self, before: &[(f64, f64)], after: &[(f64, f64)]) {
        self.sizes.resize(after.len(), (0.0, 0.0));
        for (at, (bound, count)) in after.iter().enumerate() {
            let earlier = before.get(at).map_or(0.0, |(_, count)| *count);
            self.sizes[at] = (*bound, self.sizes[at].1 + count - earlier);
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let (name, at) = (self.name, |share: f64| size_at(&self.sizes, share));
        let syncs = if name == "disk" { "one sync each" } else { "none synced" };
        let (rate, commits) = (median(&self.rates), median(&self.commits));
        writeln!(out, "{name:<9} {rate:.0} inserts/s, {commits:.0} commits/s ({syncs})")?;
        let (half, most, all) = (at(0.5), at(0.99), at(1.0));
        writeln!(out, "{name:<9} documents a commit: p50 <= {half}, p99 <= {most}, max <= {all}")?;
        let ms = Percentiles::of(&self.latencies);
        writeln!(
            out,
            "{name:<9} {} inserts, ms: p50 {:.3}  p90 {:.3}  p99 {:.3}  p99.9 {:.3}  max {:.3}",
            self.latencies.len(),
            ms.p50,
            ms.p90,
            ms.p99,
            ms.p99_9,
            ms.max
        )?;
        Ok(())
    }
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
    fn the_median_is_the_middle_one() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[]), 0.0);
    }
}
