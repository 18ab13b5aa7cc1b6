//! Decides whether a line of the log meets the conditions of a filter. Pure: knows nothing of files.

use jiff::Timestamp;

use super::line::AuditLine;

/// The conditions that a line must meet. Absent conditions are met by every line.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub collection: Option<String>,
    /// The id in the request.
    pub id: Option<String>,
    /// An id that must be in the evidence.
    pub matched: Option<String>,
    /// The name of the API key.
    pub key: Option<String>,
    pub verdict: Option<String>,
    pub op: Option<String>,
    pub request_id: Option<String>,
    /// Only lines from this moment on.
    pub since: Option<Timestamp>,
    /// Only lines before this moment.
    pub until: Option<Timestamp>,
}

impl Filter {
    /// Whether a line meets the conditions.
    pub fn takes(&self, line: &AuditLine<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found.is_some_and(|found| found == wanted))
        };
        is(&self.collection, Some(&line.collection))
            && is(&self.id, line.id.as_deref())
            && is(&self.key, line.key.as_deref())
            && is(&self.verdict, line.verdict.as_deref())
            && is(&self.op, Some(&line.op))
            && is(&self.request_id, Some(&line.request_id))
            && self.matched.as_deref().is_none_or(|id| names(line, id))
            && self.is_in_time(line)
    }

    fn is_in_time(&self, line: &AuditLine<'_>) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let Ok(at) = line.time.parse::<Timestamp>() else { return false };
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

/// Whether an id is in the evidence.
fn names(line: &AuditLine<'_>, id: &str) -> bool {
    let others = [&line.duplicate_of, &line.representative];
    line.matches.iter().flatten().any(|found| found.id == id) || others.into_iter().flatten().any(|other| other == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"time":"2026-11-20T10:00:00.000Z","request_id":"r","key":"crawler","op":"insert",
        "collection":"news","id":"b","spec":"0","bands":31,"rows":8,"verdict":"near_duplicate","duplicate_of":"a",
        "matches":[{"id":"a","similarity":0.9,"low":0.8,"high":1.0,"method":"estimate","first_seen":"x"},
        {"id":"c","similarity":0.9,"low":0.8,"high":1.0,"method":"estimate","first_seen":"x"}],"later":"unknown"}"#;

    #[test]
    fn each_condition_counts() {
        let line: AuditLine<'_> = serde_json::from_str(LINE).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let all = || Filter::default();
        let taken = [
            all(),
            Filter { collection: text("news"), id: text("b"), key: text("crawler"), ..all() },
            Filter { verdict: text("near_duplicate"), op: text("insert"), request_id: text("r"), ..all() },
            Filter { matched: text("a"), ..all() },
            Filter {
                matched: text("c"),
                since: at("2026-11-20T10:00:00Z"),
                until: at("2026-11-20T10:00:01Z"),
                ..all()
            },
        ];
        assert!(taken.iter().all(|filter| filter.takes(&line)));
        let left = [
            Filter { collection: text("new"), ..all() },
            Filter { id: text("a"), ..all() },
            Filter { matched: text("b"), ..all() },
            Filter { key: text("other"), ..all() },
            Filter { verdict: text("unique"), ..all() },
            Filter { op: text("check"), ..all() },
            Filter { request_id: text("r2"), ..all() },
            Filter { since: at("2026-11-20T10:00:01Z"), ..all() },
            Filter { until: at("2026-11-20T10:00:00Z"), ..all() },
        ];
        assert!(!left.iter().any(|filter| filter.takes(&line)));
    }
}
