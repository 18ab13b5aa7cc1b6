//! How much memory a body takes while it is worked on.

use super::budget::Room;
use super::decoded::CHUNK;
use crate::collections::{Collection, Purpose};
use crate::http::dto::document::Invalid;
use crate::http::error::Problem;
use crate::types::{Content, SetElement};

/// The memory for one element of a set: the slice of its JSON, the element and its hash.
const ELEMENT_BYTES: usize = size_of::<&str>() + size_of::<SetElement>() + size_of::<u64>();

/// The most memory that a raw text takes: if ill-formed bytes are replaced, each becomes three.
pub(crate) fn text_bytes(bytes: usize, invalid: Invalid) -> usize {
    match invalid {
        Invalid::Refuse => bytes,
        Invalid::Replace => 4 * bytes,
    }
}

/// Returns the most memory that a JSON document takes while it is worked on: its JSON and its text, or the elements of
/// its set. An element may take many times the memory of the digit and the comma that it has in the JSON.
pub(crate) async fn json_bytes(json: &[u8]) -> usize {
    let (mut elements, mut quoted, mut escaped) = (0, false, false);
    for piece in json.chunks(CHUNK) {
        for &byte in piece {
            elements += usize::from(byte == b',' && !quoted);
            if byte == b'"' && !escaped {
                quoted = !quoted;
            }
            escaped = quoted && byte == b'\\' && !escaped;
        }
        if json.len() > CHUNK {
            tokio::task::yield_now().await;
        }
    }
    2 * json.len() + elements * ELEMENT_BYTES
}

/// Reserves memory for a content, the only part of the body still in use, and for the shingles prepared from it.
pub(crate) fn fit_content(
    room: &mut Room,
    content: &Content,
    collection: &Collection,
    purpose: Purpose,
) -> Result<(), Problem> {
    match content {
        Content::Text(text) => room.fit(text.len() + collection.shingle_bytes(purpose, text.len())),
        // `json_bytes` has already counted its elements.
        Content::Set(_) | Content::Signature { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_counts_as_it_is_at_its_largest() {
        assert_eq!(json_bytes(br#"{"text":"a,b\",c,","id":"x"}"#).await, 2 * 28 + ELEMENT_BYTES);
        let set = format!("{{\"set\":[{}1]}}", "1,".repeat(100_000));
        assert_eq!(json_bytes(set.as_bytes()).await, 2 * set.len() + 100_000 * ELEMENT_BYTES);
    }
}
