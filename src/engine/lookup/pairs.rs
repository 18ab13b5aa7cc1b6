//! A member of a cluster and its representative -> how alike the two are, by the number that a verdict would give:
//! shingles decide if the collection verifies exactly, else signatures. What one page may compare is bounded; a page
//! that reaches the bound ends early. Knows nothing of ids or of how a page is asked for.

use hapax_core::{Pipeline, ShingleSet, Spec, verify};

use super::payloads::set_of;
use crate::store::{Looked, Member, Store};
use crate::types::{Overlap, Seq, Similarity, Verify};
use crate::verdicts::{Result, similarity, unpacked_bytes};

/// Compares for one page.
pub(crate) struct Pairs<'a> {
    store: &'a Store,
    /// Makes shingles of kept texts. Its key does not matter: both sides of a pair are made with it.
    pipeline: Option<&'a Pipeline>,
    spec: &'a Spec,
    verify: Verify,
    threshold: f64,
    /// Bytes of shingles and texts, of both sides, that may still be compared.
    bytes_left: u64,
}

/// A representative, and its shingles once they were needed.
pub(crate) struct Representative<'a> {
    member: &'a Member,
    set: Option<Unpacked>,
}

/// How alike a pair is, and whether that reaches the collection's threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alike {
    pub similarity: Similarity,
    pub reaches: bool,
}

/// What came of comparing.
pub(crate) enum Paired {
    At(Alike),
    /// The member was deleted or replaced meanwhile.
    MemberGone,
    RepresentativeGone,
}

struct Unpacked {
    set: ShingleSet,
    /// What it took to make it.
    bytes: u64,
}

impl<'a> From<&'a Member> for Representative<'a> {
    fn from(member: &'a Member) -> Self {
        Self { member, set: None }
    }
}

impl<'a> Pairs<'a> {
    /// For a page that may compare so many bytes.
    pub(crate) fn new(
        store: &'a Store,
        (spec, pipeline): (&'a Spec, Option<&'a Pipeline>),
        verify: Verify,
        threshold: f64,
        bytes_left: u64,
    ) -> Self {
        Self { store, pipeline, spec, verify, threshold, bytes_left }
    }

    /// Whether the page has compared as much as it may.
    pub(crate) fn is_spent(&self) -> bool {
        self.bytes_left == 0
    }

    /// Compares; reads the disk if shingles decide.
    pub(crate) fn compare(&mut self, representative: &mut Representative<'_>, member: &Member) -> Result<Paired> {
        let (a, b) = (representative.member, member);
        let matching = verify::matching_slots(&a.signature, &b.signature, self.spec.shape());
        let same_content = !a.head.given && !b.head.given && a.head.content == b.head.content;
        if same_content || self.verify == Verify::Estimate {
            let reaches = same_content || matching >= verify::matching_min(self.threshold, self.spec.shape());
            return Ok(Paired::At(Alike { similarity: similarity(self.spec, matching, same_content, None), reaches }));
        }
        if representative.set.is_none() {
            representative.set = self.unpacked(a.head.seq)?;
        }
        let Some(ours) = &representative.set else { return Ok(Paired::RepresentativeGone) };
        let Some(theirs) = self.unpacked(b.head.seq)? else { return Ok(Paired::MemberGone) };
        self.bytes_left = self.bytes_left.saturating_sub((ours.set.bytes() as u64).saturating_add(theirs.bytes));
        // The member is the one that was judged.
        let both = theirs.set.compare(&ours.set).intersection;
        let overlap = Overlap { both, query: theirs.set.len(), found: ours.set.len() };
        let reaches = verify::reaches(overlap.both, overlap.either(), self.threshold);
        Ok(Paired::At(Alike { similarity: similarity(self.spec, matching, false, Some(overlap)), reaches }))
    }

    fn unpacked(&self, seq: Seq) -> Result<Option<Unpacked>> {
        let unpack = |_, payload| {
            let set = set_of(self.pipeline, &payload)?;
            Ok(Unpacked { bytes: unpacked_bytes(&payload).max(set.bytes() as u64), set })
        };
        let looked = self.store.payloads(&[seq], |_| Ok(()), unpack)?;
        Ok(looked.into_iter().find_map(|(_, looked)| match looked {
            Looked::At(unpacked) => Some(unpacked),
            Looked::Gone => None,
        }))
    }
}
