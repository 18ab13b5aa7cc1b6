//! Decides whether a server without an API key answers a request. In: `Host`, `Origin`, `Sec-Fetch-Site`. Out: whether
//! the request is let in. A web page can make a browser send requests to any server, even to one that only this machine
//! can reach. If the server has an API key, such a request is harmless, because no page knows the key. Without a key,
//! two checks refuse the requests of pages on the internet: neither the host nor the origin may be foreign. A foreign
//! host means that the owner of a page made one of its names resolve to this machine (DNS rebinding). A foreign origin
//! means that the request comes from a page of another site.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::error::{Code, Problem};
use super::quota::{RATE_LIMIT, RATE_LIMIT_POLICY};
use super::refusals::Reason;
use super::request_id::REQUEST_ID;
use crate::config::hosts::{Host, Origin};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How long a browser may cache the answer to a preflight request.
const PREFLIGHT_AGE_MAX: Duration = Duration::from_secs(600);
/// The longest part of a foreign name that an answer repeats, in characters.
const SHOWN_CHARS_MAX: usize = 100;

/// The names of this server, and the pages that may use it.
#[derive(Clone, Debug, Default)]
pub struct Access {
    hosts: HashSet<Host>,
    origins: HashSet<Origin>,
    /// Answers the requests of the pages in `server.cors_origins`; `None` if the list is empty.
    cors: Option<CorsLayer>,
}

impl Access {
    /// Loopback names and addresses are always accepted. `hosts` are further names of this server. `origins` are pages
    /// of other sites that may use it.
    pub fn new(listen: IpAddr, hosts: &[Host], origins: &[Origin]) -> Self {
        let own = Host::Ip(listen.to_canonical());
        let origins: HashSet<Origin> = origins.iter().cloned().collect();
        Self { hosts: hosts.iter().cloned().chain([own]).collect(), cors: cors(&origins), origins }
    }

    fn knows(&self, host: &Host) -> bool {
        host.is_loopback() || self.hosts.contains(host)
    }

    /// The layer that answers requests from the pages in `server.cors_origins`; `None` if the list is empty.
    pub(super) fn cors(&self) -> Option<&CorsLayer> {
        self.cors.as_ref()
    }

    /// Returns the reason to refuse the request. Only called if the server has no key.
    pub(super) fn refusal(&self, request: &Request) -> Result<(), (Reason, Problem)> {
        let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let named = request.headers().get_all(HOST).into_iter().map(HeaderValue::as_bytes);
        for name in target.into_iter().chain(named) {
            let host = std::str::from_utf8(name).ok().and_then(Host::of_authority);
            if !host.is_some_and(|host| self.knows(&host)) {
                return Err(strange_host(name));
            }
        }
        let origin = self.origin(request.headers())?;
        for site in request.headers().get_all(SEC_FETCH_SITE) {
            let admitted = match (site.as_bytes(), &origin) {
                (b"same-origin" | b"none", _) => true,
                // A page of this machine that is served from another port.
                (b"same-site", Some(_)) => true,
                (_, Some(origin)) => self.origins.contains(origin),
                (_, None) => false,
            };
            if !admitted {
                let from = origin.as_ref().map_or("a page of another site", Origin::as_str);
                return Err(strange_page(from));
            }
        }
        Ok(())
    }

    /// Returns the page that sent the request, if any. The page must be served from this machine or be listed.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<Origin>, (Reason, Problem)> {
        let mut last = None;
        for value in headers.get_all(ORIGIN) {
            let origin = value.to_str().ok().and_then(Origin::new);
            let ours =
                |origin: &Origin| self.origins.contains(origin) || origin.host().is_some_and(|host| self.knows(&host));
            match origin.filter(ours) {
                Some(origin) => last = Some(origin),
                None => return Err(strange_page(&shown(value.as_bytes()))),
            }
        }
        Ok(last)
    }
}

fn cors(origins: &HashSet<Origin>) -> Option<CorsLayer> {
    let origins: Vec<_> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok()).collect();
    (!origins.is_empty()).then(|| {
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins))
            .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
            .allow_headers([ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, REQUEST_ID])
            .expose_headers([REQUEST_ID, RETRY_AFTER, WWW_AUTHENTICATE, RATE_LIMIT, RATE_LIMIT_POLICY])
            .allow_private_network(true)
            .max_age(PREFLIGHT_AGE_MAX)
    })
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(SHOWN_CHARS_MAX).collect()
}

fn strange_host(name: &[u8]) -> (Reason, Problem) {
    let detail = format!(
        "the host {:?} is not one of this server's names. Without an API key it answers only to loopback names and \
         addresses; add the name to `server.hosts`, or set an API key",
        shown(name)
    );
    (Reason::ForeignHost, Problem::new(Code::ForeignRequest, detail))
}

fn strange_page(from: &str) -> (Reason, Problem) {
    let detail = format!(
        "a web browser sent this request for {from:?}. Without an API key, pages of other sites are refused; to allow \
         this page, add its origin to `server.cors_origins`"
    );
    (Reason::ForeignPage, Problem::new(Code::ForeignRequest, detail))
}
