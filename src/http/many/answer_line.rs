//! The lines of a bulk answer.

use serde::Serialize;

use crate::http::dto::summary::Summary;
use crate::http::dto::verdict::VerdictBody;
use crate::http::error::ProblemBody;

/// The kind of most lines in an answer.
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

    #[test]
    fn lines_carry_their_kind_first() {
        let text = serde_json::to_string(&AnswerLine::Summary { lines: 3, summary: Summary::default() }).unwrap();
        assert!(text.starts_with(r#"{"kind":"summary","lines":3,"summary":{"documents":0,"errors":0,"#), "{text}");
        let error = Problem::new(Code::TooLarge, "x").into_body("r");
        let text = serde_json::to_string(&AnswerLine::Error { line: 17, id: None, error }).unwrap();
        assert!(
            text.starts_with(r#"{"kind":"error","line":17,"error":{"type":"urn:hapax:problem:too-large""#),
            "{text}"
        );
    }
}
