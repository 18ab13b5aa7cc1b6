//! Names of servers and web pages in the notation of HTTP: `localhost:8080`, `[::1]`, `https://app.example`. Input:
//! text from a setting or a header. Output: a value that is compared as browsers compare it. It must never know what a
//! host or a page is allowed to do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host without its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Ip(IpAddr),
    /// A name in lower case, without a dot at its end.
    Name(String),
}

impl Host {
    /// Returns the host of `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`, or `None` if the text has another form.
    pub fn of_authority(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                (Self::Ip(IpAddr::V6(address.parse::<Ipv6Addr>().ok()?).to_canonical()), port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Self::without_port(host)?, port)
            }
        };
        let digits = port.strip_prefix(':').unwrap_or("");
        (port.is_empty() || port.starts_with(':') && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(host)
    }

    fn without_port(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Ip(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        (!name.is_empty() && name.bytes().all(plain)).then(|| Self::Name(name.to_ascii_lowercase()))
    }

    /// Parses an entry of `server.hosts`: a name or an address, without a port.
    pub fn of_setting(text: &str) -> Option<Self> {
        match text.parse::<IpAddr>() {
            Ok(address) => Some(Self::Ip(address.to_canonical())),
            Err(_) if text.contains(':') => None,
            Err(_) => Self::without_port(text),
        }
    }

    /// Whether the host means the local machine on every machine. For names, see RFC 6761, section 6.3.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Ip(address) => address.is_loopback(),
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

/// The origin of a web page (RFC 6454, section 6.2). `null` is an origin too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin(String);

impl Origin {
    /// Parses `null`, or a scheme, a host and a port without a path.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        if text == "null" {
            return Some(Self(text));
        }
        let (scheme, authority) = text.split_once("://")?;
        let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        (!scheme.is_empty() && plain && Host::of_authority(authority).is_some()).then_some(Self(text))
    }

    /// Returns the text of the header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host of the page, or `None` for `null`.
    pub fn host(&self) -> Option<Host> {
        Host::of_authority(self.0.split_once("://")?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_what_means_this_machine_everywhere() {
        for text in
            ["localhost", "LOCALHOST:80", "localhost.", "a.localhost:1", "127.0.0.1", "127.9.9.9:8080", "[::1]:1"]
        {
            assert!(Host::of_authority(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["[::ffff:127.0.0.1]", "[::1]"] {
            assert!(Host::of_authority(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["evil.example", "localhost.evil.example", "0.0.0.0", "[::]", "10.0.0.1", "xlocalhost", "127.1"] {
            assert!(!Host::of_authority(text).unwrap().is_loopback(), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_none() {
        for text in ["", ":80", "localhost:x", "localhost:80:80", "a@localhost", "[::1", "[::1]x", "::1", "a b", "a/b"]
        {
            assert_eq!(Host::of_authority(text), None, "{text}");
        }
    }

    #[test]
    fn an_origin_has_a_scheme_and_no_path() {
        assert_eq!(Origin::new("HTTPS://App.Example:8443").unwrap().as_str(), "https://app.example:8443");
        assert_eq!(Origin::new("http://[::1]:3000").unwrap().host(), Host::of_authority("[::1]"));
        assert_eq!(Origin::new("null").unwrap().host(), None);
        for text in ["", "*", "app.example", "https://app.example/", "://a", "https://", "https://a b"] {
            assert_eq!(Origin::new(text), None, "{text}");
        }
    }
}
