//! An index and a plan -> figures. Every contender's process does this work, also that of hapax.
//!
//! A process makes one pass, which builds one index. So the memory of the process is that of the index. It prints a
//! line of figures, `name=value` separated by spaces. After the pass [`Pass::Insert`] it keeps the index and answers
//! each line on stdin with another line of figures:
//!
//! - `check THREADS FIRST COUNT`: runs queries from FIRST on in one go. Returns `ns` and `matches`, per check.
//! - `latency FIRST COUNT`: runs queries one by one. Returns `p50`, `p99` and `max` in nanoseconds of wall time.
//! - `hot FIRST COUNT`: inserts documents that share the rows of one band, one for every five stored documents. Returns
//!   the CPU times of queries that share these rows too, before and after the insertion, and of other queries
//!   afterwards.
//!
//! The process ends when its stdin ends. Signatures are made outside the timed part. Work of a single thread is timed
//! by its CPU time, which does not include waiting for other processes. Work of two threads, and latencies, are timed
//! by wall time.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::documents::{self, Documents};

/// The number of threads in passes that use several.
pub(crate) const THREADS: usize = 2;
/// The similarity from which a candidate is a match.
pub(crate) const THRESHOLD: f64 = 0.8;
/// The number of stored documents for each hot document that is inserted.
pub(crate) const STORED_PER_HOT: u32 = 5;

const SEED: u64 = 2017;
const BLOCK: u32 = 1024;
/// The number of inserts after which an index does its upkeep: as many as a collection writes to disk at a time for 64
/// clients.
const UPKEEP_EVERY: u32 = 64;
/// The documents that threads insert between two barriers: enough to make the cost of starting threads negligible.
const SHARED_BLOCK: u32 = 16 * BLOCK;
const SLOW: Duration = Duration::from_millis(1);
const HISTOGRAM_MAX_NS: u64 = 1_000_000_000_000;
/// The time limit for measuring latencies. In an index without a bound, a query whose candidates are a large bucket
/// takes long.
const LATENCY_FOR_MAX: Duration = Duration::from_millis(500);
/// The number of batches in which checks with and without a hot bucket are measured. Of the percentiles of these
/// batches, the smallest counts, because other processes can only make a batch slower.
const HOT_BATCHES: usize = 5;

/// The index to build, and the way to build it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) pass: Pass,
    pub(crate) documents: u32,
    /// The number of slots of a signature, 8 bits each.
    pub(crate) k: usize,
    pub(crate) bands: usize,
    pub(crate) rows: usize,
    /// The largest number of documents read from one bucket, if the index has such a bound.
    pub(crate) bucket_read_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Inserts documents one by one from one thread.
    Insert,
    /// Inserts documents in the same way, and times every insert separately.
    Grow,
    /// Inserts documents from two threads at a time.
    Shared,
    /// Inserts all documents at once, in the way that the index offers for this.
    Build,
}

/// Inserts a document, given its number and signature.
pub(crate) type InsertShared<I> = fn(&I, u32, &mut Vec<u8>);
/// Inserts documents at once on [`THREADS`] threads, and returns the time that this takes.
pub(crate) type Build<I> = fn(&mut I, &mut dyn Iterator<Item = (u32, Vec<u8>)>) -> Duration;

/// The work that another thread does between inserts.
pub(crate) type Upkeep = Box<dyn FnMut() + Send>;

pub(crate) trait Index: Sync + Sized {
    /// The buffers that a thread keeps from one check to the next.
    type Scratch: Default + Send;
    /// Inserts a document while another thread inserts too, if the index can do this.
    const INSERT_SHARED: Option<InsertShared<Self>> = None;
    /// Inserts all documents at once, if the index can do this.
    const BUILD: Option<Build<Self>> = None;

    fn new(plan: &Plan) -> Self;
    /// Returns the work that another thread does in a server after each commit, if there is such work. Its CPU
    /// time is added to that of the inserts.
    fn upkeep(&self) -> Option<Upkeep> {
        None
    }
    /// The number of slots of a signature that the index uses, from the first slot on.
    fn slots(plan: &Plan) -> usize {
        plan.k
    }
    /// Inserts a document. The signature is a vector without spare room, and the index may keep it.
    fn insert(&mut self, number: u32, signature: &mut Vec<u8>);
    /// Returns the number of documents at or above [`THRESHOLD`]. Each candidate is compared, and the matches are
    /// sorted.
    fn check(&self, scratch: &mut Self::Scratch, query: &[u8]) -> usize;
}

/// Makes the pass that the arguments name, then answers commands.
pub(crate) fn run<I: Index>(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let plan = Plan::parse(arguments)?;
    let source = Source { documents: Documents { seed: SEED }, slots: I::slots(&plan), rows: plan.rows };
    match plan.pass {
        Pass::Insert => {
            let (mut index, figures) = insert::<I>(&plan, source);
            answer(&figures)?;
            for line in io::stdin().lock().lines() {
                let line = line?;
                let figures = command(&mut index, &plan, source, &line).ok_or_else(|| format!("no command: {line}"))?;
                answer(&figures)?;
            }
            Ok(())
        }
        Pass::Grow => answer(&grow::<I>(&plan, source)),
        Pass::Shared => answer(&shared::<I>(&plan, source)),
        Pass::Build => answer(&build::<I>(&plan, source)),
    }
}

type Figures = Vec<(String, f64)>;

fn figures<const N: usize>(named: [(&str, f64); N]) -> Figures {
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

fn answer(figures: &Figures) -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = figures.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", words.join(" "))?;
    Ok(out.flush()?)
}

/// Returns `insert_ns` per document; `early_ns` and `late_ns` for a window near the beginning and for the last
/// twentieth; and `rss` and `peak`, the resident bytes per document after and during the pass.
fn insert<I: Index>(plan: &Plan, source: Source) -> (I, Figures) {
    let early = plan.early();
    let late = plan.documents - plan.documents / 20..plan.documents;
    let [mut all_time, mut early_time, mut late_time] = [Spent::default(); 3];
    // This is allocated before memory is measured, so that the buffer of signatures does not count.
    source.fill(0..BLOCK, &mut Vec::new());
    let before = resident("VmRSS");

    let mut index = I::new(plan);
    let mut upkeep = index.upkeep();
    let mut block = Vec::new();
    for first in (0..plan.documents).step_by(BLOCK as usize) {
        let numbers = first..(first + BLOCK).min(plan.documents);
        source.fill(numbers.clone(), &mut block);
        let started = cpu_time();
        for (number, signature) in numbers.clone().zip(&mut block) {
            index.insert(number, signature);
            if let Some(upkeep) = &mut upkeep
                && number % UPKEEP_EVERY == 0
            {
                upkeep();
            }
        }
        let time = cpu_time() - started;
        for (window, spent) in [(&(0..u32::MAX), &mut all_time), (&early, &mut early_time), (&late, &mut late_time)] {
            if window.contains(&numbers.start) {
                spent.add(time, numbers.len());
            }
        }
    }

    drop(block);
    let documents = f64::from(plan.documents);
    let figures = figures([
        ("insert_ns", all_time.ns()),
        ("early_ns", early_time.ns()),
        ("late_ns", late_time.ns()),
        ("rss", (resident("VmRSS") - before) / documents),
        ("peak", (resident("VmHWM") - before) / documents),
    ]);
    (index, figures)
}

/// Times every insert alone, from the first to the last, while another thread does the upkeep. Returns `p50`, `p99` and
/// `max` in nanoseconds of wall time, `cpu_max` of CPU time, and `slow.NUMBER`, the CPU time of each insert that took
/// [`SLOW`] or longer. CPU time includes time in which the host of a virtual machine took the processor away. An insert
/// that is slow in only one pass is such a case.
fn grow<I: Index>(plan: &Plan, source: Source) -> Figures {
    let mut index = I::new(plan);
    let upkeep = index.upkeep().map(on_thread);
    let (mut wall, mut cpu_max, mut slow) = (histogram(), Duration::ZERO, Vec::new());
    let mut block = Vec::new();
    for first in (0..plan.documents).step_by(BLOCK as usize) {
        let numbers = first..(first + BLOCK).min(plan.documents);
        source.fill(numbers.clone(), &mut block);
        for (number, signature) in numbers.zip(&mut block) {
            let started_cpu = cpu_time();
            let started = Instant::now();
            index.insert(number, signature);
            record(&mut wall, started.elapsed());
            let cpu = cpu_time() - started_cpu;
            cpu_max = cpu_max.max(cpu);
            if cpu >= SLOW {
                slow.push((format!("slow.{number}"), ns(cpu)));
            }
            if let Some(due) = &upkeep
                && number % UPKEEP_EVERY == 0
            {
                // If the thread is busy, this call may be dropped, because the next one comes soon.
                let _ = due.try_send(());
            }
        }
    }
    leave(index);
    let [p50, p99, max] = quantiles(&wall);
    slow.extend(figures([("p50", p50), ("p99", p99), ("max", max), ("cpu_max", ns(cpu_max))]));
    slow
}

/// Starts a thread that does the work each time it is asked to, until the process ends.
fn on_thread(mut work: Upkeep) -> SyncSender<()> {
    let (sender, due) = sync_channel(1);
    std::thread::spawn(move || due.into_iter().for_each(|()| work()));
    sender
}

/// Returns `insert_ns`, the wall time per document if each of [`THREADS`] threads inserts its share. Returns nothing if
/// the index cannot do this.
fn shared<I: Index>(plan: &Plan, source: Source) -> Figures {
    let Some(insert) = I::INSERT_SHARED else { return Vec::new() };
    let index = I::new(plan);
    let mut wall = Duration::ZERO;
    let mut block = Vec::new();
    for first in (0..plan.documents).step_by(SHARED_BLOCK as usize) {
        let numbers: Vec<u32> = (first..(first + SHARED_BLOCK).min(plan.documents)).collect();
        source.fill(numbers[0]..numbers[0] + numbers.len() as u32, &mut block);
        let share = numbers.len().div_ceil(THREADS);
        let started = Instant::now();
        std::thread::scope(|scope| {
            for (numbers, signatures) in numbers.chunks(share).zip(block.chunks_mut(share)) {
                let index = &index;
                scope.spawn(move || {
                    for (&number, signature) in numbers.iter().zip(signatures) {
                        insert(index, number, signature);
                    }
                });
            }
        });
        wall += started.elapsed();
    }
    leave(index);
    figures([("insert_ns", ns(wall) / f64::from(plan.documents))])
}

/// Returns `build_ns`, the wall time per document. Returns nothing if the index cannot do this.
fn build<I: Index>(plan: &Plan, source: Source) -> Figures {
    let Some(build) = I::BUILD else { return Vec::new() };
    let mut documents = (0..plan.documents).map(|number| {
        let mut signature = vec![0; source.slots];
        source.documents.stored(u64::from(number), &mut signature);
        (number, signature)
    });
    let mut index = I::new(plan);
    let wall = build(&mut index, &mut documents);
    leave(index);
    figures([("build_ns", ns(wall) / f64::from(plan.documents))])
}

/// Ends the process, which frees the memory faster than dropping the index.
fn leave<I: Index>(index: I) {
    std::mem::forget(index);
}

fn command<I: Index>(index: &mut I, plan: &Plan, source: Source, line: &str) -> Option<Figures> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    match words[0] {
        "check" => {
            let queries = source.queries(plan, number(2)?, number(3)?);
            Some(check(index, (number(1)? as usize).max(1), &queries))
        }
        "latency" => {
            let queries = source.queries(plan, number(1)?, number(2)?);
            let [p50, p99, max] = quantiles(&latencies(index, &queries, ClockId::Monotonic, LATENCY_FOR_MAX));
            Some(figures([("p50", p50), ("p99", p99), ("max", max)]))
        }
        "hot" => Some(hot(index, plan, source, &source.queries(plan, number(1)?, number(2)?))),
        _ => None,
    }
}

fn check<I: Index>(index: &I, threads: usize, queries: &[Vec<u8>]) -> Figures {
    let work = |queries: &[Vec<u8>]| {
        let mut scratch = I::Scratch::default();
        queries.iter().map(|query| index.check(&mut scratch, query)).sum::<usize>()
    };
    let (time, matches) = if threads == 1 {
        let started = cpu_time();
        let matches = work(queries);
        (cpu_time() - started, matches)
    } else {
        let started = Instant::now();
        let matches = std::thread::scope(|scope| {
            let shares = queries.chunks(queries.len().div_ceil(threads));
            let threads: Vec<_> = shares.map(|queries| scope.spawn(|| work(queries))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a check does not panic")).sum()
        });
        (started.elapsed(), matches)
    };
    let count = queries.len() as f64;
    figures([("ns", ns(time) / count), ("matches", matches as f64 / count)])
}

fn hot<I: Index>(index: &mut I, plan: &Plan, source: Source, queries: &[Vec<u8>]) -> Figures {
    let mut hitting = queries.to_vec();
    hitting.iter_mut().for_each(|query| documents::boilerplate(&mut query[..source.rows]));
    let [before_p50, before_p99] = cpu_quantiles(index, &hitting);
    for number in plan.documents..plan.documents + plan.documents / STORED_PER_HOT {
        let mut signature = vec![0; source.slots];
        source.documents.hot(u64::from(number), source.rows, &mut signature);
        index.insert(number, &mut signature);
    }
    let [hit_p50, hit_p99] = cpu_quantiles(index, &hitting);
    let [other_p50, other_p99] = cpu_quantiles(index, queries);
    figures([
        ("before_p50", before_p50),
        ("before_p99", before_p99),
        ("hit_p50", hit_p50),
        ("hit_p99", hit_p99),
        ("other_p50", other_p50),
        ("other_p99", other_p99),
    ])
}

/// Returns nanoseconds of CPU time: the smallest 50th and the smallest 99th percentile of the batches.
fn cpu_quantiles<I: Index>(index: &I, queries: &[Vec<u8>]) -> [f64; 2] {
    let batches = queries.chunks(queries.len().div_ceil(HOT_BATCHES));
    let for_max = LATENCY_FOR_MAX / HOT_BATCHES as u32;
    let quantiles: Vec<[f64; 3]> =
        batches.map(|queries| quantiles(&latencies(index, queries, ClockId::ThreadCPUTime, for_max))).collect();
    [0, 1].map(|which| quantiles.iter().map(|quantiles| quantiles[which]).fold(f64::INFINITY, f64::min))
}

fn latencies<I: Index>(index: &I, queries: &[Vec<u8>], clock: ClockId, for_max: Duration) -> Histogram<u64> {
    let (mut times, mut scratch) = (histogram(), I::Scratch::default());
    let begun = Instant::now();
    for query in queries {
        let started = time(clock);
        black_box(index.check(&mut scratch, query));
        record(&mut times, time(clock) - started);
        if begun.elapsed() > for_max {
            break;
        }
    }
    times
}

/// Makes signatures in the form that the index takes.
#[derive(Clone, Copy)]
struct Source {
    documents: Documents,
    slots: usize,
    rows: usize,
}

impl Source {
    /// Makes the signatures of stored documents. The earlier signatures in the block are overwritten.
    fn fill(self, numbers: std::ops::Range<u32>, block: &mut Vec<Vec<u8>>) {
        block.resize_with(numbers.len(), Vec::new);
        for (number, signature) in numbers.zip(block) {
            signature.resize(self.slots, 0);
            self.documents.stored(u64::from(number), signature);
        }
    }

    fn queries(self, plan: &Plan, first: u64, count: u64) -> Vec<Vec<u8>> {
        let query = |number| {
            let mut query = vec![0; self.slots];
            self.documents.query(number, u64::from(plan.documents), &mut query);
            query
        };
        (first..first + count).map(query).collect()
    }
}

/// The CPU time of inserts, and the number of inserts.
#[derive(Clone, Copy, Default)]
struct Spent {
    time: Duration,
    documents: usize,
}

impl Spent {
    fn add(&mut self, time: Duration, documents: usize) {
        self.time += time;
        self.documents += documents;
    }

    fn ns(&self) -> f64 {
        ns(self.time) / self.documents as f64
    }
}

impl Plan {
    /// The documents whose inserts count as early. They begin after 100,000 documents, or after a tenth of all
    /// documents if there are fewer than a million. Their number equals the number of documents before them.
    pub(crate) fn early(&self) -> std::ops::Range<u32> {
        let from = (self.documents / 10).min(100_000);
        from..2 * from
    }

    /// The fields that [`Plan::parse`] reads.
    #[allow(dead_code, reason = "contenders only read them")]
    pub(crate) fn arguments(&self) -> Vec<String> {
        let Self { pass, documents, k, bands, rows, bucket_read_max } = self;
        let pass = PASSES.iter().find(|(_, named)| named == pass).expect("every pass has a name").0;
        let numbers = [*documents as usize, *k, *bands, *rows, *bucket_read_max].map(|number| number.to_string());
        [pass.to_owned()].into_iter().chain(numbers).collect()
    }

    fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let [pass, numbers @ ..] = arguments else { return Err("usage: PASS DOCUMENTS K BANDS ROWS READ_MAX".into()) };
        let (_, pass) = *PASSES.iter().find(|(name, _)| name == pass).ok_or("no such pass")?;
        let numbers: Vec<usize> = numbers.iter().map(|number| number.parse()).collect::<Result<_, _>>()?;
        let [documents, k, bands, rows, bucket_read_max] = numbers[..] else { return Err("five numbers".into()) };
        Ok(Self { pass, documents: u32::try_from(documents)?, k, bands, rows, bucket_read_max })
    }
}

const PASSES: [(&str, Pass); 4] =
    [("insert", Pass::Insert), ("grow", Pass::Grow), ("shared", Pass::Shared), ("build", Pass::Build)];

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(HISTOGRAM_MAX_NS, 3).expect("valid bounds")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(time.as_nanos() as u64);
}

fn quantiles(histogram: &Histogram<u64>) -> [f64; 3] {
    [histogram.value_at_quantile(0.5), histogram.value_at_quantile(0.99), histogram.max()].map(|ns| ns as f64)
}

fn ns(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// Returns the CPU time of this thread, which does not include the time in which the thread waits.
fn cpu_time() -> Duration {
    time(ClockId::ThreadCPUTime)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns `VmRSS`, or its maximum `VmHWM`, of this process in bytes; NaN without `/proc`.
fn resident(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).map_or(f64::NAN, |kib| kib * 1024.0)
}
