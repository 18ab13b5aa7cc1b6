//! The token hashes of an item -> its distinct n-grams.

use hapax_core::{window_hash, window_hashes};

/// The fewest tokens of an item that can be found. Runs of fewer tokens are in too many unrelated texts.
pub const ITEM_TOKENS_MIN: usize = 8;
/// The most tokens of an n-gram.
const GRAM_TOKENS_MAX: usize = 32;

/// The number of tokens of an n-gram: n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GramSize(usize);

impl GramSize {
    pub const DEFAULT: Self = Self(13);

    /// Returns `None` unless the size is between 8 and 32.
    pub fn new(tokens: usize) -> Option<Self> {
        (ITEM_TOKENS_MIN..=GRAM_TOKENS_MAX).contains(&tokens).then_some(Self(tokens))
    }

    pub fn tokens(self) -> usize {
        self.0
    }
}

/// An error: the item has too few tokens to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("has {tokens} words; an item needs at least {ITEM_TOKENS_MIN} to be found")]
pub struct TooShort {
    pub tokens: usize,
}

/// The n-grams of an item. An item of fewer than n tokens is one n-gram of all its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemGrams {
    /// The number of tokens of each n-gram.
    tokens: usize,
    /// The hash of the first [`ITEM_TOKENS_MIN`] tokens, if the item has fewer than n tokens. A lookup finds such items by
    /// it, whatever their lengths are.
    start: Option<u64>,
    /// Sorted.
    hashes: Box<[u64]>,
}

impl ItemGrams {
    pub fn new(size: GramSize, token_hashes: &[u64]) -> Result<Self, TooShort> {
        let count = token_hashes.len();
        let Some(start) = token_hashes.get(..ITEM_TOKENS_MIN) else { return Err(TooShort { tokens: count }) };
        let mut hashes = Vec::new();
        window_hashes(token_hashes, size.tokens().min(count), &mut hashes);
        hashes.sort_unstable();
        hashes.dedup();
        let start = (count < size.tokens()).then(|| window_hash(start));
        Ok(Self { tokens: size.tokens().min(count), start, hashes: hashes.into() })
    }

    /// The number of tokens of each n-gram.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    pub(super) fn start(&self) -> Option<u64> {
        self.start
    }

    /// The distinct hashes, sorted.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    pub(super) fn has(&self, gram: u64) -> bool {
        self.hashes.binary_search(&gram).is_ok()
    }
}
