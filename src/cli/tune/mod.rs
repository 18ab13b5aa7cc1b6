//! `hapax tune`: targets -> a banding, and its recall at each similarity. `tuning::choose_among` makes the choice.

mod arguments;
mod curve;
mod datasketch;
mod notes;
mod report;
mod sample;
mod tuned;
mod words;

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use hapax_core::tuning::{self, SimulatedPoint, Simulation, SketchedPair, Unrelated};
use hapax_core::{Banding, SignatureShape};
use rayon::prelude::*;

use super::exit::ExitStatus;
use super::plot::{self, Curve};
pub use arguments::Args;
use report::Report;
use sample::Sample;
use tuned::Tuned;

/// The similarities of a simulation. They are closest together where the curve is steep.
const SIMULATED: [f64; 19] =
    [0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.9, 0.95, 0.98];

pub fn run(args: &Args) -> Result<ExitStatus> {
    let shape = args.shape()?;
    let (threshold, signed) = (args.threshold(), args.signed());
    let targets = args.asked().targets(threshold);
    let sample = args.from_data.as_deref().map(|path| Sample::read(path, args)).transpose()?;
    let unrelated = sample.as_ref().map_or_else(|| Unrelated::alike(targets.s_bg), |sample| sample.unrelated.clone());
    let banding = banding(args, shape, &unrelated)?;
    let measured = if args.simulate { simulate(args, banding, shape) } else { Vec::new() };
    let curve = Curve {
        title: format!(
            "{} bands of {} rows, {} slots of {} bits, threshold {threshold}",
            banding.bands(),
            banding.rows(),
            args.k,
            args.bits,
        ),
        threshold,
        candidate: &|jaccard| tuning::candidate_probability(jaccard, banding, shape),
        verdict: &|jaccard| tuning::verdict_probability(jaccard, banding, shape, threshold, signed),
        measured: &measured,
    };
    if let Some(path) = &args.plot {
        let svg = plot::draw(&curve).map_err(|error| anyhow!("cannot draw the plot: {error}"))?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut report =
        Report::new(&Tuned { args, targets, banding, shape, unrelated: &unrelated, sample, curve: &curve });
    report.warnings = notes::of(args, &targets, &report);
    let mut out = std::io::stdout().lock();
    let written = match (args.json, args.curve) {
        (true, _) => writeln!(out, "{}", serde_json::to_string_pretty(&report)?),
        (false, false) => words::write(&mut out, &report),
        (false, true) => words::write(&mut out, &report).and_then(|()| write!(out, "\n{}", curve::draw(&curve))),
    };
    match written {
        // The reader of the pipe, for example `head`, has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitStatus::Fine),
        written => written.map(|()| ExitStatus::Fine).context("cannot write the report"),
    }
}

fn banding(args: &Args, shape: SignatureShape, unrelated: &Unrelated) -> Result<Banding> {
    match (args.bands, args.rows) {
        (Some(bands), Some(rows)) => Ok(Banding::new(bands, rows, shape)?),
        _ => Ok(tuning::choose_among(args.asked(), args.threshold(), shape, unrelated)?.banding),
    }
}

fn simulate(args: &Args, banding: Banding, shape: SignatureShape) -> Vec<SimulatedPoint> {
    let SketchedPair { sketch, shingles } = args.signed();
    let simulation = Simulation {
        sketch,
        shape,
        banding,
        threshold: args.threshold(),
        set_size: shingles as usize,
        pairs: args.pairs,
        seed: args.seed,
    };
    SIMULATED.par_iter().flat_map_iter(|&jaccard| tuning::simulate(&simulation, &[jaccard])).collect()
}
