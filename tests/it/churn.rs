//! Deletes and replacements give memory back, to be used again.

use std::time::Duration;

use hapax::index::{Arena, BandIndex, Entry, IdIndex};
use hapax::types::{Seq, Slot, TimestampMs};
use hapax_core::{Banding, SignatureShape, SplitMix64};

const SHAPE: SignatureShape = SignatureShape { k: 128, bits: 8 };
const ROUNDS: u64 = 10;

struct Index {
    arena: Arena,
    bands: BandIndex,
    ids: IdIndex,
    random: SplitMix64,
    seq: u64,
}

impl Index {
    fn new() -> Self {
        let bands = BandIndex::new(Banding::new(21, 6, SHAPE).unwrap(), SHAPE);
        let ids = IdIndex::with_fingerprint_bits(64);
        Self { arena: Arena::new(SHAPE), bands, ids, random: SplitMix64::new(7), seq: 0 }
    }

    /// A document that shares bands with some of those before it: three in ten are like one of a few thousand.
    fn insert(&mut self, slot: Slot) {
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
            last_seen: TimestampMs(0),
        };
        self.arena.publish(slot, entry);
        self.bands.insert(&self.arena, slot, true);
        self.ids.insert(&self.arena, slot);
    }

    fn remove(&mut self, slot: Slot) {
        self.bands.remove(&self.arena, slot);
        self.ids.remove(&self.arena, slot);
        self.arena.free(slot);
    }

    fn bytes(&self) -> u64 {
        self.bands.bytes() + self.ids.bytes()
    }
}

/// Bytes after each round of deleting half of the documents and inserting as many others.
fn churn(documents: u32, bytes: impl Fn(&Index) -> u64) -> Vec<u64> {
    let mut index = Index::new();
    (0..documents).map(Slot).for_each(|slot| index.insert(slot));
    let round = |index: &mut Index| {
        let gone: Vec<Slot> = (0..documents).map(Slot).filter(|_| index.random.next_u64().is_multiple_of(2)).collect();
        gone.iter().for_each(|&slot| index.remove(slot));
        gone.into_iter().for_each(|slot| index.insert(slot));
        bytes(index)
    };
    (0..ROUNDS).map(|_| round(&mut index)).collect()
}

fn ends_where_it_began(rounds: &[u64]) {
    let (first, last) = (rounds[0] as f64, rounds[rounds.len() - 1] as f64);
    assert!((last / first - 1.0).abs() < 0.1, "{rounds:?}");
}

#[test]
fn ten_rounds_take_no_more_than_the_first() {
    ends_where_it_began(&churn(20_000, Index::bytes));
}

/// As the system sees it.
#[test]
#[ignore = "a million documents, and a process of its own, are for `make churn`"]
fn ten_rounds_of_a_million_leave_the_process_as_large() {
    let resident = |_: &Index| {
        std::thread::sleep(Duration::from_millis(10));
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells how large a process is");
        statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("resident pages") * 4096
    };
    let rounds = churn(1_000_000, resident);
    println!("MB resident after each round: {:?}", rounds.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>());
    ends_where_it_began(&rounds);
}
