//! The bytes of a body -> a parsed value. Long bodies are parsed off the async threads.

use std::str::Utf8Error;

use axum::body::Bytes;

use crate::cpu::{CpuPool, WhenFull};
use crate::http::dto::document::BYTE_ORDER_MARK;
use crate::http::error::Problem;

/// Texts longer than this are parsed off the async threads.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Returns the text of a JSON body, without its byte order mark.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(bytes).map_err(ill_formed)?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

/// Returns the text as a `String`. The bytes are copied if they are shared.
pub(super) fn into_utf8(bytes: Bytes) -> Result<String, Problem> {
    let mut text = String::from_utf8(bytes.into()).map_err(|error| ill_formed(error.utf8_error()))?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

/// Returns 422 for a text that is not UTF-8.
pub(crate) fn ill_formed(error: Utf8Error) -> Problem {
    Problem::invalid("body", format!("is not valid UTF-8 at byte {}", error.valid_up_to()))
}

/// Runs `work` on a text of `bytes` bytes, off the async threads if it is long.
pub(crate) async fn parse<T: Send + 'static>(
    cpu: &CpuPool,
    when_full: WhenFull,
    bytes: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= INLINE_BYTES_MAX {
        return work();
    }
    cpu.place(when_full).await?.run_uncut(bytes, work).await?
}

/// Returns whether the work after the parsing of `bytes` bytes waits if the pool is full. If the pool did the parsing,
/// a refusal now would waste that work.
pub(super) fn after_parsing(bytes: usize) -> WhenFull {
    if bytes <= INLINE_BYTES_MAX { WhenFull::Refuse } else { WhenFull::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_loses_one_byte_order_mark_and_must_be_utf8() {
        for (bytes, text) in [("{}", "{}"), ("\u{FEFF}{}", "{}"), ("\u{FEFF}\u{FEFF}{}", "\u{FEFF}{}"), ("", "")] {
            assert_eq!(utf8(bytes.as_bytes()).unwrap(), text);
            assert_eq!(into_utf8(Bytes::from(bytes)).unwrap(), text);
        }
        let bytes = b"\xEF\xBB\xBFa\xFF";
        let [borrowed, owned] = [utf8(bytes).map(drop), into_utf8(Bytes::from_static(bytes)).map(drop)]
            .map(|read| read.unwrap_err().errors[0].detail.clone());
        assert_eq!((&*borrowed, &*owned), ("is not valid UTF-8 at byte 4", "is not valid UTF-8 at byte 4"));
    }
}
