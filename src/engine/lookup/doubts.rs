//! Documents that may be gone on disk: a transaction that was to delete or replace them failed in a way that leaves
//! unclear what is there. No answer rests on them until the file is opened again. Lookups pass over them, and one that
//! would have found them says that it is not complete; a request for one by its id, or for what names it, is told why
//! not.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::index::{Index, Place, Query};
use crate::store::Stretch;
use crate::types::{DocId, Document, Seq};
use crate::verdicts::{CollectionError, Result};

/// The documents in doubt, by `seq`. Nothing is ever taken out: the collection takes no writes any more.
#[derive(Default)]
pub(crate) struct Doubts(RwLock<HashMap<Seq, (Place, DocId)>>);

impl Doubts {
    /// It is unclear from now on whether a document is there.
    pub(crate) fn add(&self, seq: Seq, place: Place, id: DocId) {
        self.0.write().insert(seq, (place, id));
    }

    /// How many of them a lookup would have found, or asks about by their id.
    pub(crate) fn hidden_from(&self, index: &Index, query: &Query<'_>, id: Option<&DocId>) -> u64 {
        let doubts = self.0.read();
        if doubts.is_empty() {
            return 0;
        }
        let (named, others): (Vec<_>, Vec<_>) = doubts.values().partition(|(_, doubtful)| id == Some(doubtful));
        (named.len() + index.matching(query, others.iter().map(|(place, _)| *place))) as u64
    }

    /// Refuses an id whose document is in doubt.
    pub(crate) fn certain(&self, id: &DocId) -> Result<()> {
        let covers = self.0.read().values().any(|(_, doubtful)| doubtful == id);
        if covers { Err(CollectionError::Doubtful { id: id.clone() }) } else { Ok(()) }
    }

    /// Refuses a part of a cluster that names a document in doubt.
    pub(crate) fn cluster_is_certain(&self, stretch: &Stretch) -> Result<()> {
        let mut named = [&stretch.representative].into_iter().chain(&stretch.members);
        match named.find(|member| self.covers(member.head.seq)) {
            Some(doubtful) => Err(CollectionError::Doubtful { id: doubtful.head.id.clone() }),
            None => Ok(()),
        }
    }

    /// Documents of the store without those in doubt; an error if one of them is the representative of another.
    pub(crate) fn without_doubtful(&self, documents: Vec<Document>) -> Result<Vec<Document>> {
        let certain = documents.into_iter().filter(|document| !self.covers(document.seq));
        certain
            .map(|document| document.representative.iter().try_for_each(|id| self.certain(id)).map(|()| document))
            .collect()
    }

    fn covers(&self, seq: Seq) -> bool {
        let doubts = self.0.read();
        !doubts.is_empty() && doubts.contains_key(&seq)
    }
}
