//! Id -> the document that holds it, and how that document relates to new content.

use std::sync::Arc;

use hapax_core::verify;

use super::lookup::Lookup;
use super::query::shingle_query;
use crate::index::{Place, View};
use crate::store::{Record, id_fingerprint};
use crate::types::{DocId, PayloadDigest, Previous, Revisit, Seq, TimestampMs, expires_at};
use crate::verdicts::{Made, Result, ShingleQuery};

/// The document that holds an id.
pub(crate) struct Existing {
    /// Its place in the index.
    pub place: Place,
    pub record: Arc<Record>,
}

impl Existing {
    /// Finds the document that holds an id in this view. Returns an error if the document is in doubt. If the caller
    /// holds the id's latch, the answer stays true. Reads the disk.
    pub(crate) fn find(lookup: &Lookup, id: &DocId, view: View) -> Result<Option<Self>> {
        let index = lookup.index();
        for place in index.held_by(id_fingerprint(id)) {
            let Some(occupant) = index.peek(place).filter(|occupant| view.sees(occupant)) else { continue };
            if let Some(record) = lookup.records().record(occupant.seq)?
                && record.id == *id
            {
                return Ok(Some(Self { place, record }));
            }
        }
        lookup.doubts().certain(id)?;
        Ok(None)
    }

    /// Returns whether decisions still see the document. The caller holds the decision lock.
    pub(crate) fn is_there(&self, lookup: &Lookup) -> bool {
        let occupant = lookup.index().peek(self.place);
        occupant.is_some_and(|occupant| occupant.seq == self.record.seq && occupant.removed == Seq(0))
    }

    /// Returns whether the id holds exactly this content, or the text of exactly this page.
    pub(crate) fn holds(&self, made: &Made) -> bool {
        // Another extractor may find another text in the same page. That does not mean that the page has changed.
        if made.page.is_some_and(|page| self.record.page.is_some_and(|held| held.hash == page.hash)) {
            return true;
        }
        // A client may have sent a content hash together with a signature, so an equal hash alone proves nothing.
        let is_same_text = match made.content {
            Some(content) => !self.record.given && self.record.content == content,
            None => self.record.given,
        };
        is_same_text && self.record.signature == made.signature
    }

    /// Returns the revisit of the document's capture, if the capture's payload has this digest.
    pub(crate) fn revisit(&self, digest: &PayloadDigest) -> Option<Revisit> {
        Revisit::of(&self.record.capture, &self.record.id, digest)
    }

    /// Returns how similar the id's earlier content is to the new content. Reads the disk if shingles decide.
    pub(crate) fn previous(&self, lookup: &Lookup, made: &Made) -> Result<Previous> {
        let terms = lookup.policy().terms;
        // Without a sketch, only the n-grams say how similar the contents are. They are stored.
        let of_grams = || made.kept.as_ref().filter(|_| lookup.items().is_some());
        let query = shingle_query(made, terms).or_else(|| of_grams().map(|kept| ShingleQuery::new(&kept.set, terms)));
        let overlap = query.map(|query| lookup.overlap(&query, self.record.seq)).transpose()?.flatten();
        let matching = verify::matching_slots(&self.record.signature, &made.signature, lookup.preparer().shape());
        Ok(Previous { similarity: lookup.similarity(matching, false, overlap), first_seen: self.record.first_seen })
    }

    /// Returns the last-seen time and the time of expiry, if the collection's documents expire. The caller must make
    /// sure that the document's place is not reused meanwhile.
    pub(crate) fn lifetime(&self, lookup: &Lookup) -> Option<(TimestampMs, TimestampMs)> {
        let ttl = lookup.policy().settings.ttl?;
        let on_disk = lookup.last_seen_on_disk(&self.record);
        let last_seen = match lookup.index().last_seen()?.last_seen(self.place) {
            // The time in memory is rounded, so it counts only if it is at least a second later.
            Some(noted) if noted.0 - on_disk.0 >= 1000 => noted.min(TimestampMs::now()),
            _ => on_disk,
        };
        Some((last_seen, expires_at(last_seen, ttl)))
    }
}

/// Returns the representative of a stored document according to the disk; `None` if the document is its own
/// representative.
pub(crate) fn representative_of(lookup: &Lookup, record: &Record) -> Result<Option<DocId>> {
    if record.cluster == Seq(0) {
        return Ok(None);
    }
    let representative = lookup.records().store().representative(record.cluster)?;
    let representative = representative.filter(|(seq, _)| *seq != record.seq).map(|(_, id)| id);
    representative.iter().try_for_each(|id| lookup.doubts().certain(id))?;
    Ok(representative)
}
