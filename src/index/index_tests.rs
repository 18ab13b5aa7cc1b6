//! The whole index, through its public functions.

use std::collections::HashSet;

use hapax_core::{Banding, SignatureShape};
use parking_lot::Mutex;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

pub(super) const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
pub(super) const BOUNDS: Bounds =
    Bounds { bucket_read_max: usize::MAX, candidates_max: usize::MAX, listed_max: LISTED_MAX };
pub(super) const NEVER: TimestampMs = TimestampMs(0);

pub(super) fn banding(bands: u32, rows: u32) -> Banding {
    Banding::new(bands, rows, SHAPE).unwrap()
}

pub(super) fn index() -> Index {
    Index::new(&IndexOptions { shape: SHAPE, banding: banding(12, 5), id_fingerprint_bits: 6, seed: Some(1) })
}

/// Makes a signature of one of a few families, so that documents share bands. Some signatures are equal.
pub(super) fn signature(rng: &mut impl Rng) -> Vec<u8> {
    let family = rng.random_range(0..4_u8);
    let noise = [0.0, 0.05, 0.3][rng.random_range(0..3)];
    (0..SHAPE.bytes()).map(|_| if rng.random_bool(noise) { rng.random() } else { family }).collect()
}

pub(super) fn matching_slots(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as u32
}

fn found(search: Result<Search, NeedsDisk>) -> Vec<Candidate> {
    let Ok(search) = search;
    search.found
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

/// The claim of documents covers the bytes that they take, and a removal returns the bytes that an insertion claimed.
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
    index.gone(places, vec![]);
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
