//! Arguments -> the settings of a run: how documents are signed, compared and joined.

use std::path::PathBuf;

use anyhow::{Result, bail};
use hapax_core::tuning::smallest_areas;
use serde_json::{Map, Value, json};

use crate::cli::collection::{BandingArgs, SpecArgs};
use crate::cli::corpus::settings::signer;
use crate::corpus::{CorpusSigner, Matching, SearchLimits};
use crate::verdicts::Limits;

/// The number of slots that both presets use.
const PRESET_SKETCH: &str = "fss128x16";
const PRESET_SLOTS: u32 = 128;
/// The threshold that datasketch uses by default.
const DATASKETCH_THRESHOLD: f64 = 0.9;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct DedupArgs {
    /// Configuration file of a server: its default collection has the defaults for the settings below, and its secret is
    /// used by --key configured
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Settings of another tool; options override them. fineweb: word5, 14 bands of 8 rows, --verify none, --clusters
    /// components. datasketch: the bands that MinHashLSH picks for 128 slots and --threshold (by default 0.9), --verify none
    #[arg(long, value_name = "PRESET")]
    preset: Option<Preset>,
    #[command(flatten)]
    banding: BandingArgs,
    /// Way to decide which candidates are duplicates. With none, all documents that share a band are duplicates
    #[arg(long, value_name = "VERIFY", value_parser = ["estimate", "borderline", "exact", "none"])]
    verify: Option<String>,
    /// Way in which duplicates form clusters, of which one document is kept. star: each dropped document is a duplicate of a
    /// kept one. components: a chain of duplicates is one cluster [default: star]
    #[arg(long, value_name = "CLUSTERS")]
    clusters: Option<ClusterKind>,
    #[command(flatten)]
    spec: SpecArgs,
    /// Part of an HTML page that is compared: article (the main text) or visible (all visible text)
    #[arg(long, value_name = "EXTRACT")]
    extract: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Preset {
    Fineweb,
    Datasketch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ClusterKind {
    Star,
    Components,
}

/// The way in which documents are compared and joined.
#[derive(Clone)]
pub(super) struct Ways {
    pub signer: CorpusSigner,
    pub matching: Matching,
    pub limits: SearchLimits,
    pub clusters: ClusterKind,
}

impl DedupArgs {
    pub(super) fn cluster_kind(&self) -> ClusterKind {
        let preset = self.preset.filter(|preset| *preset == Preset::Fineweb).map(|_| ClusterKind::Components);
        self.clusters.or(preset).unwrap_or(ClusterKind::Star)
    }

    pub(super) fn matching(&self) -> Matching {
        match (self.verify.as_deref(), self.preset) {
            (Some("none"), _) | (None, Some(_)) => Matching::Unverified,
            _ => Matching::Verified,
        }
    }

    /// Returns the signer, and the limits on comparing.
    pub(super) fn signer(&self) -> Result<(CorpusSigner, Limits)> {
        let mut asked = self.preset_settings();
        self.spec.add_to(&mut asked);
        if asked.contains_key("spec") {
            asked.remove("shingle");
            asked.remove("sketch");
        }
        self.banding.add_to(&mut asked)?;
        asked.extend(self.extract.as_ref().map(|extract| ("extract".to_owned(), json!(extract))));
        let verify = match self.matching() {
            // Candidates are not compared by their shingles.
            Matching::Unverified => Some("estimate"),
            Matching::Verified => self.verify.as_deref(),
        };
        asked.extend(verify.map(|verify| ("verify".to_owned(), json!(verify))));
        self.refuse_unused_threshold(&asked)?;
        signer(self.config.clone(), asked)
    }

    fn preset_settings(&self) -> Map<String, Value> {
        let of = |bands: u32, rows: u32| {
            let banding = json!({ "bands": bands, "rows": rows });
            Map::from_iter([("sketch".to_owned(), json!(PRESET_SKETCH)), ("banding".to_owned(), banding)])
        };
        match self.preset {
            None => Map::new(),
            Some(Preset::Fineweb) => {
                let mut settings = of(14, 8);
                settings.insert("shingle".to_owned(), json!("word5"));
                settings
            }
            Some(Preset::Datasketch) => {
                let threshold = self.banding.threshold().unwrap_or(DATASKETCH_THRESHOLD);
                let (bands, rows) = smallest_areas(threshold, PRESET_SLOTS);
                of(bands, rows)
            }
        }
    }

    /// Without verification, the threshold only decides about the banding.
    fn refuse_unused_threshold(&self, asked: &Map<String, Value>) -> Result<()> {
        let is_used = self.matching() == Matching::Verified
            || self.preset == Some(Preset::Datasketch)
            || !asked.contains_key("banding");
        if let Some(threshold) = self.banding.threshold().filter(|_| !is_used) {
            bail!(
                "--threshold {threshold} changes nothing: the bands are given, and documents that share a band are not \
                 compared; add --verify estimate, or leave it out"
            );
        }
        Ok(())
    }
}
