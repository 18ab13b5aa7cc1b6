//! A request's body -> all its bytes, in memory.
//! All limits apply to the decompressed bytes, so a small compressed body that expands to gigabytes is refused like a
//! large one.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Body as HttpBody, Frame};
use tokio::io::AsyncReadExt;

use super::budget::{Budget, Room};
use super::decoded::{announced, decoded, window_bytes};
use super::long::{LONG_BYTES_MIN, LongWork};
use super::patience::Patience;
use crate::config::HttpLimits;
use crate::cpu::CpuPool;
use crate::http::deadline::Deadline;
use crate::http::error::{Code, Problem};
use crate::http::quota::Arriving;

/// The memory reserved for a body at first. The reservation grows as bytes arrive.
const FIRST_BYTES: usize = 4 * 1024;

/// A whole body, and the memory reserved for it.
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    pub(crate) room: Room,
}

/// Reads all of a body of at most `max` bytes.
///
/// Arriving bytes postpone `deadline`, and are counted in `arriving`. A client that sends nothing, or sends too slowly,
/// gets 408. A long body is not read if the pool for long work has too much to do.
pub(crate) async fn whole(
    headers: &HeaderMap,
    body: Body,
    limits: &HttpLimits,
    budget: &Budget,
    deadline: &Deadline,
    arriving: &mut Arriving,
    cpu: &CpuPool,
) -> Result<Whole, Problem> {
    let max = limits.body_bytes_max;
    let mut patience = Patience::new(limits.request_timeout, limits.body_bytes_per_second_min);
    let announced = announced(headers);
    let too_large = || {
        Problem::new(
            Code::TooLarge,
            format!("the body is longer than {max} bytes after decompression (`server.body_bytes_max`)"),
        )
    };
    let plain = !headers.contains_key(CONTENT_ENCODING);
    if plain && announced.is_some_and(|bytes| bytes > max as u64) {
        return Err(too_large());
    }
    let mut work = LongWork::new(cpu);
    // A compressed body becomes longer when it is decompressed, so the announced length is a lower bound.
    work.of(announced.unwrap_or(0))?;
    let known = announced.filter(|_| plain).map(|bytes| bytes as usize);
    let body = match at_once(body, known) {
        Ok(bytes) => return Whole::at_once(bytes, budget, arriving),
        Err(body) => body,
    };
    // In a box, so that the future for a short body stays small.
    let in_pieces = async {
        let mut reader = decoded(headers, body)?;
        // The reservation grows with the bytes that have arrived, so a request cannot take memory by only announcing a
        // length. If no length was announced, room for one byte more than allowed shows that a body is too large.
        let whole = known.unwrap_or(max + 1);
        let (mut room, window_bytes) = (budget.room(), window_bytes(headers));
        let mut bytes = Vec::new();
        loop {
            if bytes.len() == bytes.capacity() {
                let wanted = (bytes.len() * 2).max(FIRST_BYTES).min(whole.max(bytes.len() + 1));
                // The decoder keeps a copy of its output, up to its window.
                room.resize(wanted + wanted.min(window_bytes))?;
                bytes.reserve_exact(wanted - bytes.len());
            }
            let mut window = (&mut reader).take((bytes.capacity() - bytes.len()) as u64);
            let read = patience.wait(window.read_buf(&mut bytes)).await?;
            deadline.put_off();
            arriving.arrived(read);
            match read {
                0 => return Ok(Whole { bytes: bytes.into(), room }),
                // All bytes are here. Another read might make the task wait for its next turn.
                _ if known == Some(bytes.len()) => return Ok(Whole { bytes: bytes.into(), room }),
                _ if bytes.len() > max => return Err(too_large()),
                _ => work.of(bytes.len() as u64)?,
            }
        }
    };
    Box::pin(in_pieces).await
}

impl Whole {
    /// Makes a body from bytes that arrived in one piece.
    fn at_once(bytes: Bytes, budget: &Budget, arriving: &mut Arriving) -> Result<Self, Problem> {
        // Counted first, because a body counts even if there is no memory for it.
        arriving.arrived(bytes.len());
        let mut room = budget.room();
        room.resize(bytes.len())?;
        Ok(Self { bytes, room })
    }
}

/// Returns the bytes of a body of known length if the body is short and has already arrived in one piece. Otherwise
/// returns the body itself. Most short bodies arrive in one piece, together with their head. Reading such a body
/// through a reader would cost several times as much.
fn at_once(mut body: Body, known: Option<usize>) -> Result<Bytes, Body> {
    let Some(bytes) = known.filter(|&bytes| bytes <= LONG_BYTES_MIN) else { return Err(body) };
    // The waker does nothing. If the body has not arrived, a reader polls it again, with a waker of its own.
    let mut nobody = Context::from_waker(Waker::noop());
    let frame = match Pin::new(&mut body).poll_frame(&mut nobody) {
        Poll::Ready(Some(frame)) => frame.map(Frame::into_data),
        Poll::Ready(None) | Poll::Pending => return Err(body),
    };
    let first = match frame {
        Ok(Ok(piece)) if piece.len() == bytes => return Ok(piece),
        Ok(Ok(piece)) => Ok(piece),
        // This frame has trailers, which nothing reads.
        Ok(Err(_)) => return Err(body),
        Err(error) => Err(error),
    };
    let first = futures::stream::once(ready(first));
    Err(Body::from_stream(first.chain(body.into_data_stream())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::time::Duration;

    use axum::http::header::CONTENT_LENGTH;
    use futures::FutureExt;

    use super::*;
    use crate::cpu::CpuConfig;
    use crate::http::quota::{Quota, Shares};
    use crate::keys::KeyLimits;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits(body_bytes_max: usize) -> HttpLimits {
        HttpLimits { body_bytes_max, ..crate::config::defaults().server.limits }
    }

    fn pool() -> CpuPool {
        CpuPool::new(CpuConfig { threads: 1, queue_max: 1, queue_delay_max: Duration::ZERO })
    }

    fn unlimited() -> Arriving {
        Quota::default().arriving()
    }

    async fn read(encoding: &str, body: Vec<u8>, max: usize) -> Result<Bytes, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
        let (budget, later) = (Budget::new(64 << 20), Deadline::after(SECOND));
        let body = whole(&headers, Body::from(body), &limits(max), &budget, &later, &mut unlimited(), &pool()).await;
        body.map(|whole| whole.bytes).map_err(|problem| problem.code)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn plain_gzip_and_zstd_say_the_same() {
        let text = b"the same words again and again ".repeat(10_000);
        assert_eq!(read("identity", text.clone(), 1 << 20).await.unwrap(), text);
        assert_eq!(read("gzip", gzip(&text), 1 << 20).await.unwrap(), text);
        assert_eq!(read("zstd", zstd::encode_all(text.as_slice(), 3).unwrap(), 1 << 20).await.unwrap(), text);
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(read("gzip", two, 10).await.unwrap(), &b"ab"[..]);
    }

    #[tokio::test]
    async fn the_limit_counts_what_comes_out() {
        let zeros = vec![0; 32 << 20];
        assert_eq!(read("gzip", gzip(&zeros), 1 << 20).await, Err(Code::TooLarge));
        assert_eq!(read("zstd", zstd::encode_all(zeros.as_slice(), 3).unwrap(), 1 << 20).await, Err(Code::TooLarge));
        assert_eq!(read("identity", zeros[..1000].to_vec(), 1000).await.unwrap().len(), 1000);
        assert_eq!(read("identity", zeros[..1001].to_vec(), 1000).await, Err(Code::TooLarge));
    }

    #[tokio::test]
    async fn a_body_that_has_arrived_is_read_at_once() {
        let text = b"the same words again and again ".repeat(2_000);
        let (budget, later) = (Budget::new(64 << 20), Deadline::after(SECOND));
        let length = (CONTENT_LENGTH, text.len().to_string());
        let packed = zstd::encode_all(text.as_slice(), 3).unwrap();
        for (header, body) in [(length, text.clone()), ((CONTENT_ENCODING, "zstd".to_owned()), packed)] {
            let headers = HeaderMap::from_iter([(header.0, header.1.parse().unwrap())]);
            let (limits, pool, mut arriving) = (limits(1 << 20), pool(), unlimited());
            let read = whole(&headers, Body::from(body), &limits, &budget, &later, &mut arriving, &pool);
            let body = read.now_or_never().expect("one poll").unwrap_or_else(|problem| panic!("{:?}", problem.code));
            assert_eq!(body.bytes, text);
        }
    }

    #[tokio::test]
    async fn a_zstd_window_of_a_gigabyte_is_refused() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(27).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(&vec![7; 1 << 20]).unwrap();
        assert_eq!(read("zstd", encoder.finish().unwrap(), 2 << 20).await, Err(Code::MalformedBody));
    }

    #[tokio::test]
    async fn broken_and_cut_compression_is_malformed() {
        let mut cut = gzip(b"some text");
        cut.truncate(cut.len() - 4);
        assert_eq!(read("gzip", cut, 1000).await, Err(Code::MalformedBody));
        assert_eq!(read("gzip", b"not gzip".to_vec(), 1000).await, Err(Code::MalformedBody));
        let mut cut = zstd::encode_all(&b"some text"[..], 3).unwrap();
        cut.truncate(cut.len() - 2);
        assert_eq!(read("zstd", cut, 1000).await, Err(Code::MalformedBody));
        assert_eq!(read("br", b"x".to_vec(), 1000).await, Err(Code::UnsupportedMediaType));
        assert_eq!(read("gzip, gzip", b"x".to_vec(), 1000).await, Err(Code::UnsupportedMediaType));
    }

    #[tokio::test]
    async fn bodies_share_one_budget_and_give_it_back() {
        let budget = Budget::new(64 * 1024);
        let (headers, later) = (HeaderMap::new(), Deadline::after(SECOND));
        let read = async |bytes: usize| {
            whole(&headers, Body::from(vec![1; bytes]), &limits(1 << 20), &budget, &later, &mut unlimited(), &pool())
                .await
        };
        let (one, two) = (read(60_000).await, read(60_000).await);
        assert!(one.is_ok());
        assert_eq!(two.err().unwrap().code, Code::Overloaded);
        drop(one);
        assert!(read(50_000).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_without_room_counts_for_its_client() {
        let limits_of_key = KeyLimits { bytes_per_second: Some(1000), ..KeyLimits::default() };
        let share = Shares::new(crate::config::Addresses::default().limits, None).of_key("crawler", &limits_of_key);
        let headers = HeaderMap::from_iter([(CONTENT_LENGTH, "60000".parse().unwrap())]);
        let (budget, later) = (Budget::new(1000), Deadline::after(SECOND));
        let mut arriving = Quota::new(Arc::clone(&share)).arriving();
        let body = Body::from(vec![1; 60_000]);
        let read = whole(&headers, body, &limits(1 << 20), &budget, &later, &mut arriving, &pool()).await;
        assert_eq!(read.err().unwrap().code, Code::Overloaded);
        assert!(share.begin().is_ok(), "not before the request ends");
        drop(arriving);
        assert_eq!(share.begin().err().unwrap().code, Code::RateLimited);
    }

    #[tokio::test]
    async fn a_short_body_is_the_same_whether_it_comes_in_one_piece_or_in_several() {
        let length = HeaderMap::from_iter([(CONTENT_LENGTH, "6".parse().unwrap())]);
        let (budget, later) = (Budget::new(64 << 20), Deadline::after(SECOND));
        let pieces = |pieces: &'static [&'static str]| {
            let slowly = futures::stream::iter(pieces).then(async |&piece| {
                tokio::task::yield_now().await;
                Ok::<_, std::io::Error>(piece)
            });
            Body::from_stream(slowly)
        };
        for body in [Body::from("abcdef"), pieces(&["abcdef"]), pieces(&["abc", "def"]), pieces(&["", "abcdef"])] {
            let whole = whole(&length, body, &limits(10), &budget, &later, &mut unlimited(), &pool()).await;
            assert_eq!(whole.map(|whole| whole.bytes).map_err(|problem| problem.code), Ok(Bytes::from("abcdef")));
        }
        let broken =
            pieces(&["abc"]).into_data_stream().chain(futures::stream::once(ready(Err(axum::Error::new("reset")))));
        let broken = Body::from_stream(broken);
        let whole = whole(&length, broken, &limits(10), &budget, &later, &mut unlimited(), &pool()).await;
        assert_eq!(whole.err().unwrap().code, Code::MalformedBody);
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_timed_out() {
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let limits = HttpLimits { request_timeout: Duration::from_millis(20), ..limits(10) };
        let budget = Budget::new(1 << 20);
        let later = Deadline::after(SECOND);
        let result = whole(&HeaderMap::new(), body, &limits, &budget, &later, &mut unlimited(), &pool()).await;
        assert_eq!(result.err().unwrap().code, Code::RequestTimeout);
    }
}
