//! The n-grams of all items, and a lookup of the items that a text contains.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use hapax_core::{window_hash, window_hashes};
use slab::Slab;

use super::filter::Filter;
use super::item::{GramSize, ITEM_TOKENS_MIN, ItemGrams};
use super::overlaps::{Overlap, Overlaps};

/// Marks a posting that is the number of a list.
const LIST: u32 = 1 << 31;

/// The items, each with a number that its owner has chosen. The numbers should be dense.
pub struct GramIndex {
    size: GramSize,
    /// The number of items that are read of one n-gram.
    items_per_gram_max: usize,
    items: Vec<Option<Arc<ItemGrams>>>,
    /// The number of all distinct n-grams of all items.
    hashes: usize,
    postings: HashMap<u64, Posting, BuildHasherDefault<Unmixed>>,
    lists: Slab<Vec<u32>>,
    /// The number of entries of all lists.
    listed: usize,
    /// The n-grams of n tokens.
    long: Filter,
    /// The beginnings of the items of fewer than n tokens.
    starts: Filter,
    /// The number of items with fewer than n tokens, by their numbers of tokens.
    short: Vec<usize>,
}

/// The memory of an item without its n-grams: its own, and the counts of its owners.
const ITEM_BYTES: usize = size_of::<ItemGrams>() + 2 * size_of::<usize>();

/// The items with an n-gram: the number of the only one, or the number of a list.
#[derive(Clone, Copy)]
struct Posting(u32);

/// The distinct n-grams of a text that are in an index.
#[derive(Default)]
pub struct FoundGrams(HashSet<u64, BuildHasherDefault<Unmixed>>);

impl FoundGrams {
    pub(super) fn has(&self, gram: u64) -> bool {
        self.0.contains(&gram)
    }
}

/// The hasher of values that are hashes already.
#[derive(Default)]
pub(super) struct Unmixed(u64);

impl Hasher for Unmixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers of 64 bits")
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The buffers of a lookup, kept from one text to the next.
#[derive(Default)]
pub struct LookupScratch {
    windows: Vec<u64>,
    places: Vec<u32>,
}

impl GramIndex {
    /// The number of items that are read of one n-gram, unless another number is given. Such an n-gram is boilerplate of the
    /// items, such as the instructions before each question.
    pub const ITEMS_PER_GRAM_MAX: usize = 1_000;

    /// Of each n-gram, only the `items_per_gram_max` items with the lowest numbers are read.
    pub fn new(size: GramSize, items_per_gram_max: usize) -> Self {
        Self {
            size,
            items_per_gram_max,
            items: Vec::new(),
            hashes: 0,
            postings: HashMap::default(),
            lists: Slab::new(),
            listed: 0,
            long: Filter::with_room(0),
            starts: Filter::with_room(0),
            short: vec![0; size.tokens()],
        }
    }

    pub fn size(&self) -> GramSize {
        self.size
    }

    /// Adds an item. Its n-grams must have the size of the index.
    ///
    /// # Panics
    /// If the number is that of another item, or is not below 2^31.
    pub fn insert(&mut self, item: u32, grams: ItemGrams) {
        assert!(item < LIST, "numbers are below 2^31");
        let at = item as usize;
        if self.items.len() <= at {
            self.items.resize_with(at + 1, || None);
        }
        assert!(self.items[at].is_none(), "item {item} is in the index");
        for &hash in grams.hashes() {
            self.post(hash, item);
        }
        self.hashes += grams.hashes().len();
        let added = match grams.start() {
            Some(start) => {
                self.short[grams.tokens()] += 1;
                self.starts.add(start)
            }
            None => grams.hashes().iter().all(|&hash| self.long.add(hash)),
        };
        self.items[at] = Some(Arc::new(grams));
        if !added {
            self.fill_filters();
        }
    }

    /// Removes an item. Returns whether it was in the index.
    pub fn remove(&mut self, item: u32) -> bool {
        let Some(grams) = self.items.get_mut(item as usize).and_then(Option::take) else { return false };
        for &hash in grams.hashes() {
            self.unpost(hash, item);
        }
        self.hashes -= grams.hashes().len();
        if grams.start().is_some() {
            self.short[grams.tokens()] -= 1;
        }
        // The filters still have its hashes, until they are full. Until then, a few more n-grams pass in vain.
        true
    }

    /// Returns an item.
    pub fn item(&self, item: u32) -> Option<&Arc<ItemGrams>> {
        self.items.get(item as usize)?.as_ref()
    }

    /// Returns how much memory the index takes, in bytes.
    pub fn bytes(&self) -> usize {
        // A table has a byte of its own for each place, and at most 7 of 8 places are taken.
        let places = (self.postings.capacity() * 8).div_ceil(7);
        // A list grows by doubling.
        let lists = 2 * self.listed * size_of::<u32>();
        places * (size_of::<(u64, Posting)>() + 1)
            + self.hashes * size_of::<u64>()
            + self.items.capacity() * (size_of::<Option<Arc<ItemGrams>>>() + ITEM_BYTES)
            + self.lists.capacity() * size_of::<Vec<u32>>()
            + lists
            + self.long.bytes()
            + self.starts.bytes()
    }

    /// Returns the items of which the text with these token hashes has at least the share `containment_min` of the n-grams,
    /// and at least one n-gram; and the n-grams of the text that are in the index.
    pub fn look_up(
        &self,
        token_hashes: &[u64],
        containment_min: f64,
        scratch: &mut LookupScratch,
    ) -> (Overlaps, FoundGrams) {
        let mut grams = FoundGrams::default();
        self.collect(token_hashes, 0..token_hashes.len(), scratch, &mut grams);
        (self.overlaps(&grams, containment_min), grams)
    }

    /// Adds the n-grams that are in the index and begin in a part of the text.
    pub fn collect(
        &self,
        token_hashes: &[u64],
        part: Range<usize>,
        scratch: &mut LookupScratch,
        grams: &mut FoundGrams,
    ) {
        self.collect_long(token_hashes, part.clone(), scratch, grams);
        self.collect_short(token_hashes, part, scratch, grams);
    }

    /// Returns the items with these n-grams.
    pub fn overlaps(&self, grams: &FoundGrams, containment_min: f64) -> Overlaps {
        let (mut found, capped) = self.shared(grams);
        found.retain(|overlap| overlap.containment() >= containment_min);
        found.sort_unstable_by(Overlap::rank);
        Overlaps { found, capped }
    }

    fn collect_long(
        &self,
        token_hashes: &[u64],
        part: Range<usize>,
        scratch: &mut LookupScratch,
        grams: &mut FoundGrams,
    ) {
        let LookupScratch { windows, places } = scratch;
        window_hashes(beginning_in(token_hashes, part, self.size.tokens()), self.size.tokens(), windows);
        places.clear();
        self.long.places(windows, places);
        let found = places.iter().map(|&at| windows[at as usize]);
        grams.0.extend(found.filter(|gram| self.postings.contains_key(gram)));
    }

    /// Adds the items of fewer than n tokens.
    fn collect_short(
        &self,
        token_hashes: &[u64],
        part: Range<usize>,
        scratch: &mut LookupScratch,
        grams: &mut FoundGrams,
    ) {
        let lengths = || self.short.iter().enumerate().filter(|(_, items)| **items > 0).map(|(tokens, _)| tokens);
        if lengths().next().is_none() {
            return;
        }
        let LookupScratch { windows, places } = scratch;
        window_hashes(beginning_in(token_hashes, part.clone(), ITEM_TOKENS_MIN), ITEM_TOKENS_MIN, windows);
        places.clear();
        self.starts.places(windows, places);
        for &at in &*places {
            let rest = &token_hashes[part.start + at as usize..];
            let all = lengths().take_while(|&tokens| tokens <= rest.len()).map(|tokens| window_hash(&rest[..tokens]));
            grams.0.extend(all.filter(|gram| self.postings.contains_key(gram)));
        }
    }

    /// Returns the items that have one of these n-grams, and the number of n-grams whose items are too many.
    fn shared(&self, grams: &FoundGrams) -> (Vec<Overlap>, usize) {
        let (mut counts, mut capped) = (HashMap::<u32, usize>::new(), Vec::new());
        for &gram in &grams.0 {
            let of_gram = self.of_gram(gram);
            if of_gram.len() <= self.items_per_gram_max {
                of_gram.iter().for_each(|&item| *counts.entry(item).or_default() += 1);
            } else {
                capped.push(gram);
                for &item in &of_gram[..self.items_per_gram_max] {
                    counts.entry(item).or_default();
                }
            }
        }
        let overlap = |(item, counted)| {
            let grams = self.item(item).expect("a posting is of an item");
            let shared = counted + capped.iter().filter(|gram| grams.has(**gram)).count();
            Overlap { item, shared, grams: grams.hashes().len() }
        };
        (counts.into_iter().map(overlap).collect(), capped.len())
    }

    fn of_gram(&self, gram: u64) -> &[u32] {
        match self.postings.get(&gram) {
            None => &[],
            Some(Posting(list)) if list & LIST != 0 => &self.lists[(list & !LIST) as usize],
            Some(Posting(item)) => std::slice::from_ref(item),
        }
    }

    fn post(&mut self, hash: u64, item: u32) {
        let posting = match self.postings.entry(hash) {
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(Posting(item));
                return;
            }
            std::collections::hash_map::Entry::Occupied(taken) => taken.into_mut(),
        };
        if posting.0 & LIST == 0 {
            *posting = Posting(LIST | self.lists.insert(vec![posting.0]) as u32);
            self.listed += 1;
        }
        self.listed += 1;
        let list = &mut self.lists[(posting.0 & !LIST) as usize];
        list.insert(list.partition_point(|other| *other < item), item);
    }

    fn unpost(&mut self, hash: u64, item: u32) {
        let posting = self.postings.get_mut(&hash).expect("an item has postings");
        if posting.0 & LIST == 0 {
            self.postings.remove(&hash);
            return;
        }
        let number = (posting.0 & !LIST) as usize;
        let list = &mut self.lists[number];
        list.retain(|other| *other != item);
        self.listed -= 1;
        if let [last] = list[..] {
            *posting = Posting(last);
            self.lists.remove(number);
            self.listed -= 1;
        }
    }

    /// Makes larger filters with the hashes of all items.
    fn fill_filters(&mut self) {
        let short: usize = self.short.iter().sum();
        self.long = Filter::with_room(2 * self.hashes);
        self.starts = Filter::with_room(2 * short);
        for grams in self.items.iter().flatten() {
            let added = match grams.start() {
                Some(start) => self.starts.add(start),
                None => grams.hashes().iter().all(|&hash| self.long.add(hash)),
            };
            assert!(added, "there is room for twice as many");
        }
    }
}

/// Returns the tokens of all windows that begin in a part of a text.
fn beginning_in(token_hashes: &[u64], part: Range<usize>, window: usize) -> &[u64] {
    &token_hashes[part.start..token_hashes.len().min(part.end + window - 1)]
}
