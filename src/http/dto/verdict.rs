//! A verdict as JSON. Fields that do not apply are absent, never null. `text` writes this JSON faster than serde does.

pub mod text;

use serde::Serialize;
use serde_json::value::RawValue;

use super::collection_verdict::SaidBody;
use super::explanation::ExplanationBody;
use super::page::PageBody;
use super::values::{self, metadata, name, timestamp};
use crate::collections::{JointParts, JointVerdict};
use crate::keys::Scores;
use crate::telemetry::names;
use crate::types::{CollectionName, DocId, Match, Omitted, Previous, Revisit, TimestampMs, ratio};

/// The answer to "have we seen this, or nearly this?".
#[derive(Debug, Serialize)]
pub struct VerdictBody {
    verdict: &'static str,
    outcome: &'static str,
    stored: bool,
    #[serde(serialize_with = "name")]
    collection: CollectionName,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "values::some_id")]
    id: Option<DocId>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "values::some_id")]
    duplicate_of: Option<DocId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "values::some_id")]
    representative: Option<DocId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<Vec<MatchBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<OmittedBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<u32>,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shingles: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<PreviousBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_recall: Option<f64>,
    /// What a client should know of a verdict that may be wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Box<ExplanationBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<Box<PageBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revisit: Option<Box<RevisitBody>>,
    /// The matches in other collections. Only the verdict on an insertion has this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<Vec<MatchBody>>,
    /// The verdict of each collection, if several collections were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    collections: Option<Vec<SaidBody>>,
}

/// The facts with which a WARC revisit record refers to an earlier capture of the same payload.
#[derive(Debug, Serialize)]
struct RevisitBody {
    profile: &'static str,
    refers_to_uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refers_to_date: Option<String>,
}

#[derive(Debug, Serialize)]
struct MatchBody {
    /// Present if several collections were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    #[serde(serialize_with = "values::id")]
    id: DocId,
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    containment_in_match: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    containment_of_match: Option<f64>,
    #[serde(serialize_with = "values::time")]
    first_seen: TimestampMs,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
}

/// How much was left out because the answer would have been too long.
#[derive(Debug, Serialize)]
struct OmittedBody {
    matches: u64,
    metadata: u64,
}

/// A check that is expected to find a smaller share of the documents at its threshold has a warning.
const RECALL_MIN: f64 = 0.5;
const LOW_RECALL: &str = "most documents that are just as similar as this threshold asks are not found, because the \
    bands of the collection are made for a higher one; a collection with this threshold finds them";
/// An item of a containment collection that is too short to be found has a warning.
const TOO_SHORT: &str = "the text has fewer than 8 words, so it could not be found in other texts; it is not stored";

#[derive(Debug, Serialize)]
struct PreviousBody {
    similarity: f64,
    low: f64,
    high: f64,
    method: &'static str,
    first_seen: String,
}

impl VerdictBody {
    /// Makes the JSON form of a verdict. `collection` is the collection that was asked, or the one of the path if
    /// several were asked. If a collection could not be asked, its error contains the id that `request_id` returns.
    pub fn joint(collection: &CollectionName, joint: JointVerdict, request_id: impl Fn() -> String) -> Self {
        let JointParts { verdict, said, elsewhere, omitted, complete } = joint.into_parts();
        let omitted = omitted.map(|Omitted { matches, metadata }| OmittedBody { matches, metadata });
        if omitted.is_some() {
            metrics::counter!(names::HTTP_ANSWERS_CUT).increment(1);
        }
        Self {
            verdict: verdict.kind.as_str(),
            outcome: verdict.outcome.as_str(),
            stored: verdict.stored,
            collection: collection.clone(),
            id: verdict.id,
            duplicate_of: verdict.duplicate_of,
            similarity: verdict.similarity.map(ratio),
            representative: verdict.representative,
            threshold: Some(verdict.threshold),
            matches: Some(verdict.matches.into_iter().map(MatchBody::from).collect()),
            omitted,
            candidates: Some(verdict.candidates),
            complete,
            unread: Some(verdict.unread).filter(|&unread| unread > 0),
            shingles: verdict.shingles,
            previous: verdict.previous.map(PreviousBody::from),
            expected_recall: verdict.expected_recall.map(ratio),
            warning: warning(verdict.expected_recall, verdict.is_too_short),
            explanation: None,
            page: verdict.page.map(|page| Box::new(PageBody::from(*page))),
            revisit: verdict.revisit.map(|revisit| Box::new(RevisitBody::from(*revisit))),
            elsewhere: elsewhere.map(|matches| matches.into_iter().map(MatchBody::from).collect()),
            collections: (!said.is_empty())
                .then(|| said.into_iter().map(|said| SaidBody::new(said, &request_id)).collect()),
        }
    }

    /// Adds how hapax reached the verdict.
    pub fn explained(self, explanation: ExplanationBody) -> Self {
        Self { explanation: Some(Box::new(explanation)), ..self }
    }
}

impl VerdictBody {
    /// Returns the part that a key may see. With [`Scores::Verdict`] the key sees only the fields that are listed here.
    /// A field that is added to the struct later stays hidden until it is added to this list too.
    pub fn seen_with(self, scores: Scores) -> Self {
        match scores {
            Scores::Full => self,
            Scores::Verdict => {
                let Self { verdict, outcome, stored, collection, id, complete, collections, .. } = self;
                let collections = collections.map(|all| all.into_iter().map(SaidBody::verdict_only).collect());
                Self {
                    verdict,
                    outcome,
                    stored,
                    collection,
                    id,
                    complete,
                    duplicate_of: None,
                    similarity: None,
                    representative: None,
                    threshold: None,
                    matches: None,
                    omitted: None,
                    candidates: None,
                    unread: None,
                    shingles: None,
                    previous: None,
                    expected_recall: None,
                    warning: None,
                    explanation: None,
                    page: None,
                    revisit: None,
                    elsewhere: None,
                    collections,
                }
            }
        }
    }
}

fn warning(expected_recall: Option<f64>, is_too_short: bool) -> Option<&'static str> {
    let has_low_recall = expected_recall.is_some_and(|recall| recall < RECALL_MIN);
    has_low_recall.then_some(LOW_RECALL).or_else(|| is_too_short.then_some(TOO_SHORT))
}

impl From<Revisit> for RevisitBody {
    fn from(revisit: Revisit) -> Self {
        Self {
            profile: Revisit::PROFILE,
            refers_to_uri: revisit.refers_to.as_str().to_owned(),
            refers_to_date: revisit.date.map(|date| date.as_str().to_owned()),
        }
    }
}

impl From<Match> for MatchBody {
    fn from(found: Match) -> Self {
        Self {
            collection: found.collection.map(|name| name.to_string()),
            id: found.id,
            similarity: ratio(found.similarity.value),
            low: ratio(found.similarity.low),
            high: ratio(found.similarity.high),
            method: found.similarity.method.as_str(),
            containment_in_match: found.overlap.map(|overlap| ratio(overlap.containment_in_match())),
            containment_of_match: found.overlap.map(|overlap| ratio(overlap.containment_of_match())),
            first_seen: found.first_seen,
            metadata: found.metadata.map(metadata),
        }
    }
}

impl From<Previous> for PreviousBody {
    fn from(previous: Previous) -> Self {
        Self {
            similarity: ratio(previous.similarity.value),
            low: ratio(previous.similarity.low),
            high: ratio(previous.similarity.high),
            method: previous.similarity.method.as_str(),
            first_seen: timestamp(previous.first_seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::{CollectionError, Elsewhere};
    use crate::types::{
        CaptureDate, Extract, LookupTimes, Metadata, Method, Outcome, Overlap, PageFacts, Similarity, Verdict,
        VerdictKind,
    };

    fn body(name: &CollectionName, verdict: Verdict) -> VerdictBody {
        VerdictBody::joint(name, verdict.into(), String::new)
    }

    fn verdict() -> Verdict {
        Verdict {
            kind: VerdictKind::Unique,
            outcome: Outcome::Checked,
            stored: false,
            id: None,
            duplicate_of: None,
            similarity: None,
            representative: None,
            threshold: 0.8,
            matches: Vec::new(),
            omitted_matches: 0,
            candidates: 0,
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

    fn revisit(id: &str) -> Option<Box<Revisit>> {
        let date = CaptureDate::new("2026-11-20T10:00:00.123456789Z").unwrap();
        Some(Box::new(Revisit { refers_to: DocId::new(id).unwrap(), date: Some(date) }))
    }

    fn text(verdict: Verdict) -> String {
        written(&body(&CollectionName::default_collection(), verdict))
    }

    /// Returns the text that the server sends, which must be the one that serde makes.
    fn written(body: &VerdictBody) -> String {
        let mut out = Vec::new();
        text::write(body, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, serde_json::to_string(body).unwrap());
        text
    }

    #[test]
    fn absent_fields_are_left_out_never_null() {
        assert_eq!(
            text(verdict()),
            r#"{"verdict":"unique","outcome":"checked","stored":false,"collection":"default","threshold":0.8,"#
                .to_owned()
                + r#""matches":[],"candidates":0,"complete":true,"shingles":3}"#
        );
    }

    #[test]
    fn a_duplicate_names_its_best_match_with_interval_and_method() {
        let id = DocId::new("https://a.example/x").unwrap();
        let similarity = Similarity { value: 0.914_062_5, low: 0.87, high: 0.95, method: Method::Estimate };
        let found = Match {
            collection: None,
            id: id.clone(),
            same_content: false,
            similarity,
            overlap: None,
            first_seen: TimestampMs(1_795_168_800_000),
            metadata: None,
            metadata_omitted: false,
        };
        let verdict = Verdict {
            kind: VerdictKind::NearDuplicate,
            outcome: Outcome::Skipped,
            id: Some(DocId::new("https://b.example/x").unwrap()),
            duplicate_of: Some(id),
            similarity: Some(0.914_062_5),
            matches: vec![found],
            candidates: 12,
            ..verdict()
        };
        assert_eq!(
            text(verdict),
            r#"{"verdict":"near_duplicate","outcome":"skipped","stored":false,"collection":"default","#.to_owned()
                + r#""id":"https://b.example/x","duplicate_of":"https://a.example/x","similarity":0.914063,"#
                + r#""threshold":0.8,"matches":[{"id":"https://a.example/x","similarity":0.914063,"low":0.87,"#
                + r#""high":0.95,"method":"estimate","first_seen":"2026-11-20T10:00:00Z"}],"candidates":12,"#
                + r#""complete":true,"shingles":3}"#
        );
    }

    #[test]
    fn an_exact_match_tells_what_is_contained_in_what() {
        let overlap = Overlap { both: 30, query: 40, found: 60 };
        let found = Match {
            collection: None,
            id: DocId::new("x").unwrap(),
            same_content: false,
            similarity: overlap.similarity(),
            overlap: Some(overlap),
            first_seen: TimestampMs(1_795_168_800_000),
            metadata: None,
            metadata_omitted: false,
        };
        assert_eq!(
            serde_json::to_string(&MatchBody::from(found)).unwrap(),
            r#"{"id":"x","similarity":0.428571,"low":0.428571,"high":0.428571,"method":"exact","#.to_owned()
                + r#""containment_in_match":0.75,"containment_of_match":0.5,"first_seen":"2026-11-20T10:00:00Z"}"#
        );
    }

    #[test]
    fn a_key_for_verdicts_sees_six_fields() {
        let id = |text| Some(DocId::new(text).unwrap());
        let similarity = Similarity { value: 0.9, low: 0.87, high: 0.95, method: Method::Estimate };
        let full = Verdict {
            kind: VerdictKind::NearDuplicate,
            id: id("b"),
            duplicate_of: id("a"),
            similarity: Some(0.9),
            representative: id("a"),
            omitted_matches: 1,
            unread: 7,
            previous: Some(Previous { similarity, first_seen: TimestampMs(0) }),
            expected_recall: Some(0.25),
            revisit: revisit("a"),
            ..verdict()
        };
        let body = body(&CollectionName::default_collection(), full).seen_with(Scores::Verdict);
        assert_eq!(
            written(&body),
            r#"{"verdict":"near_duplicate","outcome":"checked","stored":false,"collection":"default","id":"b","#
                .to_owned()
                + r#""complete":false}"#
        );
    }

    #[test]
    fn an_explanation_and_a_page_are_written_after_the_other_members() {
        let page = PageFacts {
            title: Some("A \"title\"".to_owned()),
            canonical_url: None,
            language: Some("en".to_owned()),
            extracted: Extract::Article,
        };
        let body = body(&CollectionName::default_collection(), Verdict { page: Some(Box::new(page)), ..verdict() });
        let text = written(&body.explained(ExplanationBody::new(std::iter::empty(), None)));
        assert!(text.contains(r#""shingles":3,"explanation":{"#), "{text}");
        assert!(text.contains(r#"},"page":{"title":"A \"title\"","#), "{text}");
    }

    fn longest_match() -> Match {
        Match {
            collection: None,
            id: hostile(),
            same_content: false,
            similarity: Similarity { value: 0.123_456, low: 0.000_001, high: 0.987_654, method: Method::Estimate },
            overlap: Some(Overlap { both: 333_333, query: 1_000_003, found: 777_777 }),
            first_seen: TimestampMs(-62_135_596_800_001),
            metadata: Some(Metadata::new(format!("{{\"k\":\"{}\"}}", "v".repeat(1000))).unwrap()),
            metadata_omitted: false,
        }
    }

    fn hostile() -> DocId {
        DocId::new("\u{1}\"\\é".repeat(100)).unwrap()
    }

    fn longest() -> Verdict {
        let Match { similarity, first_seen, .. } = longest_match();
        Verdict {
            kind: VerdictKind::ExactDuplicate,
            outcome: Outcome::Unchanged,
            id: Some(hostile()),
            duplicate_of: Some(hostile()),
            similarity: Some(0.123_456),
            representative: Some(hostile()),
            threshold: 0.123_456,
            candidates: u32::MAX,
            unread: u64::MAX,
            shingles: Some(u64::MAX),
            previous: Some(Previous { similarity, first_seen }),
            expected_recall: Some(0.123_456),
            omitted_matches: u64::MAX,
            revisit: revisit(hostile().as_str()),
            ..verdict()
        }
    }

    #[test]
    fn no_verdict_is_longer_than_is_counted_on() {
        for matches in [0, 1, 20] {
            let longest = Verdict { matches: vec![longest_match(); matches], ..longest() };
            let name = CollectionName::new(&"c".repeat(64)).unwrap();
            let bytes = written(&body(&name, longest.clone())).len();
            // A line of a bulk answer has further fields, which take up to 64 bytes.
            assert!(bytes + 64 <= longest.bytes(), "{bytes} of {}", longest.bytes());
            assert!(longest.bytes() <= Verdict::bytes_max(matches, true) + Revisit::JSON_BYTES_MAX);
        }
    }

    #[test]
    fn no_verdict_of_several_collections_is_longer_than_is_counted_on() {
        let names: Vec<_> = (0..16).map(|at| CollectionName::new(&format!("{at:0>64}")).unwrap()).collect();
        for (matches, others) in [(0, 1), (1, 3), (20, 15)] {
            let plain = || Verdict { matches: vec![longest_match(); matches], omitted_matches: 0, ..longest() };
            let mut check = JointVerdict::begin(&names[0], plain());
            let mut elsewhere = Elsewhere::default();
            for (at, name) in names[1..=others].iter().enumerate() {
                check.join(name, plain(), 1000);
                let failed = || Err(CollectionError::Doubtful { id: hostile() });
                elsewhere.add(name, if at % 2 == 0 { Ok(plain()) } else { failed() }, 1000);
            }
            let before = Verdict::bytes_max(matches, true)
                + JointVerdict::bytes_max(others, 20 * others, true, false)
                + 2 * Revisit::JSON_BYTES_MAX;
            assert!(plain().bytes() + elsewhere.bytes() <= before);
            let insert = JointVerdict::inserted(&names[0], plain(), elsewhere);
            for joint in [check, insert] {
                for bytes_max in [usize::MAX, 30_000, 0] {
                    let mut joint = joint.clone();
                    joint.fit(bytes_max);
                    let counted = joint.bytes();
                    assert!(bytes_max < 30_000 || counted <= bytes_max, "{counted} of {bytes_max}");
                    let request_id = || "r".repeat(128);
                    let bytes = written(&VerdictBody::joint(&names[0], joint, request_id)).len();
                    assert!(bytes + 64 <= counted, "{bytes} of {counted}");
                }
            }
        }
    }
}
