//! Compares a member of a cluster with its representative, and returns the same similarity as a verdict. Compares
//! shingles if the collection verifies exactly, otherwise signatures. The bytes that one page may compare are limited,
//! and a page that reaches the limit ends early. Knows nothing of ids or of how a page is requested.

use hapax_core::{Pipeline, ShingleSet, Spec, verify};

use super::payloads::set_of;
use crate::store::{Member, Store};
use crate::types::{Overlap, Seq, Similarity, Verify};
use crate::verdicts::{Result, Terms, similarity, unpacked_bytes};

/// The comparisons of one page.
pub(crate) struct Pairs<'a> {
    store: &'a Store,
    /// Makes shingles of stored texts. Its key does not matter, because the pipeline makes the shingles of both sides
    /// of a pair.
    pipeline: Option<&'a Pipeline>,
    spec: &'a Spec,
    terms: Terms,
    /// The bytes of shingles and texts, of both sides, that this page may still compare.
    bytes_left: u64,
}

/// A representative, and its shingles once a comparison has loaded them.
pub(crate) struct Representative<'a> {
    member: &'a Member,
    set: Option<Unpacked>,
}

/// The similarity of a pair, and whether it reaches the collection's threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alike {
    pub similarity: Similarity,
    pub reaches: bool,
}

/// The outcome of a comparison.
pub(crate) enum Paired {
    At(Alike),
    /// The member was deleted or replaced in the meantime.
    MemberGone,
    RepresentativeGone,
}

struct Unpacked {
    set: ShingleSet,
    /// The number of bytes that had to be in memory to make the set.
    bytes: u64,
}

impl<'a> From<&'a Member> for Representative<'a> {
    fn from(member: &'a Member) -> Self {
        Self { member, set: None }
    }
}

impl<'a> Pairs<'a> {
    /// Starts a page that may compare `bytes_left` bytes.
    pub(crate) fn new(
        store: &'a Store,
        (spec, pipeline): (&'a Spec, Option<&'a Pipeline>),
        verify: Verify,
        threshold: f64,
        bytes_left: u64,
    ) -> Self {
        Self { store, pipeline, spec, terms: Terms::new(verify, threshold, spec), bytes_left }
    }

    /// Returns whether the page has used up its bytes.
    pub(crate) fn is_spent(&self) -> bool {
        self.bytes_left == 0
    }

    /// Compares a member with its representative. Reads the disk if shingles decide.
    pub(crate) fn compare(&mut self, representative: &mut Representative<'_>, member: &Member) -> Result<Paired> {
        let (a, b) = (representative.member, member);
        let matching = verify::matching_slots(&a.signature, &b.signature, self.spec.shape());
        let same_content = !a.head.given && !b.head.given && a.head.content == b.head.content;
        let reaches = same_content || matching >= self.terms.certain_min;
        if reaches || !self.terms.compares_shingles() {
            return Ok(Paired::At(Alike { similarity: similarity(self.spec, matching, same_content, None), reaches }));
        }
        if representative.set.is_none() {
            representative.set = self.unpacked(a.head.seq)?;
        }
        let Some(ours) = &representative.set else { return Ok(Paired::RepresentativeGone) };
        let Some(theirs) = self.unpacked(b.head.seq)? else { return Ok(Paired::MemberGone) };
        self.bytes_left = self.bytes_left.saturating_sub((ours.set.bytes() as u64).saturating_add(theirs.bytes));
        // The member counts as the query: it was the query when it was inserted.
        let both = theirs.set.compare(&ours.set).intersection;
        let overlap = Overlap { both, query: theirs.set.len(), found: ours.set.len() };
        let reaches = self.terms.reached_by(overlap);
        Ok(Paired::At(Alike { similarity: similarity(self.spec, matching, false, Some(overlap)), reaches }))
    }

    fn unpacked(&self, seq: Seq) -> Result<Option<Unpacked>> {
        let unpack = |payload| {
            let set = set_of(self.pipeline, &payload)?;
            Ok(Unpacked { bytes: unpacked_bytes(&payload).max(set.bytes() as u64), set })
        };
        Ok(self.store.payload(seq, unpack)?)
    }
}
