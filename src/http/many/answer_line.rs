//! The lines of a bulk answer.

use std::io::{self, Write};

use serde::Serialize;

use super::states::DocumentAnswer;
use crate::http::dto::summary::Summary;
use crate::http::dto::verdict::{VerdictBody, text};
use crate::http::error::ProblemBody;
use crate::keys::Scores;
use crate::types::CollectionName;

/// The kind of a line with a verdict. Most lines have this kind.
pub(super) const VERDICT: &str = "verdict";

/// One line.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum AnswerLine {
    Verdict {
        line: u64,
        #[serde(flatten)]
        verdict: VerdictBody,
    },
    Deleted {
        line: u64,
        id: String,
        deleted: u64,
    },
    Error {
        line: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        error: ProblemBody,
    },
    Fatal {
        line: u64,
        error: ProblemBody,
    },
    Summary {
        lines: u64,
        summary: Summary,
    },
}

impl AnswerLine {
    /// Returns the line about a document.
    pub(super) fn of(line: u64, answer: DocumentAnswer, collection: &CollectionName, request_id: &str) -> Self {
        match answer {
            DocumentAnswer::Verdict(verdict) => {
                Self::Verdict { line, verdict: VerdictBody::joint(collection, verdict, || request_id.to_owned()) }
            }
            DocumentAnswer::Deleted { id, was_there } => {
                Self::Deleted { line, id: id.as_str().to_owned(), deleted: was_there.into() }
            }
            DocumentAnswer::Failed { id, problem } => {
                let id = id.map(|id| id.as_str().to_owned());
                Self::Error { line, id, error: problem.into_body(request_id) }
            }
        }
    }

    /// Returns the same line with the parts of a verdict that the client may see.
    pub(super) fn seen_with(self, scores: Scores) -> Self {
        match self {
            Self::Verdict { line, verdict } => Self::Verdict { line, verdict: verdict.seen_with(scores) },
            other => other,
        }
    }

    /// Writes the line as JSON, without the line end. Most lines are verdicts, and serde would take much longer for
    /// them.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self::Verdict { line, verdict } = self else { return Ok(serde_json::to_writer(out, self)?) };
        out.write_all(b"{\"kind\":\"verdict\",\"line\":")?;
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b",")?;
        text::members(verdict, out)?;
        out.write_all(b"}")
    }

    /// Returns the status and the code of the line's error, if it has one.
    pub(super) fn failed(&self) -> Option<(u16, &'static str)> {
        match self {
            Self::Error { error, .. } | Self::Fatal { error, .. } => Some((error.status(), error.code())),
            Self::Verdict { .. } | Self::Deleted { .. } | Self::Summary { .. } => None,
        }
    }

    /// The line's kind, as in the metric's label.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Verdict { .. } => VERDICT,
            Self::Deleted { .. } => "deleted",
            Self::Error { .. } => "error",
            Self::Fatal { .. } => "fatal",
            Self::Summary { .. } => "summary",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::{Code, Problem};
    use crate::types::{
        CollectionName, DocId, Match, Metadata, Method, Outcome, Overlap, Similarity, TimestampMs, Verdict,
    };
    use crate::verdicts::empty_verdict;

    fn written(line: &AnswerLine) -> String {
        let mut out = Vec::new();
        line.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, serde_json::to_string(line).unwrap());
        text
    }

    #[test]
    fn a_verdict_is_written_as_serde_writes_it() {
        let (id, collection) = (DocId::new("a \"b\"").unwrap(), CollectionName::default_collection());
        let found = Match {
            collection: Some(collection.clone()),
            id: id.clone(),
            same_content: false,
            similarity: Similarity { value: 0.25, low: 0.1, high: 1.0, method: Method::Exact },
            overlap: Some(Overlap { both: 1, query: 2, found: 3 }),
            first_seen: TimestampMs(-1),
            metadata: Some(Metadata::new(r#"{"price":1.50}"#.to_owned()).unwrap()),
            metadata_omitted: false,
        };
        let verdict = Verdict { matches: vec![found], ..empty_verdict(Some(id), Outcome::Skipped, 0.8, None) };
        let verdict = VerdictBody::joint(&collection, verdict.into(), String::new);
        let text = written(&AnswerLine::Verdict { line: u64::MAX, verdict });
        let begin = r#"{"kind":"verdict","line":18446744073709551615,"verdict":"empty","outcome":"skipped","#;
        assert!(text.starts_with(begin) && text.contains(r#""metadata":{"price":1.50}}]"#), "{text}");
    }

    #[test]
    fn lines_carry_their_kind_first() {
        let text = written(&AnswerLine::Summary { lines: 3, summary: Summary::default() });
        assert!(text.starts_with(r#"{"kind":"summary","lines":3,"summary":{"documents":0,"errors":0,"#), "{text}");
        let error = Problem::new(Code::TooLarge, "x").into_body("r");
        let text = written(&AnswerLine::Error { line: 17, id: None, error });
        assert!(
            text.starts_with(r#"{"kind":"error","line":17,"error":{"type":"urn:hapax:problem:too-large""#),
            "{text}"
        );
    }
}
