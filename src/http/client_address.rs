//! The address of a request's client. If the request comes from a trusted proxy, the address is the one that the proxy
//! wrote into `X-Forwarded-For`. From other senders the header is ignored, because a client can write any address into
//! it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};

use super::notes::Notes;
use super::state::AppState;
use crate::config::TrustedProxies;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// At most this many proxies are followed.
const HOPS_MAX: usize = 32;

/// If the request comes from a trusted proxy, replaces the proxy's address by that of its client.
pub(super) fn look_behind_proxies(state: &AppState, request: &Request) {
    if state.trusted_proxies().is_empty() {
        return;
    }
    if let Some(notes) = Notes::of(request.extensions())
        && let Some(peer) = notes.address()
    {
        notes.comes_from(behind(state.trusted_proxies(), peer, request.headers()));
    }
}

/// Returns the client's address. Reads the entries of the header from the last to the first, because the nearest proxy
/// wrote the last one. Stops at the first address that is not a trusted proxy.
fn behind(proxies: &TrustedProxies, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut nearest = peer.to_canonical();
    let lines = headers.get_all(FORWARDED_FOR).into_iter().rev();
    let hops = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
    for hop in hops.take(HOPS_MAX) {
        if !proxies.trusts(nearest) {
            break;
        }
        // If the text is not an address, its writer is unknown, so no earlier entry can be trusted.
        let Some(address) = parse(hop) else { break };
        nearest = address;
    }
    nearest
}

/// Reads `1.2.3.4` or `2001:db8::1`, with or without a port.
fn parse(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim();
    let address = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()));
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    address.ok().or_else(bare).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(proxies: &[&str], peer: &str, lines: &[&str]) -> String {
        let proxies = TrustedProxies::new(&proxies.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        behind(&proxies, peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(seen(&[], "192.0.2.1", &["10.0.0.1"]), "192.0.2.1");
        assert_eq!(seen(&["10.0.0.0/8"], "192.0.2.1", &["10.0.0.1", "198.51.100.1"]), "192.0.2.1");
        assert_eq!(seen(&["10.0.0.0/8"], "10.1.2.3", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(seen(&["10.0.0.0/8"], "::ffff:10.1.2.3", &["198.51.100.1"]), "198.51.100.1");
    }

    #[test]
    fn the_last_address_that_is_no_proxy_counts() {
        let proxies = ["10.0.0.0/8", "2001:db8:ffff::/48"];
        for lines in [
            ["1.1.1.1, 198.51.100.1, 10.0.0.9"].as_slice(),
            &["1.1.1.1", "198.51.100.1 ,10.0.0.9"],
            &["nonsense, 198.51.100.1:4711, 2001:db8:ffff::7"],
            &["198.51.100.1", "[2001:db8:ffff::7]:443"],
            &["198.51.100.1", "[2001:db8:ffff::7]"],
        ] {
            assert_eq!(seen(&proxies, "10.0.0.1", lines), "198.51.100.1", "{lines:?}");
        }
        assert_eq!(seen(&proxies, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(
            seen(&proxies, "10.0.0.1", &["198.51.100.1, unknown"]),
            "10.0.0.1",
            "not what a client may have sent"
        );
        assert_eq!(seen(&proxies, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3", "a client within the network");
        assert_eq!(seen(&proxies, "10.0.0.1", &[&"10.0.0.2,".repeat(2000)]), "10.0.0.1", "an empty entry");
    }
}
