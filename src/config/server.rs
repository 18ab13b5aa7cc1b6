//! The section `[server]`: addresses, allowed hosts and pages, and the limits of HTTP. It must never know how a request
//! is answered.

use std::net::SocketAddr;

use super::addresses::Addresses;
use super::error::ConfigError;
use super::hosts::{Host, Origin};
use super::http_limits::HttpLimits;
use super::ranges::{count, each, impossible};
use super::raw::{RawAddressLimits, RawLimits, RawServer};

/// The section `[server]`. `config/default.toml` describes each field.
#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    /// Address and port of the listener that only answers probes and serves metrics.
    pub admin_listen: Option<SocketAddr>,
    /// Names of this server, in addition to loopback names.
    pub hosts: Vec<Host>,
    /// Origins of other sites whose pages may use this server.
    pub cors_origins: Vec<Origin>,
    /// The limits of client addresses, from section `[address_limits]`, and the proxies that report client addresses.
    pub addresses: Addresses,
    /// Whether the pages of the console are served.
    pub console: bool,
    /// The number of worker threads. `None`: one for each core.
    pub worker_threads: Option<usize>,
    /// The rest of the section.
    pub limits: HttpLimits,
}

impl Server {
    pub(super) fn check(
        raw: &RawServer,
        address_limits: &RawAddressLimits,
        limits: &RawLimits,
    ) -> Result<Self, ConfigError> {
        let (listen, admin_listen) = addresses(raw)?;
        let hosts_allowed = "names or addresses without a port, such as hapax.internal";
        let origins_allowed = "origins without a path, such as https://app.example:8443, or null";
        Ok(Self {
            listen,
            admin_listen,
            hosts: each("server.hosts", &raw.hosts, Host::of_setting, hosts_allowed)?,
            cors_origins: each("server.cors_origins", &raw.cors_origins, Origin::new, origins_allowed)?,
            addresses: Addresses::check(address_limits, &raw.trusted_proxies)?,
            console: raw.console,
            worker_threads: match count("server.worker_threads", raw.worker_threads, 0..=1024)? {
                0 => None,
                threads => Some(threads),
            },
            limits: HttpLimits::check(raw, limits)?,
        })
    }
}

/// Returns both addresses to listen on. It refuses equal addresses.
pub(super) fn addresses(raw: &RawServer) -> Result<(SocketAddr, Option<SocketAddr>), ConfigError> {
    let parse = |key, text: &str| {
        text.parse().map_err(|_| {
            let allowed = "must be an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080".into();
            impossible(key, text, allowed)
        })
    };
    let listen: SocketAddr = parse("server.listen", &raw.listen)?;
    if raw.admin_listen.is_empty() {
        return Ok((listen, None));
    }
    let admin = parse("server.admin_listen", &raw.admin_listen)?;
    if admin == listen && listen.port() != 0 {
        let allowed = "must differ from server.listen, or be empty".into();
        return Err(impossible("server.admin_listen", admin, allowed));
    }
    Ok((listen, Some(admin)))
}
