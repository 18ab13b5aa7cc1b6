//! `hapax tune`: targets -> a banding, and its recall at each similarity. `tuning::choose` makes the choice.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use hapax_core::tuning::{self, Asked, SimulatedPoint, Simulation, SketchedPair, Targets};
use hapax_core::{Banding, SignatureShape, SketchKind};
use rayon::prelude::*;
use serde::Serialize;

use super::exit::ExitStatus;
use super::plot::{self, Curve};
use crate::verdicts::check_threshold;

/// Similarities in the table.
const TABLE: [f64; 15] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];
/// A note is printed if one lookup compares more unrelated documents than this.
const UNRELATED_MANY: f64 = 100.0;
/// Similarities of a simulation. They are closest together where the curve is steep.
const SIMULATED: [f64; 19] =
    [0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.9, 0.95, 0.98];

/// Choose a banding, and show its recall and its cost.
///
/// Bands propose candidates, and verification compares them with the document. A document is reported if it is proposed
/// and then reaches the threshold. More bands propose more candidates; more rows propose fewer.
///
/// Without targets, this prints the banding that a server chooses for a new collection with this signature and
/// threshold. With targets, it chooses the number of rows that proposes the fewest candidates at --s-lo and still
/// reaches --recall. Then it uses as many bands of these rows as --bands-wanted allows.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax tune                                       the default for threshold 0.8
  hapax tune --threshold 0.7 --documents 5e7       the default for 0.7, and its cost
  hapax tune --recall 0.999 --candidates-max 100   find more, within a limit on unrelated documents
  hapax tune --bands 16 --rows 8                   show what a given banding does
  hapax tune --plot curve.svg                      draw the S-curve
  hapax tune --simulate --plot curve.svg           draw it with measured points
  hapax tune --json | jq .banding                  as in PUT and PATCH of a collection")]
pub struct Args {
    /// Similarity from which two documents are near duplicates
    #[arg(long, default_value_t = 0.8, value_parser = similarity)]
    threshold: f64,
    /// Smallest share of the pairs at --s-hi that must become candidates, such as 0.999 [default: 0.99]
    #[arg(long, value_parser = similarity)]
    recall: Option<f64>,
    /// Similarity at which --recall must be reached [default: the threshold, but at most 0.8]
    #[arg(long, value_parser = similarity)]
    s_hi: Option<f64>,
    /// Similarity of pairs that are not worth comparing. As few of them as possible become candidates [default: 0.2
    /// below --s-hi]
    #[arg(long, value_parser = similarity_or_none)]
    s_lo: Option<f64>,
    /// Number of bands to use if there are enough slots, even if --recall needs fewer. More bands find more pairs and
    /// take more memory [default: 31]
    #[arg(long)]
    bands_wanted: Option<u32>,
    /// Number of documents in the collection, such as 5e7 [default: 1e7]
    #[arg(long, value_parser = documents)]
    documents: Option<f64>,
    /// Similarity of unrelated documents [default: 0.1]
    #[arg(long, value_parser = similarity_or_none)]
    s_bg: Option<f64>,
    /// Largest number of unrelated candidates for one lookup, such as 100 [default: no limit]
    #[arg(long, value_parser = documents)]
    candidates_max: Option<f64>,
    /// Slots of a signature: a power of two, 64 to 1024
    #[arg(long, default_value_t = 256)]
    k: u32,
    /// Bits of a slot: 8, 16, 32 or 64
    #[arg(long, default_value_t = 8)]
    bits: u32,
    /// Show a banding with this many bands instead of choosing one; needs --rows
    #[arg(long, requires = "rows", conflicts_with_all = ["recall", "bands_wanted", "candidates_max"])]
    bands: Option<u32>,
    /// Show a banding with this many rows instead of choosing one; needs --bands
    #[arg(long, requires = "bands")]
    rows: Option<u32>,
    /// Draw the curve into this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Measure the rates too, by signing random sets of known similarity
    #[arg(long)]
    simulate: bool,
    /// Sketch that makes the signatures [default: fss; classic for slots of 64 bits]
    #[arg(long, value_enum)]
    sketch: Option<Sketch>,
    /// Number of distinct shingles that the two documents of a pair have together. With few shingles, estimates of fss
    /// vary less and estimates of oph vary more
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    shingles: u64,
    /// Pairs to simulate at each similarity, with --simulate
    #[arg(long, default_value_t = 4000, requires = "simulate", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pairs: u32,
    /// Seed of the simulation, with --simulate
    #[arg(long, default_value_t = 1, requires = "simulate")]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sketch {
    /// Fast similarity sketching
    Fss,
    /// One hash function for each slot
    Classic,
    /// One permutation hashing, with densification
    Oph,
}

fn similarity(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().and_then(|value| check_threshold(value).ok());
    value.ok_or_else(|| "must be a number above 0 and at most 1".into())
}

fn similarity_or_none(text: &str) -> Result<f64, String> {
    if text.parse() == Ok(0.0) { Ok(0.0) } else { similarity(text) }
}

fn documents(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "must be a number, such as 1e7".to_owned())?;
    if (0.0..=1e12).contains(&value) { Ok(value) } else { Err("must be between 0 and 1e12".into()) }
}

#[derive(Debug, Serialize)]
struct Report {
    banding: BandingReport,
    k: u32,
    bits: u32,
    slots_unused: u32,
    threshold: f64,
    s_hi: f64,
    candidate_recall_at_s_hi: f64,
    verdict_recall_at_s_hi: f64,
    candidate_recall_at_threshold: f64,
    verdict_recall_at_threshold: f64,
    documents: f64,
    s_bg: f64,
    background_candidates: f64,
    table: Vec<Row>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct BandingReport {
    bands: u32,
    rows: u32,
}

#[derive(Debug, Serialize)]
struct Row {
    jaccard: f64,
    candidate: f64,
    verdict: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
}

#[derive(Debug, Serialize)]
struct Measured {
    candidate: f64,
    verdict: f64,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let shape = shape(args)?;
    let targets = args.asked().targets(args.threshold);
    let banding = banding(args, shape)?;
    let measured = if args.simulate { simulate(args, banding, shape) } else { Vec::new() };
    let report = report(args, targets, banding, shape, &measured);
    if let Some(path) = &args.plot {
        let curve = Curve {
            title: format!(
                "{} bands of {} rows, {} slots of {} bits, threshold {}",
                banding.bands(),
                banding.rows(),
                args.k,
                args.bits,
                args.threshold
            ),
            threshold: args.threshold,
            candidate: &|jaccard| tuning::candidate_probability(jaccard, banding, shape),
            verdict: &|jaccard| tuning::verdict_probability(jaccard, banding, shape, args.threshold, args.signed()),
            measured: &measured,
        };
        let svg = plot::draw(&curve).map_err(|error| anyhow!("cannot draw the plot: {error}"))?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    let written = match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report)?),
        false => write_words(&mut out, &report),
    };
    match written {
        // The reader has seen enough, as with `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitStatus::Fine),
        written => written.map(|()| ExitStatus::Fine).context("cannot write the report"),
    }
}

fn shape(args: &Args) -> Result<SignatureShape> {
    if !args.k.is_power_of_two() || !(64..=1024).contains(&args.k) {
        bail!("--k {}: must be a power of two between 64 and 1024", args.k);
    }
    if ![8, 16, 32, 64].contains(&args.bits) {
        bail!("--bits {}: must be 8, 16, 32 or 64", args.bits);
    }
    if args.simulate && args.bits == 64 {
        bail!("--bits 64: cannot be simulated, because hapax's own sketches have slots of 8, 16 or 32 bits");
    }
    Ok(SignatureShape { k: args.k, bits: args.bits })
}

impl Args {
    fn signed(&self) -> SketchedPair {
        let sketch = match self.sketch {
            None if self.bits == 64 => SketchKind::Classic,
            None | Some(Sketch::Fss) => SketchKind::Fss,
            Some(Sketch::Classic) => SketchKind::Classic,
            Some(Sketch::Oph) => SketchKind::Oph,
        };
        SketchedPair { sketch, shingles: self.shingles }
    }

    fn asked(&self) -> Asked {
        let Self { recall, s_hi, s_lo, bands_wanted, candidates_max, documents, s_bg, .. } = *self;
        Asked { recall, s_hi, s_lo, bands_wanted, candidates_max, documents, s_bg }
    }
}

fn banding(args: &Args, shape: SignatureShape) -> Result<Banding> {
    match (args.bands, args.rows) {
        (Some(bands), Some(rows)) => Ok(Banding::new(bands, rows, shape)?),
        _ => Ok(tuning::choose(args.asked(), args.threshold, shape)?.banding),
    }
}

fn simulate(args: &Args, banding: Banding, shape: SignatureShape) -> Vec<SimulatedPoint> {
    let SketchedPair { sketch, shingles } = args.signed();
    let simulation = Simulation {
        sketch,
        shape,
        banding,
        threshold: args.threshold,
        set_size: shingles as usize,
        pairs: args.pairs,
        seed: args.seed,
    };
    SIMULATED.par_iter().flat_map_iter(|&jaccard| tuning::simulate(&simulation, &[jaccard])).collect()
}

fn report(
    args: &Args,
    targets: Targets,
    banding: Banding,
    shape: SignatureShape,
    measured: &[SimulatedPoint],
) -> Report {
    let candidate = |jaccard| tuning::candidate_probability(jaccard, banding, shape);
    let verdict = |jaccard| tuning::verdict_probability(jaccard, banding, shape, args.threshold, args.signed());
    // Simulated sets have the nearest similarity that their size allows. Rows for the round similarities next to them
    // would only repeat the theory.
    let mut similarities: Vec<f64> = match measured {
        [] => TABLE.to_vec(),
        measured => measured.iter().map(|point| point.jaccard).collect(),
    };
    for wanted in [args.threshold, targets.s_hi] {
        if !similarities.iter().any(|&jaccard| is_same_row(jaccard, wanted)) {
            similarities.push(wanted);
        }
    }
    similarities.sort_by(f64::total_cmp);
    let table = similarities
        .into_iter()
        .map(|jaccard| Row {
            jaccard,
            candidate: candidate(jaccard),
            verdict: verdict(jaccard),
            measured: measured
                .iter()
                .find(|point| is_same_row(point.jaccard, jaccard))
                .map(|point| Measured { candidate: point.candidate_rate, verdict: point.verdict_rate }),
        })
        .collect();
    let mut report = Report {
        banding: BandingReport { bands: banding.bands(), rows: banding.rows() },
        k: args.k,
        bits: args.bits,
        slots_unused: args.k - banding.bands() * banding.rows(),
        threshold: args.threshold,
        s_hi: targets.s_hi,
        candidate_recall_at_s_hi: candidate(targets.s_hi),
        verdict_recall_at_s_hi: verdict(targets.s_hi),
        candidate_recall_at_threshold: candidate(args.threshold),
        verdict_recall_at_threshold: verdict(args.threshold),
        documents: targets.documents,
        s_bg: targets.s_bg,
        background_candidates: targets.documents * candidate(targets.s_bg),
        table,
        warnings: Vec::new(),
    };
    report.warnings = warnings(args, targets, &report);
    report
}

/// Whether two similarities are closer than the table shows and than simulated sets can tell apart.
fn is_same_row(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.001
}

/// Returns notes on results that often surprise people later.
fn warnings(args: &Args, targets: Targets, report: &Report) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut warnings = Vec::new();
    if report.verdict_recall_at_threshold < 0.9 {
        warnings.push(format!(
            "Only {} of the pairs exactly at the threshold ({}) are reported, because an estimate is too low about as \
             often as it is too high. Set the threshold a little below the similarity that you must not miss.",
            percent(report.verdict_recall_at_threshold),
            args.threshold
        ));
    }
    if report.candidate_recall_at_threshold < 0.9 {
        warnings.push(format!(
            "The bands propose only {} of the pairs at the threshold. More bands or fewer rows propose more.",
            percent(report.candidate_recall_at_threshold)
        ));
    }
    if report.candidate_recall_at_s_hi < targets.recall {
        warnings.push(format!(
            "The bands propose {} of the pairs at {}, less than the target of {}.",
            percent(report.candidate_recall_at_s_hi),
            targets.s_hi,
            percent(targets.recall)
        ));
    }
    if args.s_hi.is_some_and(|s_hi| s_hi < args.threshold) {
        warnings.push(format!(
            "--s-hi {} is below --threshold {}: pairs between the two are proposed, but not reported.",
            targets.s_hi, args.threshold
        ));
    }
    if report.background_candidates > args.candidates_max.unwrap_or(UNRELATED_MANY) {
        warnings.push(format!(
            "With {:.0} documents, each lookup compares about {:.0} unrelated ones. Use more rows or --candidates-max \
             to compare fewer.",
            targets.documents, report.background_candidates
        ));
    }
    warnings
}

fn write_words(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    writeln!(out, "banding     {} bands of {} rows", report.banding.bands, report.banding.rows)?;
    let unused = match report.slots_unused {
        0 => String::new(),
        slots => format!(", {slots} of them in no band (they still count in the estimate)"),
    };
    writeln!(out, "signature   {} slots of {} bits{unused}", report.k, report.bits)?;
    if !is_same_row(report.s_hi, report.threshold) {
        writeln!(
            out,
            "recall      at {}: {:.4} proposed, {:.4} reported",
            report.s_hi, report.candidate_recall_at_s_hi, report.verdict_recall_at_s_hi
        )?;
    }
    writeln!(
        out,
        "recall      at the threshold {}: {:.4} proposed, {:.4} reported",
        report.threshold, report.candidate_recall_at_threshold, report.verdict_recall_at_threshold
    )?;
    writeln!(
        out,
        "cost        {:.1} unrelated candidates a lookup, among {:.0} documents of similarity {}\n",
        report.background_candidates, report.documents, report.s_bg
    )?;
    let simulated = report.table.iter().any(|row| row.measured.is_some());
    let header = if simulated { "   measured: proposed   reported" } else { "" };
    writeln!(out, "similarity   proposed   reported{header}")?;
    for row in &report.table {
        let measured = match (&row.measured, simulated) {
            (Some(rate), _) => format!("   {:>18.4}   {:>8.4}", rate.candidate, rate.verdict),
            (None, true) => " ".repeat(32),
            (None, false) => String::new(),
        };
        let mark = if is_same_row(row.jaccard, report.threshold) { "   <- threshold" } else { "" };
        writeln!(out, "{:>10.3}   {:>8.4}   {:>8.4}{measured}{mark}", row.jaccard, row.candidate, row.verdict)?;
    }
    for warning in &report.warnings {
        writeln!(out, "\nnote: {warning}")?;
    }
    Ok(())
}
