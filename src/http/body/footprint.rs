//! How much memory a body takes while it is worked on.

use super::budget::Room;
use super::decoded::CHUNK;
use crate::collections::{AskedCollections, Collection, Purpose};
use crate::http::dto::document::Invalid;
use crate::http::error::Problem;
use crate::types::{Content, SetElement};

/// The memory for one element of a set: the slice of its JSON, the element and its hash.
const ELEMENT_BYTES: usize = size_of::<&str>() + size_of::<SetElement>() + size_of::<u64>();

/// Returns an upper bound on the memory that a raw text takes, in bytes. If ill-formed bytes are replaced, the text is
/// copied, and each of these bytes becomes three.
pub(crate) fn text_bytes(bytes: usize, invalid: Invalid) -> usize {
    match invalid {
        Invalid::Refuse => bytes,
        Invalid::Replace => 4 * bytes,
    }
}

/// Returns an upper bound on the memory that a JSON document takes while it is worked on: for its JSON, and for its
/// text or the elements of its set. One digit and one comma of JSON can become an element that takes many times their
/// memory.
pub(crate) async fn json_bytes(json: &[u8]) -> usize {
    let mut commas = Commas::default();
    for piece in json.chunks(CHUNK) {
        commas.count(piece);
        if json.len() > CHUNK {
            tokio::task::yield_now().await;
        }
    }
    2 * json.len() + commas.outside * ELEMENT_BYTES
}

/// Counts the commas in JSON that are outside of strings.
#[derive(Default)]
struct Commas {
    outside: usize,
    quoted: bool,
    /// Whether the last byte was a backslash that escapes the next byte.
    escaped: bool,
}

impl Commas {
    fn count(&mut self, piece: &[u8]) {
        let mut rest = piece;
        if self.escaped {
            (self.escaped, rest) = (rest.is_empty(), rest.get(1..).unwrap_or_default());
        }
        // Within a string, only quotes and backslashes matter; outside, only quotes and commas.
        while let Some(at) = memchr::memchr2(b'"', if self.quoted { b'\\' } else { b',' }, rest) {
            let byte = rest[at];
            rest = &rest[at + 1..];
            match byte {
                b'"' => self.quoted = !self.quoted,
                b',' => self.outside += 1,
                _ => (self.escaped, rest) = (rest.is_empty(), rest.get(1..).unwrap_or_default()),
            }
        }
    }
}

/// A room that holds fewer bytes than this is not shrunk.
const GIVEN_BACK_FROM: usize = 64 * 1024;

/// Changes the reservation to the memory for a content and for its shingles. The other parts of the body are no longer
/// in use. A small room that is large enough keeps its size.
pub(crate) fn fit_content(
    room: &mut Room,
    content: &Content,
    collection: &Collection,
    purpose: Purpose,
) -> Result<(), Problem> {
    match content {
        Content::Text(text) => {
            let bytes = text.len() + collection.shingle_bytes(purpose, text.len());
            if room.bytes() < GIVEN_BACK_FROM && bytes <= room.bytes() { Ok(()) } else { room.fit(bytes) }
        }
        // Memory for the page, for its text in the order of the page, and for the part of the text that is kept.
        Content::Html(html) => {
            let bytes = html.markup.len();
            room.fit(3 * bytes + collection.shingle_bytes(purpose, bytes))
        }
        // `json_bytes` has already counted the elements of a set.
        Content::Set(_) | Content::Signature { .. } => Ok(()),
    }
}

/// Does the same as [`fit_content`] for a content that is looked up in several collections.
pub(crate) fn fit_asked_content(
    room: &mut Room,
    content: &Content,
    asked: &AskedCollections,
    purpose: Purpose,
) -> Result<(), Problem> {
    let (bytes, copied) = (content.bytes(), asked.copied_bytes(content));
    match content {
        Content::Text(_) => room.fit(bytes + copied + asked.shingle_bytes(purpose, bytes)),
        // Memory as in `fit_content`, and for the copies of the page.
        Content::Html(_) => room.fit(3 * bytes + copied + asked.shingle_bytes(purpose, bytes)),
        Content::Set(elements) if copied > 0 => {
            room.fit(room.bytes() + copied + elements.len() * size_of::<SetElement>())
        }
        Content::Set(_) | Content::Signature { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_counts_as_it_is_at_its_largest() {
        assert_eq!(json_bytes(br#"{"text":"a,b\",c,","id":"x"}"#).await, 2 * 28 + ELEMENT_BYTES);
        for (json, commas) in [(r#"{"a":"\\","b":1}"#, 1), (r#"{"a":"\\\",","b":1,"c":[]}"#, 2), (r#"["",",",""]"#, 2)]
        {
            for cut in 0..json.len() {
                let (first, second) = json.as_bytes().split_at(cut);
                let mut both = Commas::default();
                both.count(first);
                both.count(second);
                assert_eq!(both.outside, commas, "{json} cut at {cut}");
            }
        }
        let set = format!("{{\"set\":[{}1]}}", "1,".repeat(100_000));
        assert_eq!(json_bytes(set.as_bytes()).await, 2 * set.len() + 100_000 * ELEMENT_BYTES);
    }
}
