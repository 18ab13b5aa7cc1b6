//! The bytes of a body -> their meaning, off the async threads if that takes long.

use crate::cpu::{CpuPool, WhenFull};
use crate::http::error::Problem;

/// Longer texts are parsed off the async threads.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Returns the text of a JSON body, without its byte order mark.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Problem::invalid("body", format!("is not valid UTF-8 at byte {}", error.valid_up_to())))?;
    Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text))
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

/// For the work after parsing `bytes` bytes. If parsing already had a place in the pool, a refusal now would waste that
/// work.
pub(super) fn after_parsing(bytes: usize) -> WhenFull {
    if bytes <= INLINE_BYTES_MAX { WhenFull::Refuse } else { WhenFull::Wait }
}
