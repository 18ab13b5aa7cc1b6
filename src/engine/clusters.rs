//! Which stored document stands for which: a cluster is a star around its first-seen representative.
//! A document that is stored although it has duplicates joins the cluster of the representative it is most like, and
//! where it is like none, founds one of its own: so chains never form. A cluster is named by the `seq` of its founder;
//! its representative is its living document of the lowest `seq`, so that a deletion promotes the next without touching
//! the others. All of it is guarded by the decision lock; the store has it too, and boot reads it from there.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use super::judge::{Judgement, Query, Ranked};
use super::order::Order;
use super::{Collection, Live};
use crate::types::{Seq, Slot};

/// What an entry of a tree takes at most, as its nodes are two thirds full on average.
const TREE_ENTRY_BYTES: usize = (size_of::<(Seq, Seq)>() + size_of::<Slot>()) * 3 / 2 + 3;

/// Who is in whose cluster, as decided so far. Documents that never met a duplicate take no memory here.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// Documents that joined a cluster -> its name.
    joined: BTreeMap<Seq, Seq>,
    /// Name, document -> slot: those that joined, and founders once they were joined.
    documents: BTreeMap<(Seq, Seq), Slot>,
}

/// A document that has left its cluster, with all that undoing it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    seq: Seq,
    cluster: Seq,
    /// Absent where it was alone.
    slot: Option<Slot>,
    /// The link that became an ordinary document in its place.
    pub promoted: Option<(Seq, Slot)>,
}

impl Left {
    /// The promoted link's `seq`, for the disk.
    pub(crate) fn promoted_seq(self) -> Option<Seq> {
        self.promoted.map(|(seq, _)| seq)
    }
}

impl Clusters {
    /// From the documents on disk that joined a cluster (name, document, slot). `founders` finds the slots of those
    /// founders that are still there.
    pub(crate) fn load(joined: Vec<(Seq, Seq, Slot)>, founders: impl Iterator<Item = (Seq, Slot)>) -> Self {
        if joined.is_empty() {
            return Self::default();
        }
        let names: HashSet<Seq> = joined.iter().map(|&(cluster, ..)| cluster).collect();
        let founders = founders.filter(|(seq, _)| names.contains(seq)).map(|(seq, slot)| ((seq, seq), slot));
        let members = joined.iter().map(|&(cluster, seq, slot)| ((cluster, seq), slot));
        let documents = members.chain(founders).collect();
        Self { joined: joined.into_iter().map(|(cluster, seq, _)| (seq, cluster)).collect(), documents }
    }

    /// The name of a document's cluster.
    pub(crate) fn cluster_of(&self, seq: Seq) -> Seq {
        self.joined.get(&seq).copied().unwrap_or(seq)
    }

    /// Whether it was promoted: the first of its cluster now, and not its founder.
    pub(crate) fn is_promoted(&self, seq: Seq) -> bool {
        self.joined.get(&seq).is_some_and(|&cluster| self.first(cluster, None).is_some_and(|(first, _)| first == seq))
    }

    /// Which of the matches a document joins: the best that is a representative, once `leaving` has left.
    pub(crate) fn choose(&self, ranked: &[Ranked], leaving: Option<Seq>) -> Option<(Seq, Slot)> {
        let stands = |found: &&Ranked| match self.joined.get(&found.seq) {
            None => true,
            Some(&cluster) => self.first(cluster, leaving).is_some_and(|(first, _)| first == found.seq),
        };
        ranked.iter().find(stands).map(|found| (found.seq, found.slot))
    }

    /// The representative of a document that joined a cluster, once `leaving` has left.
    pub(crate) fn stands_for(&self, seq: Seq, leaving: Option<Seq>) -> Option<(Seq, Slot)> {
        self.first(*self.joined.get(&seq)?, leaving)
    }

    /// Representatives of the documents found that are not among them.
    fn unfound(&self, ranked: &[Ranked], leaving: Option<Seq>) -> Vec<(Seq, Slot)> {
        if self.joined.is_empty() {
            return Vec::new();
        }
        let mut names: Vec<Seq> = ranked.iter().filter_map(|found| self.joined.get(&found.seq).copied()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Seq> = ranked.iter().map(|found| found.seq).collect();
        found.sort_unstable();
        let firsts = names.into_iter().filter_map(|cluster| self.first(cluster, leaving));
        firsts.filter(|(first, _)| found.binary_search(first).is_err()).collect()
    }

    /// Adds a new document to the cluster that `representative` stands for, and returns the cluster's name.
    pub(crate) fn join(&mut self, seq: Seq, slot: Slot, (representative, its_slot): (Seq, Slot)) -> Seq {
        let cluster = self.cluster_of(representative);
        self.documents.insert((cluster, representative), its_slot);
        self.documents.insert((cluster, seq), slot);
        self.joined.insert(seq, cluster);
        cluster
    }

    /// Takes a document out, and says who is the first in its place where it was that.
    fn leave(&mut self, seq: Seq) -> (Left, Option<(Seq, Slot)>) {
        let cluster = self.joined.remove(&seq).unwrap_or(seq);
        let was_first = self.first(cluster, None).is_some_and(|(first, _)| first == seq);
        let slot = self.documents.remove(&(cluster, seq));
        let next = if was_first { self.first(cluster, None) } else { None };
        (Left { seq, cluster, slot, promoted: None }, next)
    }

    /// Takes a leaving back.
    fn rejoin(&mut self, left: Left) {
        if let Some(slot) = left.slot {
            self.documents.insert((left.cluster, left.seq), slot);
        }
        if left.cluster != left.seq {
            self.joined.insert(left.seq, left.cluster);
        }
    }

    fn first(&self, cluster: Seq, leaving: Option<Seq>) -> Option<(Seq, Slot)> {
        let documents = self.documents.range((cluster, Seq(0))..=(cluster, Seq(u64::MAX)));
        let mut seqs = documents.map(|(&(_, seq), &slot)| (seq, slot));
        seqs.find(|(seq, _)| Some(*seq) != leaving)
    }

    /// Bytes of both trees, about.
    pub(crate) fn bytes(&self) -> u64 {
        ((self.joined.len() + self.documents.len()) * TREE_ENTRY_BYTES) as u64
    }
}

impl Collection {
    /// Adds to what was found the representatives of its clusters that were not found themselves: the bounds of a lookup
    /// or the luck of the bands may have passed over them, and without them one cluster would be founded again and
    /// again. At most as many as there are matches.
    pub(crate) fn with_representatives(
        &self,
        mut judgement: Judgement,
        clusters: &Clusters,
        query: &Query<'_>,
        leaving: Option<Seq>,
    ) -> Judgement {
        let unfound = clusters.unfound(&judgement.ranked, leaving);
        if unfound.is_empty() {
            return judgement;
        }
        let mut words = Vec::new();
        let mut comparison = query.comparison(&self.arena, self.preparer.shape(), &mut words);
        for (seq, slot) in unfound {
            // Nobody finds a link that may be promoted with this decision, and is not yet.
            if self.arena.is_linked(slot) && !clusters.is_promoted(seq) {
                continue;
            }
            if let Some((seen, matching)) = comparison.with(slot).filter(|(seen, _)| seen.seq == seq) {
                judgement.consider(query, self.preparer.shape(), slot, &seen, matching);
            }
        }
        judgement.rank();
        judgement
    }

    /// Takes a document out of its cluster. A link that is the first after it gets postings at once: nothing else of the
    /// cluster might be found any more. Checks pass over it, as over what is not durable, until it is none on disk.
    pub(crate) fn leave_cluster(&self, order: &mut Order, live: &Live, seq: Seq) -> Left {
        let (left, next) = order.clusters.leave(seq);
        let promoted = next.filter(|&(_, slot)| self.arena.is_linked(slot));
        if let Some((_, slot)) = promoted {
            live.set_findable(&self.arena, slot, true);
        }
        Left { promoted, ..left }
    }

    /// Takes that back, where the decision is undone.
    pub(crate) fn rejoin_cluster(&self, order: &mut Order, left: Left) {
        if let Some((_, slot)) = left.promoted {
            self.live.read().set_findable(&self.arena, slot, false);
        }
        order.clusters.rejoin(left);
    }

    /// Takes a document that was never durable out of its cluster. Whoever joined it later is undone already.
    pub(crate) fn unjoin_cluster(&self, order: &mut Order, slot: Slot) {
        let seen = self.arena.peek(slot).expect("a decision is undone before its slot is freed");
        order.clusters.leave(seen.seq);
    }

    /// The promotion is on disk: what was a link is an ordinary document for everybody.
    pub(crate) fn promoted(&self, left: Left) {
        let Some((seq, slot)) = left.promoted else { return };
        // Under the lock: the arena has one writer at a time.
        let _order = self.order.lock();
        self.arena.set_linked(slot, false);
        self.records.unlink(seq);
    }
}
