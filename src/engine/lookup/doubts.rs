//! Documents in doubt: a transaction that should delete or replace them failed, and its outcome is unknown. So these
//! documents may or may not be on disk. No answer depends on them until the file is opened again. Lookups skip them,
//! and a lookup that would have found one says that it is incomplete. A request for such a document, by its id or
//! through another document that names it, gets an error that says why.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::index::{Index, Place, Query};
use crate::store::{Stretch, id_fingerprint};
use crate::types::{DocId, Document, Seq};
use crate::verdicts::{CollectionError, Result};

/// The maximum number of documents in doubt that are compared with a lookup. If a deletion by label leaves more
/// documents in doubt, every lookup is incomplete.
const COMPARED_MAX: usize = 4096;

/// The documents in doubt, by `seq`, each with its place and the fingerprint of its id. None is ever removed, because
/// the collection accepts no further writes.
#[derive(Default)]
pub(crate) struct Doubts(RwLock<HashMap<Seq, (Place, u64)>>);

impl Doubts {
    /// Marks a document as being in doubt.
    pub(crate) fn add(&self, seq: Seq, place: Place, id_fingerprint: u64) {
        self.0.write().insert(seq, (place, id_fingerprint));
    }

    /// Returns the number of documents in doubt that the lookup would have found, or that have this `id`.
    pub(crate) fn hidden_from(&self, index: &Index, query: &Query<'_>, id: Option<&DocId>) -> u64 {
        let doubts = self.0.read();
        if doubts.is_empty() {
            return 0;
        }
        if doubts.len() > COMPARED_MAX {
            return doubts.len() as u64;
        }
        let id = id.map(id_fingerprint);
        let (named, others): (Vec<_>, Vec<_>) = doubts.values().partition(|(_, doubtful)| id == Some(*doubtful));
        (named.len() + index.matching(query, others.iter().map(|(place, _)| *place))) as u64
    }

    /// Returns an error if the document with this id is in doubt.
    pub(crate) fn certain(&self, id: &DocId) -> Result<()> {
        let doubts = self.0.read();
        if doubts.is_empty() {
            return Ok(());
        }
        let id_fingerprint = id_fingerprint(id);
        let covers = doubts.values().any(|&(_, doubtful)| doubtful == id_fingerprint);
        if covers { Err(CollectionError::Doubtful { id: id.clone() }) } else { Ok(()) }
    }

    /// Returns an error if this part of a cluster contains a document in doubt.
    pub(crate) fn cluster_is_certain(&self, stretch: &Stretch) -> Result<()> {
        let mut named = [&stretch.representative].into_iter().chain(&stretch.members);
        match named.find(|member| self.covers(member.head.seq)) {
            Some(doubtful) => Err(CollectionError::Doubtful { id: doubtful.head.id.clone() }),
            None => Ok(()),
        }
    }

    /// Removes the documents in doubt from `documents`. Returns an error if the representative of a remaining document
    /// is in doubt.
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
