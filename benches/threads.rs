//! Whether checks slow each other down: two threads of one process are compared with two processes of one thread each,
//! which share nothing. `make bench-threads`.
//!
//! Both processes have the same documents and run the same checks. Within a run, two measurements take turns: two
//! threads in the first process, then one thread in each process at the same time. A check is the work of a request on
//! a collection: sign a text, look it up, make a verdict. HTTP is left out, because its threads share little.

#![allow(clippy::print_stdout)]

mod common;

use std::error::Error;
use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use common::{WRITES_MAX, config, open};
use futures::{StreamExt, TryStreamExt, stream};
use hapax::collections::{CheckOptions, Collection, InsertOptions, Settings};
use hapax::telemetry::recorder::Metrics;
use hapax::types::{CollectionName, Content, DocId, OnDuplicate, OnExisting};
use hapax_core::{Banding, Spec, SplitMix64, fmix64};

const SPEC: &str = "hapax1;unicode=17;fold=nfkc_casefold;marks=keep;digits=keep;shingle=word5;sketch=fss256x8;key=none";
/// The first argument of a process that answers commands.
const WORKER: &str = "worker";
const WORDS: usize = 300;
/// The number of different texts to check.
const QUERIES: u64 = 4096;
/// One query in this many is similar to a stored document.
const NEAR_EVERY: u64 = 3;

/// Compares checks by two threads with checks by two processes.
#[derive(Parser)]
struct Arguments {
    /// Documents in each process
    #[arg(long, default_value_t = 100_000)]
    documents: u64,
    /// How often both ways are measured
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, documents] = &words[..]
        && first == WORKER
    {
        return work(documents.parse()?);
    }
    let Arguments { documents, rounds, seconds, .. } = Arguments::parse();
    let mut workers = [Worker::start(documents)?, Worker::start(documents)?];
    workers.iter_mut().try_for_each(|worker| worker.answer().map(drop))?;
    println!("{documents} documents; checks a second\n\ntwo threads | two processes | ratio\n--: | --: | --:");
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        workers[0].ask(2, seconds)?;
        let threads = workers[0].answer()?;
        workers.iter_mut().try_for_each(|worker| worker.ask(1, seconds))?;
        let processes: f64 = workers.iter_mut().map(Worker::answer).sum::<Result<_, _>>()?;
        println!("{threads:.0} | {processes:.0} | {:.3}", threads / processes);
        ratios.push(threads / processes);
    }
    ratios.sort_by(f64::total_cmp);
    println!("\nmedian {:.3} ({:.3} to {:.3})", ratios[rounds / 2], ratios[0], ratios[rounds - 1]);
    Ok(())
}

struct Worker {
    child: Child,
    /// Absent after the worker was told to end.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(documents: u64) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([WORKER, &documents.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, commands, answers })
    }

    fn ask(&mut self, threads: usize, seconds: f64) -> Result<(), Box<dyn Error>> {
        let commands = self.commands.as_mut().expect("a worker ends when it is dropped");
        Ok(writeln!(commands, "{threads} {seconds}")?)
    }

    fn answer(&mut self) -> Result<f64, Box<dyn Error>> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().parse().map_err(|_| format!("a worker said {line:?}"))?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker's data is in a temporary directory, which the worker removes when its input ends.
        self.commands = None;
        let _ = self.child.wait();
    }
}

/// Fills a collection, and prints a line when this is done. Then it answers each line `THREADS SECONDS` with the number
/// of checks per second.
fn work(documents: u64) -> Result<(), Box<dyn Error>> {
    let _metrics = Metrics::install()?;
    let spec = Spec::parse(SPEC)?;
    let settings = Settings::new(spec.clone(), Banding::new(31, 8, spec.shape())?, 0.8);
    let dir = tempfile::tempdir()?;
    let collections = open(&config(dir.path(), settings, 64 << 20))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let collection = runtime.block_on(collections.get(&CollectionName::default_collection()))?;
    runtime.block_on(fill(&collection, documents))?;
    println!("0");
    for line in stdin().lock().lines() {
        let line = line?;
        let (threads, seconds) = line.split_once(' ').ok_or("threads and seconds")?;
        let checks = checks(runtime.handle(), &collection, documents, threads.parse()?, seconds.parse()?);
        println!("{checks}");
    }
    drop(collection);
    collections.close();
    Ok(())
}

async fn fill(collection: &Collection, documents: u64) -> Result<(), Box<dyn Error>> {
    let options = InsertOptions {
        on_duplicate: OnDuplicate::Store,
        on_existing: OnExisting::Conflict,
        limit: 1,
        with_metadata: false,
        explain: false,
        patient: false,
    };
    let insert = |number: u64| async move {
        let id = DocId::new(format!("https://www.example.com/pages/{number}")).expect("an id");
        let prepared = collection.prepare(Content::Text(text(number))).await?;
        collection.insert(id, None, prepared, options).await?.wait().await
    };
    stream::iter(0..documents).map(insert).buffer_unordered(WRITES_MAX).try_for_each(|_| async { Ok(()) }).await?;
    Ok(())
}

/// Returns the number of checks per second.
fn checks(
    runtime: &tokio::runtime::Handle,
    collection: &Collection,
    documents: u64,
    threads: usize,
    seconds: f64,
) -> f64 {
    let over = AtomicBool::new(false);
    let started = Instant::now();
    let count: u64 = std::thread::scope(|scope| {
        let ask = |thread: u64| {
            let queries = queries(documents, thread);
            let over = &over;
            move || runtime.block_on(ask(collection, queries, over))
        };
        let threads: Vec<_> = (0..threads as u64).map(|thread| scope.spawn(ask(thread))).collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        over.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("a check does not panic")).sum()
    });
    count as f64 / started.elapsed().as_secs_f64()
}

async fn ask(collection: &Collection, queries: Vec<String>, over: &AtomicBool) -> u64 {
    let options = CheckOptions {
        threshold: None,
        limit: 10,
        with_metadata: false,
        explain: false,
        payload_digest: None,
        scope: None,
    };
    let mut count = 0;
    for query in queries.iter().cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
        let prepared = collection.prepare(Content::Text(query.clone())).await.expect("a text can be signed");
        std::hint::black_box(collection.check(None, prepared, options.clone()).await.expect("a check succeeds"));
        count += 1;
    }
    count
}

fn queries(documents: u64, thread: u64) -> Vec<String> {
    let query = |number: u64| match number.is_multiple_of(NEAR_EVERY) {
        true => text(fmix64(number ^ thread << 32) % documents) + " and a little more",
        false => text(documents + number + thread * QUERIES),
    };
    (0..QUERIES).map(query).collect()
}

/// Makes about 2 KB of invented words.
fn text(number: u64) -> String {
    let mut random = SplitMix64::new(fmix64(number));
    let mut text = String::with_capacity(WORDS * 8);
    for _ in 0..WORDS {
        let word = random.next_u64() % 20_000;
        text.push_str(&format!("w{word:x}rd "));
    }
    text
}
