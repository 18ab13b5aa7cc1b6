//! `hapax health`: asks whether a server is ready, for health checks of containers.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::client::Client;
use super::exit::ExitStatus;
use super::trust::Trust;
use crate::config::{self, ProbeAddress, Sources};

/// Ask a server whether it is ready.
///
/// By default, the request goes to the server that `hapax serve` would start with the same configuration file and
/// environment: to server.admin_listen if that is set, else to server.listen. If this address uses TLS, every
/// certificate is accepted, because the request goes to this machine and contains no key.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
#[command(after_help = "Examples:
  hapax health
  hapax health --config hapax.toml
  hapax health --server http://127.0.0.1:9000 && echo ready

Exit status: 0 ready, 1 not ready or not reachable, 2 the arguments or the configuration are wrong.")]
pub struct Args {
    /// URL of the server to ask, such as http://127.0.0.1:9000 [default: from the configuration]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// File with the certificates of the authorities to trust, if the URL begins with https:// [default: those of the
    /// system]
    #[arg(long, value_name = "FILE", env = "HAPAX_CA_FILE")]
    ca: Option<PathBuf>,
    /// Configuration file of the server
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    config: Option<PathBuf>,
    /// Address and port that the server was started with, if `hapax serve --listen` was used
    #[arg(long, value_name = "ADDR", conflicts_with = "server")]
    listen: Option<String>,
    /// Not used. It is accepted because the other verbs that talk to a server have it
    #[arg(long, value_name = "FILE", hide = true)]
    api_key_file: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitStatus> {
    let client = match &args.server {
        Some(server) => Client::without_key(server, &Trust::new(args.ca.as_deref()))?,
        // The certificate is for the server's name, but the request goes to an address of this machine. Accepting it is
        // safe: the request contains no key, and the answer says only whether the server is ready.
        None => Client::without_key(&configured(args)?, &Trust::Anyone)?,
    };
    let mut words = std::io::stderr().lock();
    match client.get("/readyz") {
        Ok((200, _)) => {
            writeln!(std::io::stdout().lock(), "ready")?;
            return Ok(ExitStatus::Fine);
        }
        Ok((status, text)) => writeln!(words, "not ready: {} answered {status}: {}", client.url(), text.trim_end())?,
        Err(error) => writeln!(words, "not ready: {error}")?,
    }
    Ok(ExitStatus::Found)
}

fn configured(args: &Args) -> Result<String> {
    let flags = args.listen.iter().map(|listen| ("--listen", "server.listen", listen.clone())).collect();
    let sources = Sources { flags, ..Sources::of_process(args.config.clone()) };
    let ProbeAddress { address, tls } = config::probe_address(&sources)?;
    if address.port() == 0 {
        bail!(
            "the configured address is {address}, and port 0 means any free port; give the server's URL with --server"
        );
    }
    let scheme = if tls { "https" } else { "http" };
    Ok(format!("{scheme}://{}", reachable(address)))
}

/// Returns the address under which this machine reaches a server that listens on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_loopback() {
        for (listens, asked) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("127.0.0.1:1", "127.0.0.1:1"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), asked);
        }
    }
}
