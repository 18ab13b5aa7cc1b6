//! Text -> canonical text: folding, optional stripping of marks and zeroing of digits, white-space runs to one space,
//! trimmed. A state machine with bounded state: however the text is cut, even inside a code point, the canonical text
//! is the same. Knows nothing of tokens or hashes.
//!
//! `nfkc_casefold` maps each scalar value by NFKC_Casefold (UAX #44) and composes the result (NFC); `nfkc` is NFKC
//! (UAX #15). Runs of more than 30 non-starters are treated as if U+034F stood after every thirtieth (Stream-Safe Text,
//! UAX #15 section 13, counted on the decomposed text so that canonical equivalents agree); nothing is put out for it.

mod normaliser;
mod plain_run;
mod rules;
mod utf8;

pub use normaliser::Normaliser;
pub(crate) use rules::Rules;
pub use utf8::{IllFormed, NotUtf8};
