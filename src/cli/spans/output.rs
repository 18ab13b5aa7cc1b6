//! Documents with their spans -> lines of the report; or the documents without their spans.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::documents::TextDocument;
use crate::cli::corpus::named::Named;
use crate::cli::corpus::output::OutputFile;
use crate::cli::placed::PlaceFields;
use crate::corpus::{Span, without};
use crate::input::{Chunk, Fields};

/// The file of a run.
pub(super) struct SpanFile {
    file: OutputFile,
    /// If documents are cut: the fields with the text and with the page.
    fields: Option<(String, String)>,
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
    /// `flag`: the argument that has given the path. `fields`: the fields with the text and with the page, if documents are
    /// cut.
    pub(super) fn create(path: &Path, flag: &str, fields: Option<(&str, &str)>) -> Result<Self> {
        let fields = fields.map(|(text, html)| (text.to_owned(), html.to_owned()));
        Ok(Self { file: OutputFile::create(path, flag)?, fields })
    }

    /// Writes a document. `names`: the names of all documents before it.
    pub(super) fn document(
        &mut self,
        chunk: &Chunk,
        document: &TextDocument,
        spans: &[Span],
        names: &[Named],
    ) -> Result<()> {
        let at = document.at;
        match &self.fields {
            None if spans.is_empty() => Ok(()),
            None => {
                let line = serde_json::to_vec(&line(document, spans, names)).expect("the report is JSON");
                self.file.line(&line)
            }
            Some(_) if spans.is_empty() => self.file.line(&chunk.object(at)),
            Some((text, html)) => {
                // Pages of WARC files and texts have the fields of the API.
                let is_own = chunk.originals.is_empty();
                let (text, html) = if is_own { ("text", "html") } else { (text.as_str(), html.as_str()) };
                let replaced = if document.is_extracted { html } else { text };
                self.file.line(cut(&chunk.object(at), (replaced, text), &without(&document.text, spans)).as_bytes())
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

/// Replaces the field `replaced` of a line by the field `field` with this text. If the text was extracted from HTML, it takes
/// the place of the page.
fn cut(line: &[u8], (replaced, field): (&str, &str), text: &str) -> String {
    let fields: Fields<'_> = serde_json::from_slice(line).expect("a document is an object");
    let mut cut = String::with_capacity(line.len());
    // A line with a page may have a null as its text.
    let others = |name: &str| name == replaced || name != field;
    for (name, value) in fields.0.iter().filter(|(name, _)| others(name)) {
        cut.push(if cut.is_empty() { '{' } else { ',' });
        let (name, value) = match name == replaced {
            true => (field, Value::from(text).to_string()),
            false => (&**name, (*value).to_owned()),
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
        assert_eq!(cut(line, ("body", "body"), "a \"q\""), r#"{"n":1.50,"body":"a \"q\"","x\"y":[1, 2]}"#);
        let page = br#"{"id": "p", "html": "<p>a b", "z": null}"#;
        assert_eq!(cut(page, ("html", "body"), "a"), r#"{"id":"p","body":"a","z":null}"#);
        let both = br#"{"body": null, "html": "<p>a b"}"#;
        assert_eq!(cut(both, ("html", "body"), "a"), r#"{"body":"a"}"#);
    }
}
