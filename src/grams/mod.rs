//! Items as sets of n-grams -> the items that a text contains, each with the share of its n-grams that the text has.
//! In: the hashes of tokens. Out: numbers of items, and runs of tokens. Everything is in memory. Pure: knows nothing of
//! files, HTTP and storage, and not where the tokens came from.
//!
//! An n-gram is represented by its 64-bit hash alone. If a corpus has t tokens and the items have g distinct n-grams, the
//! expected number of n-grams that are found by mistake is `t * g / 2^64`: with 10^12 tokens and 10^6 n-grams, 0.05. An
//! item that has more than a few n-grams needs many such mistakes.

mod filter;
mod index;
mod item;
mod overlaps;
mod passages;
#[cfg(test)]
mod tests;

pub use index::{FoundGrams, GramIndex, LookupScratch};
pub use item::{GramSize, ITEM_TOKENS_MIN, ItemGrams, TooShort};
pub use overlaps::{Overlap, Overlaps};
pub use passages::{Passages, passages};
