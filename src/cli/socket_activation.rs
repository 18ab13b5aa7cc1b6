//! Takes the listening sockets that a service manager passes to this process (socket activation, as by systemd). Input:
//! `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES`. Output: at most two listeners. The service manager keeps its copies
//! of the sockets open. So connections wait in the kernel's queue while hapax restarts, and none is refused.

use std::net::TcpListener;

use anyhow::{Result, anyhow, bail};
use listenfd::ListenFd;

/// The names of the two sockets.
const NAMES: [&str; 2] = ["http", "admin"];

/// The sockets that the service manager passed to this process, if any.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) http: Option<TcpListener>,
    pub(super) admin: Option<TcpListener>,
}

impl Given {
    /// Takes the sockets. This changes the environment, so no other thread may run yet.
    pub(super) fn take() -> Result<Self> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut sockets = ListenFd::from_env();
        let roles = roles(sockets.len(), &names)?;
        let mut given = Self::default();
        for (at, role) in roles.into_iter().enumerate() {
            let socket = sockets
                .take_tcp_listener(at)
                .map_err(|error| anyhow!("LISTEN_FDS: {error}; the sockets must be listening TCP sockets"))?;
            match role {
                "admin" => given.admin = socket,
                _ => given.http = socket,
            }
        }
        Ok(given)
    }
}

/// Returns the role of each of `count` sockets. If one of them is called `http` or `admin`, the names decide. Otherwise
/// the order decides.
fn roles(count: usize, names: &str) -> Result<Vec<&'static str>> {
    let named: Vec<&str> = names.split(':').take(count).collect();
    let known = |name: &str| NAMES.into_iter().find(|known| *known == name);
    let by_name = named.iter().any(|name| known(name).is_some());
    if !by_name && count <= NAMES.len() {
        return Ok(NAMES[..count].to_vec());
    }
    let roles: Option<Vec<_>> = named.iter().map(|name| known(name)).collect();
    match roles {
        Some(roles) if roles.len() == count && count <= NAMES.len() && (count < 2 || roles[0] != roles[1]) => Ok(roles),
        _ => bail!(
            "LISTEN_FDS={count} with LISTEN_FDNAMES={names:?}: must be one socket called http, one called admin, or both \
             (in systemd: FileDescriptorName=)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_go_by_name_or_by_order() {
        for (count, names, expected) in [
            (0, "", &[][..]),
            (1, "", &["http"]),
            (1, "hapax.socket", &["http"]),
            (1, "admin", &["admin"]),
            (2, "", &["http", "admin"]),
            (2, "hapax.socket:hapax.socket", &["http", "admin"]),
            (2, "admin:http", &["admin", "http"]),
        ] {
            assert_eq!(roles(count, names).unwrap(), expected, "{count} {names}");
        }
        for (count, names) in [(2, "http:http"), (2, "http:other"), (2, "http"), (3, ""), (3, "http:admin:http")] {
            assert!(roles(count, names).is_err(), "{count} {names}");
        }
    }
}
