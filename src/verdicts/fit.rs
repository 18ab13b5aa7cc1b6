//! A verdict -> the same verdict, in so many bytes of JSON.
//! A thousand matches with 16 KiB of metadata each are 16 MB, and a batch asks for a thousand such verdicts. What does
//! not fit is left out and counted; the best match always stays. Knows nothing of how the JSON is written, only of how
//! long it can get: `http/dto/verdict.rs` tests that it gets no longer.

use crate::types::{DocId, Document, Match, Omitted, Verdict};

/// A verdict without its ids and matches, and what a bulk line adds.
const VERDICT_BYTES: usize = 1024;
/// A match without its id and metadata.
const MATCH_BYTES: usize = 288;
/// A stored document without its ids and metadata.
const DOCUMENT_BYTES: usize = 512;

/// Most bytes of an id in JSON.
pub const ID_JSON_BYTES_MAX: usize = 6 * crate::types::ID_BYTES_MAX;

/// How many of `parts`, from the first on, fit into so many bytes; the first always does.
pub fn fitting<T>(parts: &[T], bytes_max: usize, bytes: impl Fn(&T) -> usize) -> usize {
    let mut all = 0;
    let fit = parts.iter().take_while(|part| {
        all += bytes(part);
        all <= bytes_max
    });
    fit.count().max(1).min(parts.len())
}

impl DocId {
    /// Bytes of it in JSON, without the quotes.
    pub fn json_bytes(&self) -> usize {
        let bytes = |byte: u8| match byte {
            b'"' | b'\\' => 2,
            0..0x20 => 6,
            _ => 1,
        };
        self.as_str().bytes().map(bytes).sum()
    }
}

impl Match {
    /// Most bytes of it in JSON, without its metadata.
    fn bytes(&self) -> usize {
        MATCH_BYTES + self.id.json_bytes()
    }

    fn metadata_bytes(&self) -> usize {
        self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
    }
}

impl Verdict {
    /// Most bytes of the JSON of a verdict with so many matches, with their metadata if asked for.
    pub fn bytes_max(matches: usize, with_metadata: bool) -> usize {
        let metadata = if with_metadata { crate::types::METADATA_BYTES_MAX } else { 0 };
        let found = MATCH_BYTES + ID_JSON_BYTES_MAX + metadata;
        VERDICT_BYTES + 3 * ID_JSON_BYTES_MAX + matches.saturating_mul(found)
    }

    /// Most bytes of its JSON.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + self.matches.iter().map(|found| found.bytes() + found.metadata_bytes()).sum::<usize>()
    }

    /// Without its matches.
    fn own_bytes(&self) -> usize {
        let ids = [&self.id, &self.duplicate_of, &self.representative];
        VERDICT_BYTES + ids.into_iter().flatten().map(DocId::json_bytes).sum::<usize>()
    }

    /// Leaves out what takes it beyond `bytes_max`: the metadata of matches, from the end, and then matches, from the
    /// end. All but the best match can go. Twice with two bounds is once with the smaller.
    pub fn fit(&mut self, bytes_max: usize) {
        let mut left = bytes_max.saturating_sub(self.own_bytes());
        let mut stay = 0;
        for found in &self.matches {
            let bytes = found.bytes();
            if stay > 0 && bytes > left {
                break;
            }
            left = left.saturating_sub(bytes);
            stay += 1;
        }
        let whole = stay == self.matches.len();
        self.omitted_matches += (self.matches.len() - stay) as u64;
        self.matches.truncate(stay);
        let mut fits = whole && self.omitted_matches == 0;
        for found in &mut self.matches {
            let bytes = found.metadata_bytes();
            fits &= bytes <= left && !found.metadata_omitted;
            match fits {
                true => left -= bytes,
                false => found.metadata_omitted |= found.metadata.take().is_some(),
            }
        }
    }

    /// What was left out, if anything was.
    pub fn omitted(&self) -> Option<Omitted> {
        let metadata = self.matches.iter().filter(|found| found.metadata_omitted).count() as u64;
        let omitted = Omitted { matches: self.omitted_matches, metadata };
        (omitted != Omitted::default()).then_some(omitted)
    }
}

impl Document {
    /// Most bytes of the JSON of any.
    pub const BYTES_MAX: usize = DOCUMENT_BYTES + 3 * ID_JSON_BYTES_MAX + crate::types::METADATA_BYTES_MAX;

    /// Most bytes of its JSON.
    pub fn bytes(&self) -> usize {
        let ids = [Some(&self.id), self.duplicate_of.as_ref(), self.representative.as_ref()];
        let metadata = self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        DOCUMENT_BYTES + metadata + ids.into_iter().flatten().map(DocId::json_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Metadata, Method, Outcome, Similarity, TimestampMs, VerdictKind};

    fn verdict(matches: &[(usize, Option<usize>)]) -> Verdict {
        let similarity = Similarity { value: 1.0, low: 1.0, high: 1.0, method: Method::Estimate };
        let found = |(id, metadata): &(usize, Option<usize>)| Match {
            id: DocId::new("i".repeat(*id)).unwrap(),
            same_content: false,
            similarity,
            overlap: None,
            first_seen: TimestampMs(0),
            metadata: metadata.map(|bytes| Metadata::new("m".repeat(bytes)).unwrap()),
            metadata_omitted: false,
        };
        Verdict {
            kind: VerdictKind::NearDuplicate,
            outcome: Outcome::Checked,
            stored: false,
            id: None,
            duplicate_of: matches.first().map(|(id, _)| DocId::new("i".repeat(*id)).unwrap()),
            similarity: Some(1.0),
            representative: None,
            threshold: 0.8,
            matches: matches.iter().map(found).collect(),
            omitted_matches: 0,
            candidates: 0,
            unread: 0,
            shingles: None,
            previous: None,
            expected_recall: None,
        }
    }

    #[test]
    fn metadata_goes_before_matches_and_the_best_match_stays() {
        let whole = verdict(&[(10, Some(1000)), (10, Some(1000)), (10, None)]);
        let fit = |bytes_max: usize| {
            let mut verdict = whole.clone();
            verdict.fit(bytes_max);
            let metadata = verdict.matches.iter().filter(|found| found.metadata.is_some()).count();
            (verdict.matches.len(), metadata, verdict.omitted())
        };
        let bytes = whole.bytes();
        assert_eq!(fit(bytes), (3, 2, None));
        assert_eq!(fit(bytes - 1), (3, 1, Some(Omitted { matches: 0, metadata: 1 })));
        assert_eq!(fit(bytes - 1001), (3, 0, Some(Omitted { matches: 0, metadata: 2 })));
        assert_eq!(fit(bytes - 2001), (2, 0, Some(Omitted { matches: 1, metadata: 2 })));
        assert_eq!(fit(0), (1, 0, Some(Omitted { matches: 2, metadata: 1 })));
    }

    proptest! {
        #[test]
        fn what_fits_is_within_the_bound_and_the_smaller_of_two_bounds_decides(
            matches in prop::collection::vec((1..300_usize, prop::option::of(2..3000_usize)), 0..8),
            first in 0..30_000_usize, second in 0..30_000_usize,
        ) {
            let mut twice = verdict(&matches);
            let best = twice.matches.first().map_or(0, Match::bytes);
            twice.fit(first);
            prop_assert!(twice.bytes() <= first.max(twice.own_bytes() + best));
            twice.fit(second);
            let mut once = verdict(&matches);
            once.fit(first.min(second));
            let shown = |verdict: &Verdict| {
                let kept: Vec<_> = verdict.matches.iter().map(|found| found.metadata.is_some()).collect();
                (kept, verdict.omitted())
            };
            prop_assert_eq!(shown(&twice), shown(&once));
        }
    }
}
