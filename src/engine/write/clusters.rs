//! Which stored document stands for which: a cluster is a star around its first-seen representative.
//! A document that is stored although it has duplicates joins the cluster of the representative it is most like, and
//! where it is like none, founds one of its own: so chains never form. A cluster is named by the `seq` of its founder;
//! its representative is its living document of the lowest `seq`, so that a deletion promotes the next without touching
//! the others. All of it is guarded by the decision lock; the store has it too, and boot reads it from there. Places are
//! as the index gave them; they mean something to it alone.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::engine::lookup::Ranked;
use crate::index::{Candidate, Place};
use crate::types::Seq;

/// What an entry of a tree takes at most, as its nodes are two thirds full on average.
const TREE_ENTRY_BYTES: usize = (size_of::<(Seq, Seq)>() + size_of::<Place>()) * 3 / 2 + 3;

/// Who is in whose cluster, as decided so far. Documents that never met a duplicate take no memory here.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// Documents that joined a cluster -> its name.
    joined: BTreeMap<Seq, Seq>,
    /// Name, document -> place: those that joined, and founders once they were joined.
    documents: BTreeMap<(Seq, Seq), Place>,
}

/// A document that has left its cluster, with all that undoing it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    seq: Seq,
    cluster: Seq,
    /// Absent if it was alone.
    place: Option<Place>,
    /// The link that became an ordinary document in its place.
    promoted: Option<(Seq, Place)>,
}

impl Left {
    /// The link that became an ordinary document in its place.
    pub(super) fn promoted(self) -> Option<(Seq, Place)> {
        self.promoted
    }

    /// With the link that becomes an ordinary document in its place.
    pub(super) fn promoting(self, promoted: Option<(Seq, Place)>) -> Self {
        Self { promoted, ..self }
    }

    /// The promoted link's `seq`, for the disk.
    pub(super) fn promoted_seq(self) -> Option<Seq> {
        self.promoted.map(|(seq, _)| seq)
    }
}

impl Clusters {
    /// From the documents on disk that joined a cluster (name, document, place). `founders` finds the places of those
    /// founders that are still there.
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

    /// The name of a document's cluster.
    pub(super) fn cluster_of(&self, seq: Seq) -> Seq {
        self.joined.get(&seq).copied().unwrap_or(seq)
    }

    /// Whether it was promoted: the first of its cluster now, and not its founder.
    pub(super) fn is_promoted(&self, seq: Seq) -> bool {
        self.joined.get(&seq).is_some_and(|&cluster| self.first(cluster, None).is_some_and(|(first, _)| first == seq))
    }

    /// Which of the matches a document joins: the best that is a representative, once `leaving` has left.
    pub(super) fn choose(&self, ranked: &[Ranked], leaving: Option<Seq>) -> Option<(Seq, Place)> {
        let stands = |ranked: &&Ranked| match self.joined.get(&ranked.found.seq) {
            None => true,
            Some(&cluster) => self.first(cluster, leaving).is_some_and(|(first, _)| first == ranked.found.seq),
        };
        ranked.iter().find(stands).map(|ranked| (ranked.found.seq, ranked.found.place))
    }

    /// The representative of a document that joined a cluster, once `leaving` has left.
    pub(super) fn stands_for(&self, seq: Seq, leaving: Option<Seq>) -> Option<(Seq, Place)> {
        self.first(*self.joined.get(&seq)?, leaving)
    }

    /// Representatives of the documents found that are not among them.
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

    /// Adds a new document to the cluster that `representative` stands for, and returns the cluster's name.
    pub(super) fn join(&mut self, seq: Seq, place: Place, (representative, its_place): (Seq, Place)) -> Seq {
        let cluster = self.cluster_of(representative);
        self.documents.insert((cluster, representative), its_place);
        self.documents.insert((cluster, seq), place);
        self.joined.insert(seq, cluster);
        cluster
    }

    /// The document that represents the cluster of another once that has left, if it does so now.
    pub(super) fn heir(&self, seq: Seq) -> Option<(Seq, Place)> {
        let cluster = self.cluster_of(seq);
        let is_first = self.first(cluster, None).is_some_and(|(first, _)| first == seq);
        if is_first { self.first(cluster, Some(seq)) } else { None }
    }

    /// Takes a document out, and says who is the first in its place where it was that.
    pub(super) fn leave(&mut self, seq: Seq) -> (Left, Option<(Seq, Place)>) {
        let cluster = self.joined.remove(&seq).unwrap_or(seq);
        let was_first = self.first(cluster, None).is_some_and(|(first, _)| first == seq);
        let place = self.documents.remove(&(cluster, seq));
        let next = if was_first { self.first(cluster, None) } else { None };
        (Left { seq, cluster, place, promoted: None }, next)
    }

    /// Takes a leaving back.
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

    /// Bytes of both trees, about.
    pub(super) fn bytes(&self) -> u64 {
        ((self.joined.len() + self.documents.len()) * TREE_ENTRY_BYTES) as u64
    }
}
