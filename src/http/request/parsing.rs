//! Bytes of a body -> what they mean, off the async threads where that takes long.

use crate::cpu::{CpuPool, WhenFull};
use crate::http::error::Problem;

/// Texts up to this many bytes are parsed where they are; longer ones off the async threads.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// The text of a JSON body.
pub(crate) fn utf8(bytes: Vec<u8>) -> Result<String, Problem> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        Problem::invalid("body", format!("is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })?;
    if text.starts_with('\u{FEFF}') {
        text.drain(..'\u{FEFF}'.len_utf8());
    }
    Ok(text)
}

/// Runs `work` on a text of `bytes` bytes, off the async threads where that takes long.
pub(crate) async fn parse<T: Send + 'static>(
    cpu: &CpuPool,
    when_full: WhenFull,
    bytes: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= INLINE_BYTES_MAX {
        return work();
    }
    cpu.place(when_full).await?.run_uncut(bytes, work).await
}

/// For what follows the parsing of `bytes` bytes: where that took a place already, refusing it would throw work away.
pub(super) fn after_parsing(bytes: usize) -> WhenFull {
    if bytes <= INLINE_BYTES_MAX { WhenFull::Refuse } else { WhenFull::Wait }
}
