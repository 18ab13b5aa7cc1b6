//! Loads the settings from all sources.

use std::net::SocketAddr;

use figment::Figment;
use figment::providers::{Format, Toml};

use super::checked::Config;
use super::error::ConfigError;
use super::memory;
use super::server;
use super::show;
use super::sources::Sources;
use crate::telemetry::memory::available;

/// Checked settings, and the text that `hapax serve --check-config` prints.
#[derive(Debug)]
pub struct Loaded {
    /// The settings to use.
    pub config: Config,
    /// The same settings as TOML, each value with its origin, secrets masked.
    pub effective: String,
}

/// Returns the address of the server, and that of the listener for probes. It checks nothing else and reads no secret.
pub fn addresses(sources: &Sources) -> Result<(SocketAddr, Option<SocketAddr>), ConfigError> {
    server::addresses(&Sources::extract(&sources.merge()?)?.server)
}

/// Reads, merges and checks all settings.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let merged = memory::divided(sources.merge()?, available())?;
    let config = Config::check(Sources::extract(&merged)?)?;
    let effective = show::show(&with_keep(merged, &config));
    Ok(Loaded { config, effective })
}

/// Adds `keep`, because it cannot be changed later. Unless it is set, it follows from `verify`.
fn with_keep(merged: Figment, config: &Config) -> Figment {
    let keep = config.collections.default_settings.keep.as_str();
    merged.join(Toml::string(&format!("default_collection.keep = \"{keep}\"")))
}

/// Returns the settings of a server that is started without any.
pub fn defaults() -> Config {
    load(&Sources::default()).expect("the defaults are possible").config
}
