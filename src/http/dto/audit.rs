//! Lines of the audit log as JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::audit::FoundLines;

/// A page of decisions, the newest first.
#[derive(Debug, Serialize)]
pub struct DecisionPage {
    decisions: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl DecisionPage {
    pub fn new(found: FoundLines) -> Self {
        // The search returns only lines that are JSON.
        let decision = |line: String| RawValue::from_string(line).ok();
        Self {
            decisions: found.lines.into_iter().filter_map(decision).collect(),
            next_cursor: found.next.map(|next| next.to_string()),
        }
    }

    /// Returns the bytes of JSON of all decisions.
    pub fn bytes(&self) -> usize {
        self.decisions.iter().map(|line| line.get().len() + 1).sum()
    }
}
