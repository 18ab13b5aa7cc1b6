//! A document as it is stored in the cluster, and its form in bytes. The first nine bytes of a record, its state and its
//! token, are `protocol/`'s. Of the rest, only the metadata can change once the document is stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_core::{ContentHash, ShingleSet, SignatureShape, verify};

use super::fields::{Rest, put, put_bytes};
use super::first_verdict::{FirstMatch, FirstVerdict, Replaced};
use super::protocol::{Body, Ref};
use crate::types::{Capture, DocId, Document, Metadata, Overlap, Seq, TimestampMs, VerdictKind};
use crate::verdicts::{ShingleQuery, Terms};

/// The number of the layout of these bytes, in the high bits of the first one.
const LAYOUT: u8 = 0x20;
/// The low bits of the first byte. They say which parts follow.
const HAS_CONTENT: u8 = 1;
const HAS_SHINGLES: u8 = 2;
const HAS_METADATA: u8 = 4;
const HAS_SEEN: u8 = 8;
const HAS_SET: u8 = 16;
/// The bytes before these: the state and the token.
pub(super) const HEAD_BYTES: usize = 9;
/// Where the place and the length of the set of shingles are, if there is one: four bytes each.
const SET_AT: usize = 1;

/// A document in the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    pub id: DocId,
    pub signature: Vec<u8>,
    /// Absent if only a signature was sent.
    pub content: Option<ContentHash>,
    pub shingles: Option<u64>,
    pub set: Set,
    pub metadata: Option<Metadata>,
    pub first_seen: TimestampMs,
    /// When the document was last sent again, if the collection has a `ttl`.
    pub seen: Option<TimestampMs>,
    /// Absent before the document is stored.
    pub verdict: Option<FirstVerdict>,
}

/// The set of shingles of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Set {
    /// The collection stores none.
    None,
    /// It has so many bytes, which were not read.
    Unread(usize),
    Read(Arc<ShingleSet>),
}

impl Set {
    fn read(&self) -> Option<&Arc<ShingleSet>> {
        if let Self::Read(set) = self { Some(set) } else { None }
    }
}

/// A document beside the terms by which it is compared.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub stored: Arc<Stored>,
    pub terms: Terms,
    pub shape: SignatureShape,
    /// The largest number of matches that the first verdict keeps.
    pub limit: usize,
}

impl Judged {
    /// Returns the number of equal slots.
    pub(super) fn matching(&self, other: &Self) -> u32 {
        verify::matching_slots(&self.stored.signature, &other.stored.signature, self.shape)
    }

    /// Returns the document with other metadata, or another time at which it was seen.
    pub(super) fn with(&self, metadata: Option<Metadata>, seen: Option<TimestampMs>) -> Self {
        Self { stored: Arc::new(Stored { metadata, seen, ..Stored::clone(&self.stored) }), ..self.clone() }
    }

    /// Returns whether both have the same content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.stored.content.is_some() && Body::repeats(self, other)
    }

    /// Returns whether the signatures alone do not decide, so that the shingles of `found` are needed.
    pub(super) fn doubts(&self, found: &Self) -> bool {
        let Some(query) = self.query() else { return false };
        let fits = found.stored.shingles.is_none_or(|count| query.fits(count));
        let is_in_doubt = (self.terms.matching_min..self.terms.certain_min).contains(&self.matching(found));
        // The similarity to the document that holds the id is told, even if it is low.
        let is_held = self.stored.id == found.stored.id;
        fits && is_in_doubt && !self.is_same(found) || is_held
    }

    /// Returns which shingles both have, if these decide whether `found` is a duplicate.
    pub(super) fn overlap(&self, found: &Self) -> Option<Overlap> {
        if !self.terms.compares_shingles() {
            return None;
        }
        if self.is_same(found) {
            let len = self.stored.set.read()?.len();
            return Some(Overlap { both: len, query: len, found: len });
        }
        if self.matching(found) >= self.terms.certain_min {
            return None;
        }
        self.query()?.compare(found.stored.set.read()?)
    }

    /// Compares the shingles in any case, if those of both were read.
    pub(super) fn compared(&self, found: &Self) -> Option<Overlap> {
        Some(self.query()?.overlap(found.stored.set.read()?))
    }

    fn query(&self) -> Option<ShingleQuery<'_>> {
        let set = self.stored.set.read().filter(|_| self.terms.compares_shingles())?;
        Some(ShingleQuery::new(set, self.terms))
    }
}

impl Body for Judged {
    fn is_alike(&self, other: &Self) -> bool {
        let matching = self.matching(other);
        self.is_same(other)
            || matching >= self.terms.certain_min
            || matching >= self.terms.matching_min
                && self.overlap(other).is_some_and(|overlap| self.terms.reached_by(overlap))
    }

    type Id = DocId;

    fn id(&self) -> &DocId {
        &self.stored.id
    }

    /// Without contents, documents with the same signature are the same.
    fn repeats(&self, held: &Self) -> bool {
        self.stored.content == held.stored.content && self.stored.signature == held.stored.signature
    }

    fn replaces(&self) -> Option<Ref> {
        Some(self.stored.verdict.as_ref()?.replaced?.at)
    }

    fn tail(&self, met: &[(Ref, &Self)], beside: &[(Ref, &Self)], replaced: Option<(Ref, &Self)>) -> Vec<u8> {
        let ranked = ranked(self, beside.iter().copied());
        let first = |(at, found): &(Ref, &Self)| FirstMatch {
            at: *at,
            matching: self.matching(found),
            same_content: self.is_same(found),
            overlap: self.overlap(found),
        };
        let verdict = FirstVerdict {
            kind: kind_of(self, ranked.first().map(|(_, found)| *found)),
            threshold: self.terms.threshold,
            duplicate_of: ranked.first().map(|(_, found)| found.stored.id.clone()),
            candidates: candidates(met.iter().map(|(_, found)| *found)),
            matches: ranked.iter().take(self.limit).map(first).collect(),
            replaced: replaced.map(|(at, old)| Replaced { at, id_first_seen: old.stored.id_first_seen() }),
        };
        verdict.to_bytes()
    }
}

/// Sorts documents by their similarity to `query`, the most similar first; equal ones by their numbers.
pub(super) fn ranked<'a>(query: &Judged, found: impl Iterator<Item = (Ref, &'a Judged)>) -> Vec<(Ref, &'a Judged)> {
    let mut found: Vec<_> = found.collect();
    found.sort_by_cached_key(|(at, other)| {
        (query.terms.rank(query.is_same(other), query.matching(other), query.overlap(other)), *at)
    });
    found
}

/// Returns the kind of the verdict if this is the best match.
pub(super) fn kind_of(query: &Judged, best: Option<&Judged>) -> VerdictKind {
    best.map_or(VerdictKind::Unique, |best| VerdictKind::of_match(query.is_same(best)))
}

/// Counts the candidates among the documents that share a band. Documents with equal signatures count as one.
pub(super) fn candidates<'a>(met: impl Iterator<Item = &'a Judged>) -> u32 {
    met.map(|found| &found.stored.signature).collect::<BTreeSet<_>>().len() as u32
}

impl Stored {
    /// Returns when a document was first stored under the id.
    fn id_first_seen(&self) -> TimestampMs {
        let replaced = self.verdict.as_ref().and_then(|verdict| verdict.replaced);
        replaced.map_or(self.first_seen, |replaced| replaced.id_first_seen)
    }

    /// Returns when the document was last seen.
    pub(super) fn last_seen(&self) -> TimestampMs {
        self.seen.unwrap_or(self.first_seen)
    }

    /// Returns the document for an answer.
    pub(super) fn document(self, at: Ref) -> Document {
        let id_first_seen = self.id_first_seen();
        let Self { id, metadata, first_seen, shingles, verdict, .. } = self;
        Document {
            id,
            seq: Seq(at.0),
            metadata,
            labels: None,
            capture: Capture::default(),
            first_seen,
            id_first_seen,
            last_seen: None,
            expires: None,
            shingles,
            verdict: verdict.as_ref().map_or(VerdictKind::Unique, |verdict| verdict.kind),
            duplicate_of: verdict.and_then(|verdict| verdict.duplicate_of),
            representative: None,
            linked: false,
        }
    }

    /// Returns all bytes that follow the head.
    pub(super) fn with_verdict(&self) -> Vec<u8> {
        let mut bytes = self.to_bytes();
        bytes.extend(self.verdict.iter().flat_map(FirstVerdict::to_bytes));
        bytes
    }

    /// Returns the bytes that follow the head, without the verdict.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.signature.len() + self.id.as_str().len());
        let flag = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        bytes.push(
            LAYOUT
                | flag(self.content.is_some(), HAS_CONTENT)
                | flag(self.shingles.is_some(), HAS_SHINGLES)
                | flag(self.metadata.is_some(), HAS_METADATA)
                | flag(self.seen.is_some(), HAS_SEEN)
                | flag(self.set != Set::None, HAS_SET),
        );
        if self.set != Set::None {
            bytes.extend([0; 8]);
        }
        put(&mut bytes, self.first_seen.0 as u64);
        put_bytes(&mut bytes, &self.signature);
        put_bytes(&mut bytes, self.id.as_str().as_bytes());
        bytes.extend(self.content.iter().flat_map(|content| content.0.to_be_bytes()));
        if let Some(shingles) = self.shingles {
            put(&mut bytes, shingles);
        }
        if let Some(metadata) = &self.metadata {
            put_bytes(&mut bytes, metadata.as_str().as_bytes());
        }
        if let Some(seen) = self.seen {
            put(&mut bytes, seen.0 as u64);
        }
        match &self.set {
            Set::None => {}
            Set::Unread(_) => unreachable!("a record is read as a whole before it is written"),
            Set::Read(set) => {
                let at = bytes.len();
                put(&mut bytes, set.len());
                bytes.extend(set.to_bytes());
                let place = [HEAD_BYTES + at, bytes.len() - at].map(|number| (number as u32).to_be_bytes());
                bytes[SET_AT..SET_AT + 8].copy_from_slice(&place.concat());
            }
        }
        bytes
    }

    /// Reads the bytes that follow the head. `None` if they are not a record of this layout. `is_whole`: they have the set
    /// of shingles, if the record has one.
    pub(super) fn of_bytes(bytes: &[u8], is_whole: bool) -> Option<Self> {
        let mut rest = Rest::new(bytes);
        let [first] = rest.take::<1>()?;
        let flags = first ^ LAYOUT;
        if flags > HAS_CONTENT | HAS_SHINGLES | HAS_METADATA | HAS_SEEN | HAS_SET {
            return None;
        }
        let has = |bit: u8| flags & bit != 0;
        let set_bytes = if has(HAS_SET) {
            let _place = rest.take::<4>()?;
            Some(u32::from_be_bytes(rest.take()?) as usize)
        } else {
            None
        };
        let first_seen = TimestampMs(rest.number()? as i64);
        let signature = rest.bytes()?.to_vec();
        let id = DocId::new(rest.text()?).ok()?;
        let content = if has(HAS_CONTENT) { Some(ContentHash(u128::from_be_bytes(rest.take()?))) } else { None };
        let shingles = if has(HAS_SHINGLES) { Some(rest.number()?) } else { None };
        let metadata = if has(HAS_METADATA) { Some(Metadata::new(rest.text()?).ok()?) } else { None };
        let seen = if has(HAS_SEEN) { Some(TimestampMs(rest.number()? as i64)) } else { None };
        let set = match set_bytes {
            None => Set::None,
            Some(bytes) if !is_whole => Set::Unread(bytes),
            Some(bytes) => {
                let mut set = Rest::new(rest.some(bytes)?);
                let len = set.number()?;
                Set::Read(Arc::new(ShingleSet::from_bytes(set.all(), len)?))
            }
        };
        let verdict = if rest.is_empty() { None } else { Some(FirstVerdict::of(&mut rest)?) };
        Some(Self { id, signature, content, shingles, set, metadata, first_seen, seen, verdict })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored() -> impl Strategy<Value = Stored> {
        let overlap = any::<Option<(u32, u64, u64)>>();
        let matches = prop::collection::vec((any::<u64>(), 0..1u32 << 20, any::<bool>(), overlap), 0..4);
        let threshold = prop_oneof![Just(0.8), Just(0.0), Just(1.0), 0.0..1.0];
        let replaced = any::<Option<(u64, i64)>>();
        let verdict = prop::option::of((0..4usize, threshold, any::<bool>(), any::<u32>(), matches, replaced));
        let times = (any::<i64>(), any::<Option<i64>>());
        let set = prop::option::of(prop::collection::vec(any::<u64>(), 0..50));
        let parts = (any::<Option<u128>>(), any::<Option<u64>>(), any::<bool>(), times, (verdict, set));
        (prop::collection::vec(any::<u8>(), 0..300), parts).prop_map(|(signature, parts)| {
            let (content, shingles, has_metadata, (first_seen, seen), (verdict, set)) = parts;
            Stored {
                id: DocId::new("https://a.example/\u{f8}").unwrap(),
                signature,
                content: content.map(ContentHash),
                shingles,
                set: set.map_or(Set::None, |hashes| Set::Read(Arc::new(ShingleSet::new(hashes)))),
                metadata: has_metadata.then(|| Metadata::new("{\"n\":1}").unwrap()),
                first_seen: TimestampMs(first_seen),
                seen: seen.map(TimestampMs),
                verdict: verdict.map(|(kind, threshold, has_original, candidates, matches, replaced)| FirstVerdict {
                    kind: VerdictKind::ALL[kind],
                    threshold,
                    duplicate_of: has_original.then(|| DocId::new("b").unwrap()),
                    candidates,
                    matches: matches
                        .into_iter()
                        .map(|(at, matching, same_content, overlap)| FirstMatch {
                            at: Ref(at),
                            matching,
                            same_content,
                            overlap: overlap.map(|(both, query, found)| Overlap { both: both.into(), query, found }),
                        })
                        .collect(),
                    replaced: replaced.map(|(at, time)| Replaced { at: Ref(at), id_first_seen: TimestampMs(time) }),
                }),
            }
        })
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(stored in stored()) {
            prop_assert_eq!(Stored::of_bytes(&stored.with_verdict(), true), Some(stored.clone()));
            // Without the set, as a script returns it.
            let mut bytes = stored.with_verdict();
            let mut expected = stored;
            if let Set::Read(_) = expected.set {
                let [at, len] = [1, 5].map(|from| u32::from_be_bytes(*bytes[from..].first_chunk().unwrap()) as usize);
                bytes.drain(at - HEAD_BYTES..at - HEAD_BYTES + len);
                expected.set = Set::Unread(len);
            }
            prop_assert_eq!(Stored::of_bytes(&bytes, false), Some(expected));
        }

        #[test]
        fn a_record_has_room_for_its_verdict(stored in stored()) {
            let read = Stored::of_bytes(&[&stored.to_bytes()[..], &FirstVerdict::ROOM].concat(), true).unwrap();
            let unique = FirstVerdict { threshold: 0.8, ..read.verdict.clone().unwrap() };
            prop_assert_eq!(unique.to_bytes().len(), FirstVerdict::ROOM.len());
            prop_assert_eq!(Stored { verdict: None, ..read }, Stored { verdict: None, ..stored });
        }

        #[test]
        fn a_cut_record_is_none(stored in stored(), cut in any::<prop::sample::Index>()) {
            let bytes = stored.to_bytes();
            prop_assert_eq!(Stored::of_bytes(&bytes[..cut.index(bytes.len())], true), None);
        }

        #[test]
        fn other_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Stored::of_bytes(&bytes, true), Stored::of_bytes(&bytes, false));
        }
    }
}
