//! A text file or a page of HTML -> one document, whose id is the path of the file. The code here must never know how
//! chunks are sent.

use std::io::{self, Read as _};
use std::sync::Arc;

use serde_json::json;

use super::chunk::{Chunk, Origin, Place};
use super::gather::{Gather, Part};
use super::lines::{BYTE_ORDER_MARK, LINE_BYTES_MAX};
use super::reason::{InputError, Reason};
use super::units::Units;
use crate::extract::decode;

/// Passes the document of a file to `give`. `is_page`: whether the file is HTML.
pub(super) fn read(
    mut units: Units,
    file: &Arc<str>,
    is_page: bool,
    give: &mut dyn FnMut(Chunk) -> bool,
) -> Result<(), InputError> {
    let origin = Origin { file: Arc::clone(file), place: Place::File };
    let mut bytes = Vec::new();
    units.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    let rest = io::copy(&mut units, &mut io::sink())?;
    let text_bytes = bytes.len() as u64 + rest;
    let document = if text_bytes <= LINE_BYTES_MAX as u64 {
        content(&bytes, is_page)
    } else {
        let detail = format!("the file has {text_bytes} bytes; the limit of a text is {LINE_BYTES_MAX}");
        Err(Reason::other("too_large", detail))
    };
    let document = document.map(|(name, content)| json!({"id": origin.made_id(), name: content}).to_string());
    let mut gather = Gather::new(give);
    let part = Part { origin, document: document.map(String::into_bytes), original: None, ranked: None, text_bytes };
    if gather.add(part, units.taken())? {
        gather.finish(units.taken())?;
    }
    Ok(())
}

/// Returns the field of the document, and its content.
fn content(bytes: &[u8], is_page: bool) -> Result<(&'static str, String), Reason> {
    if is_page {
        return Ok(("html", decode(bytes, None)));
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = str::from_utf8(text).map_err(|error| {
        let at = bytes.len() - text.len() + error.valid_up_to();
        Reason::other("not_utf8", format!("not valid UTF-8 at byte {at}"))
    })?;
    Ok(("text", text.to_owned()))
}
