//! The whole index, through its public functions, against a plain map.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use hapax_core::{Banding, SignatureShape};
use parking_lot::Mutex;
use rand::seq::IteratorRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::types::{Explanation, LabelLimits, ScopeTerm};

const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
const BOUNDS: Bounds = Bounds { bucket_read_max: usize::MAX, candidates_max: usize::MAX };
const NEVER: TimestampMs = TimestampMs(0);
const LABELS: [&str; 4] = ["", "site:a", "crawl:1\nsite:a", "crawl:2"];
/// Scopes, and which of [`LABELS`] each takes. One names a label that no document has.
const SCOPES: [(&[&str], [bool; 4]); 5] = [
    (&["site:a"], [false, true, true, false]),
    (&["site:a", "!crawl:1"], [false, true, false, false]),
    (&["!crawl:2"], [true, true, true, false]),
    (&["!crawl:9"], [true; 4]),
    (&["crawl:1", "crawl:2"], [false; 4]),
];

fn banding(bands: u32, rows: u32) -> Banding {
    Banding::new(bands, rows, SHAPE).unwrap()
}

fn index() -> Index {
    Index::new(&IndexOptions { shape: SHAPE, banding: banding(12, 5), id_fingerprint_bits: 6, seed: Some(1) })
}

/// Few families, so that documents share bands; some signatures are equal.
fn signature(rng: &mut impl Rng) -> Vec<u8> {
    let family = rng.random_range(0..4_u8);
    let noise = [0.0, 0.05, 0.3][rng.random_range(0..3)];
    (0..SHAPE.bytes()).map(|_| if rng.random_bool(noise) { rng.random() } else { family }).collect()
}

fn matching_slots(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as u32
}

fn found(search: Result<Search, NeedsDisk>) -> Vec<Candidate> {
    let Ok(search) = search;
    search.found
}

#[derive(Clone, Debug)]
struct Held {
    signature: Vec<u8>,
    id_fingerprint: u64,
    /// Its labels in [`LABELS`].
    labels: usize,
    occupant: Occupant,
    findable: bool,
    /// It is deleted on disk.
    leaving: bool,
    /// It is unknown whether it is on disk.
    doubtful: bool,
}

impl Held {
    /// Returns whether a view shows it. Written in other terms than in the index.
    fn is_seen_by(&self, view: View) -> bool {
        let Occupant { seq, removed, .. } = self.occupant;
        let until = if removed == Seq(0) { u64::MAX } else { removed.0 };
        match view {
            _ if self.doubtful => false,
            View::Decided => until == u64::MAX,
            View::Durable(Seq(durable)) => (seq.0..until).contains(&durable),
        }
    }

    /// Returns whether a view finds it by its bands. A link that is being promoted is found only once that is durable.
    fn is_found_by(&self, view: View) -> bool {
        let promoted = !self.occupant.linked || matches!(view, View::Decided);
        self.findable && promoted && self.is_seen_by(view)
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
            Held { signature, id_fingerprint, labels, occupant, findable: !linked, leaving: false, doubtful: false },
        );
        assert!(before.is_none(), "{place:?} was assigned twice");
        place
    }

    /// Returns a document that exists.
    fn any(&mut self) -> Option<Place> {
        let there = self.model.iter().filter(|(_, held)| held.occupant.removed == Seq(0));
        there.map(|(&place, _)| place).choose(&mut self.rng)
    }

    /// Removes a document. The removal becomes durable, is undone, or stays unknown.
    fn remove(&mut self, place: Place) {
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
                self.index.gone(vec![place]);
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
            Some(place) if self.rng.random_bool(0.1) => {
                let held = self.model.get_mut(&place).unwrap();
                if held.occupant.linked && held.findable {
                    self.index.set_linked(place, false);
                    held.occupant.linked = false;
                } else if held.occupant.linked {
                    self.index.set_findable(place, true);
                    held.findable = true;
                }
            }
            _ => {
                let place = self.enter();
                if self.rng.random_bool(0.05) {
                    assert_eq!(self.index.withdraw(place), Seq(self.seq));
                    self.model.remove(&place);
                }
            }
        }
        if self.rng.random_bool(0.3) {
            while let Some(place) = self.index.next_removable() {
                assert_eq!(self.index.remove(place), self.model.remove(&place).unwrap().occupant.seq);
            }
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

    /// Returns what a search must find, best first.
    fn expected(&self, view: View, query: &Query<'_>, in_scope: [bool; 4]) -> Vec<Candidate> {
        let (bands, rows) = (self.index.banding().bands() as usize, self.index.banding().rows() as usize);
        let shares = |held: &Held| {
            (0..bands).any(|band| held.signature[band * rows..][..rows] == query.signature[band * rows..][..rows])
        };
        let mut expected: Vec<Candidate> = Vec::new();
        for (&place, held) in self.model.iter().filter(|(_, held)| in_scope[held.labels]) {
            let Occupant { seq, content, linked, .. } = held.occupant;
            let matching = matching_slots(&held.signature, query.signature);
            let same_content = matching == SHAPE.k && content != 0 && content == query.content;
            let by_bands = held.is_found_by(view) && shares(held);
            let is_found = held.is_seen_by(view) && (by_bands || same_content);
            if is_found && query.own != Some(place) && matching >= query.matching_min {
                expected.push(Candidate { seq, place, matching, content, same_content, linked });
            }
        }
        expected.sort_by_key(|found| (Reverse(found.same_content), Reverse(found.matching), found.seq));
        expected
    }

    /// Checks the candidates below the minimum, which are the best of those, one for each signature.
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
        // Of documents with one signature, each content counts if contents are compared.
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
            // Only contents can be compared by their shingles.
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
        assert_eq!(self.index.has_leaving(), leaving > 0);
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
        while let Some(place) = world.index.next_removable() {
            world.index.remove(place);
            world.model.remove(&place);
        }
        for place in world.model.keys() {
            world.index.withdraw(*place);
        }
        assert_eq!(
            (world.index.documents(), world.index.survey((1000, 0), true, 4, || ())),
            (0, Survey::default()),
            "seed {seed}"
        );
        assert!(world.index.places(Walk::start()).all(|place| world.index.peek(place).is_none()));
    }
}

#[test]
fn loading_and_building_gives_what_entering_one_by_one_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let documents: Vec<(Seq, bool, Vec<u8>)> =
        (1..=3000).map(|seq| (Seq(seq), rng.random_bool(0.1), signature(&mut rng))).collect();
    fn entry(&(seq, linked, ref signature): &(Seq, bool, Vec<u8>)) -> Entry<'_> {
        let (id_fingerprint, content) = (seq.0, seq.0 % 7);
        Entry { seq, id_fingerprint, content, linked, signature, labels: LabelSet::NONE, last_seen: NEVER }
    }
    let (one_by_one, loaded) = (index(), index());
    for document in &documents {
        one_by_one.enter(entry(document)).unwrap();
    }
    std::thread::scope(|scope| {
        for part in documents.chunks(1000) {
            let loaded = &loaded;
            scope.spawn(move || {
                for document in part {
                    loaded.load(entry(document));
                }
            });
        }
    });
    let done = Mutex::new(0.0_f64);
    loaded.build(|share| {
        let mut done = done.lock();
        *done = done.max(share);
    });
    assert!(*done.lock() > 0.0 && *done.lock() <= 1.0);
    let seen = |found: Vec<Candidate>| {
        found.into_iter().map(|found| (found.seq, found.matching, found.same_content)).collect::<Vec<_>>()
    };
    for _ in 0..100 {
        let signature = signature(&mut rng);
        let mistaken = HashSet::new();
        let query = Query {
            signature: &signature,
            content: 3,
            own: None,
            matching_min: 30,
            members_max: usize::MAX,
            contents_max: None,
            scope: None,
            mistaken: &mistaken,
            explain: false,
        };
        let [expected, found] =
            [&one_by_one, &loaded].map(|index| seen(found(index.search(View::Decided, &query, BOUNDS))));
        assert_eq!(expected, found);
    }
    assert_eq!(loaded.documents(), 3000);
    assert_eq!(loaded.survey((3000, 0), true, 4, || ()), one_by_one.survey((3000, 0), true, 4, || ()));
    assert!((1..=3000).all(|seq| loaded.held_by(seq).iter().any(|&place| loaded.peek(place).unwrap().seq == Seq(seq))));
}

#[test]
fn a_known_document_counts_only_if_it_is_still_at_its_place() {
    let index = index();
    let entry = |seq, signature| Entry {
        seq: Seq(seq),
        id_fingerprint: seq,
        content: 0,
        linked: false,
        signature,
        labels: LabelSet::NONE,
        last_seen: NEVER,
    };
    let query_signature = [7; 64];
    // Every fifth slot differs, so that no band is shared.
    let like: Vec<u8> = (0..64).map(|at| if at % 5 == 0 { 1 } else { 7 }).collect();
    let near = index.enter(entry(1, &like)).unwrap();
    let far = index.enter(entry(2, &[9; 64])).unwrap();
    let mistaken = HashSet::new();
    let query = Query {
        signature: &query_signature,
        content: 0,
        own: None,
        matching_min: 40,
        members_max: 1,
        contents_max: None,
        scope: None,
        mistaken: &mistaken,
        explain: false,
    };
    let Ok(mut search) = index.search(View::Decided, &query, BOUNDS);
    assert!(search.found.is_empty());
    index.consider(&mut search, &query, &[(Seq(1), far), (Seq(5), near), (Seq(2), far)]);
    assert!(search.found.is_empty(), "another document is there, or it is not similar to the query");
    index.consider(&mut search, &query, &[(Seq(1), near)]);
    assert_eq!(search.found.iter().map(|found| (found.seq, found.matching)).collect::<Vec<_>>(), [(Seq(1), 51)]);
    assert_eq!((search.candidates, search.above), (2, 1));
    assert_eq!(index.matching(&query, [near, far].into_iter()), 1);
}

#[test]
fn last_seen_times_come_with_documents_while_they_are_kept() {
    let made = TimestampMs(1_700_000_000_000);
    let index = index();
    let entry = |seq, last_seen| Entry {
        seq: Seq(seq),
        id_fingerprint: seq,
        content: 0,
        linked: false,
        signature: &[1; 64],
        labels: LabelSet::NONE,
        last_seen,
    };
    let later = |seconds: i64| TimestampMs(made.0 + seconds * 1000);
    let without = index.enter(entry(1, later(5))).unwrap();
    assert!(index.last_seen().is_none() && index.bytes().last_seen == 0);
    index.keep_last_seen(Some(made));
    let loaded = index.load(entry(2, later(7)));
    let entered = index.enter(entry(3, later(9))).unwrap();
    index.keep_last_seen(Some(TimestampMs(0)));
    let times = index.last_seen().unwrap();
    assert_eq!([without, loaded, entered].map(|place| times.last_seen(place)), [None, Some(later(7)), Some(later(9))]);
    assert_eq!(index.bytes().last_seen, 12);
    index.keep_last_seen(None);
    assert!(index.last_seen().is_none());
}

/// The claim of documents covers the bytes they take, and a removal returns what an insertion claimed.
#[test]
fn a_claim_covers_the_bytes_and_shrinks_with_a_removal() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let index = index();
    let mut places = Vec::new();
    for seq in 1..=5000 {
        let signature: Vec<u8> = (0..SHAPE.bytes()).map(|_| rng.random()).collect();
        let entry = Entry {
            seq: Seq(seq),
            id_fingerprint: seq,
            content: 0,
            linked: false,
            signature: &signature,
            labels: LabelSet::NONE,
            last_seen: NEVER,
        };
        places.push(index.enter(entry).unwrap());
    }
    let IndexBytes { signatures, postings, ids, last_seen, labels } = index.bytes();
    let full = index.claim();
    assert!(full >= signatures + postings + ids + last_seen + labels, "{full} against {:?}", index.bytes());
    let reading = index.reading();
    places.truncate(2500);
    index.gone(places);
    let half = index.claim();
    assert_eq!((index.documents(), index.next_removable()), (2500, None));
    assert!(half < full * 6 / 10, "{half} of {full}, although a reader keeps all documents");
    drop(reading);
    while let Some(place) = index.next_removable() {
        index.remove(place);
    }
    index.resize_tables();
    assert!(index.documents() == 2500 && index.claim() <= half);
}
