//! The items of a containment collection, in memory: those that are on disk. In: items as they become durable, and the
//! hashes of the tokens of a text. Out: the items that the text contains. Knows no ids and no texts.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::grams::{FoundGrams, GramIndex, GramSize, ItemGrams, LookupScratch, Overlap, Passages, passages};
use crate::store::{Change, Flaw};
use crate::types::{Payload, Seq};
use crate::verdicts::{OverlappingItem, unpacked_grams};

/// The tokens of a text that are looked up before changes of the items get their turn.
const PART_TOKENS: usize = 1 << 15;
/// How often a long text is looked up part by part, until the items do not change meanwhile.
const ATTEMPTS: usize = 4;

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
    /// The number of changes so far.
    changes: u64,
}

/// An item with n-grams that a text has.
struct SharedItem {
    seq: Seq,
    overlap: Overlap,
    item: Arc<ItemGrams>,
}

/// A text that is looked up, and the n-grams that were found so far.
struct Text<'a> {
    tokens: &'a [u64],
    scratch: LookupScratch,
    grams: FoundGrams,
}

impl Text<'_> {
    fn collect(&mut self, grams: &GramIndex, part: Range<usize>) {
        grams.collect(self.tokens, part, &mut self.scratch, &mut self.grams);
    }
}

/// An item that a text contains.
pub(crate) struct FoundItem {
    pub seq: Seq,
    pub overlap: Overlap,
    /// The passages of the text that the item has, as numbers of tokens.
    pub passages: Passages,
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
        let indexed = Indexed { grams, numbers: HashMap::new(), seqs: Vec::new(), free: Vec::new(), changes: 0 };
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
        indexed.changes += 1;
        self.bytes.store(indexed.bytes(), Ordering::Relaxed);
    }

    /// Returns the `limit` best items of which a text has at least the share `containment_min` of the n-grams. `tokens`
    /// are the hashes of the tokens of the text.
    pub(crate) fn look_up(&self, tokens: &[u64], containment_min: f64, limit: usize) -> FoundItems {
        let mut text = Text { tokens, scratch: LookupScratch::default(), grams: FoundGrams::default() };
        let mut shared = None;
        for _ in 0..ATTEMPTS {
            shared = self.shared_in_parts(&mut text, containment_min);
            if shared.is_some() {
                break;
            }
        }
        let (mut found, is_complete) = shared.unwrap_or_else(|| {
            let indexed = self.indexed.read();
            text.collect(&indexed.grams, 0..tokens.len());
            indexed.shared(&text.grams, containment_min)
        });
        found.sort_unstable_by(|a, b| a.overlap.by_containment(&b.overlap).then(a.seq.cmp(&b.seq)));
        let count = found.len();
        found.truncate(limit);
        let items: Vec<_> = found.iter().map(|found| Arc::clone(&found.item)).collect();
        let passages = passages(self.size, &items, tokens, &text.grams, OverlappingItem::SPANS_MAX);
        let best = found.into_iter().zip(passages).map(|(found, passages)| FoundItem {
            seq: found.seq,
            overlap: found.overlap,
            passages,
        });
        FoundItems { best: best.collect(), count, is_complete }
    }

    /// Looks for a part of the text at a time, so that changes of the items need not wait long. `None` if the items have
    /// changed meanwhile.
    fn shared_in_parts(&self, text: &mut Text<'_>, containment_min: f64) -> Option<(Vec<SharedItem>, bool)> {
        let mut begun = None;
        let mut part = 0..text.tokens.len().min(PART_TOKENS);
        loop {
            let indexed = self.indexed.read();
            if *begun.get_or_insert(indexed.changes) != indexed.changes {
                return None;
            }
            text.collect(&indexed.grams, part.clone());
            if part.end == text.tokens.len() {
                return Some(indexed.shared(&text.grams, containment_min));
            }
            part = part.end..text.tokens.len().min(part.end + PART_TOKENS);
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

    /// Returns the items with these n-grams, and whether none is missing.
    fn shared(&self, grams: &FoundGrams, containment_min: f64) -> (Vec<SharedItem>, bool) {
        let overlaps = self.grams.overlaps(grams, containment_min);
        let shared = |&overlap: &Overlap| SharedItem {
            seq: self.seqs[overlap.item as usize],
            overlap,
            item: Arc::clone(self.grams.item(overlap.item).expect("it was found")),
        };
        (overlaps.found().iter().map(shared).collect(), overlaps.is_complete())
    }

    fn bytes(&self) -> u64 {
        let numbers = self.numbers.capacity() * size_of::<(Seq, u32)>()
            + self.seqs.capacity() * size_of::<Seq>()
            + self.free.capacity() * size_of::<u32>();
        (self.grams.bytes() + numbers) as u64
    }
}
