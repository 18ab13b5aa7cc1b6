//! Chunks of files -> documents with their texts and windows.

use std::sync::Arc;

use hapax_core::{Pipeline, TextSpec};
use rayon::prelude::*;

use crate::cli::corpus::named::Named;
use crate::cli::corpus::signing::comparable;
use crate::cli::placed::Unreadable;
use crate::corpus::{Windower, Windows};
use crate::http::Caller;
use crate::http::dto::document::{Invalid, from_json};
use crate::input::{Chunk, Origin};
use crate::types::{Content, Extract};

/// Makes documents of chunks.
#[derive(Clone)]
pub(super) struct Documents {
    pipeline: Arc<Pipeline>,
    window: usize,
    extract: Extract,
}

/// The documents of a chunk.
pub(super) struct TextChunk {
    chunk: Chunk,
    documents: Vec<TextDocument>,
    /// The documents that have no text, with the reasons.
    refused: Vec<(Origin, Unreadable)>,
}

pub(super) struct TextDocument {
    pub named: Named,
    pub text: String,
    /// Whether the text was extracted from HTML.
    pub is_extracted: bool,
    pub windows: Windows,
    /// Its place in the chunk.
    pub at: usize,
}

impl Documents {
    /// `window`: the number of tokens in a window.
    pub(super) fn new(window: usize, extract: Extract) -> Self {
        let pipeline = Pipeline::new(&TextSpec::default(), None).expect("the default spec is valid");
        Self { pipeline: Arc::new(pipeline), window, extract }
    }

    pub(super) fn of_chunk(&self, chunk: Chunk) -> TextChunk {
        let make = |windower: &mut Windower<'_>, (at, line): (usize, &Vec<u8>)| {
            let origin = chunk.origins[at].clone();
            let (id, content) = comparable(std::str::from_utf8(line).expect("lines are made of UTF-8"));
            let content = match from_json(&content, Invalid::Refuse, &Caller::anyone()) {
                Ok(document) => document.content,
                Err(problem) => return Err((origin, Unreadable::new(problem.code.as_str(), problem.detail))),
            };
            let (text, is_extracted) = match content {
                Content::Text(text) => (text, false),
                Content::Html(html) => (crate::extract::extract(&html, self.extract).text, true),
                Content::Set(_) | Content::Signature { .. } => {
                    return Err((origin, Unreadable::new("no_text", "there is no text, so no passage".to_owned())));
                }
            };
            let windows = windower.windows(&text);
            Ok(TextDocument { named: Named { origin, id }, text, is_extracted, windows, at })
        };
        let windower = || Windower::new(&self.pipeline, self.window);
        let made: Vec<_> = chunk.lines.par_iter().enumerate().map_init(windower, make).collect();
        let (mut documents, mut refused) = (Vec::with_capacity(made.len()), Vec::new());
        for made in made {
            match made {
                Ok(document) => documents.push(document),
                Err(reason) => refused.push(reason),
            }
        }
        TextChunk { chunk, documents, refused }
    }
}

impl TextChunk {
    /// The chunk that was read.
    pub(super) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(super) fn documents(&self) -> &[TextDocument] {
        &self.documents
    }

    /// Returns the lines from which no document was made, and the documents without text.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&Origin, Unreadable)> {
        let unreadable = self.chunk.failures.iter().map(|(origin, reason)| (origin, Unreadable::from(reason)));
        unreadable.chain(self.refused.iter().map(|(origin, reason)| (origin, reason.clone())))
    }
}

/// Parses the argument that says which part of a page is read.
pub(super) fn extract(text: &str) -> Result<Extract, String> {
    Extract::ALL
        .into_iter()
        .find(|extract| extract.as_str() == text)
        .ok_or_else(|| "must be article or visible".to_owned())
}
