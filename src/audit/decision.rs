//! A decision -> its line. A line never contains a text or metadata: the metadata of matches is left out.

use std::borrow::Cow;

use hapax_core::{Banding, ContentHash, Fingerprint};
use jiff::Timestamp;

use super::line::{AuditLine, AuditMatch, CHECK, DELETE, INSERT, MERGE};
use crate::types::{CollectionName, DocId, LabelDeletion, Match, Merge, TimestampMs, Verdict, fitting, ratio};

/// The maximum number of bytes of the matches in a line. The best match is always in the line, even if it is longer.
const MATCHES_BYTES_MAX: usize = 64 << 10;
/// An upper bound on the size of a match without its id, in bytes.
const MATCH_BYTES: usize = 160;

/// A decision, and the settings under which it was made.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    /// The time of the decision. Its document was stored at this time or earlier.
    pub at: Timestamp,
    pub request_id: &'a str,
    /// The name of the API key.
    pub key: Option<&'a str>,
    pub collection: &'a CollectionName,
    /// The hash of the document's content; `None` for an empty document, a signature without `content_hash`, and a
    /// deletion.
    pub content: Option<ContentHash>,
    pub spec: Fingerprint,
    pub banding: Banding,
    pub decided: Decided<'a>,
}

/// The whole answer of a decision, before parts of it are hidden from a key.
#[derive(Clone, Copy, Debug)]
pub enum Decided<'a> {
    Checked(&'a Verdict),
    Inserted(&'a Verdict),
    Deleted {
        id: &'a DocId,
        was_there: bool,
    },
    /// All documents with a label were deleted.
    LabelDeleted(&'a LabelDeletion),
    /// A merge has begun. The log has no lines for its documents.
    MergeBegun(&'a Merge),
}

impl<'a> Decision<'a> {
    /// Adds the decision's line to `out`, with a line feed.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // Writing into memory fails only if a value cannot be written as JSON, and all values of a line can.
        serde_json::to_writer(&mut *out, &self.line()).expect("a line is always JSON");
        out.push(b'\n');
    }

    fn line(&self) -> AuditLine<'a> {
        let Self { at, request_id, key, collection, content, spec, banding, decided } = *self;
        let line = AuditLine {
            time: rfc3339(at).into(),
            request_id: request_id.into(),
            key: key.map(Cow::from),
            op: "".into(),
            collection: collection.as_str().into(),
            id: None,
            content: content.map(|hash| hash.to_string().into()),
            spec: spec.to_string().into(),
            bands: banding.bands(),
            rows: banding.rows(),
            threshold: None,
            verdict: None,
            outcome: None,
            stored: None,
            complete: None,
            duplicate_of: None,
            similarity: None,
            representative: None,
            matches: None,
            omitted: 0,
            deleted: None,
            label: None,
            documents: None,
            from: None,
            on_duplicate: None,
            on_existing: None,
        };
        match decided {
            Decided::Checked(verdict) => with_verdict(AuditLine { op: CHECK.into(), ..line }, verdict),
            Decided::Inserted(verdict) => with_verdict(AuditLine { op: INSERT.into(), ..line }, verdict),
            Decided::Deleted { id, was_there } => {
                AuditLine { op: DELETE.into(), id: Some(id.as_str().into()), deleted: Some(was_there), ..line }
            }
            Decided::LabelDeleted(LabelDeletion { label, documents, .. }) => {
                AuditLine { op: DELETE.into(), label: Some(label.as_str().into()), documents: Some(*documents), ..line }
            }
            Decided::MergeBegun(Merge { source, on_duplicate, on_existing, .. }) => AuditLine {
                op: MERGE.into(),
                from: Some(source.name.as_str().into()),
                on_duplicate: Some(on_duplicate.as_str().into()),
                on_existing: Some(on_existing.as_str().into()),
                documents: Some(source.documents),
                ..line
            },
        }
    }
}

fn with_verdict<'a>(line: AuditLine<'a>, verdict: &'a Verdict) -> AuditLine<'a> {
    let id = |id: &'a Option<DocId>| id.as_ref().map(|id| Cow::from(id.as_str()));
    let shown = fitting(&verdict.matches, MATCHES_BYTES_MAX, |found| MATCH_BYTES + found.id.json_bytes());
    AuditLine {
        id: id(&verdict.id),
        threshold: Some(verdict.threshold),
        verdict: Some(verdict.kind.as_str().into()),
        outcome: Some(verdict.outcome.as_str().into()),
        stored: Some(verdict.stored),
        complete: Some(verdict.unread == 0),
        duplicate_of: id(&verdict.duplicate_of),
        similarity: verdict.similarity.map(ratio),
        representative: id(&verdict.representative),
        matches: Some(verdict.matches[..shown].iter().map(evidence).collect()),
        omitted: verdict.omitted_matches + (verdict.matches.len() - shown) as u64,
        ..line
    }
}

fn evidence(found: &Match) -> AuditMatch<'_> {
    AuditMatch {
        id: found.id.as_str().into(),
        similarity: ratio(found.similarity.value),
        low: ratio(found.similarity.low),
        high: ratio(found.similarity.high),
        method: found.similarity.method.as_str().into(),
        first_seen: stored_at(found.first_seen).into(),
    }
}

/// Formats a time as in answers, so that times in the log and in answers can be compared as text.
fn stored_at(at: TimestampMs) -> String {
    Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{LookupTimes, Metadata, Method, Outcome, Similarity, VerdictKind};

    fn found(id: &str) -> Match {
        Match {
            collection: None,
            id: DocId::new(id).unwrap(),
            same_content: false,
            similarity: Similarity { value: 0.914_062_5, low: 0.87, high: 0.95, method: Method::Estimate },
            overlap: None,
            first_seen: TimestampMs(1_795_168_800_250),
            metadata: Some(Metadata::new(r#"{"secret":1}"#).unwrap()),
            metadata_omitted: false,
        }
    }

    fn verdict(matches: Vec<Match>) -> Verdict {
        Verdict {
            kind: VerdictKind::NearDuplicate,
            outcome: Outcome::Skipped,
            stored: false,
            id: Some(DocId::new("b").unwrap()),
            duplicate_of: Some(DocId::new("a").unwrap()),
            similarity: Some(0.914_062_5),
            representative: None,
            threshold: 0.8,
            matches,
            omitted_matches: 2,
            candidates: 1,
            unread: 0,
            shingles: Some(3),
            previous: None,
            expected_recall: None,
            is_too_short: false,
            times: LookupTimes::default(),
            explanation: None,
            page: None,
            revisit: None,
        }
    }

    fn text(decided: Decided<'_>, content: Option<ContentHash>) -> String {
        let collection = CollectionName::default_collection();
        let banding = hapax_core::tuning::default_banding(hapax_core::Spec::default().shape(), 0.8);
        let decision = Decision {
            at: Timestamp::from_millisecond(1_795_168_800_000).unwrap(),
            request_id: "r-1",
            key: Some("crawler"),
            collection: &collection,
            content,
            spec: Fingerprint(0xabc),
            banding,
            decided,
        };
        let mut line = Vec::new();
        decision.write(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_line_has_the_decision_its_evidence_and_its_settings_and_no_metadata() {
        assert_eq!(
            text(Decided::Inserted(&verdict(vec![found("a")])), Some(ContentHash(7))),
            r#"{"time":"2026-11-20T10:00:00.000Z","request_id":"r-1","key":"crawler","op":"insert","#.to_owned()
                + r#""collection":"default","id":"b","content":"00000000000000000000000000000007","#
                + r#""spec":"00000000000000000000000000000abc","bands":31,"rows":8,"threshold":0.8,"#
                + r#""verdict":"near_duplicate","outcome":"skipped","stored":false,"complete":true,"#
                + r#""duplicate_of":"a","similarity":0.914063,"matches":[{"id":"a","similarity":0.914063,"#
                + r#""low":0.87,"high":0.95,"method":"estimate","first_seen":"2026-11-20T10:00:00.25Z"}],"omitted":2}"#
                + "\n"
        );
        let id = DocId::new("b").unwrap();
        let deleted = text(Decided::Deleted { id: &id, was_there: true }, None);
        assert!(deleted.contains(r#""op":"delete""#) && deleted.contains(r#""rows":8,"deleted":true}"#), "{deleted}");
    }

    #[test]
    fn a_line_is_bounded_and_keeps_the_best_match() {
        let long = "\u{1}".repeat(2048);
        let line = text(Decided::Checked(&verdict((0..1000).map(|_| found(&long)).collect())), None);
        assert!(line.len() < 128 << 10, "{}", line.len());
        let read: AuditLine<'_> = serde_json::from_str(&line).unwrap();
        let shown = read.matches.unwrap().len() as u64;
        assert!(shown >= 1 && shown + read.omitted == 1002, "{shown}");
        let alone = text(Decided::Checked(&verdict(Vec::new())), None);
        assert!(alone.contains(r#""matches":[]"#), "{alone}");
    }
}
