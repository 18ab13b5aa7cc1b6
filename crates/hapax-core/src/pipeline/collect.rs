//! Collects shingles and canonical text while a text is signed.

/// The things to keep of a text while it is signed. Their memory grows with the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collect {
    /// Whether to keep its shingle hashes.
    pub shingles: bool,
    /// Whether to keep its canonical text.
    pub canonical: bool,
}

/// The shingles and canonical text of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// All shingle hashes, in no order; some may be repeated.
    pub shingles: Vec<u64>,
    /// The canonical text, in UTF-8.
    pub canonical: Vec<u8>,
}

/// The things kept so far.
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
        /// Repeats are dropped each time that this many new shingles, or twice as many as were left, have been added.
        const REPEATS_MIN: usize = 1 << 16;
        let Self { collect, collected, distinct } = self;
        if collect.canonical {
            collected.canonical.extend_from_slice(canonical);
        }
        if collect.shingles {
            collected.shingles.extend_from_slice(shingles);
            if collected.shingles.len() >= REPEATS_MIN.max(2 * *distinct) {
                // The first part is sorted already: a stable sort finds and merges it.
                collected.shingles.sort();
                collected.shingles.dedup();
                *distinct = collected.shingles.len();
            }
        }
    }

    /// Takes the collected things; a second call returns nothing.
    pub(super) fn take(&mut self) -> Collected {
        std::mem::take(&mut self.collected)
    }
}
