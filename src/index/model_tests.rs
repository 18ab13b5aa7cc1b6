//! The whole index, through its public functions, against a plain map.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::index_tests::{BOUNDS, NEVER, SHAPE, banding, index, matching_slots, signature};
use super::*;
use crate::types::{Explanation, LabelLimits, ScopeTerm};

const LABELS: [&str; 4] = ["", "site:a", "crawl:1\nsite:a", "crawl:2"];
/// Scopes, and which of [`LABELS`] each scope includes. One scope names a label that no document has.
const SCOPES: [(&[&str], [bool; 4]); 5] = [
    (&["site:a"], [false, true, true, false]),
    (&["site:a", "!crawl:1"], [false, true, false, false]),
    (&["!crawl:2"], [true, true, true, false]),
    (&["!crawl:9"], [true; 4]),
    (&["crawl:1", "crawl:2"], [false; 4]),
];

#[derive(Clone, Debug)]
struct Held {
    signature: Vec<u8>,
    id_fingerprint: u64,
    /// The index of the document's labels in [`LABELS`].
    labels: usize,
    occupant: Occupant,
    /// If the document is a link that is promoted: the position in the commit order at which this happens, and whether
    /// the promotion is on disk.
    promoted: Option<(Seq, bool)>,
    /// Whether the document is deleted on disk.
    leaving: bool,
    /// Whether the document is in doubt: it is unknown whether it is on disk.
    doubtful: bool,
}

impl Held {
    /// Returns whether a view shows the document. The index computes this in another way.
    fn is_seen_by(&self, view: View) -> bool {
        let Occupant { seq, removed, .. } = self.occupant;
        let until = if removed == Seq(0) { u64::MAX } else { removed.0 };
        match view {
            _ if self.doubtful => false,
            View::Decided => until == u64::MAX,
            View::Durable(Seq(durable)) => (seq.0..until).contains(&durable),
        }
    }

    /// Returns whether the document is a link in a view.
    fn is_link_in(&self, view: View) -> bool {
        let is_promoted = self.promoted.is_some_and(|(at, _)| match view {
            View::Decided => true,
            View::Durable(durable) => durable >= at,
        });
        self.occupant.linked && !is_promoted
    }
}

/// The index, and the expected state.
struct World {
    index: Arc<Index>,
    rng: ChaCha8Rng,
    model: BTreeMap<Place, Held>,
    seq: u64,
    next: Option<NextBanding>,
}

impl World {
    fn new(seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let index = index();
        for labels in LABELS {
            index.hold_labels(Some(&Labels::parse(labels).unwrap()), None, LabelLimits::NONE).unwrap();
        }
        Self { index: Arc::new(index), rng, model: BTreeMap::new(), seq: 0, next: None }
    }

    fn enter(&mut self) -> Place {
        self.seq += 1;
        let (seq, linked) = (Seq(self.seq), self.rng.random_bool(0.2));
        let signature = signature(&mut self.rng);
        let (id_fingerprint, content) = (self.rng.random_range(0..200), self.rng.random_range(0..4));
        let labels = self.rng.random_range(0..4);
        let set =
            self.index.hold_labels(Some(&Labels::parse(LABELS[labels]).unwrap()), None, LabelLimits::NONE).unwrap();
        let entry =
            Entry { seq, id_fingerprint, content, linked, signature: &signature, labels: set, last_seen: NEVER };
        let place = self.index.enter(entry).unwrap();
        let occupant = Occupant { seq, removed: Seq(0), content, linked };
        let before = self.model.insert(
            place,
            Held { signature, id_fingerprint, labels, occupant, promoted: None, leaving: false, doubtful: false },
        );
        assert!(before.is_none(), "{place:?} was assigned twice");
        place
    }

    /// Returns a document that exists.
    fn any(&mut self) -> Option<Place> {
        let there = self.model.iter().filter(|(_, held)| held.occupant.removed == Seq(0));
        there.map(|(&place, _)| place).choose(&mut self.rng)
    }

    /// Promotes a link. Later the promotion becomes durable, or is undone.
    fn promote(&mut self, link: Place) {
        let held = self.model.get_mut(&link).unwrap();
        match &mut held.promoted {
            None => {
                self.seq += 1;
                self.index.promote(link, Seq(self.seq));
                held.promoted = Some((Seq(self.seq), false));
            }
            Some((_, on_disk)) if !*on_disk && self.rng.random_bool(0.7) => {
                self.index.gone(vec![], vec![link]);
                *on_disk = true;
            }
            Some((_, true)) => {}
            Some((_, false)) => {
                self.index.demote(link);
                held.promoted = None;
            }
        }
    }

    /// Removes the deleted documents. All of them can be removed, because this test has no readers.
    fn clear(&mut self) {
        while let Some(place) = self.index.next_removable() {
            assert_eq!(self.index.remove(place), self.model.remove(&place).unwrap().occupant.seq);
        }
        for held in self.model.values_mut() {
            if held.promoted.take_if(|(_, on_disk)| *on_disk).is_some() {
                held.occupant.linked = false;
            }
        }
    }

    /// Removes a document. The removal becomes durable or is undone, or its result stays unknown.
    fn remove(&mut self, place: Place) {
        while self.model[&place].promoted.is_some_and(|(_, on_disk)| !on_disk) {
            self.promote(place);
        }
        self.seq += 1;
        self.index.leave(place, Seq(self.seq));
        let held = self.model.get_mut(&place).unwrap();
        held.occupant.removed = Seq(self.seq);
        match self.rng.random_range(0..10) {
            0 => {
                self.index.stay(place);
                held.occupant.removed = Seq(0);
            }
            1 => {
                self.index.doubt(place);
                held.occupant.removed = self.index.peek(place).unwrap().removed;
                held.doubtful = true;
            }
            _ => {
                held.leaving = true;
                self.index.gone(vec![place], vec![]);
            }
        }
    }

    fn step(&mut self, grows: bool) {
        let goes = self.rng.random_bool(if grows { 0.2 } else { 0.7 });
        match self.any() {
            Some(place) if goes => self.remove(place),
            Some(place) if self.rng.random_bool(0.1) => {
                let labels = self.rng.random_range(0..4);
                let set = self
                    .index
                    .hold_labels(Some(&Labels::parse(LABELS[labels]).unwrap()), None, LabelLimits::NONE)
                    .unwrap();
                self.index.set_labels(place, set);
                self.model.get_mut(&place).unwrap().labels = labels;
            }
            Some(place) if self.model[&place].occupant.linked && self.rng.random_bool(0.3) => self.promote(place),
            _ => {
                let place = self.enter();
                if self.rng.random_bool(0.05) {
                    assert_eq!(self.index.withdraw(place), Seq(self.seq));
                    self.model.remove(&place);
                }
            }
        }
        if self.rng.random_bool(0.3) {
            self.clear();
        }
        self.reband();
    }

    fn reband(&mut self) {
        match self.next.take() {
            None if self.rng.random_bool(0.02) => {
                let (bands, rows) = [(12, 5), (6, 10), (64, 1), (2, 32), (8, 8)][self.rng.random_range(0..5)];
                self.next = Some(self.index.begin_banding(banding(bands, rows), Seq(self.seq)));
            }
            None => {}
            Some(next) if self.rng.random_bool(0.02) => self.index.abandon(&next),
            Some(mut next) => match self.index.fill(&mut next, 16) {
                true => self.index.take_over(next),
                false => self.next = Some(next),
            },
        }
    }

    /// Returns the documents that a search must find, best first.
    fn expected(&self, view: View, query: &Query<'_>, in_scope: [bool; 4]) -> Vec<Candidate> {
        let (bands, rows) = (self.index.banding().bands() as usize, self.index.banding().rows() as usize);
        let shares = |held: &Held| {
            (0..bands).any(|band| held.signature[band * rows..][..rows] == query.signature[band * rows..][..rows])
        };
        let mut expected: Vec<Candidate> = Vec::new();
        for (&place, held) in self.model.iter().filter(|(_, held)| in_scope[held.labels]) {
            let (Occupant { seq, content, .. }, linked) = (held.occupant, held.is_link_in(view));
            let matching = matching_slots(&held.signature, query.signature);
            let same_content = matching == SHAPE.k && content != 0 && content == query.content;
            let is_found = held.is_seen_by(view) && (!linked && shares(held) || same_content);
            if is_found && query.own != Some(place) && matching >= query.matching_min {
                expected.push(Candidate { seq, place, matching, content, same_content, linked });
            }
        }
        expected.sort_by_key(|found| (Reverse(found.same_content), Reverse(found.matching), found.seq));
        expected
    }

    /// Checks the listed candidates below the minimum. They must be the best of all such candidates, one for each
    /// signature.
    fn check_below(&self, view: View, query: &Query<'_>, in_scope: [bool; 4], search: &Search) {
        let Some(examined) = &search.examined else { return assert!(!query.explain) };
        let below: Vec<u32> = examined.below.iter().map(|below| below.matching).collect();
        let all = self.expected(view, &Query { matching_min: 0, ..*query }, in_scope);
        let mut expected: Vec<(u32, &[u8])> = all
            .iter()
            .filter(|found| found.matching < query.matching_min)
            .map(|found| (found.matching, &*self.model[&found.place].signature))
            .collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.dedup();
        expected.truncate(Explanation::BELOW_MAX);
        assert_eq!(below, expected.into_iter().map(|(matching, _)| matching).collect::<Vec<_>>(), "{view:?}");
        assert!(examined.below.iter().all(|below| all.contains(below)), "{:?} of {all:?}", examined.below);
        // If contents are compared, each content of one signature counts as a candidate.
        assert!(query.contents_max.is_some() || examined.seen >= u64::from(search.candidates));
    }

    fn check(&mut self) {
        let signature = match self.any() {
            Some(place) if self.rng.random_bool(0.5) => self.model[&place].signature.clone(),
            _ => signature(&mut self.rng),
        };
        let content = self.rng.random_range(0..4);
        let own = self.any().filter(|_| self.rng.random_bool(0.5));
        let scope = self.rng.random_range(0..2 * SCOPES.len());
        let (terms, in_scope) = SCOPES.get(scope).copied().unwrap_or((&[], [true; 4]));
        let terms = terms.iter().map(|term| ScopeTerm::parse(term).unwrap()).collect();
        let index = Arc::clone(&self.index);
        let scope = (scope < SCOPES.len()).then(|| index.scope(&Scope::new(terms).unwrap()));
        let scope = scope.as_ref().map(|scope| |place| scope.takes_place(place));
        let query = Query {
            signature: &signature,
            content,
            own,
            matching_min: self.rng.random_range(0..=SHAPE.k),
            members_max: usize::MAX,
            // A query without content cannot be compared by its shingles.
            contents_max: (content != 0 && self.rng.random_bool(0.3)).then_some(usize::MAX),
            scope: scope.as_ref().map(|scope| scope as &dyn Fn(Place) -> bool),
            mistaken: &HashSet::new(),
            explain: self.rng.random_bool(0.3),
        };
        for view in [View::Decided, View::Durable(Seq(self.rng.random_range(0..=self.seq)))] {
            let Ok(search) = self.index.search(view, &query, BOUNDS);
            assert_eq!(search.found, self.expected(view, &query, in_scope), "{view:?}");
            self.check_below(view, &query, in_scope, &search);
            assert!(search.unread == Unread::default() && search.above <= search.candidates);
        }
        let alike = |held: &&Held| matching_slots(&held.signature, &signature) >= query.matching_min;
        let matching = self.index.matching(&query, self.model.keys().copied());
        assert_eq!(matching, self.model.values().filter(alike).count());
        let id_fingerprint = self.rng.random_range(0..200);
        let same_bits = self.model.iter().filter(|(_, held)| held.id_fingerprint & 63 == id_fingerprint & 63);
        let mut held_by = self.index.held_by(id_fingerprint);
        held_by.sort_unstable();
        assert!(same_bits.map(|(&place, _)| place).eq(held_by));
        assert!(self.model.iter().all(|(&place, held)| self.index.peek(place) == Some(held.occupant)));
        let there = self.index.places(Walk::start()).filter(|&place| self.index.peek(place).is_some());
        assert!(there.eq(self.model.keys().copied()));
        let leaving = self.model.values().filter(|held| held.leaving).count();
        assert_eq!(self.index.documents() as usize, self.model.len() - leaving);
        let promoted = self.model.values().any(|held| held.promoted.is_some_and(|(_, on_disk)| on_disk));
        assert_eq!(self.index.has_leaving(), leaving > 0 || promoted);
        assert!(self.model.iter().all(|(&place, held)| self.index.is_link(place) == held.is_link_in(View::Decided)));
    }
}

#[test]
fn every_change_reaches_all_tables() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        let mut grows = true;
        for step in 0..2500 {
            grows = if grows { world.model.len() < 250 } else { world.model.len() < 20 };
            world.step(grows);
            if step % 8 == 0 {
                world.check();
            }
        }
        if let Some(next) = world.next.take() {
            world.index.abandon(&next);
        }
        world.clear();
        for (&place, held) in &world.model {
            if held.promoted.is_some() {
                world.index.demote(place);
            }
            world.index.withdraw(place);
        }
        assert_eq!(
            (world.index.documents(), world.index.survey((1000, 0), true, 4, || ())),
            (0, Survey::default()),
            "seed {seed}"
        );
        assert!(world.index.places(Walk::start()).all(|place| world.index.peek(place).is_none()));
    }
}
