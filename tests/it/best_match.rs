//! A verdict names the best match, not the first one that is found. For any content of the buckets, the answer lists
//! exactly the documents that come first when brute force compares all candidates.

use std::collections::HashSet;

use hapax::collections::{CheckOptions, InsertOptions, Settings};
use hapax::types::{CollectionName, Content, OnDuplicate, OnExisting};
use hapax_core::{Banding, SignatureShape, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::documents::{check, insert, look, options};
use crate::support::library;

const SHAPE: SignatureShape = SignatureShape { k: 64, bits: 8 };
const BANDS: usize = 12;
const ROWS: usize = 5;
const DOCUMENTS: usize = 400;

fn content(bytes: &[u8]) -> Content {
    Content::Signature { bytes: bytes.to_vec(), fingerprint: None, text: None }
}

/// Makes a signature that agrees with `other` in a random share of its slots.
fn like(rng: &mut ChaCha8Rng, other: &[u8]) -> Vec<u8> {
    let share = rng.random_range(0.3..1.0);
    other.iter().map(|&slot| if rng.random_bool(share) { slot } else { rng.random() }).collect()
}

fn matching(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

fn share_a_band(a: &[u8], b: &[u8]) -> bool {
    (0..BANDS).any(|band| a[band * ROWS..][..ROWS] == b[band * ROWS..][..ROWS])
}

#[tokio::test]
async fn the_first_matches_are_those_of_brute_force() {
    let seed = library::seed();
    for round in 0..10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed + round);
        let dir = library::dir();
        let collections = library::open(library::config(&dir));
        let spec = Spec::parse("hapax1;external:best:64x8").unwrap();
        let settings = Settings::new(spec, Banding::new(BANDS as u32, ROWS as u32, SHAPE).unwrap(), 0.5);
        let (collection, _) = collections.create(CollectionName::new("best").unwrap(), settings).await.unwrap();
        let heart: Vec<u8> = (0..SHAPE.bytes()).map(|_| rng.random()).collect();
        let mut documents: Vec<Vec<u8>> = Vec::new();
        for number in 0..DOCUMENTS {
            // Some signatures are equal to others, and a few are unlike all others.
            let signature = match rng.random_range(0..10) {
                0 if number > 0 => documents[rng.random_range(0..number)].clone(),
                1 => (0..SHAPE.bytes()).map(|_| rng.random()).collect(),
                _ => like(&mut rng, &heart),
            };
            let options = InsertOptions { limit: 1, ..options(OnDuplicate::Store, OnExisting::Conflict) };
            insert(&collection, format!("{number}"), content(&signature), options).await.unwrap();
            documents.push(signature);
        }
        for _ in 0..20 {
            let query = like(&mut rng, &heart);
            let (limit, threshold) = (rng.random_range(1..40), rng.random_range(0.2..0.9));
            let least = hapax_core::verify::matching_min(threshold, SHAPE) as usize;
            let mut expected: Vec<(usize, usize)> = documents
                .iter()
                .enumerate()
                .filter(|(_, held)| share_a_band(held, &query) && matching(held, &query) >= least)
                .map(|(number, held)| (SHAPE.k as usize - matching(held, &query), number))
                .collect();
            expected.sort_unstable();
            // Documents with equal signatures are compared as one.
            let candidates: HashSet<&Vec<u8>> = documents.iter().filter(|held| share_a_band(held, &query)).collect();

            let options = CheckOptions { threshold: Some(threshold), ..look(limit) };
            let verdict = check(&collection, content(&query), options).await.unwrap();
            let found: Vec<String> = verdict.matches.iter().map(|found| found.id.as_str().to_owned()).collect();
            let wanted: Vec<String> = expected.iter().take(limit).map(|(_, number)| number.to_string()).collect();
            assert_eq!(found, wanted, "seed {seed}, round {round}");
            assert_eq!((verdict.candidates as usize, verdict.unread), (candidates.len(), 0));
        }
        library::close(collections).await;
    }
}
