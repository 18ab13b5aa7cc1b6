//! Settings: compiled-in defaults < file < environment < flags.
//! Comes in: those four. Goes out: a [`Config`] whose every value is possible, or one error that names the key.
//! Must never know: how the settings are used.

pub mod checked;
pub mod error;
pub mod hosts;
pub mod raw;
pub mod secrets;
pub mod show;
pub mod sources;

use std::net::SocketAddr;

pub use checked::Config;
pub use error::ConfigError;
pub use sources::Sources;

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
    checked::addresses(&Sources::extract(&sources.merge()?)?.server)
}

/// Merges, checks and reads all settings.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let merged = sources.merge()?;
    let config = Config::check(Sources::extract(&merged)?)?;
    Ok(Loaded { config, effective: show::show(&merged) })
}
