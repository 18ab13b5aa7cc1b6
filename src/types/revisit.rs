//! The facts for a WARC revisit record, which says that the payload was captured before.

use super::capture::{Capture, CaptureDate, DATE_BYTES_MAX, PayloadDigest};
use super::ids::{DocId, ID_JSON_BYTES_MAX};

/// The earlier capture of the same payload, which a revisit record can refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisit {
    /// The id of the document that was made from that capture.
    pub refers_to: DocId,
    pub date: Option<CaptureDate>,
}

impl Revisit {
    /// The profile of the record, from WARC 1.1, section 6.7.2.
    pub const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
    /// The largest possible size of a revisit as JSON without the id, in bytes.
    const OWN_BYTES: usize = 80 + Self::PROFILE.len() + DATE_BYTES_MAX;
    /// The largest possible size of any revisit as JSON, in bytes.
    pub const JSON_BYTES_MAX: usize = Self::OWN_BYTES + ID_JSON_BYTES_MAX;

    /// Returns a reference to a document's capture, if the payload of that capture has this digest.
    pub fn of(capture: &Capture, id: &DocId, digest: &PayloadDigest) -> Option<Self> {
        (capture.digest.as_ref() == Some(digest)).then(|| Self { refers_to: id.clone(), date: capture.date.clone() })
    }

    /// Whether the revisit refers to this very capture of this id, because the capture was sent again. A record must
    /// not refer to itself.
    pub fn is_of(&self, id: &DocId, capture: &Capture) -> bool {
        self.refers_to == *id && self.date.is_some() && self.date == capture.date
    }

    /// Returns the largest possible size of this revisit as JSON, in bytes.
    pub fn json_bytes(&self) -> usize {
        Self::OWN_BYTES + self.refers_to.json_bytes()
    }

    /// Returns the revisit with the earliest date. If no revisit has a date, returns the first one, so the caller must
    /// put the best revisit first. The earliest is chosen because later captures may be archived as records that refer
    /// to it, and tools may not follow a chain of two records.
    pub fn best(revisits: impl Iterator<Item = Self>) -> Option<Self> {
        revisits.min_by(|a, b| match (&a.date, &b.date) {
            (Some(a), Some(b)) => a.sorted().cmp(b.sorted()),
            (a, b) => b.is_some().cmp(&a.is_some()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_revisit_is_the_earliest() {
        let revisit = |id: &str, date: Option<&str>| Revisit {
            refers_to: DocId::new(id).unwrap(),
            date: date.map(|text| CaptureDate::new(text).unwrap()),
        };
        let best = |revisits: &[Revisit]| Revisit::best(revisits.iter().cloned()).map(|best| best.refers_to);
        let (bare, dated) = (revisit("a", None), revisit("b", Some("2026")));
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[bare.clone(), revisit("c", None)]), Some(bare.refers_to.clone()));
        assert_eq!(best(&[bare.clone(), dated.clone(), revisit("d", Some("2026"))]), Some(dated.refers_to.clone()));
        assert_eq!(best(&[bare, dated, revisit("d", Some("2025-12-31T23:59Z"))]), Some(DocId::new("d").unwrap()));
        let [second, half] = ["2026-11-01T10:00:00Z", "2026-11-01T10:00:00.5Z"].map(|date| revisit(date, Some(date)));
        assert_eq!(best(&[half, second.clone()]), Some(second.refers_to));
    }

    #[test]
    fn a_capture_that_is_sent_again_is_known() {
        let [capture, later, undated] = [Some("2026-11-01"), Some("2026-11-02"), None].map(|date| Capture {
            date: date.map(|text| CaptureDate::new(text).unwrap()),
            digest: Some(PayloadDigest::new("sha1:A").unwrap()),
        });
        let [id, other] = ["a", "b"].map(|id| DocId::new(id).unwrap());
        let revisit = Revisit::of(&capture, &id, capture.digest.as_ref().unwrap()).unwrap();
        assert!(revisit.is_of(&id, &capture));
        assert!(!revisit.is_of(&id, &later) && !revisit.is_of(&other, &capture) && !revisit.is_of(&id, &undated));
        let revisit = Revisit::of(&undated, &id, capture.digest.as_ref().unwrap()).unwrap();
        assert!(!revisit.is_of(&id, &undated), "it cannot be told");
    }
}
