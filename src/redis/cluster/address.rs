//! The address of a node.

use std::fmt;
use std::sync::Arc;

/// A host and a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeAddress {
    host: Arc<str>,
    port: u16,
}

impl NodeAddress {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Reads `host:port`. An IPv6 address may have brackets: Redis writes it without them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').map_or(Some(host), |host| host.strip_suffix(']'))?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        Some(Self::new(host, port))
    }

    /// Returns an IPv6 address without brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl fmt::Debug for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_users_and_as_redis_write_them() {
        for (text, shown) in [
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            ("redis-0.redis:6379", "redis-0.redis:6379"),
            ("[::1]:7000", "[::1]:7000"),
            ("::1:7000", "[::1]:7000"),
            (":7000", ":7000"),
        ] {
            assert_eq!(NodeAddress::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", "host", "host:", "host:0", "host:65536", "[::1:7000", "redis://host"] {
            assert_eq!(NodeAddress::parse(text), None, "{text}");
        }
    }
}
