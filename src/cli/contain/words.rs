//! A document in the form of the API -> its text -> the hashes of its words. One way for items and documents.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use hapax_core::{Pipeline, Shingling, SignScratch, TextSpec, TokenLocator, TokenPlace};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

use crate::cli::corpus::signing::comparable;
use crate::cli::placed::Unreadable;
use crate::extract;
use crate::grams::GramSize;
use crate::http::Caller;
use crate::http::dto::document::{Invalid, from_json};
use crate::types::{Content, DocId, Extract};

thread_local! {
    static SCRATCH: RefCell<SignScratch> = RefCell::default();
}

/// Finds the words of documents.
pub(super) struct Words {
    size: GramSize,
    pipeline: Pipeline,
    extract: Extract,
}

/// A text that is borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Takes the field `text` of an object, and leaves the fields after it unread. The field `id` alone comes before it, so
/// this is faster than finding all fields first.
struct UntilText<'a, 'b>(&'b mut Option<Cow<'a, str>>);

impl<'de> Visitor<'de> for UntilText<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(name)) = map.next_key()? {
            if name == "text" {
                *self.0 = Some(map.next_value::<Text<'_>>()?.0);
                break;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl Words {
    /// `extract`: the part of a page that is read.
    pub(super) fn new(size: GramSize, extract: Extract) -> Self {
        let spec = TextSpec { shingling: Shingling::Word(size.tokens() as u8), ..TextSpec::default() };
        let pipeline = Pipeline::new(&spec, None).expect("the default spec is valid for each size");
        Self { size, pipeline, extract }
    }

    pub(super) fn size(&self) -> GramSize {
        self.size
    }

    /// Returns the text of a document; of a page, the text that is extracted from it.
    pub(super) fn text<'a>(&self, line: &'a [u8]) -> Result<Cow<'a, str>, Unreadable> {
        let line = std::str::from_utf8(line).expect("lines are made of UTF-8");
        let mut text = None;
        // It is an error that fields are left, but the text is there.
        let _ = serde_json::Deserializer::from_str(line).deserialize_map(UntilText(&mut text));
        if let Some(text) = text {
            return Ok(text);
        }
        let document = from_json(&comparable(line).1, Invalid::Refuse, &Caller::anyone());
        match document.map_err(|problem| Unreadable::new(problem.code.as_str(), problem.detail))?.content {
            Content::Text(text) => Ok(text.into()),
            Content::Html(html) => Ok(extract::extract(&html, self.extract).text.into()),
            Content::Set(_) | Content::Signature { .. } => {
                Err(Unreadable::new("invalid_value", "has no words; only a text or a page can be looked up".to_owned()))
            }
        }
    }

    /// Replaces the content of `hashes` by the hash of each word of a text.
    pub(super) fn hash(&self, text: &str, hashes: &mut Vec<u64>) {
        hashes.clear();
        SCRATCH.with_borrow_mut(|scratch| self.pipeline.token_hashes(scratch, text, hashes));
    }

    /// Returns the place of each word in a text.
    pub(super) fn places(&self, text: &str) -> Vec<TokenPlace> {
        let mut locator = TokenLocator::new(&self.pipeline);
        locator.locate(text);
        locator.places().to_vec()
    }
}

/// Returns the id of a document, if it has a valid one.
pub(super) fn id(line: &[u8]) -> Option<DocId> {
    comparable(std::str::from_utf8(line).expect("lines are made of UTF-8")).0
}
