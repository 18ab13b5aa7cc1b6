//! All sources -> the settings to work by.

use std::net::SocketAddr;

use figment::Figment;
use figment::providers::{Format, Toml};

use super::checked::Config;
use super::error::ConfigError;
use super::server;
use super::show;
use super::sources::Sources;

/// Checked settings, and the text that `hapax serve --check-config` prints.
#[derive(Debug)]
pub struct Loaded {
    /// What to work by.
    pub config: Config,
    /// The same as TOML, each value with its origin, secrets masked.
    pub effective: String,
}

/// Where the server listens, and where for probes alone. Nothing else is checked, and no secret is read.
pub fn addresses(sources: &Sources) -> Result<(SocketAddr, Option<SocketAddr>), ConfigError> {
    server::addresses(&Sources::extract(&sources.merge()?)?.server)
}

/// Merges, checks and reads all settings.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let merged = sources.merge()?;
    let config = Config::check(Sources::extract(&merged)?)?;
    let effective = show::show(&with_keep(merged, &config));
    Ok(Loaded { config, effective })
}

/// What is kept of a document follows from `verify` unless it is set. It cannot be changed later, so it is shown.
fn with_keep(merged: Figment, config: &Config) -> Figment {
    let keep = config.collections.default_settings.keep.as_str();
    merged.join(Toml::string(&format!("default_collection.keep = \"{keep}\"")))
}

/// The settings of a server that is told nothing.
pub fn defaults() -> Config {
    load(&Sources::default()).expect("the defaults are possible").config
}
