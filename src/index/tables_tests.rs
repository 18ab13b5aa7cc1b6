//! The tables and the rows of the index, one by one, against plain maps.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use hapax_core::{Banding, SignatureShape};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::arena::{Arena, Entry, Occupant};
use super::band_tables::BandTables;
use super::bucket_reads::{GroupHit, Hit, Probe, Probed};
use super::fullest::fullest;
use super::ids::IdIndex;
use super::labels::LabelSet;
use super::memory::ENTRY_BYTES_TENTHS;
use super::place::Place;
use super::pool::Pool;
use super::seed::Seed;
use super::shard::Keys;
use super::survey::{Survey, survey};
use super::table::Table;
use super::view::View;
use crate::types::{Seq, TimestampMs};

const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };

fn banding() -> Banding {
    Banding::new(12, 5, SHAPE).unwrap()
}

fn entry(seq: u64, signature: &[u8]) -> Entry<'_> {
    Entry {
        seq: Seq(seq),
        id_fingerprint: seq,
        content: seq,
        linked: false,
        signature,
        labels: LabelSet::NONE,
        last_seen: TimestampMs(0),
    }
}

/// Makes a signature with few distinct values per row, so that keys collide often. Some signatures are equal.
fn signature(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let family = rng.random_range(0..4_u8);
    let noise = if rng.random_bool(0.1) { 0.0 } else { 0.1 };
    (0..SHAPE.bytes()).map(|_| if rng.random_bool(noise) { rng.random() } else { family }).collect()
}

/// Returns the findings of a probe, with all members of groups among the hits.
fn probe(index: &BandTables, arena: &Arena, signature: &[u8], per_key_max: usize) -> Probed {
    let mut probe = std::mem::take(Probe::default().all_bands(index, arena, signature, per_key_max, None));
    for GroupHit { bands, group, .. } in std::mem::take(&mut probe.groups) {
        probe.hits.extend(group.members().found().map(|place| Hit { place, bands }));
    }
    if let Some(twin) = &probe.twin {
        let bands = index.bands().banding().bands();
        match &twin.group {
            Some(group) => probe.hits.extend(group.members().found().map(|place| Hit { place, bands })),
            None if twin.alone_findable => probe.hits.push(Hit { place: twin.leader, bands }),
            None => {}
        }
    }
    probe
}

/// Returns the number of bands that two signatures share.
fn shared(a: &[u8], b: &[u8]) -> u32 {
    (0..12).filter(|band| a[band * 5..][..5] == b[band * 5..][..5]).count() as u32
}

/// Makes an arena and an index of some signatures, place by place.
fn filled(signatures: &[Vec<u8>]) -> (Arena, BandTables) {
    let (arena, index) = (Arena::new(SHAPE), BandTables::new(banding(), SHAPE, Seed::fixed(1)));
    for (place, signature) in signatures.iter().enumerate() {
        arena.publish(Place(place as u32), entry(place as u64 + 1, signature));
        index.insert(&arena, Place(place as u32), true);
    }
    (arena, index)
}

#[test]
fn probes_agree_with_a_plain_map_through_inserts_and_removals() {
    let mut rng = ChaCha8Rng::seed_from_u64(42);
    let arena = Arena::new(SHAPE);
    let index = BandTables::new(banding(), SHAPE, Seed::fixed(1));
    let mut model: BTreeMap<Place, Vec<u8>> = BTreeMap::new();
    for seq in 1..4000 {
        // Grows, shrinks, and grows again.
        let removes = if (1500..3000).contains(&seq) { 0.6 } else { 0.3 };
        if rng.random_bool(removes) && !model.is_empty() {
            let place = *model.keys().nth(rng.random_range(0..model.len())).unwrap();
            model.remove(&place);
            index.remove(&arena, place);
            arena.free(place);
        } else {
            let place = (0..).map(Place).find(|place| !model.contains_key(place)).unwrap();
            let signature = signature(&mut rng);
            arena.publish(place, entry(seq, &signature));
            index.insert(&arena, place, true);
            model.insert(place, signature);
        }
        let query = signature(&mut rng);
        let probe = probe(&index, &arena, &query, usize::MAX);
        let found: BTreeSet<Hit> = probe.hits.iter().copied().collect();
        let expected: BTreeSet<Hit> = model
            .iter()
            .map(|(&place, held)| Hit { place, bands: shared(held, &query) })
            .filter(|hit| hit.bands > 0)
            .collect();
        assert_eq!(found, expected, "after {seq}");
        assert_eq!(probe.hits.len(), found.len(), "each place once");
        assert_eq!(probe.unread, 0);
    }
    for place in model.into_keys().collect::<Vec<_>>() {
        index.remove(&arena, place);
        arena.free(place);
    }
    assert_eq!(index.postings(&arena), 0);
}

/// The memory budget lets a collection fill up to these bytes. If the index took more after the next start, the
/// collection could not insert again.
#[test]
fn tables_that_are_built_at_once_take_no_more_than_the_budget_counts() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let arena = Arena::new(SHAPE);
    let random = |rng: &mut ChaCha8Rng| (0..SHAPE.bytes()).map(|_| rng.random()).collect::<Vec<u8>>();
    let mut places = Vec::new();
    for documents in [15_000, 21_600, 30_000, 43_200] {
        while places.len() < documents {
            let place = Place(places.len() as u32);
            arena.publish(place, entry(u64::from(place.0) + 1, &random(&mut rng)));
            places.push(place);
        }
        let index = BandTables::new(banding(), SHAPE, Seed::fixed(1));
        index.insert_all(&arena, &places, |_| true, |_| {});
        let postings = documents as u64 * u64::from(banding().bands() + 1);
        let counted = postings * ENTRY_BYTES_TENTHS / 10;
        assert!(index.bytes() <= counted, "{documents}: {:.2} bytes a posting", index.bytes() as f64 / postings as f64);
    }
}

#[test]
fn building_in_parallel_gives_the_same_buckets() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let signatures: Vec<_> = (0..5000).map(|_| signature(&mut rng)).collect();
    let (arena, one_by_one) = filled(&signatures);
    let at_once = BandTables::new(banding(), SHAPE, Seed::fixed(1));
    at_once.insert_all(&arena, &(0..5000).map(Place).collect::<Vec<_>>(), |_| true, |_| {});
    for _ in 0..100 {
        let query = signature(&mut rng);
        let hits = |index| {
            let mut hits = probe(index, &arena, &query, usize::MAX).hits;
            hits.sort();
            hits
        };
        assert_eq!(hits(&one_by_one), hits(&at_once));
    }
    assert_eq!(one_by_one.postings(&arena), at_once.postings(&arena));
    let surveyed = |index| survey(index, &arena, (0..5000).map(Place), true, 4);
    assert_eq!(surveyed(&one_by_one), surveyed(&at_once));
}

/// There are many distinct keys, so shards grow and split. All places must be found again, and must take as many bytes
/// as expected.
#[test]
fn a_large_index_finds_all_and_gives_memory_back() {
    const DOCUMENTS: u32 = 30_000;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let signatures: Vec<Vec<u8>> = (0..DOCUMENTS).map(|_| (0..SHAPE.bytes()).map(|_| rng.random()).collect()).collect();
    let (arena, index) = filled(&signatures);
    let hit = |place| Hit { place: Place(place), bands: 12 };
    for place in (0..DOCUMENTS).step_by(7) {
        assert!(probe(&index, &arena, &signatures[place as usize], 64).hits.contains(&hit(place)));
    }
    let per_posting = index.bytes() as f64 / f64::from(DOCUMENTS * 12);
    // The limits are the bytes of full tables, and of tables that have just grown.
    assert!((5.5..9.1).contains(&per_posting), "{per_posting} bytes a posting");
    for place in (0..DOCUMENTS).filter(|place| place % 10 != 0) {
        index.remove(&arena, Place(place));
        arena.free(Place(place));
    }
    while index.resize_next(&arena) {}
    for place in (0..DOCUMENTS).step_by(10) {
        assert!(probe(&index, &arena, &signatures[place as usize], 64).hits.contains(&hit(place)));
    }
    let per_posting = index.bytes() as f64 / f64::from(DOCUMENTS / 10 * 12);
    assert!(per_posting < 20.0, "{per_posting} bytes a posting");
}

#[test]
fn a_capped_bucket_says_so_and_shows_old_and_new() {
    // All signatures share the first band and nothing else.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let signatures: Vec<Vec<u8>> =
        (0..1000).map(|_| (0..SHAPE.bytes()).map(|at| if at < 5 { 3 } else { rng.random() }).collect()).collect();
    let (arena, index) = filled(&signatures);
    let probe_one = || probe(&index, &arena, &signatures[500], 64);
    let probe = probe_one();
    assert_eq!((probe.unread, probe.fullest), (1000 - 64, 1000));
    // The document is found by its other bands, whether or not it was read in the first band.
    assert!(probe.hits.iter().any(|hit| hit.place == Place(500) && hit.bands >= 11));
    assert!(probe.hits.iter().any(|hit| hit.place.0 < 20) && probe.hits.iter().any(|hit| hit.place.0 > 980));
    let read: Vec<Place> = probe.hits.iter().map(|hit| hit.place).filter(|&place| place != Place(500)).collect();
    index.remove(&arena, read[10]);
    arena.free(read[10]);
    let again = probe_one();
    assert_eq!(again.unread, 1000 - 64 - 1);
    assert!(again.hits.iter().all(|hit| hit.place != read[10]));
    assert!(again.hits.len() >= 64, "another one is read instead");
}

#[test]
fn equal_signatures_share_postings() {
    let signatures = vec![vec![3; 64]; 1000];
    let (arena, index) = filled(&signatures);
    // Most of these bytes are one page per table: twelve bands and the table of signatures.
    assert!(index.bytes() < 65_000, "{} bytes", index.bytes());
    let found = probe(&index, &arena, &signatures[0], 64);
    // One comparison decides about all 1,000 documents, so no limit on reading hides any document.
    assert_eq!((found.hits.len(), found.unread, found.fullest), (1000, 0, 1000));
    assert!(found.hits.iter().all(|hit| hit.bands == 12));
    assert!(found.hits.iter().any(|hit| hit.place.0 > 980));
    // Removes the document that has the postings, and then each document that takes over the postings.
    for place in 0..999 {
        index.remove(&arena, Place(place));
        arena.free(Place(place));
        let left = probe(&index, &arena, &signatures[0], usize::MAX);
        assert_eq!(left.hits.len(), 999 - place as usize);
    }
    index.remove(&arena, Place(999));
    assert_eq!(index.postings(&arena), 0);
}

#[test]
fn the_fullest_buckets_are_listed_with_samples() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut signatures: Vec<Vec<u8>> = (0..3000)
        .map(|at| {
            let shared = |row: usize| (row < 5 && at < 300) || ((20..25).contains(&row) && at < 100);
            (0..SHAPE.bytes()).map(|row| if shared(row) { 3 } else { rng.random() }).collect()
        })
        .collect();
    signatures.extend(vec![vec![9; 64]; 200]);
    let (arena, index) = filled(&signatures);
    let listed = fullest(&index, &arena, 14, 3, false);
    let seen: Vec<(u32, usize)> = listed.iter().map(|bucket| (bucket.band, bucket.documents)).collect();
    let mut expected = vec![(0, 300)];
    expected.extend((0..12).map(|band| (band, 200)));
    expected.push((4, 100));
    assert_eq!(seen, expected);
    assert!(listed.iter().all(|bucket| bucket.sample.len() == 3));
    assert!(listed[0].sample.iter().all(|occupant| occupant.seq <= Seq(300)));
    assert_eq!(listed[0].key, banding().key(&signatures[0], SHAPE, 0));
    let one = fullest(&index, &arena, 1, 3, true);
    assert_eq!((one.len(), one[0].documents), (1, 300));
    let tied = fullest(&index, &arena, 5, 3, true);
    assert_eq!(tied.iter().map(|bucket| bucket.documents).collect::<Vec<_>>(), [300, 200, 200, 200, 200]);
    let all = fullest(&index, &arena, 100, 3, true);
    assert!(all.len() >= 14 && all.iter().all(|bucket| bucket.documents > 1));
}

#[test]
fn a_survey_counts_documents_and_weighs_buckets_by_them() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    // Of 1,000 documents, 300 share the first band. 100 of these also share the last band. 40 other documents are
    // copies of one document.
    let mut signatures: Vec<Vec<u8>> = (0..960)
        .map(|at| {
            let shared = |row: usize| (row < 5 && at < 300) || ((55..60).contains(&row) && at < 100);
            (0..SHAPE.bytes()).map(|row| if shared(row) { 3 } else { rng.random() }).collect()
        })
        .collect();
    signatures.extend(vec![vec![9; 64]; 40]);
    let (arena, index) = filled(&signatures);
    let all = || (0..1000).map(Place);
    let seen = survey(&index, &arena, all(), true, 64);
    let expected = Survey { largest: 300, p50: 1, p99: 300, over_cap: 2, looked_up: 1000, missing: Vec::new() };
    assert_eq!(seen, expected);
    // Of the documents that do not share the first band, more than one in a hundred is a copy.
    assert_eq!(survey(&index, &arena, all().skip(300), false, 64).p99, 40);
    // Twenty copies of one of the 300 documents. They share its postings.
    for place in 1000..1020 {
        arena.publish(Place(place), entry(u64::from(place) + 1, &signatures[7]));
        index.insert(&arena, Place(place), true);
    }
    let seen = survey(&index, &arena, (0..1020).map(Place), true, 64);
    assert_eq!((seen.largest, seen.p99, seen.over_cap), (320, 320, 2));
    assert_eq!(fullest(&index, &arena, 1, 0, false)[0].documents, 320);
    assert_eq!(probe(&index, &arena, &signatures[7], usize::MAX).fullest, 320);
    // A capped lookup counts the members of the groups that it has read.
    assert!((300..=320).contains(&probe(&index, &arena, &signatures[8], 64).fullest));
    assert_eq!(survey(&index, &arena, (0..1020).map(Place), true, 299).over_cap, 1);
    assert_eq!(survey(&index, &arena, std::iter::empty(), true, 299).p50, 0);
}

#[test]
fn a_survey_notices_lost_postings() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let mut signatures: Vec<Vec<u8>> = (0..200).map(|_| (0..SHAPE.bytes()).map(|_| rng.random()).collect()).collect();
    // A group of copies, and a list of documents that share the first band.
    signatures.extend(vec![vec![9; 64]; 20]);
    signatures.extend((0..20).map(|_| (0..SHAPE.bytes()).map(|row| if row < 5 { 3 } else { rng.random() }).collect()));
    let (arena, index) = filled(&signatures);
    let missing = || survey(&index, &arena, (0..240).map(Place), true, 64).missing;
    assert!(missing().is_empty());
    index.lose(&arena, 7, Place(5));
    assert_eq!(missing(), [7]);
    index.lose(&arena, 0, Place(230));
    index.lose(&arena, 11, Place(5));
    assert_eq!(missing(), [7, 11, 0]);
    // The leader's posting serves the whole group.
    index.lose(&arena, 3, Place(200));
    assert_eq!(missing(), [[7, 11].as_slice(), &[3; 20], &[0]].concat());
    assert!(survey(&index, &arena, (6..200).map(Place), true, 64).missing.is_empty());
}

#[test]
fn shared_fingerprints_keep_every_place() {
    let (arena, ids) = (Arena::new(SHAPE), IdIndex::new(4, Seed::of_process()));
    for place in 0..500 {
        arena.publish(Place(place), entry(u64::from(place) + 1, &[0; 64]));
        ids.insert(&arena, Place(place));
    }
    for place in 0..500 {
        assert!(ids.candidates(&arena, u64::from(place) + 1).contains(&Place(place)));
    }
    for place in 0..500 {
        ids.remove(&arena, Place(place));
        assert!(!ids.candidates(&arena, u64::from(place) + 1).contains(&Place(place)));
        arena.free(Place(place));
    }
    assert!((1..=16).all(|fingerprint| ids.candidates(&arena, fingerprint).is_empty()));
}

#[test]
fn a_freed_place_reads_as_nothing_and_can_be_reused() {
    let arena = Arena::new(SHAPE);
    let mut words = vec![0; arena.words()];
    let occupant = |seq, removed, linked| Occupant { seq: Seq(seq), removed: Seq(removed), content: seq, linked };
    arena.publish(Place(5), entry(7, &[1; 64]));
    assert_eq!(arena.read(Place(5), &mut words), Some(occupant(7, 0, false)));
    assert_eq!(words, vec![0x0101_0101_0101_0101; 8]);
    arena.set_removed(Place(5), Seq(8));
    assert_eq!(arena.peek(Place(5)), Some(occupant(7, 8, false)));
    arena.free(Place(5));
    assert_eq!(arena.peek(Place(5)), None);
    arena.publish(Place(5), Entry { linked: true, ..entry(9, &[2; 64]) });
    assert_eq!(arena.peek(Place(5)), Some(occupant(9, 0, true)));
    arena.set_removed(Place(5), Seq(12));
    arena.promote(Place(5), Seq(10));
    assert!(arena.is_linked(Place(5)));
    let shown = |view: View| view.shown(&arena, Place(5), occupant(9, 12, true));
    assert_eq!(shown(View::Durable(Seq(9))), occupant(9, 12, true));
    assert_eq!([shown(View::Durable(Seq(10))), shown(View::Decided)], [occupant(9, 12, false); 2]);
    arena.unlink(Place(5));
    assert_eq!(arena.peek(Place(5)), Some(occupant(9, 12, false)));
    // A reader that read the cell before `unlink` still gets an ordinary document.
    assert_eq!(shown(View::Durable(Seq(10))), occupant(9, 12, false));
}

/// A reader never gets the signature of one document together with the `seq` of another.
#[test]
fn readers_drop_a_place_that_changes_under_them() {
    let arena = Arena::new(SHAPE);
    let rounds = 200_000_u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seq in 1..=rounds {
                arena.publish(Place(0), entry(seq, &[seq as u8; 64]));
                if seq < rounds {
                    arena.free(Place(0));
                }
            }
        });
        let mut words = vec![0; arena.words()];
        loop {
            if let Some(occupant) = arena.read(Place(0), &mut words) {
                assert_eq!(occupant.content, occupant.seq.0);
                assert!(words.iter().all(|&word| word == word.to_le_bytes()[0] as u64 * 0x0101_0101_0101_0101));
                assert_eq!(words[0] as u8, occupant.seq.0 as u8);
                if occupant.seq.0 == rounds {
                    break;
                }
            }
        }
    });
}

/// The keys of places: most keys have three places, every twentieth has twenty. Counts how many keys a table requests.
#[derive(Default)]
struct FewKeys(Cell<u64>);

impl FewKeys {
    fn of(place: Place) -> u64 {
        let few = if (place.0 / 20).is_multiple_of(20) { 20 } else { 3 };
        hapax_core::fmix64(u64::from(place.0 / few * few) + 1)
    }
}

impl Keys for FewKeys {
    fn key(&self, place: Place) -> u64 {
        self.0.update(|asked| asked + 1);
        Self::of(place)
    }

    fn order(&self, place: Place) -> Seq {
        Seq(u64::from(place.0) + 1)
    }

    fn prefetch(&self, _: Place) {}
}

/// A shard that grows, splits or shrinks moves most of its entries without computing their keys.
#[test]
fn entries_belong_where_they_are_however_a_table_grows_and_shrinks() {
    const PLACES: u32 = 100_000;
    for number in 0..4 {
        let (table, pool, keys) = (Table::new(number, 4), Pool::default(), FewKeys::default());
        let same = |place: Place| move |held: Place| FewKeys::of(held) == FewKeys::of(place);
        let tidy = || while table.resize_next(&pool, &keys) {};
        let mut shards = 0;
        for place in (0..PLACES).map(Place) {
            table.insert(&pool, FewKeys::of(place), place, same(place), &keys);
            if place.0 % 64 == 0 && number % 2 == 0 {
                tidy();
            }
            if place.0.is_power_of_two() || place.0 % 20_000 == 0 {
                let asked = keys.0.get();
                shards = table.check(&keys);
                keys.0.set(asked);
            }
        }
        assert!(shards >= 16, "{shards} shards: they were to split several times");
        // The table would request two keys per place if it moved no entry by its step.
        assert!(keys.0.get() < u64::from(PLACES) * 3 / 2, "{} keys", keys.0.get());
        let gone = |place: u32| place % 8 != 3;
        for place in (0..PLACES).filter(|&place| gone(place)).map(Place) {
            assert!(table.remove(&pool, FewKeys::of(place), place, same(place), &keys));
        }
        tidy();
        table.check(&keys);
        for place in (0..PLACES).map(Place) {
            let key = FewKeys::of(place);
            let members: Vec<Place> = table.read(key).members(key, same(place)).iter().collect();
            assert_eq!(members.contains(&place), !gone(place.0));
        }
    }
}

/// Lists that become short turn into separate entries. These need room, but the shard may be full.
#[test]
fn many_lists_that_become_short_at_once_find_room() {
    const FAMILIES: u32 = 600;
    const MEMBERS: u32 = 9;
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let hearts: Vec<Vec<u8>> = (0..FAMILIES).map(|_| (0..SHAPE.bytes()).map(|_| rng.random()).collect()).collect();
    // Members differ in the last slot, which is in no band: all their keys are equal, but their signatures differ.
    let signatures: Vec<Vec<u8>> = (0..FAMILIES * MEMBERS)
        .map(|place| {
            let mut signature = hearts[(place % FAMILIES) as usize].clone();
            signature[SHAPE.bytes() - 1] = (place / FAMILIES) as u8;
            signature
        })
        .collect();
    let (arena, index) = filled(&signatures);
    for place in 0..FAMILIES * (MEMBERS - 1) {
        index.remove(&arena, Place(place));
        arena.free(Place(place));
    }
    for place in FAMILIES * (MEMBERS - 1)..FAMILIES * MEMBERS {
        let found = probe(&index, &arena, &signatures[place as usize], 64);
        assert_eq!(found.hits, [Hit { place: Place(place), bands: 12 }]);
    }
}

#[test]
fn a_removed_place_is_no_longer_here() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let signatures: Vec<Vec<u8>> = (0..500).map(|_| signature(&mut rng)).collect();
    let (arena, index) = filled(&signatures);
    for place in (0..500).step_by(2) {
        index.remove(&arena, Place(place));
    }
    assert!((0..500).all(|place| index.here(Place(place)) == (place % 2 == 1)));
}
