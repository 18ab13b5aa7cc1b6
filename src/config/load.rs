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
use super::tls::Tls;
use crate::telemetry::memory::available;

/// Checked settings, and the text that `hapax serve --check-config` prints.
#[derive(Debug)]
pub struct Loaded {
    /// The settings to use.
    pub config: Config,
    /// The same settings as TOML, each value with its origin, secrets masked.
    pub effective: String,
}

/// The listener at which a server answers probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeAddress {
    pub address: SocketAddr,
    /// Whether the listener uses TLS.
    pub tls: bool,
}

/// Returns the listener for probes, or the listener of the server if there is none for probes. It checks nothing else
/// and reads no secret.
pub fn probe_address(sources: &Sources) -> Result<ProbeAddress, ConfigError> {
    let raw = Sources::extract(&sources.merge()?)?;
    let (listen, admin_listen) = server::addresses(&raw.server)?;
    let tls = Tls::is_on(&raw.tls) && (admin_listen.is_none() || raw.tls.admin_listen);
    Ok(ProbeAddress { address: admin_listen.unwrap_or(listen), tls })
}

/// Reads, merges and checks all settings.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let merged = memory::divided(sources.merge()?, available())?;
    let config = Config::check(Sources::extract(&merged)?)?;
    let effective = show::show(&with_keep(merged, &config));
    Ok(Loaded { config, effective })
}

/// Adds `keep` to the settings that are shown, because `keep` cannot be changed later. If it is not set, `verify`
/// determines it.
fn with_keep(merged: Figment, config: &Config) -> Figment {
    let keep = config.collections.default_settings.keep.as_str();
    merged.join(Toml::string(&format!("default_collection.keep = \"{keep}\"")))
}

/// Returns the settings of a server that is started without any settings.
pub fn defaults() -> Config {
    load(&Sources::default()).expect("the defaults are possible").config
}
