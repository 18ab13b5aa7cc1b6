//! Collects shingles and canonical text while a text is signed.

/// The data to keep of a text while it is signed. It takes memory in proportion to the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collect {
    /// Whether to keep the shingle hashes of the text.
    pub shingles: bool,
    /// Whether to keep the canonical text.
    pub canonical: bool,
}

/// The shingles and canonical text of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// All shingle hashes, in no order; some may be repeated.
    pub shingles: Vec<u64>,
    /// The hashes of all tokens, in order, if the text has fewer tokens than a shingle; else empty.
    pub short: Vec<u64>,
    /// The canonical text, in UTF-8.
    pub canonical: Vec<u8>,
}

/// The data kept so far.
#[derive(Default)]
pub(super) struct Collector {
    collect: Collect,
    collected: Collected,
    /// The number of shingles after repeats were last dropped.
    distinct: usize,
}

impl Collector {
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// Chooses what is kept from now on.
    pub(super) fn keep(&mut self, collect: Collect) {
        self.collect = collect;
    }

    pub(super) fn add(&mut self, canonical: &[u8], shingles: &[u64]) {
        /// Repeats are dropped if there are at least this many shingles, and at least twice as many as after repeats
        /// were last dropped.
        const REPEATS_MIN: usize = 1 << 16;
        let Self { collect, collected, distinct } = self;
        if collect.canonical {
            collected.canonical.extend_from_slice(canonical);
        }
        if collect.shingles {
            collected.shingles.extend_from_slice(shingles);
            if collected.shingles.len() >= REPEATS_MIN.max(2 * *distinct) {
                // The first part is sorted already, and a stable sort makes use of that.
                collected.shingles.sort();
                collected.shingles.dedup();
                *distinct = collected.shingles.len();
            }
        }
    }

    /// Adds the hashes of the tokens of a text that has fewer of them than a shingle.
    pub(super) fn add_short(&mut self, hashes: &[u64]) {
        if self.collect.shingles {
            self.collected.short.extend_from_slice(hashes);
        }
    }

    /// Takes the collected data; a second call returns nothing.
    pub(super) fn take(&mut self) -> Collected {
        std::mem::take(&mut self.collected)
    }
}
