//! A request's body -> plain bytes, decompressed, a piece at a time.

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue};
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use crate::http::error::{Code, Problem};
use crate::http::pace::{Paced, Sips};

/// The largest window that a zstd frame may require, as a power of two: 8 MiB. RFC 8878 (3.1.1.1.2) recommends that
/// decoders support this size.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
pub(crate) const ZSTD_WINDOW_BYTES: usize = 1 << ZSTD_WINDOW_LOG_MAX;
/// The most bytes that are read in one step.
pub(super) const CHUNK: usize = 64 * 1024;

/// Returns the body as a stream of plain bytes that pauses after each piece, or 415 if the encoding is not supported.
pub(crate) fn decoded(headers: &HeaderMap, body: Body) -> Result<Box<dyn AsyncRead + Send + Unpin>, Problem> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => "identity",
        (Some(one), None) => one.to_str().unwrap_or("?"),
        (Some(_), Some(_)) => "several",
    };
    let raw = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    if encoding.eq_ignore_ascii_case("identity") {
        Ok(Box::new(Paced::new(raw)))
    } else if encoding.eq_ignore_ascii_case("gzip") {
        let mut decoder = GzipDecoder::new(Sips::new(raw));
        decoder.multiple_members(true);
        Ok(Box::new(Paced::new(decoder)))
    } else if encoding.eq_ignore_ascii_case("zstd") {
        let mut decoder = ZstdDecoder::with_params(Sips::new(raw), &[DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX)]);
        decoder.multiple_members(true);
        Ok(Box::new(Paced::new(decoder)))
    } else {
        Err(Problem::new(
            Code::UnsupportedMediaType,
            "the Content-Encoding must be exactly one of gzip, zstd and identity",
        ))
    }
}

/// Returns an upper bound on the output that the decoder of this body keeps in memory, in bytes.
pub(crate) fn window_bytes(headers: &HeaderMap) -> usize {
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        Some(encoding) if encoding.eq_ignore_ascii_case(b"zstd") => ZSTD_WINDOW_BYTES,
        Some(encoding) if encoding.eq_ignore_ascii_case(b"gzip") => 1 << 16,
        _ => 0,
    }
}

/// Returns the problem for a body that could not be read.
pub(crate) fn broken(error: &std::io::Error) -> Problem {
    // The library's message is logged. It describes the error, and contains none of the client's bytes.
    tracing::debug!(%error, "could not read a request body");
    Problem::new(Code::MalformedBody, "the body ended early, or its compressed data is invalid")
}

/// Returns the body length that the client announced; `None` if it announced none.
pub(crate) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the next piece; `None` at the end. The memory of `buffer` is reused once earlier pieces are dropped.
pub(crate) async fn piece(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> std::io::Result<Option<Bytes>> {
    buffer.reserve(CHUNK);
    let read = reader.read_buf(buffer).await?;
    Ok((read > 0).then(|| buffer.split().freeze()))
}
