//! Compares the index of hapax with that of gaoya and with a plain map: `make bench-index` builds them and prints the
//! tables.
//!
//! Every pass of every contender is a separate process, so that its memory is that of one index. Indexes are built one
//! after the other. For checks, the index of hapax stays in memory, and takes turns with one other contender at a time.
//! In each round, the other contender is measured between two measurements of hapax and compared with their mean.

#![allow(clippy::print_stdout)]

mod contender;
mod documents;
mod own;
mod plain;
mod process;
mod report;

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Parser;

use contender::{Pass, Plan};
use process::{Figures, Process, Program};
use report::Measured;

/// The environment variable in which the Makefile names gaoya's program.
const GAOYA: &str = "HAPAX_PEERS_INDEX";
/// The first argument of a contender's process.
const CONTENDER: &str = "contender";
const ROUNDS: usize = 7;
/// A measurement has one query for this many documents, up to a maximum.
const DOCUMENTS_PER_QUERY: u32 = 40;
const QUERIES_MAX: u32 = 20_000;

/// Measures the index: memory, inserts and checks.
#[derive(Parser)]
struct Arguments {
    /// Documents in the index.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u32).range(10_000..=1_000_000_000))]
    documents: u32,
    /// Slots of a signature (of 8 bits each) and banding, separated by commas.
    #[arg(long, value_delimiter = ',', default_values = ["128:21x6", "256:31x8"])]
    bandings: Vec<Shape>,
    /// The contenders to measure, separated by commas; hapax is always measured.
    #[arg(long, value_delimiter = ',', default_values = ["hapax", "gaoya", "dashmap"])]
    only: Vec<String>,
    /// Documents that hapax reads of one bucket, as `limits.bucket_read_max`.
    #[arg(long, default_value_t = 256)]
    bucket_read_max: usize,
    /// Fails if the bytes per document are over their limit, or if hapax and the plain map do not find the same.
    #[arg(long)]
    check: bool,
    #[arg(long, hide = true)]
    bench: bool,
}

/// Slots, bands and rows, written as `128:21x6`.
#[derive(Clone, Copy)]
struct Shape {
    k: usize,
    bands: usize,
    rows: usize,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(k, banding)| {
            let (bands, rows) = banding.split_once('x')?;
            Some(Self { k: k.parse().ok()?, bands: bands.parse().ok()?, rows: rows.parse().ok()? })
        });
        match parts {
            Some(shape) if shape.bands > 0 && shape.rows > 0 && shape.bands * shape.rows <= shape.k => Ok(shape),
            _ => Err(format!("{text:?} is not like 128:21x6, or the bands do not fit")),
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, plan @ ..] = &words[..]
        && first == CONTENDER
    {
        match name.as_str() {
            "hapax" => contender::run::<own::Own>(plan)?,
            "dashmap" => contender::run::<plain::Plain>(plan)?,
            _ => return Err(format!("no such contender: {name}").into()),
        }
        return Ok(ExitCode::SUCCESS);
    }

    let arguments = Arguments::parse();
    let mut fails = false;
    for shape in &arguments.bandings {
        let plan = Plan {
            pass: Pass::Insert,
            documents: arguments.documents,
            k: shape.k,
            bands: shape.bands,
            rows: shape.rows,
            bucket_read_max: arguments.bucket_read_max,
        };
        let (own, others) = measure(&plan, &contenders(&arguments.only)?)?;
        fails |= !report::print(&plan, &own, &others);
    }
    report::print_circumstances();
    Ok(if fails && arguments.check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns names and programs, hapax first.
fn contenders(only: &[String]) -> Result<Vec<(&'static str, Program)>, Box<dyn Error>> {
    let this = std::env::current_exe()?.into_os_string();
    let own = |name| Program { path: this.clone(), arguments: vec![CONTENDER, name] };
    let mut contenders = vec![("hapax", own("hapax"))];
    for name in only {
        match name.as_str() {
            "hapax" => {}
            "dashmap" => contenders.push(("DashMap", own("dashmap"))),
            "gaoya" => match std::env::var_os(GAOYA) {
                Some(path) => contenders.push(("gaoya", Program { path, arguments: Vec::new() })),
                None => println!("gaoya is left out: `make bench-index` builds it and sets {GAOYA}\n"),
            },
            _ => return Err(format!("no such contender: {name}").into()),
        }
    }
    Ok(contenders)
}

fn measure(plan: &Plan, contenders: &[(&'static str, Program)]) -> Result<(Measured, Vec<Measured>), Box<dyn Error>> {
    let mut measured = Vec::new();
    for (name, program) in contenders {
        let mut one = Measured { name, ..Measured::default() };
        for pass in [Pass::Grow, Pass::Grow, Pass::Shared, Pass::Build] {
            let (_, figures) = Process::start(program, &Plan { pass, ..plan.clone() })?;
            match pass {
                Pass::Grow => one.grow.push(figures),
                Pass::Shared => one.shared = figures,
                _ => one.build = figures,
            }
        }
        measured.push(one);
    }

    let count = (plan.documents / DOCUMENTS_PER_QUERY).min(QUERIES_MAX);
    let mut queries = Queries { next: count, count };
    let mut others = measured.split_off(1);
    let mut own = measured.remove(0);
    let (mut own_process, figures) = Process::start(&contenders[0].1, plan)?;
    own.insert = figures;
    // All contenders get the same queries, and the pages of the index are already in memory.
    let same = format!("check 1 0 {count}");
    own.matches = own_process.ask(&same)?["matches"];
    for (one, (_, program)) in others.iter_mut().zip(&contenders[1..]) {
        let (mut process, figures) = Process::start(program, plan)?;
        one.insert = figures;
        one.matches = process.ask(&same)?["matches"];
        for _ in 0..ROUNDS {
            for threads in 0..one.checks.len() {
                let command = format!("check {}", threads + 1);
                let before = own_process.ask(&queries.of(&command))?["ns"];
                let ns = process.ask(&queries.of(&command))?["ns"];
                let after = own_process.ask(&queries.of(&command))?["ns"];
                own.checks[threads].extend([before, after]);
                one.checks[threads].push(ns);
                one.ratios[threads].push(ns / ((before + after) / 2.0));
            }
            own.latencies.push(own_process.ask(&queries.of("latency"))?);
            one.latencies.push(process.ask(&queries.of("latency"))?);
        }
        one.hot = process.ask(&queries.of("hot"))?;
    }
    if others.is_empty() {
        for _ in 0..ROUNDS {
            for threads in 0..own.checks.len() {
                let figures: Figures = own_process.ask(&queries.of(&format!("check {}", threads + 1)))?;
                own.checks[threads].push(figures["ns"]);
            }
            own.latencies.push(own_process.ask(&queries.of("latency"))?);
        }
    }
    own.hot = own_process.ask(&queries.of("hot"))?;
    Ok((own, others))
}

/// The next queries. Each is asked only once, so that no answer is in a cache.
struct Queries {
    next: u32,
    count: u32,
}

impl Queries {
    fn of(&mut self, command: &str) -> String {
        let first = self.next;
        self.next += self.count;
        format!("{command} {first} {}", self.count)
    }
}
