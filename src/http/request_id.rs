//! A request's id: the client's own if it is harmless, else a new one.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderName, Request};

/// The header that carries a request's id, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;

/// A request's id.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

impl RequestId {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let given = request.headers().get(&REQUEST_ID).and_then(|value| value.to_str().ok());
        let harmless = |id: &&str| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte))
        };
        given.filter(harmless).map_or_else(Self::new, |id| Self(id.to_owned()))
    }

    fn new() -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("request ids"));
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // The seed makes ids differ between processes, the counter within one.
        Self(format!("{:016x}-{:x}", *SEED, NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderValue;

    use super::*;

    fn request(id: &[u8]) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        request.headers_mut().insert(REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
        request
    }

    #[test]
    fn harmless_request_ids_are_kept_and_others_replaced() {
        assert_eq!(RequestId::of(&request(b"4bf92f35-77b3.a:1")).0, "4bf92f35-77b3.a:1");
        for id in [&b""[..], b"a b", b"\xFF", b"a\"b", &[b'a'; 129]] {
            assert_ne!(RequestId::of(&request(id)).0.as_bytes(), id);
        }
        assert_ne!(RequestId::new().0, RequestId::new().0);
    }
}
