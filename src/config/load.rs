//! All sources -> the settings to work by.

use std::net::SocketAddr;

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
    Ok(Loaded { config, effective: show::show(&merged) })
}

/// The settings of a server that is told nothing.
pub fn defaults() -> Config {
    load(&Sources::default()).expect("the defaults are possible").config
}
