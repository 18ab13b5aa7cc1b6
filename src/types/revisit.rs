//! The facts for a WARC revisit record: a payload has come again.

use super::capture::{Capture, CaptureDate, DATE_BYTES_MAX, PayloadDigest};
use super::ids::{DocId, ID_JSON_BYTES_MAX};

/// The earlier capture of the same payload, which a revisit record can refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisit {
    /// The id of the document that came from it.
    pub refers_to: DocId,
    pub date: Option<CaptureDate>,
}

impl Revisit {
    /// The profile of the record, from WARC 1.1, section 6.7.2.
    pub const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
    /// The most bytes of it as JSON, without the id.
    const OWN_BYTES: usize = 80 + Self::PROFILE.len() + DATE_BYTES_MAX;
    /// The most bytes of any as JSON.
    pub const JSON_BYTES_MAX: usize = Self::OWN_BYTES + ID_JSON_BYTES_MAX;

    /// Returns the revisit of a document's capture by a payload with this digest, if it is the same payload.
    pub fn of(capture: &Capture, id: &DocId, digest: &PayloadDigest) -> Option<Self> {
        (capture.digest.as_ref() == Some(digest)).then(|| Self { refers_to: id.clone(), date: capture.date.clone() })
    }

    /// Returns the most bytes of it as JSON.
    pub fn json_bytes(&self) -> usize {
        Self::OWN_BYTES + self.refers_to.json_bytes()
    }

    /// Returns the best of several, which come best first: the first that has a date, or else the first.
    pub fn best(revisits: impl Iterator<Item = Self>) -> Option<Self> {
        let mut first = None;
        for revisit in revisits {
            if revisit.date.is_some() {
                return Some(revisit);
            }
            first.get_or_insert(revisit);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_revisit_has_a_date() {
        let revisit = |id: &str, date: Option<&str>| Revisit {
            refers_to: DocId::new(id).unwrap(),
            date: date.map(|text| CaptureDate::new(text).unwrap()),
        };
        let best = |revisits: &[Revisit]| Revisit::best(revisits.iter().cloned()).map(|best| best.refers_to);
        let (bare, dated) = (revisit("a", None), revisit("b", Some("2026")));
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[bare.clone(), revisit("c", None)]), Some(bare.refers_to.clone()));
        assert_eq!(best(&[bare, dated.clone(), revisit("d", Some("2025"))]), Some(dated.refers_to));
    }
}
