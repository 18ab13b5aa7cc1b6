//! Clusters of stored documents: a cluster is a star around its first-seen representative. A document that is stored
//! although it has duplicates joins the cluster of the representative that it is most similar to. If it is similar to
//! no representative, it founds a cluster of its own, so chains never form. A cluster is named by the `seq` of its
//! founder. Its representative is its living document with the lowest `seq`, so a deletion promotes the next document
//! without touching the others. The decision lock guards all of this. The store has the clusters, too, and they are
//! loaded from there at boot. Places come from the index, and only the index can interpret them.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::engine::lookup::Ranked;
use crate::index::{Candidate, Place};
use crate::types::Seq;

/// The bytes that an entry of a tree takes, assuming nodes that are two thirds full.
const TREE_ENTRY_BYTES: usize = (size_of::<(Seq, Seq)>() + size_of::<Place>()) * 3 / 2 + 3;

/// The clusters and their documents, as decided so far. Documents that never had a duplicate take no memory here.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// Document that joined a cluster -> name of the cluster.
    joined: BTreeMap<Seq, Seq>,
    /// (Name of the cluster, document) -> place. Contains the documents that joined, and each founder that another
    /// document has joined.
    documents: BTreeMap<(Seq, Seq), Place>,
}

/// A document that has left its cluster, with everything that is needed to undo this.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    seq: Seq,
    cluster: Seq,
    /// The place of the document. Absent if the document was alone in its cluster.
    place: Option<Place>,
    /// The link that became an ordinary document to represent the cluster.
    promoted: Option<(Seq, Place)>,
}

impl Left {
    /// Returns the link that became an ordinary document to represent the cluster.
    pub(super) fn promoted(self) -> Option<(Seq, Place)> {
        self.promoted
    }

    /// Sets the link that becomes an ordinary document to represent the cluster.
    pub(super) fn promoting(self, promoted: Option<(Seq, Place)>) -> Self {
        Self { promoted, ..self }
    }

    /// Returns the promoted link's `seq`, for the store.
    pub(super) fn promoted_seq(self) -> Option<Seq> {
        self.promoted.map(|(seq, _)| seq)
    }
}

impl Clusters {
    /// Builds the clusters from the documents on disk that joined one: (name, document, place). `founders` yields
    /// documents with their places; those that founded one of these clusters are used.
    pub(crate) fn load(joined: Vec<(Seq, Seq, Place)>, founders: impl Iterator<Item = (Seq, Place)>) -> Self {
        if joined.is_empty() {
            return Self::default();
        }
        let names: HashSet<Seq> = joined.iter().map(|&(cluster, ..)| cluster).collect();
        let founders = founders.filter(|(seq, _)| names.contains(seq)).map(|(seq, place)| ((seq, seq), place));
        let members = joined.iter().map(|&(cluster, seq, place)| ((cluster, seq), place));
        let documents = members.chain(founders).collect();
        Self { joined: joined.into_iter().map(|(cluster, seq, _)| (seq, cluster)).collect(), documents }
    }

    /// Returns the name of a document's cluster.
    pub(super) fn cluster_of(&self, seq: Seq) -> Seq {
        self.joined.get(&seq).copied().unwrap_or(seq)
    }

    /// Returns whether a document shares a cluster with other documents, or did so earlier.
    pub(super) fn has(&self, seq: Seq) -> bool {
        !self.documents.is_empty() && (self.joined.contains_key(&seq) || self.documents.contains_key(&(seq, seq)))
    }

    /// Returns the match whose cluster a new document joins. The document `leaving` leaves its cluster before that. Of
    /// the matches that are then representatives, the best one is returned.
    pub(super) fn choose(&self, ranked: &[Ranked], leaving: Option<Seq>) -> Option<(Seq, Place)> {
        let represents = |ranked: &&Ranked| match self.joined.get(&ranked.found.seq) {
            None => true,
            Some(&cluster) => self.first(cluster, leaving).is_some_and(|(first, _)| first == ranked.found.seq),
        };
        ranked.iter().find(represents).map(|ranked| (ranked.found.seq, ranked.found.place))
    }

    /// Returns the representative of a document that joined a cluster, after the document `leaving` has left.
    pub(super) fn representative_of(&self, seq: Seq, leaving: Option<Seq>) -> Option<(Seq, Place)> {
        self.first(*self.joined.get(&seq)?, leaving)
    }

    /// Returns the representatives of the documents in `found` that are not in `found` themselves.
    pub(super) fn unfound(&self, found: &[Candidate], leaving: Option<Seq>) -> Vec<(Seq, Place)> {
        if self.joined.is_empty() {
            return Vec::new();
        }
        let mut names: Vec<Seq> = found.iter().filter_map(|found| self.joined.get(&found.seq).copied()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Seq> = found.iter().map(|found| found.seq).collect();
        found.sort_unstable();
        let firsts = names.into_iter().filter_map(|cluster| self.first(cluster, leaving));
        firsts.filter(|(first, _)| found.binary_search(first).is_err()).collect()
    }

    /// Adds a new document to the cluster that `representative` represents, and returns the cluster's name.
    pub(super) fn join(&mut self, seq: Seq, place: Place, (representative, its_place): (Seq, Place)) -> Seq {
        let cluster = self.cluster_of(representative);
        self.documents.insert((cluster, representative), its_place);
        self.documents.insert((cluster, seq), place);
        self.joined.insert(seq, cluster);
        cluster
    }

    /// Returns the document that will represent the cluster when `seq` leaves. `None` if `seq` does not represent its
    /// cluster, or is alone in it.
    pub(super) fn heir(&self, seq: Seq) -> Option<(Seq, Place)> {
        let cluster = self.cluster_of(seq);
        let is_first = self.first(cluster, None).is_some_and(|(first, _)| first == seq);
        if is_first { self.first(cluster, Some(seq)) } else { None }
    }

    /// Removes a document from its cluster. If it represented the cluster, also returns the document that now
    /// represents it.
    pub(super) fn leave(&mut self, seq: Seq) -> (Left, Option<(Seq, Place)>) {
        let cluster = self.joined.remove(&seq).unwrap_or(seq);
        let was_first = self.first(cluster, None).is_some_and(|(first, _)| first == seq);
        let place = self.documents.remove(&(cluster, seq));
        let next = if was_first { self.first(cluster, None) } else { None };
        (Left { seq, cluster, place, promoted: None }, next)
    }

    /// Undoes [`Self::leave`].
    pub(super) fn rejoin(&mut self, left: Left) {
        if let Some(place) = left.place {
            self.documents.insert((left.cluster, left.seq), place);
        }
        if left.cluster != left.seq {
            self.joined.insert(left.seq, left.cluster);
        }
    }

    fn first(&self, cluster: Seq, leaving: Option<Seq>) -> Option<(Seq, Place)> {
        let documents = self.documents.range((cluster, Seq(0))..=(cluster, Seq(u64::MAX)));
        let mut seqs = documents.map(|(&(_, seq), &place)| (seq, place));
        seqs.find(|(seq, _)| Some(*seq) != leaving)
    }

    /// Returns the approximate bytes of both trees.
    pub(super) fn bytes(&self) -> u64 {
        ((self.joined.len() + self.documents.len()) * TREE_ENTRY_BYTES) as u64
    }
}
