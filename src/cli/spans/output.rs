//! Documents with their spans -> lines of the report; or the documents without their spans.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::documents::TextDocument;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::output::OutputFile;
use crate::cli::corpus::signing::original;
use crate::cli::placed::PlaceFields;
use crate::corpus::{Span, without};
use crate::input::{Chunk, Fields};

/// The file of a run.
pub(super) struct SpanFile {
    file: OutputFile,
    /// If documents are cut: the field with the text.
    text_field: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: String,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    spans: Vec<SpanFields<'a>>,
}

#[derive(Serialize)]
struct SpanFields<'a> {
    from: u32,
    to: u32,
    tokens: u32,
    first: FirstFields<'a>,
}

/// The first place of a span.
#[derive(Serialize)]
struct FirstFields<'a> {
    id: String,
    #[serde(flatten)]
    place: PlaceFields<'a>,
    from: u32,
    to: u32,
}

impl SpanFile {
    /// `flag`: the argument that has given the path. `text_field`: the field with the text, if documents are cut.
    pub(super) fn create(path: &Path, flag: &str, text_field: Option<&str>) -> Result<Self> {
        Ok(Self { file: OutputFile::create(path, flag)?, text_field: text_field.map(str::to_owned) })
    }

    /// Writes a document. `names`: the names of all documents before it.
    pub(super) fn document(
        &mut self,
        chunk: &Chunk,
        document: &TextDocument,
        spans: &[Span],
        names: &[Named],
    ) -> Result<()> {
        match &self.text_field {
            None if spans.is_empty() => Ok(()),
            None => {
                let line = serde_json::to_vec(&line(document, spans, names)).expect("the report is JSON");
                self.file.line(&line)
            }
            Some(_) if spans.is_empty() => self.file.line(original(chunk, document.at)),
            Some(field) => {
                // Pages of WARC files have no lines of their own.
                let field = if chunk.originals.is_empty() { "text" } else { field };
                let line =
                    cut(original(chunk, document.at), (field, document.is_extracted), &without(&document.text, spans));
                self.file.line(line.as_bytes())
            }
        }
    }

    /// Writes everything, and gives the file its name.
    pub(super) fn publish(mut self) -> Result<()> {
        self.file.complete()?;
        self.file.publish()
    }
}

fn line<'a>(document: &'a TextDocument, spans: &[Span], names: &'a [Named]) -> Line<'a> {
    let fields = |span: &Span| {
        let first = &names[span.first.document as usize];
        SpanFields {
            from: span.from,
            to: span.to,
            tokens: span.tokens,
            first: FirstFields {
                id: first.id(),
                place: PlaceFields::of(&first.origin),
                from: span.first.from,
                to: span.first.to,
            },
        }
    };
    Line {
        id: document.named.id(),
        place: PlaceFields::of(&document.named.origin),
        spans: spans.iter().map(fields).collect(),
    }
}

/// Replaces the text of a line. If the text was extracted from HTML, it takes the place of the page.
fn cut(line: &[u8], (field, is_extracted): (&str, bool), text: &str) -> String {
    let fields: Fields<'_> = serde_json::from_slice(line).expect("a document is an object");
    let replaced = if is_extracted { "html" } else { field };
    let mut cut = String::with_capacity(line.len());
    for (name, value) in &fields.0 {
        cut.push(if cut.is_empty() { '{' } else { ',' });
        let (name, value) = match name == replaced {
            true => (field, Value::from(text).to_string()),
            false => (&**name, value.get().to_owned()),
        };
        cut.push_str(&Value::from(name).to_string());
        cut.push(':');
        cut.push_str(&value);
    }
    cut.push('}');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_line_changes() {
        let line = br#"{"n": 1.50, "body": "a b", "x\"y": [1, 2]}"#;
        assert_eq!(cut(line, ("body", false), "a \"q\""), r#"{"n":1.50,"body":"a \"q\"","x\"y":[1, 2]}"#);
        let page = br#"{"id": "p", "html": "<p>a b", "z": null}"#;
        assert_eq!(cut(page, ("body", true), "a"), r#"{"id":"p","body":"a","z":null}"#);
    }
}
