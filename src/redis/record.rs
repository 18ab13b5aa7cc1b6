//! A document as it is stored in the cluster, and its form in bytes. The first nine bytes of a record, its state and its
//! token, are `protocol/`'s. Of the rest, only the metadata can change once the document is stored.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_core::{ContentHash, SignatureShape, verify};

use super::protocol::{Body, Ref};
use crate::types::{Capture, DocId, Document, Metadata, Seq, TimestampMs, VerdictKind};
use crate::verdicts::Terms;

/// The number of the layout of these bytes, in the high bits of the first one.
const LAYOUT: u8 = 0x20;
/// The low bits of the first byte. They say which parts follow.
const HAS_CONTENT: u8 = 1;
const HAS_SHINGLES: u8 = 2;
const HAS_METADATA: u8 = 4;
const HAS_SEEN: u8 = 8;
/// The high bit of the kind of a verdict. It says that the document has replaced another one.
const HAS_REPLACED: u8 = 0x80;
/// Most thresholds are a whole number of these parts.
const PARTS: f64 = 10_000.0;

/// A document in the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    pub id: DocId,
    pub signature: Vec<u8>,
    /// Absent if only a signature was sent.
    pub content: Option<ContentHash>,
    pub shingles: Option<u64>,
    pub metadata: Option<Metadata>,
    pub first_seen: TimestampMs,
    /// When the document was last sent again, if the collection has a `ttl`.
    pub seen: Option<TimestampMs>,
    /// Absent before the document is stored.
    pub verdict: Option<FirstVerdict>,
}

/// The verdict of the insertion, which is given again when the same content is sent again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FirstVerdict {
    pub kind: VerdictKind,
    /// The threshold of the collection at that time.
    pub threshold: f64,
    /// The id of the best match.
    pub duplicate_of: Option<DocId>,
    pub candidates: u32,
    pub matches: Vec<FirstMatch>,
    pub replaced: Option<Replaced>,
}

/// The document that another one has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub at: Ref,
    /// When a document was first stored under the id.
    pub id_first_seen: TimestampMs,
}

/// A match of a first verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstMatch {
    pub at: Ref,
    /// The number of equal slots.
    pub matching: u32,
    pub same_content: bool,
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
}

impl Body for Judged {
    fn is_alike(&self, other: &Self) -> bool {
        self.is_same(other) || self.matching(other) >= self.terms.matching_min
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
        let same = query.is_same(other);
        (Reverse(same), Reverse(query.matching(other)), *at)
    });
    found
}

/// Returns the kind of the verdict if this is the best match.
pub(super) fn kind_of(query: &Judged, best: Option<&Judged>) -> VerdictKind {
    match best {
        None => VerdictKind::Unique,
        Some(best) if query.is_same(best) => VerdictKind::ExactDuplicate,
        Some(_) => VerdictKind::NearDuplicate,
    }
}

/// Counts the candidates among the documents that share a band. Documents with equal signatures count as one.
pub(super) fn candidates<'a>(met: impl Iterator<Item = &'a Judged>) -> u32 {
    met.map(|found| &found.stored.signature).collect::<BTreeSet<_>>().len() as u32
}

impl FirstVerdict {
    /// The bytes of the verdict of a document that shares no band with another one. They are written with the record, so
    /// most records keep their length. Its threshold of 0 is written in two bytes.
    pub(super) const ROOM: [u8; 5] = [0, 0x81, 0, 0, 0];

    /// Returns the verdict of a document that resembles nothing.
    pub(super) fn unique(threshold: f64) -> Self {
        Self {
            kind: VerdictKind::Unique,
            threshold,
            duplicate_of: None,
            candidates: 0,
            matches: Vec::new(),
            replaced: None,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let kind = VerdictKind::ALL.iter().position(|kind| *kind == self.kind).expect("a kind is in the list");
        let mut bytes = vec![kind as u8 | if self.replaced.is_some() { HAS_REPLACED } else { 0 }];
        if let Some(Replaced { at, id_first_seen }) = self.replaced {
            put(&mut bytes, at.0);
            put(&mut bytes, id_first_seen.0 as u64);
        }
        put_share(&mut bytes, self.threshold);
        put(&mut bytes, u64::from(self.candidates));
        put_bytes(&mut bytes, self.duplicate_of.as_ref().map_or("", DocId::as_str).as_bytes());
        for found in &self.matches {
            put(&mut bytes, found.at.0);
            put(&mut bytes, u64::from(found.matching) << 1 | u64::from(found.same_content));
        }
        bytes
    }

    fn of(rest: &mut Rest<'_>) -> Option<Self> {
        let [first] = rest.take::<1>()?;
        let kind = *VerdictKind::ALL.get(usize::from(first & !HAS_REPLACED))?;
        let replaced = match first & HAS_REPLACED {
            0 => None,
            _ => Some(Replaced { at: Ref(rest.number()?), id_first_seen: TimestampMs(rest.number()? as i64) }),
        };
        let threshold = rest.share()?;
        let candidates = u32::try_from(rest.number()?).ok()?;
        let original = rest.text()?;
        let duplicate_of = if original.is_empty() { None } else { Some(DocId::new(original).ok()?) };
        let mut matches = Vec::new();
        while !rest.0.is_empty() {
            let (at, matching) = (Ref(rest.number()?), rest.number()?);
            let same_content = matching & 1 == 1;
            matches.push(FirstMatch { at, matching: u32::try_from(matching >> 1).ok()?, same_content });
        }
        Some(Self { kind, threshold, duplicate_of, candidates, matches, replaced })
    }
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
                | flag(self.seen.is_some(), HAS_SEEN),
        );
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
        bytes
    }

    /// Reads the bytes that follow the head. `None` if they are not a record of this layout.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let [first] = rest.take::<1>()?;
        let flags = first ^ LAYOUT;
        if flags > HAS_CONTENT | HAS_SHINGLES | HAS_METADATA | HAS_SEEN {
            return None;
        }
        let first_seen = TimestampMs(rest.number()? as i64);
        let signature = rest.bytes()?.to_vec();
        let id = DocId::new(rest.text()?).ok()?;
        let has = |bit: u8| flags & bit != 0;
        let content = if has(HAS_CONTENT) { Some(ContentHash(u128::from_be_bytes(rest.take()?))) } else { None };
        let shingles = if has(HAS_SHINGLES) { Some(rest.number()?) } else { None };
        let metadata = if has(HAS_METADATA) { Some(Metadata::new(rest.text()?).ok()?) } else { None };
        let seen = if has(HAS_SEEN) { Some(TimestampMs(rest.number()? as i64)) } else { None };
        let verdict = if rest.0.is_empty() { None } else { Some(FirstVerdict::of(&mut rest)?) };
        Some(Self { id, signature, content, shingles, metadata, first_seen, seen, verdict })
    }
}

/// Appends a number, seven bits a byte.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a number from 0 to 1. With up to four decimals, most take two bytes.
fn put_share(bytes: &mut Vec<u8>, share: f64) {
    let parts = (share * PARTS).round();
    if parts / PARTS == share {
        put(bytes, parts as u64 + 1);
    } else {
        put(bytes, 0);
        bytes.extend(share.to_le_bytes());
    }
}

fn put_bytes(bytes: &mut Vec<u8>, more: &[u8]) {
    put(bytes, more.len() as u64);
    bytes.extend(more);
}

/// The bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take::<1>()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn share(&mut self) -> Option<f64> {
        match self.number()? {
            0 => Some(f64::from_le_bytes(self.take()?)),
            parts => Some((parts - 1) as f64 / PARTS),
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored() -> impl Strategy<Value = Stored> {
        let matches = prop::collection::vec((any::<u64>(), 0..1u32 << 20, any::<bool>()), 0..4);
        let threshold = prop_oneof![Just(0.8), Just(0.0), Just(1.0), 0.0..1.0];
        let replaced = any::<Option<(u64, i64)>>();
        let verdict = prop::option::of((0..4usize, threshold, any::<bool>(), any::<u32>(), matches, replaced));
        let times = (any::<i64>(), any::<Option<i64>>());
        let parts = (any::<Option<u128>>(), any::<Option<u64>>(), any::<bool>(), times, verdict);
        (prop::collection::vec(any::<u8>(), 0..300), parts).prop_map(|(signature, parts)| {
            let (content, shingles, has_metadata, (first_seen, seen), verdict) = parts;
            Stored {
                id: DocId::new("https://a.example/\u{f8}").unwrap(),
                signature,
                content: content.map(ContentHash),
                shingles,
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
                        .map(|(at, matching, same_content)| FirstMatch { at: Ref(at), matching, same_content })
                        .collect(),
                    replaced: replaced.map(|(at, time)| Replaced { at: Ref(at), id_first_seen: TimestampMs(time) }),
                }),
            }
        })
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(stored in stored()) {
            prop_assert_eq!(Stored::of_bytes(&stored.with_verdict()), Some(stored));
        }

        #[test]
        fn a_record_has_room_for_its_verdict(stored in stored()) {
            let read = Stored::of_bytes(&[&stored.to_bytes()[..], &FirstVerdict::ROOM].concat()).unwrap();
            let unique = FirstVerdict { threshold: 0.8, ..read.verdict.clone().unwrap() };
            prop_assert_eq!(unique.to_bytes().len(), FirstVerdict::ROOM.len());
            prop_assert_eq!(Stored { verdict: None, ..read }, Stored { verdict: None, ..stored });
        }

        #[test]
        fn a_cut_record_is_none(stored in stored(), cut in any::<prop::sample::Index>()) {
            let bytes = stored.to_bytes();
            prop_assert_eq!(Stored::of_bytes(&bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn other_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Stored::of_bytes(&bytes);
        }
    }
}
