//! Arguments and the configuration of a server -> the signer of a corpus, and the limits on comparing.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use hapax_core::SecretKey;
use serde_json::{Map, Value, json};

use crate::cli::collection::{ComparingArgs, SpecArgs};
use crate::config::{self, Config, Sources};
use crate::corpus::CorpusSigner;
use crate::cpu::CpuPool;
use crate::http::dto::collection::settings as settings_of_json;
use crate::types::IndexKind;
use crate::verdicts::Limits;

/// The way in which documents are signed and compared.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SettingsArgs {
    /// Configuration file of a server: its default collection has the defaults for the settings below, and its secret is
    /// used by --key configured
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    comparing: ComparingArgs,
    #[command(flatten)]
    spec: SpecArgs,
    /// Part of an HTML page that is compared: article (the main text) or visible (all visible text)
    #[arg(long, value_name = "EXTRACT")]
    extract: Option<String>,
}

impl SettingsArgs {
    pub(in crate::cli) fn signer(&self) -> Result<(CorpusSigner, Limits)> {
        let mut asked = Map::new();
        self.spec.add_to(&mut asked);
        self.comparing.add_to(&mut asked)?;
        asked.extend(self.extract.as_ref().map(|extract| ("extract".to_owned(), json!(extract))));
        signer(self.config.clone(), asked)
    }
}

/// Returns the signer for the settings that were asked for, in the form of the API. The others are those of the default
/// collection in the configuration.
pub(in crate::cli) fn signer(config: Option<PathBuf>, asked: Map<String, Value>) -> Result<(CorpusSigner, Limits)> {
    let Config { collections, cpu, .. } = config::load(&Sources::of_process(config))?.config;
    let (secret, default) = (collections.secret.as_ref(), &collections.default_settings);
    let settings = settings_of_json(&Value::from(asked).to_string(), default, secret.map(SecretKey::fingerprint));
    let settings = settings.map_err(|problem| {
        let told = problem.errors.iter().map(|error| format!("{}: {}", name_of(&error.field), error.detail));
        anyhow!("{}", told.collect::<Vec<_>>().join("; "))
    })?;
    if settings.index() == IndexKind::Containment {
        bail!(
            "--sketch none: it is for collections with `index: containment`, and this command compares whole documents; \
             leave it out, or find the items that documents contain with `hapax contain`"
        );
    }
    let signer = CorpusSigner::new(settings, secret, CpuPool::new(cpu))?;
    Ok((signer, collections.limits))
}

/// Returns the name of a setting for people. Bands and rows may come from a preset, so no single argument is named.
fn name_of(field: &str) -> String {
    match field {
        "banding" => "bands and rows (--bands, --rows)".to_owned(),
        "banding.bands" => "--bands".to_owned(),
        "banding.rows" => "--rows".to_owned(),
        field => format!("--{field}"),
    }
}
