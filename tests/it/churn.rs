//! The memory of deleted and replaced documents is reused.

use std::time::Duration;

use hapax::index::{Entry, Index, IndexOptions, LabelSet, Place};
use hapax::types::{Seq, TimestampMs};
use hapax_core::{Banding, SignatureShape, SplitMix64};

const SHAPE: SignatureShape = SignatureShape { k: 128, bits: 8 };
const ROUNDS: u64 = 10;

struct Churned {
    index: Index,
    random: SplitMix64,
    seq: u64,
}

impl Churned {
    fn new() -> Self {
        let banding = Banding::new(21, 6, SHAPE).unwrap();
        let options = IndexOptions { shape: SHAPE, banding, id_fingerprint_bits: 64, seed: None };
        Self { index: Index::new(&options), random: SplitMix64::new(7), seq: 0 }
    }

    /// Inserts a document that shares bands with earlier ones: three in ten are similar to one of a few thousand.
    fn insert(&mut self) -> Place {
        self.seq += 1;
        let like = self.random.next_u64();
        let mut words = if like % 10 < 3 { SplitMix64::new(like >> 32 & 0xFFF) } else { SplitMix64::new(like) };
        let mut signature: Vec<u8> = (0..16).flat_map(|_| words.next_u64().to_le_bytes()).collect();
        for _ in 0..8 {
            let change = self.random.next_u64();
            signature[change as usize % 128] = (change >> 32) as u8;
        }
        let id_fingerprint = self.random.next_u64();
        let entry = Entry {
            seq: Seq(self.seq),
            id_fingerprint,
            content: 1,
            linked: false,
            signature: &signature,
            labels: LabelSet::NONE,
            last_seen: TimestampMs(0),
        };
        self.index.enter(entry).expect("there is room")
    }

    fn bytes(&self) -> u64 {
        let bytes = self.index.bytes();
        bytes.postings + bytes.ids
    }
}

/// Returns the bytes after each round. A round deletes half of the documents and inserts as many others.
fn churn(documents: u32, bytes: impl Fn(&Churned) -> u64) -> Vec<u64> {
    let mut churned = Churned::new();
    let mut places: Vec<Place> = (0..documents).map(|_| churned.insert()).collect();
    let mut round = || {
        let (gone, stay): (Vec<Place>, _) =
            std::mem::take(&mut places).into_iter().partition(|_| churned.random.next_u64().is_multiple_of(2));
        places = stay;
        for &place in &gone {
            churned.index.withdraw(place);
        }
        places.extend(gone.iter().map(|_| churned.insert()));
        bytes(&churned)
    };
    (0..ROUNDS).map(|_| round()).collect()
}

fn ends_where_it_began(rounds: &[u64]) {
    let (first, last) = (rounds[0] as f64, rounds[rounds.len() - 1] as f64);
    assert!((last / first - 1.0).abs() < 0.1, "{rounds:?}");
}

#[test]
fn ten_rounds_take_no_more_than_the_first() {
    ends_where_it_began(&churn(20_000, Churned::bytes));
}

/// Measures the resident memory that the system reports.
#[test]
#[ignore = "many documents, and a process of its own, are for `make churn`"]
fn ten_rounds_of_many_leave_the_process_as_large() {
    let documents = std::env::var("HAPAX_CHURN_DOCUMENTS").map_or(1_000_000, |documents| documents.parse().unwrap());
    let resident = |_: &Churned| {
        std::thread::sleep(Duration::from_millis(10));
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells how large a process is");
        statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("resident pages") * 4096
    };
    let rounds = churn(documents, resident);
    println!("MB resident after each round: {:?}", rounds.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>());
    ends_where_it_began(&rounds);
}
