//! What a body takes in memory while it is worked on.

use super::budget::Room;
use super::decoded::CHUNK;
use crate::collections::{Collection, Purpose};
use crate::http::dto::document::Invalid;
use crate::http::error::Problem;
use crate::types::{Content, SetElement};

/// What an element of a set takes: the place of its JSON, itself and its hash.
const ELEMENT_BYTES: usize = size_of::<&str>() + size_of::<SetElement>() + size_of::<u64>();

/// What a raw text takes at the most: ill-formed bytes become three each where they are replaced.
pub(crate) fn text_bytes(bytes: usize, invalid: Invalid) -> usize {
    match invalid {
        Invalid::Refuse => bytes,
        Invalid::Replace => 4 * bytes,
    }
}

/// What a document in JSON takes at the most while it is worked on: itself and its text, or the elements of its set,
/// which may be many times as long as the digit and the comma that each has here.
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

/// Makes room for a content that is all there is left of a body, and for what it is prepared into.
pub(crate) fn fit_content(
    room: &mut Room,
    content: &Content,
    collection: &Collection,
    purpose: Purpose,
) -> Result<(), Problem> {
    match content {
        Content::Text(text) => room.fit(text.len() + collection.shingle_bytes(purpose, text.len())),
        // Counted by its elements already.
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
