//! `hapax tune`: targets -> a banding, and what it finds at every similarity.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use hapax_core::tuning::{self, SimulatedPoint, Simulation, Targets};
use hapax_core::{Banding, SignatureShape, SketchKind};
use rayon::prelude::*;
use serde::Serialize;

use super::ExitStatus;
use super::plot::{self, Curve};

/// Similarities of the table.
const TABLE: [f64; 15] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];
/// Shingles in each simulated document: about two pages of text.
const SIMULATED_SET_SIZE: usize = 1000;
/// Similarities of a simulation, closest where the curve is steep.
const SIMULATED: [f64; 19] =
    [0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.9, 0.95, 0.98];

/// Choose bands and rows, and see what they find and cost.
///
/// Bands propose candidates, verification compares them: a document is reported when both succeed. More bands find
/// more, more rows propose less; `tune` takes the cheapest pair that still finds what you ask for.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hapax tune                                           the default: threshold 0.8, 256 slots of 8 bits
  hapax tune --threshold 0.7 --s-hi 0.75 --documents 5e7
  hapax tune --bands 16 --rows 8                       what a given banding would do
  hapax tune --plot curve.svg                          the S-curve as a picture
  hapax tune --simulate --plot curve.svg               with measured points beside it
  hapax tune --json | jq .banding")]
pub struct Args {
    /// Similarity from which a document is a near duplicate
    #[arg(long, default_value_t = 0.8, value_parser = similarity)]
    threshold: f64,
    /// Share of the pairs at --s-hi that must become candidates
    #[arg(long, default_value_t = 0.99, value_parser = similarity)]
    recall: f64,
    /// Similarity at which --recall must hold
    #[arg(long, default_value_t = 0.85, value_parser = similarity)]
    s_hi: f64,
    /// Similarity of pairs that are not worth comparing: candidates there are the cost that is kept least
    #[arg(long, default_value_t = 0.5, value_parser = similarity)]
    s_lo: f64,
    /// Documents the collection will hold
    #[arg(long, default_value_t = 1e7, value_parser = documents)]
    documents: f64,
    /// Similarity of unrelated documents
    #[arg(long, default_value_t = 0.1, value_parser = similarity)]
    s_bg: f64,
    /// Most unrelated candidates that one lookup may have to compare
    #[arg(long, default_value_t = 100.0, value_parser = documents)]
    candidates_max: f64,
    /// Slots of a signature
    #[arg(long, default_value_t = 256)]
    k: u32,
    /// Bits of a slot
    #[arg(long, default_value_t = 8)]
    bits: u32,
    /// Take these bands instead of choosing
    #[arg(long, requires = "rows")]
    bands: Option<u32>,
    /// Take these rows instead of choosing
    #[arg(long, requires = "bands")]
    rows: Option<u32>,
    /// Draw the curve into this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Measure as well: sign random sets of known similarity
    #[arg(long)]
    simulate: bool,
    /// Sketch to simulate
    #[arg(long, value_enum, default_value = "fss", requires = "simulate")]
    sketch: Sketch,
    /// Pairs simulated at each similarity
    #[arg(long, default_value_t = 4000, requires = "simulate", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pairs: u32,
    /// Seed of the simulation
    #[arg(long, default_value_t = 1, requires = "simulate")]
    seed: u64,
    /// One JSON object instead of words
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sketch {
    /// Fast similarity sketching
    Fss,
    /// k hash functions
    Classic,
    /// One permutation, densified
    Oph,
}

fn similarity(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number above 0 and at most 1".to_owned())?;
    if value > 0.0 && value <= 1.0 { Ok(value) } else { Err("above 0 and at most 1".into()) }
}

fn documents(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number such as 1e7".to_owned())?;
    if (0.0..=1e12).contains(&value) { Ok(value) } else { Err("0 to 1e12".into()) }
}

#[derive(Debug, Serialize)]
struct Report {
    k: u32,
    bits: u32,
    bands: u32,
    rows: u32,
    slots_unused: u32,
    threshold: f64,
    candidate_recall_at_s_hi: f64,
    verdict_recall_at_s_hi: f64,
    candidate_recall_at_threshold: f64,
    verdict_recall_at_threshold: f64,
    background_candidates: f64,
    table: Vec<Row>,
    warnings: Vec<String>,
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

/// Runs the verb.
pub fn run(args: &Args) -> Result<ExitStatus> {
    let shape = shape(args)?;
    let banding = banding(args, shape)?;
    let measured = if args.simulate { simulate(args, banding, shape) } else { Vec::new() };
    let report = report(args, banding, shape, &measured);
    if let Some(path) = &args.plot {
        let curve = Curve {
            title: format!(
                "{} bands of {} rows, {} slots of {} bits, threshold {}",
                report.bands, report.rows, args.k, args.bits, args.threshold
            ),
            threshold: args.threshold,
            candidate: &|jaccard| tuning::candidate_probability(jaccard, banding, shape),
            verdict: &|jaccard| tuning::verdict_probability(jaccard, banding, shape, args.threshold),
            measured: &measured,
        };
        let svg = plot::draw(&curve).map_err(|error| anyhow!("the plot cannot be drawn: {error}"))?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        write_words(&mut out, args, &report)?;
    }
    Ok(ExitStatus::Fine)
}

fn shape(args: &Args) -> Result<SignatureShape> {
    if !args.k.is_power_of_two() || !(64..=1024).contains(&args.k) {
        bail!("--k {}: a power of two, 64 to 1024", args.k);
    }
    if ![8, 16, 32].contains(&args.bits) {
        bail!("--bits {}: 8, 16 or 32", args.bits);
    }
    Ok(SignatureShape { k: args.k, bits: args.bits })
}

fn banding(args: &Args, shape: SignatureShape) -> Result<Banding> {
    if let (Some(bands), Some(rows)) = (args.bands, args.rows) {
        return Ok(Banding::new(bands, rows, shape)?);
    }
    let targets = Targets {
        recall: args.recall,
        s_hi: args.s_hi,
        s_lo: args.s_lo,
        candidates_max: args.candidates_max,
        documents: args.documents,
        s_bg: args.s_bg,
    };
    Ok(tuning::choose(targets, shape)?.banding)
}

fn simulate(args: &Args, banding: Banding, shape: SignatureShape) -> Vec<SimulatedPoint> {
    let sketch = match args.sketch {
        Sketch::Fss => SketchKind::Fss,
        Sketch::Classic => SketchKind::Classic,
        Sketch::Oph => SketchKind::Oph,
    };
    let simulation = Simulation {
        sketch,
        shape,
        banding,
        threshold: args.threshold,
        set_size: SIMULATED_SET_SIZE,
        pairs: args.pairs,
        seed: args.seed,
    };
    SIMULATED.par_iter().flat_map_iter(|&jaccard| tuning::simulate(&simulation, &[jaccard])).collect()
}

fn report(args: &Args, banding: Banding, shape: SignatureShape, measured: &[SimulatedPoint]) -> Report {
    let candidate = |jaccard| tuning::candidate_probability(jaccard, banding, shape);
    let verdict = |jaccard| tuning::verdict_probability(jaccard, banding, shape, args.threshold);
    // Simulated sets have the nearest similarity that their size allows; rows of the round ones beside them would
    // only repeat the theory.
    let mut similarities: Vec<f64> = match measured {
        [] => TABLE.to_vec(),
        measured => measured.iter().map(|point| point.jaccard).collect(),
    };
    for wanted in [args.threshold, args.s_hi] {
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
        k: args.k,
        bits: args.bits,
        bands: banding.bands(),
        rows: banding.rows(),
        slots_unused: args.k - banding.bands() * banding.rows(),
        threshold: args.threshold,
        candidate_recall_at_s_hi: candidate(args.s_hi),
        verdict_recall_at_s_hi: verdict(args.s_hi),
        candidate_recall_at_threshold: candidate(args.threshold),
        verdict_recall_at_threshold: verdict(args.threshold),
        background_candidates: args.documents * candidate(args.s_bg),
        table,
        warnings: Vec::new(),
    };
    report.warnings = warnings(args, &report);
    report
}

/// Closer than the table shows, and than simulated sets can tell apart.
fn is_same_row(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.001
}

/// What people are surprised by later.
fn warnings(args: &Args, report: &Report) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut warnings = Vec::new();
    if report.verdict_recall_at_threshold < 0.9 {
        warnings.push(format!(
            "Of the pairs exactly at the threshold ({}) only {} are reported: an estimate falls below the truth about \
             as often as above. Set the threshold a little under what you must not miss.",
            args.threshold,
            percent(report.verdict_recall_at_threshold)
        ));
    }
    if report.candidate_recall_at_threshold < 0.9 {
        warnings.push(format!(
            "The bands propose only {} of the pairs at the threshold. More bands or fewer rows propose more.",
            percent(report.candidate_recall_at_threshold)
        ));
    }
    if report.candidate_recall_at_s_hi < args.recall {
        warnings.push(format!(
            "The bands propose {} of the pairs at {}, less than the {} asked for.",
            percent(report.candidate_recall_at_s_hi),
            args.s_hi,
            percent(args.recall)
        ));
    }
    if args.s_hi < args.threshold {
        warnings.push(format!(
            "--s-hi {} lies below --threshold {}: those pairs are proposed and then refused.",
            args.s_hi, args.threshold
        ));
    }
    if report.background_candidates > args.candidates_max {
        warnings.push(format!(
            "With {:.0} documents each lookup compares about {:.0} unrelated ones, more than the {:.0} asked for.",
            args.documents, report.background_candidates, args.candidates_max
        ));
    }
    warnings
}

fn write_words(out: &mut impl Write, args: &Args, report: &Report) -> std::io::Result<()> {
    writeln!(out, "banding     {} bands of {} rows", report.bands, report.rows)?;
    let unused = match report.slots_unused {
        0 => String::new(),
        unused => format!(", {unused} of them in no band (they still count in the estimate)"),
    };
    writeln!(out, "signature   {} slots of {} bits{unused}", report.k, report.bits)?;
    writeln!(
        out,
        "recall      at {}: {:.4} proposed, {:.4} reported;  at the threshold {}: {:.4} proposed, {:.4} reported",
        args.s_hi,
        report.candidate_recall_at_s_hi,
        report.verdict_recall_at_s_hi,
        report.threshold,
        report.candidate_recall_at_threshold,
        report.verdict_recall_at_threshold
    )?;
    writeln!(
        out,
        "cost        {:.1} unrelated candidates a lookup ({:.0} documents alike by {})\n",
        report.background_candidates, args.documents, args.s_bg
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
