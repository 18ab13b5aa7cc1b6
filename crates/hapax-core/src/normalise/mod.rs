//! Text -> canonical text: folding, optional stripping of marks and zeroing of digits, runs of white space made one
//! space, trimmed. A state machine with bounded state: the canonical text does not depend on where the text is cut, not
//! even inside a code point. Knows nothing of tokens or hashes.
//!
//! `nfkc_casefold` maps each scalar value by NFKC_Casefold (UAX #44) and composes the result (NFC); `nfkc` is NFKC (UAX
//! #15). Runs of more than 30 non-starters are treated as if U+034F followed every thirtieth (Stream-Safe Text, UAX #15
//! section 13, counted on the decomposed text so that canonical equivalents agree); U+034F itself is not written.

mod normaliser;
mod plain_run;
mod rules;
mod utf8;

pub use normaliser::Normaliser;
pub(crate) use rules::Rules;
pub use utf8::{IllFormed, NotUtf8};
