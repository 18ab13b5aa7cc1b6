//! Documents that may be gone on disk: a transaction that was to delete or replace them failed in a way that leaves
//! unclear what is there. No answer rests on them until the file is opened again. Lookups pass over them, and one that would have
//! found them says that it is not complete; a request for one by its id, or for what names it, is told why not.

use std::collections::HashMap;

use parking_lot::RwLock;

use super::judge::Query;
use super::{Collection, CollectionError, Result};
use crate::store::Stretch;
use crate::types::{DocId, Document, Seq, Slot};

/// Marks such a document in the index, in place of where it was removed. No change has this place: the order ends
/// before it.
pub(crate) const DOUBTFUL: Seq = Seq(u64::MAX >> 1);

/// The documents in doubt, by `seq`. Nothing is ever taken out: the collection takes no writes any more.
#[derive(Default)]
pub(crate) struct Doubts(RwLock<HashMap<Seq, (Slot, DocId)>>);

impl Doubts {
    /// It is unclear from now on whether a document is there.
    pub(crate) fn add(&self, seq: Seq, slot: Slot, id: DocId) {
        self.0.write().insert(seq, (slot, id));
    }

    fn covers(&self, seq: Seq) -> bool {
        let doubts = self.0.read();
        !doubts.is_empty() && doubts.contains_key(&seq)
    }

    fn covers_id(&self, id: &DocId) -> bool {
        self.0.read().values().any(|(_, doubtful)| doubtful == id)
    }
}

impl Collection {
    /// How many documents in doubt a lookup would have found, or asks about by their id.
    pub(crate) fn doubted(&self, query: &Query<'_>, id: Option<&DocId>) -> u64 {
        let doubts = self.doubts.0.read();
        if doubts.is_empty() {
            return 0;
        }
        let mut words = Vec::new();
        let mut comparison = query.comparison(&self.arena, self.preparer.shape(), &mut words);
        let mut alike = |slot| comparison.with(slot).is_some_and(|(_, matching)| matching >= query.matching_min);
        doubts.values().filter(|(slot, doubtful)| id == Some(doubtful) || alike(*slot)).count() as u64
    }

    /// Refuses an id whose document is in doubt.
    pub(crate) fn certain(&self, id: &DocId) -> Result<()> {
        if self.doubts.covers_id(id) { Err(CollectionError::Doubtful { id: id.clone() }) } else { Ok(()) }
    }

    /// Refuses a part of a cluster that names a document in doubt.
    pub(crate) fn cluster_is_certain(&self, stretch: &Stretch) -> Result<()> {
        let mut named = [&stretch.representative].into_iter().chain(&stretch.members);
        match named.find(|member| self.doubts.covers(member.head.seq)) {
            Some(doubtful) => Err(CollectionError::Doubtful { id: doubtful.head.id.clone() }),
            None => Ok(()),
        }
    }

    /// Documents of the store without those in doubt; an error if one of them is the representative of another.
    pub(crate) fn without_doubtful(&self, documents: Vec<Document>) -> Result<Vec<Document>> {
        let certain = documents.into_iter().filter(|document| !self.doubts.covers(document.seq));
        certain.map(|document| self.representative_is_certain(&document).map(|()| document)).collect()
    }

    fn representative_is_certain(&self, document: &Document) -> Result<()> {
        document.representative.as_ref().map_or(Ok(()), |id| self.certain(id))
    }
}
