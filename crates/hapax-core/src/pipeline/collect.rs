//! Collects shingles and canonical text while a text is signed.

/// What to keep of a text while it is signed. It takes memory as long as the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collect {
    /// Its shingle hashes.
    pub shingles: bool,
    /// Its canonical text.
    pub canonical: bool,
}

/// The shingles and canonical text of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Shingle hashes, all of them, in no order, some of them more than once.
    pub shingles: Vec<u64>,
    /// The canonical text, in UTF-8.
    pub canonical: Vec<u8>,
}

/// What has been kept so far.
#[derive(Default)]
pub(super) struct Collector {
    collect: Collect,
    collected: Collected,
    /// Shingles after the last time that repeats were dropped.
    distinct: usize,
}

impl Collector {
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// What to keep from now on.
    pub(super) fn keep(&mut self, collect: Collect) {
        self.collect = collect;
    }

    pub(super) fn add(&mut self, canonical: &[u8], shingles: &[u64]) {
        /// Repeats are dropped each time this many, or twice as many as were left, have come together.
        const REPEATS_MIN: usize = 1 << 16;
        let Self { collect, collected, distinct } = self;
        if collect.canonical {
            collected.canonical.extend_from_slice(canonical);
        }
        if collect.shingles {
            collected.shingles.extend_from_slice(shingles);
            if collected.shingles.len() >= REPEATS_MIN.max(2 * *distinct) {
                // The first part is sorted: a stable sort finds that, and merges.
                collected.shingles.sort();
                collected.shingles.dedup();
                *distinct = collected.shingles.len();
            }
        }
    }

    /// Takes what was collected; a second call finds nothing.
    pub(super) fn take(&mut self) -> Collected {
        std::mem::take(&mut self.collected)
    }
}
