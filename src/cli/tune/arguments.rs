//! The arguments of `hapax tune`, and the targets that they name. Knows nothing of files and of reports.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ArgGroup;
use hapax_core::tuning::{Asked, SketchedPair};
use hapax_core::{Shingling, SignatureShape, SketchKind, Spec};

use crate::verdicts::check_threshold;

/// Choose a banding, and show its recall and its cost.
///
/// Bands propose candidates, and verification compares them with the document. A document is reported if it is proposed
/// and then reaches the threshold. More bands propose more candidates; more rows propose fewer.
///
/// Without targets, this prints the banding that a server chooses for a new collection with this signature and
/// threshold. With targets, it chooses the number of rows that proposes the fewest candidates at --s-lo and still
/// reaches --recall. Then it uses as many bands with this number of rows as --bands-wanted allows.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("random").args(["simulate", "from_data"]).multiple(true))]
#[command(after_help = "Examples:
  hapax tune                                       the default for threshold 0.8
  hapax tune --threshold 0.7 --documents 5e7       the default for 0.7, and its cost
  hapax tune --recall 0.999 --candidates-max 100   more recall, with a limit on unrelated candidates
  hapax tune --bands 16 --rows 8                   show what a given banding does
  hapax tune --curve                               draw the S-curve in the terminal
  hapax tune --from-data sample.jsonl              count unrelated candidates of your own documents
  hapax tune --like-datasketch 0.8                 compare with the banding that datasketch picks
  hapax tune --plot curve.svg                      draw the S-curve
  hapax tune --simulate --plot curve.svg           draw the S-curve with measured points
  hapax tune --json | jq .banding                  print the banding in the form of the HTTP API")]
pub struct Args {
    /// Smallest similarity of near duplicates [default: that of --like-datasketch, or 0.8]
    #[arg(long, value_parser = similarity)]
    pub(super) threshold: Option<f64>,
    /// Target: at least this share of the pairs with similarity --s-hi becomes candidates, such as 0.999 [default:
    /// 0.99]
    #[arg(long, value_parser = similarity)]
    pub(super) recall: Option<f64>,
    /// Similarity at which --recall must be reached [default: the threshold, but at most 0.8]
    #[arg(long, value_parser = similarity)]
    pub(super) s_hi: Option<f64>,
    /// Similarity of pairs that are not worth comparing. As few of them as possible become candidates [default: 0.2
    /// below --s-hi]
    #[arg(long, value_parser = similarity_or_none)]
    pub(super) s_lo: Option<f64>,
    /// Number of bands to use if there are enough slots, even if --recall needs fewer. More bands find more pairs and
    /// take more memory [default: 31]
    #[arg(long)]
    pub(super) bands_wanted: Option<u32>,
    /// Number of documents in the collection, such as 5e7 [default: 1e7]
    #[arg(long, value_parser = documents)]
    pub(super) documents: Option<f64>,
    /// Similarity of unrelated documents [default: 0.1]
    #[arg(long, value_parser = similarity_or_none)]
    pub(super) s_bg: Option<f64>,
    /// Measure the similarity of unrelated documents instead, on random pairs of the documents in FILE. FILE is JSON
    /// Lines, WARC or Parquet, as for `hapax import`; - reads stdin. Pairs at or above the threshold are left out
    #[arg(long, value_name = "FILE", conflicts_with = "s_bg")]
    pub(super) from_data: Option<PathBuf>,
    /// Field with the text of a document in --from-data
    #[arg(long, value_name = "FIELD", default_value = "text", requires = "from_data")]
    pub(super) text_field: String,
    /// Shingles of the documents in --from-data: word1 to word32, or char1 to char32
    #[arg(long, value_name = "SHINGLE", default_value = "word5", requires = "from_data", value_parser = shingling)]
    pub(super) shingle: Shingling,
    /// Largest number of unrelated candidates for one lookup, such as 100 [default: no limit]
    #[arg(long, value_parser = documents)]
    pub(super) candidates_max: Option<f64>,
    /// Slots of a signature: a power of two, 64 to 1024
    #[arg(long, default_value_t = 256)]
    pub(super) k: u32,
    /// Bits of a slot: 8, 16, 32 or 64
    #[arg(long, default_value_t = 8)]
    pub(super) bits: u32,
    /// Show a banding with this many bands instead of choosing one; needs --rows
    #[arg(long, requires = "rows", conflicts_with_all = ["recall", "bands_wanted", "candidates_max"])]
    pub(super) bands: Option<u32>,
    /// Show a banding with this many rows instead of choosing one; needs --bands
    #[arg(long, requires = "bands")]
    pub(super) rows: Option<u32>,
    /// Show the banding that datasketch's MinHashLSH picks for this threshold, and the recall of this banding
    #[arg(long, value_name = "T", value_parser = similarity)]
    pub(super) like_datasketch: Option<f64>,
    /// num_perm of that MinHashLSH, 2 to 1024
    #[arg(long, value_name = "N", default_value_t = 128, requires = "like_datasketch", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub(super) num_perm: u32,
    /// Draw the curve below the table, 78 columns wide. Without this option, no curve is drawn, even on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(super) curve: bool,
    /// Draw the curve into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub(super) plot: Option<PathBuf>,
    /// Measure the rates too, by signing random sets of known similarity
    #[arg(long)]
    pub(super) simulate: bool,
    /// Sketch that makes the signatures [default: fss; classic for slots of 64 bits]
    #[arg(long, value_enum)]
    pub(super) sketch: Option<Sketch>,
    /// Number of distinct shingles in the two documents of a pair (a shared shingle counts once). --simulate makes
    /// documents with this many shingles each. With few shingles, estimates of fss vary less and estimates of oph vary
    /// more
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) shingles: u64,
    /// Pairs to simulate at each similarity, with --simulate
    #[arg(long, default_value_t = 4000, requires = "simulate", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(super) pairs: u32,
    /// Seed of the random choices of --simulate and --from-data
    #[arg(long, default_value_t = 1, requires = "random")]
    pub(super) seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Sketch {
    /// Fast similarity sketching
    Fss,
    /// One hash function for each slot
    Classic,
    /// One permutation hashing, with densification
    Oph,
}

impl Args {
    /// Returns the smallest similarity of near duplicates.
    pub(super) fn threshold(&self) -> f64 {
        self.threshold.or(self.like_datasketch).unwrap_or(0.8)
    }

    /// Returns the shape of the signatures, or an error that names the invalid value.
    pub(super) fn shape(&self) -> Result<SignatureShape> {
        if !self.k.is_power_of_two() || !(64..=1024).contains(&self.k) {
            bail!("--k {}: must be a power of two between 64 and 1024", self.k);
        }
        if ![8, 16, 32, 64].contains(&self.bits) {
            bail!("--bits {}: must be 8, 16, 32 or 64", self.bits);
        }
        if self.simulate && self.bits == 64 {
            bail!("--bits 64: cannot be simulated, because hapax's own sketches have slots of 8, 16 or 32 bits");
        }
        Ok(SignatureShape { k: self.k, bits: self.bits })
    }

    /// Returns the sketch, and the number of distinct shingles in the two documents of a pair. A shared shingle counts
    /// once.
    pub(super) fn signed(&self) -> SketchedPair {
        let sketch = match self.sketch {
            None if self.bits == 64 => SketchKind::Classic,
            None | Some(Sketch::Fss) => SketchKind::Fss,
            Some(Sketch::Classic) => SketchKind::Classic,
            Some(Sketch::Oph) => SketchKind::Oph,
        };
        SketchedPair { sketch, shingles: self.shingles }
    }

    /// Returns the targets that the user gave.
    pub(super) fn asked(&self) -> Asked {
        let Self { recall, s_hi, s_lo, bands_wanted, candidates_max, documents, s_bg, .. } = *self;
        Asked { recall, s_hi, s_lo, bands_wanted, candidates_max, documents, s_bg }
    }
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

/// Reads a value like the setting `shingle` of a collection.
fn shingling(text: &str) -> Result<Shingling, String> {
    let spec = Spec::default().to_string().replace("shingle=word5", &format!("shingle={text}"));
    match Spec::parse(&spec) {
        Ok(Spec::Text(spec)) => Ok(spec.shingling),
        Ok(Spec::External { .. }) => unreachable!("the default spec is of texts"),
        Err(error) => Err(error.to_string()),
    }
}
