//! Compares the index with a plain map, while other threads look up documents that are never removed. Groups of equal
//! signatures get new leaders all the time, because leaders are removed, and links become findable and unfindable
//! again. New indexes are built next to the old one. A further thread resizes the shards that are due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hapax_core::{Banding, SignatureShape};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::arena::{Arena, Entry};
use super::band_tables::BandTables;
use super::bucket_reads::{GroupHit, Hit, Probe, Probed};
use super::equals::Twin;
use super::fullest::fullest;
use super::ids::IdIndex;
use super::labels::LabelSet;
use super::place::Place;
use super::seed::Seed;
use super::survey::survey;
use crate::types::{Seq, TimestampMs};

const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };

#[derive(Clone)]
struct Held {
    signature: Vec<u8>,
    seq: Seq,
    content: u64,
    findable: bool,
}

type Model = BTreeMap<Place, Held>;

struct World {
    arena: Arena,
    index: BandTables,
    ids: IdIndex,
    banding: Banding,
}

/// The parameters of a run. Few families and few signatures make large groups.
#[derive(Clone, Copy)]
struct Plan {
    bands: u32,
    rows: u32,
    families: u8,
    most: usize,
    steps: usize,
}

/// Everything that a lookup found, with the members of groups one by one.
fn hits(
    world: &World,
    index: &BandTables,
    signature: &[u8],
    per_key_max: usize,
    scope: Option<&dyn Fn(Place) -> bool>,
    probe: &mut Probe,
) -> (Vec<Hit>, Probed) {
    let mut probe = std::mem::take(probe.all_bands(index, &world.arena, signature, per_key_max, scope));
    let mut hits = std::mem::take(&mut probe.hits);
    for GroupHit { bands, group, .. } in &probe.groups {
        hits.extend(group.members().found().map(|place| Hit { place, bands: *bands }));
    }
    if let Some(twin) = &probe.twin {
        let bands = index.bands().banding().bands();
        match &twin.group {
            Some(group) => hits.extend(group.members().found().map(|place| Hit { place, bands })),
            None if twin.alone_findable => hits.push(Hit { place: twin.leader, bands }),
            None => {}
        }
    }
    (hits, probe)
}

fn shared(a: &[u8], b: &[u8], banding: Banding) -> u32 {
    let rows = banding.rows() as usize;
    (0..banding.bands() as usize).filter(|&band| a[band * rows..][..rows] == b[band * rows..][..rows]).count() as u32
}

fn expected(model: &Model, query: &[u8], banding: Banding) -> BTreeSet<Hit> {
    let findable = model.iter().filter(|(_, held)| held.findable);
    let hits = findable.map(|(&place, held)| Hit { place, bands: shared(&held.signature, query, banding) });
    hits.filter(|hit| hit.bands > 0).collect()
}

fn signature(rng: &mut ChaCha8Rng, families: u8, pool: &[Vec<u8>]) -> Vec<u8> {
    if !pool.is_empty() && rng.random_bool(0.5) {
        return pool[rng.random_range(0..pool.len())].clone();
    }
    let family = rng.random_range(0..families);
    let noise = [0.0, 0.02, 0.1, 0.5, 1.0][rng.random_range(0..5)];
    let byte = |at: usize| family.wrapping_mul(37).wrapping_add(at as u8);
    (0..SHAPE.bytes()).map(|at| if rng.random_bool(noise) { rng.random() } else { byte(at) }).collect()
}

/// The writer, with the state that it expects of the index.
struct Writer<'a> {
    world: &'a World,
    rng: ChaCha8Rng,
    plan: Plan,
    pool: Vec<Vec<u8>>,
    model: Model,
    /// The documents that readers look up.
    stable: BTreeSet<Place>,
    free: Vec<Place>,
    places: u32,
    seq: u64,
    /// An index that is being built, and its progress.
    next: Option<(BandTables, u32)>,
    probe: Probe,
}

impl Writer<'_> {
    fn indexes(&self) -> impl Iterator<Item = &BandTables> {
        [&self.world.index].into_iter().chain(self.next.as_ref().map(|(next, _)| next))
    }

    fn insert(&mut self, signature: Vec<u8>, findable: bool) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            Place(self.places - 1)
        });
        self.seq += 1;
        let (seq, content) = (Seq(self.seq), self.rng.random_range(0..4));
        let id_fingerprint = self.seq.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let entry = Entry {
            seq,
            id_fingerprint,
            content,
            linked: !findable,
            signature: &signature,
            labels: LabelSet::NONE,
            last_seen: TimestampMs(0),
        };
        self.world.arena.publish(place, entry);
        self.indexes().for_each(|index| index.insert(&self.world.arena, place, findable));
        self.world.ids.insert(&self.world.arena, place);
        self.model.insert(place, Held { signature, seq, content, findable });
        place
    }

    fn remove(&mut self, place: Place) {
        self.indexes().for_each(|index| index.remove(&self.world.arena, place));
        self.world.ids.remove(&self.world.arena, place);
        self.world.arena.free(place);
        self.model.remove(&place);
        self.free.push(place);
    }

    /// Returns a document that readers do not look up.
    fn any(&mut self) -> Option<Place> {
        let skip = Place(self.rng.random_range(0..self.places));
        let places = self.model.range(skip..).chain(&self.model).map(|(&place, _)| place);
        places.into_iter().find(|place| !self.stable.contains(place))
    }

    fn step(&mut self, grows: bool) {
        let other = self.any();
        match other {
            Some(place) if self.rng.random_bool(if grows { 0.25 } else { 0.65 }) => self.remove(place),
            Some(place) if self.rng.random_bool(0.1) => {
                let held = self.model.get_mut(&place).unwrap();
                held.findable = !held.findable;
                let findable = held.findable;
                self.indexes().for_each(|index| index.set_findable(&self.world.arena, place, findable));
            }
            _ => {
                let signature = signature(&mut self.rng, self.plan.families, &self.pool);
                let findable = self.rng.random_bool(0.8);
                self.insert(signature, findable);
            }
        }
    }

    /// Makes the changes of the plan, and checks the index from time to time.
    fn work(&mut self) {
        let (world, plan, mut grows) = (self.world, self.plan, true);
        for step in 0..plan.steps {
            grows = if grows { self.model.len() < plan.most } else { self.model.len() < 100 };
            self.step(grows);
            if step % 500 == 0 || self.next.is_some() {
                self.reband();
            }
            if step % 16 == 0 {
                self.check(&world.index);
            }
        }
        self.next = None;
    }

    /// Builds a new index next to the old one, a few places per step.
    fn reband(&mut self) {
        let Some((next, at)) = &mut self.next else {
            let (bands, rows) = [(12, 5), (6, 10), (64, 1), (2, 32), (31, 2), (8, 8)][self.rng.random_range(0..6)];
            self.next = Some((BandTables::new(Banding::new(bands, rows, SHAPE).unwrap(), SHAPE, Seed::fixed(3)), 0));
            return;
        };
        for place in (*at..(*at + 8).min(self.places)).map(Place) {
            if self.world.index.here(place) && !next.here(place) {
                next.insert(&self.world.arena, place, self.world.index.is_findable(place));
            }
        }
        *at += 8;
        if *at >= self.places {
            let (next, _) = self.next.take().unwrap();
            for _ in 0..5 {
                self.check(&next);
            }
        }
    }

    fn check(&mut self, index: &BandTables) {
        let query = signature(&mut self.rng, self.plan.families, &self.pool);
        let (found, probed) = hits(self.world, index, &query, usize::MAX, None, &mut self.probe);
        let full = expected(&self.model, &query, index.bands().banding());
        assert_eq!(found.iter().copied().collect::<BTreeSet<_>>(), full);
        assert_eq!((found.len(), probed.unread), (full.len(), 0), "each once");
        self.check_twin(&query, &probed);
        // With a limit, all findings must be correct, and postings that were not read must be counted.
        let cap = self.rng.random_range(1..20);
        let (found, probed) = hits(self.world, index, &query, cap, None, &mut self.probe);
        assert!(found.iter().all(|hit| full.iter().any(|full| full.place == hit.place && full.bands >= hit.bands)));
        if probed.unread == 0 {
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), full);
        }
        self.check_twin(&query, &probed);
    }

    /// Checks that all documents with the query's own signature are found, links included. Documents with the same
    /// content must be in the order in which they were stored.
    fn check_twin(&self, query: &[u8], probed: &Probed) {
        let mut equal: Vec<(u64, Seq, Place)> = self
            .model
            .iter()
            .filter(|(_, held)| held.signature == query)
            .map(|(&place, held)| (held.content, held.seq, place))
            .collect();
        equal.sort_unstable();
        match &probed.twin {
            None => assert!(equal.is_empty()),
            Some(Twin { group: None, .. }) => {
                assert_eq!(
                    equal.iter().map(|equal| equal.2).collect::<Vec<_>>(),
                    [probed.twin.as_ref().unwrap().leader]
                );
            }
            Some(Twin { group: Some(group), .. }) => {
                let members = group.members();
                for content in 1..4 {
                    let wanted = equal.iter().filter(|equal| equal.0 == content).map(|equal| equal.2);
                    assert!(members.of_content(&self.world.arena, content).eq(wanted));
                }
                assert!(members.since_content(&self.world.arena, 0).eq(equal.iter().map(|equal| equal.2)));
            }
        }
    }
}

fn read(world: &World, seed: u64, stable: &[(Place, Vec<u8>)], done: &AtomicBool, lookups: &AtomicU64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut probe = Probe::default();
    while !done.load(Ordering::Relaxed) {
        let (place, signature) = &stable[rng.random_range(0..stable.len())];
        let (mut query, mut bands) = (signature.clone(), world.banding.bands());
        // The signature differs, so the document is found by its bands alone.
        if bands > 1 && rng.random() {
            (query[0], bands) = (!query[0], bands - 1);
        }
        let only = |other: Place| other == *place;
        let scope = rng.random_bool(0.5).then_some(&only as &dyn Fn(Place) -> bool);
        let (found, _) = hits(world, &world.index, &query, usize::MAX, scope, &mut probe);
        let met: Vec<Hit> = found.into_iter().filter(|hit| hit.place == *place).collect();
        if met != [Hit { place: *place, bands }] {
            done.store(true, Ordering::Relaxed);
            panic!("seed {seed}: {place:?}, which is never removed, was found as {met:?}");
        }
        if rng.random_bool(0.01) {
            fullest(&world.index, &world.arena, 5, 3, true);
            let surveyed = survey(&world.index, &world.arena, stable.iter().map(|stable| stable.0), true, 4);
            if !surveyed.missing.is_empty() {
                done.store(true, Ordering::Relaxed);
                panic!("seed {seed}: no postings in the bands {:?}", surveyed.missing);
            }
        }
        lookups.fetch_add(1, Ordering::Relaxed);
    }
}

/// Resizes shards until `done` is set. Returns how many were resized.
fn resize(world: &World, done: &AtomicBool) -> u64 {
    let mut resized = 0;
    while !done.load(Ordering::Relaxed) {
        match world.index.resize_next(&world.arena) || world.ids.resize_next(&world.arena) {
            true => resized += 1,
            false => std::thread::yield_now(),
        }
    }
    resized
}

/// Runs a plan. Returns how many shards were resized by the thread that does nothing else.
fn run(seed: u64, plan: Plan) -> u64 {
    let banding = Banding::new(plan.bands, plan.rows, SHAPE).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let pool: Vec<Vec<u8>> = (0..20).map(|_| signature(&mut rng, plan.families, &[])).collect();
    let index = BandTables::new(banding, SHAPE, Seed::fixed(seed));
    let world = World { arena: Arena::new(SHAPE), index, ids: IdIndex::new(6, Seed::of_process()), banding };
    let (model, stable) = (Model::new(), BTreeSet::new());
    let (free, next, probe) = (Vec::new(), None, Probe::default());
    let mut writer = Writer { world: &world, rng, plan, pool, model, stable, free, places: 0, seq: 0, next, probe };
    // Inserts leaders that will be removed, then stable documents, then more documents that will be removed.
    for round in 0..3 {
        for signature in writer.pool.clone() {
            let place = writer.insert(signature, true);
            if round == 1 {
                writer.stable.insert(place);
            }
        }
    }
    let stable: Vec<(Place, Vec<u8>)> =
        writer.stable.iter().map(|place| (*place, writer.model[place].signature.clone())).collect();
    let (done, lookups) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut resized = 0;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (world, stable, done, lookups) = (&world, &stable, &done, &lookups);
                scope.spawn(move || read(world, seed ^ (77 + reader), stable, done, lookups))
            })
            .collect();
        let resizes = scope.spawn(|| resize(&world, &done));
        let wrote = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            writer.work();
            for place in writer.model.keys().copied().collect::<Vec<_>>() {
                if !writer.stable.contains(&place) {
                    writer.remove(place);
                }
            }
            writer.check(&world.index);
        }));
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap_or_else(|stopped| std::panic::resume_unwind(stopped));
        }
        resized += resizes.join().unwrap_or_else(|stopped| std::panic::resume_unwind(stopped));
        wrote.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped));
    });
    assert!(lookups.into_inner() > 0);
    for place in writer.model.keys().copied().collect::<Vec<_>>() {
        writer.remove(place);
    }
    assert_eq!(world.index.postings(&world.arena), 0);
    resized
}

#[test]
fn lookups_find_stable_documents_while_others_change() {
    let mut resized = 0;
    for (seed, (bands, rows, families, most, steps)) in [
        (12, 5, 4, 1200, 3000),
        (6, 10, 40, 1200, 3000),
        (64, 1, 200, 400, 3000),
        (31, 2, 3, 800, 3000),
        (2, 32, 250, 1200, 3000),
        (1, 64, 5, 800, 3000),
        // There are so many different keys that shards grow and shrink.
        (2, 32, 250, 2500, 9000),
    ]
    .into_iter()
    .enumerate()
    {
        resized += run(seed as u64, Plan { bands, rows, families, most, steps });
    }
    assert!(resized > 0, "no shard was ever due");
}

/// The bug: tables used a constant as the seed of their keys. Therefore clients could craft signatures whose keys
/// shared a shard, bucket and tag. Each lookup, and each insertion under the decision lock, looked at all of them.
#[test]
fn crafted_signatures_do_not_meet_in_a_bucket() {
    let inverse =
        |factor: u64| (0..6).fold(factor, |x: u64, _| x.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(x))));
    let unmix = |mut hash: u64| {
        for factor in [0xc4ce_b9fe_1a85_ec53, 0xff51_afd7_ed55_8ccd] {
            hash ^= hash >> 33;
            hash = hash.wrapping_mul(inverse(factor));
        }
        hash ^ hash >> 33
    };
    assert_eq!(hapax_core::fmix64(unmix(12_345)), 12_345);
    let shape = SignatureShape { k: 256, bits: 8 };
    let banding = Banding::new(31, 8, shape).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut crafted = |number: u64| -> Vec<u8> {
        let word = |band: u64| match band {
            31 => rng.random(),
            // A key has 20 constant upper bits, then 24 bits that vary, then 20 constant lower bits.
            _ => {
                unmix(0x7_7777 << 44 | ((number * 0x9E37_79B9 + band * 77) & 0xFF_FFFF) << 20 | 0x3_3333)
                    ^ 0x6861_7061_7821
            }
        };
        (0..32).map(word).collect::<Vec<u64>>().iter().flat_map(|word| word.to_ne_bytes()).collect()
    };
    let (arena, index) = (Arena::new(shape), BandTables::new(banding, shape, Seed::of_process()));
    for number in 0..4000 {
        let signature = crafted(number);
        let entry = Entry {
            seq: Seq(number + 1),
            id_fingerprint: number,
            content: 0,
            linked: false,
            signature: &signature,
            labels: LabelSet::NONE,
            last_seen: TimestampMs(0),
        };
        arena.publish(Place(number as u32), entry);
        index.insert(&arena, Place(number as u32), true);
    }
    let mut probe = Probe::default();
    let probed = probe.all_bands(&index, &arena, &crafted(1 << 23), 64, None);
    assert_eq!((probed.hits.len(), probed.unread), (0, 0));
    assert!(probe.looked_at() < 31 * 8, "{} postings were looked at", probe.looked_at());
}

/// The bug: when the leader of a large group was removed, each lookup in the collection started again. It started once
/// more for each further member that was removed.
#[test]
fn lookups_of_others_go_on_while_a_group_changes_hands() {
    const EQUALS: u32 = 30_000;
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let [common, other]: [Vec<u8>; 2] = std::array::from_fn(|_| (0..SHAPE.bytes()).map(|_| rng.random()).collect());
    let banding = Banding::new(12, 5, SHAPE).unwrap();
    let (arena, index) = (Arena::new(SHAPE), BandTables::new(banding, SHAPE, Seed::fixed(1)));
    for place in 0..EQUALS {
        let signature = if place == 0 { &other } else { &common };
        let (seq, id_fingerprint) = (Seq(u64::from(place) + 1), u64::from(place));
        arena.publish(
            Place(place),
            Entry {
                seq,
                id_fingerprint,
                content: 0,
                linked: false,
                signature,
                labels: LabelSet::NONE,
                last_seen: TimestampMs(0),
            },
        );
        index.insert(&arena, Place(place), true);
    }
    let lookups = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let left = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut probe = Probe::default();
            while !done.load(Ordering::Relaxed) {
                let twin = &probe.all_bands(&index, &arena, &other, 64, None).twin;
                assert_eq!(twin.as_ref().map(|twin| twin.leader), Some(Place(0)));
                lookups.fetch_add(1, Ordering::Relaxed);
            }
        });
        while lookups.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // Removes the leader each time, without a pause: a lookup that had to start again would never end.
        let from = lookups.load(Ordering::Relaxed);
        let mut left = EQUALS - 1;
        let mut probe = Probe::default();
        while left > 0 && lookups.load(Ordering::Relaxed) < from + 100 {
            let twin = &probe.all_bands(&index, &arena, &common, 1, None).twin;
            let leader = twin.as_ref().expect("the other members are still there").leader;
            index.remove(&arena, leader);
            arena.free(leader);
            left -= 1;
        }
        done.store(true, Ordering::Relaxed);
        left
    });
    assert!(left > 0, "only {} lookups ended while the group was removed", lookups.into_inner());
}
