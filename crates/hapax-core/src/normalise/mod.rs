//! Text -> canonical text. Characters are folded; marks can be stripped, and digits set to zero. Each run of white
//! space becomes one space, and the text is trimmed. The code is a state machine with bounded state. The canonical text
//! does not depend on where the text is cut, even inside a code point. Knows nothing of tokens or hashes.
//!
//! `nfkc_casefold` maps each scalar value by NFKC_Casefold (UAX #44) and composes the result (NFC); `nfkc` is NFKC (UAX
//! #15). A run of more than 30 non-starters is treated as if U+034F followed every thirtieth of them, but U+034F itself
//! is not written (Stream-Safe Text, UAX #15, section 13). Non-starters are counted in the decomposed text, so that
//! canonical equivalents agree.

mod normaliser;
mod plain_run;
mod rules;
mod utf8;

pub use normaliser::Normaliser;
pub(crate) use rules::Rules;
pub use utf8::{IllFormed, NotUtf8};
