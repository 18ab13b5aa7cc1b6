//! A request's id: the id that the client sent, or a new id if the client's id is missing, too long, or has other
//! characters than ids may have.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::Response;

use crate::telemetry::request::{ShortId, current_id};

/// The header that carries a request's id, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of the request that is being answered, for handlers.
pub struct RequestId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(current_id().unwrap_or_default()))
    }
}

/// Returns the id of a request that has just arrived. The id has only visible characters.
pub(super) fn of<B>(request: &Request<B>) -> ShortId {
    let given = request.headers().get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    let harmless = |id: &&str| {
        (1..=ShortId::BYTES_MAX).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte))
    };
    given.filter(harmless).map_or_else(new, ShortId::new)
}

/// Adds the id to the answer.
pub(super) fn attach(id: &ShortId, answer: &mut Response) {
    let id = HeaderValue::from_str(id.as_str()).expect("an id has only visible characters");
    answer.headers_mut().insert(REQUEST_ID, id);
}

fn new() -> ShortId {
    static PREFIX: LazyLock<String> = LazyLock::new(|| format!("{:016x}-", RandomState::new().hash_one("request ids")));
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // The prefix makes ids differ between processes, and the counter makes them differ within one process.
    ShortId::new(format_args!("{}{:x}", *PREFIX, NEXT.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn request(id: &[u8]) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        request.headers_mut().insert(REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
        request
    }

    #[test]
    fn harmless_request_ids_are_kept_and_others_replaced() {
        assert_eq!(of(&request(b"4bf92f35-77b3.a:1")).as_str(), "4bf92f35-77b3.a:1");
        for id in [&b""[..], b"a b", b"\xFF", b"a\"b", &[b'a'; 129]] {
            assert_ne!(of(&request(id)).as_str().as_bytes(), id);
        }
        assert_ne!(new().as_str(), new().as_str());
    }
}
