//! The items of a containment collection, in memory: those that are on disk. In: items as they become durable, and the
//! hashes of the tokens of a text. Out: the items that the text contains. Knows no ids and no texts.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::grams::{GramIndex, GramSize, ItemGrams, LookupScratch, Overlap, Overlaps};
use crate::store::{Change, Flaw};
use crate::types::{Payload, Seq};
use crate::verdicts::unpacked_grams;

/// The flaw of a payload that is not that of an item.
const UNDECODABLE: Flaw = "its n-grams cannot be decoded";

/// The items of a collection.
pub(crate) struct Items {
    size: GramSize,
    indexed: RwLock<Indexed>,
    /// The memory that the index takes, so that a decision need not wait for lookups to learn it.
    bytes: AtomicU64,
}

/// The index of n-grams, which knows items by small numbers.
struct Indexed {
    grams: GramIndex,
    numbers: HashMap<Seq, u32>,
    /// The item of each number. Items that are gone stay here until their number is given again.
    seqs: Vec<Seq>,
    free: Vec<u32>,
}

/// An item that a text contains.
pub(crate) struct FoundItem {
    pub seq: Seq,
    pub overlap: Overlap,
    /// The runs of tokens of the text that the item has.
    pub runs: Vec<Range<usize>>,
}

/// The items that a text contains.
pub(crate) struct FoundItems {
    /// The best ones, the best first.
    pub best: Vec<FoundItem>,
    /// The number of all of them.
    pub count: usize,
    /// Whether no item is missing.
    pub is_complete: bool,
}

impl Items {
    pub(crate) fn new(size: GramSize, items_per_gram_max: usize) -> Self {
        let grams = GramIndex::new(size, items_per_gram_max);
        let indexed = Indexed { grams, numbers: HashMap::new(), seqs: Vec::new(), free: Vec::new() };
        Self { size, indexed: RwLock::new(indexed), bytes: AtomicU64::new(0) }
    }

    /// Adds an item that is on disk. Fails if its payload is damaged.
    pub(crate) fn add(&self, seq: Seq, payload: &Payload) -> Result<(), Flaw> {
        let item = unpacked_grams(self.size, payload).ok_or(UNDECODABLE)?;
        self.change(|indexed| indexed.add(seq, item));
        Ok(())
    }

    /// Removes items that are no longer stored.
    pub(crate) fn remove(&self, seqs: impl Iterator<Item = Seq>) {
        self.change(|indexed| seqs.for_each(|seq| indexed.remove(seq)));
    }

    /// Makes changes that are on disk visible to lookups.
    pub(crate) fn publish(&self, changes: &[Change]) {
        self.change(|indexed| {
            for change in changes {
                if let Change::Delete { target, .. } | Change::Replace { target, .. } = change {
                    indexed.remove(*target);
                }
                if let Change::Insert(record) | Change::Replace { record, .. } = change
                    && let Some(payload) = &record.payload
                {
                    let item = unpacked_grams(self.size, payload).expect("the payload was made from an item");
                    indexed.add(record.seq, item);
                }
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Indexed)) {
        let mut indexed = self.indexed.write();
        change(&mut indexed);
        self.bytes.store(indexed.bytes(), Ordering::Relaxed);
    }

    /// Returns the `limit` best items of which a text has at least the share `containment_min` of the n-grams. `tokens`
    /// are the hashes of the tokens of the text.
    pub(crate) fn look_up(&self, tokens: &[u64], containment_min: f64, limit: usize) -> FoundItems {
        let indexed = self.indexed.read();
        let overlaps = indexed.grams.look_up(tokens, containment_min, &mut LookupScratch::default());
        let mut best: Vec<(Overlap, Seq)> =
            overlaps.found().iter().map(|&overlap| (overlap, indexed.seqs[overlap.item as usize])).collect();
        best.sort_unstable_by(|a, b| a.0.by_containment(&b.0).then(a.1.cmp(&b.1)));
        best.truncate(limit);
        let found = |(overlap, seq)| indexed.found(&overlaps, overlap, seq);
        FoundItems {
            best: best.into_iter().map(found).collect(),
            count: overlaps.found().len(),
            is_complete: overlaps.is_complete(),
        }
    }

    /// Returns how much memory the items take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Indexed {
    fn add(&mut self, seq: Seq, item: ItemGrams) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.seqs.push(seq);
            (self.seqs.len() - 1) as u32
        });
        self.seqs[number as usize] = seq;
        self.numbers.insert(seq, number);
        self.grams.insert(number, item);
    }

    fn remove(&mut self, seq: Seq) {
        if let Some(number) = self.numbers.remove(&seq) {
            self.grams.remove(number);
            self.free.push(number);
        }
    }

    fn found(&self, overlaps: &Overlaps, overlap: Overlap, seq: Seq) -> FoundItem {
        FoundItem { seq, overlap, runs: self.grams.runs(overlaps, overlap.item) }
    }

    fn bytes(&self) -> u64 {
        let numbers = self.numbers.capacity() * size_of::<(Seq, u32)>()
            + self.seqs.capacity() * size_of::<Seq>()
            + self.free.capacity() * size_of::<u32>();
        (self.grams.bytes() + numbers) as u64
    }
}
