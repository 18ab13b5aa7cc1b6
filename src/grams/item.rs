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
        if count < size.tokens() {
            let (start, whole) = (Some(window_hash(start)), [window_hash(token_hashes)].into());
            return Ok(Self { tokens: count, start, hashes: whole });
        }
        let mut hashes = Vec::new();
        window_hashes(token_hashes, size.tokens(), &mut hashes);
        Ok(Self::of_windows(size, hashes))
    }

    /// Makes the item of a text of at least n tokens from the hashes of all its n-grams, in any order.
    pub fn of_windows(size: GramSize, mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        Self { tokens: size.tokens(), start: None, hashes: hashes.into() }
    }

    /// Makes an item again from its parts. `None` if no item has these parts.
    pub fn from_parts(size: GramSize, tokens: usize, start: Option<u64>, hashes: Vec<u64>) -> Option<Self> {
        let is_short = (ITEM_TOKENS_MIN..size.tokens()).contains(&tokens);
        let is_valid = if is_short { start.is_some() && hashes.len() == 1 } else { tokens == size.tokens() };
        let is_sorted = hashes.windows(2).all(|pair| pair[0] < pair[1]);
        let is_item = is_valid && is_short == start.is_some() && is_sorted && !hashes.is_empty();
        is_item.then(|| Self { tokens, start, hashes: hashes.into() })
    }

    /// The number of tokens of each n-gram.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The hash of the first [`ITEM_TOKENS_MIN`] tokens, if the item has fewer than n tokens.
    pub fn start(&self) -> Option<u64> {
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
