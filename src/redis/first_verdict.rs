//! The verdict of an insertion, which is stored with the document.

use super::fields::{Rest, put, put_bytes, put_share};
use super::protocol::Ref;
use crate::types::{DocId, Overlap, TimestampMs, VerdictKind};

/// The bits of the kind of a verdict. This one says that the document has replaced another one.
const HAS_REPLACED: u8 = 0x80;
/// This one says that the shingles of matches were compared.
const HAS_OVERLAPS: u8 = 0x40;

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
    /// The shingles that both have, if they were compared. Of equal contents it is not stored.
    pub overlap: Option<Overlap>,
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

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let kind = VerdictKind::ALL.iter().position(|kind| *kind == self.kind).expect("a kind is in the list");
        let has_overlaps = self.matches.iter().any(|found| found.overlap.is_some());
        let flag = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        let flags = flag(self.replaced.is_some(), HAS_REPLACED) | flag(has_overlaps, HAS_OVERLAPS);
        let mut bytes = vec![kind as u8 | flags];
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
            match found.overlap {
                Some(Overlap { both, query, found }) => {
                    [both + 1, query, found].into_iter().for_each(|count| put(&mut bytes, count));
                }
                None if has_overlaps => put(&mut bytes, 0),
                None => {}
            }
        }
        bytes
    }

    pub(super) fn of(rest: &mut Rest<'_>) -> Option<Self> {
        let [first] = rest.take::<1>()?;
        let kind = *VerdictKind::ALL.get(usize::from(first & !(HAS_REPLACED | HAS_OVERLAPS)))?;
        let replaced = match first & HAS_REPLACED {
            0 => None,
            _ => Some(Replaced { at: Ref(rest.number()?), id_first_seen: TimestampMs(rest.number()? as i64) }),
        };
        let threshold = rest.share()?;
        let candidates = u32::try_from(rest.number()?).ok()?;
        let original = rest.text()?;
        let duplicate_of = if original.is_empty() { None } else { Some(DocId::new(original).ok()?) };
        let mut matches = Vec::new();
        while !rest.is_empty() {
            let (at, matching) = (Ref(rest.number()?), rest.number()?);
            let same_content = matching & 1 == 1;
            let overlap = if first & HAS_OVERLAPS == 0 { None } else { overlap(rest)? };
            matches.push(FirstMatch { at, matching: u32::try_from(matching >> 1).ok()?, same_content, overlap });
        }
        Some(Self { kind, threshold, duplicate_of, candidates, matches, replaced })
    }
}

/// Reads the overlap of a match. The inner `None`: its shingles were not compared.
fn overlap(rest: &mut Rest<'_>) -> Option<Option<Overlap>> {
    let Some(both) = rest.number()?.checked_sub(1) else { return Some(None) };
    Some(Some(Overlap { both, query: rest.number()?, found: rest.number()? }))
}
