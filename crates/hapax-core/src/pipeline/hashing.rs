//! Canonical text, given in pieces -> the hash of each token, or of each scalar value for `char` shingles.

use super::tools::Tools;
use crate::hash::TokenBatch;
use crate::spec::Shingling;
use crate::tokens::{Spans, Tokeniser};
use crate::unicode::decode;

/// Cuts canonical text into tokens and hashes them.
pub(crate) struct TokenHashing {
    tokeniser: Tokeniser,
    spans: Spans,
    batch: TokenBatch,
}

impl TokenHashing {
    pub(crate) fn new(tools: &Tools) -> Self {
        let tokeniser = Tokeniser::new(tools.rules().table());
        Self { tokeniser, spans: Spans::default(), batch: TokenBatch::default() }
    }

    /// Makes the buffers ready for another text.
    pub(crate) fn begin(&mut self, tools: &Tools) {
        self.tokeniser.begin(tools.rules().table());
    }

    /// Appends the hashes of the tokens (of the scalar values, for `char` shingles) that end in this canonical text.
    pub(crate) fn push(&mut self, tools: &Tools, canonical: &[u8], hashes: &mut Vec<u64>) {
        let Self { tokeniser, spans, batch } = self;
        let (simd, hasher) = (tools.simd(), tools.hasher());
        match tools.shingling() {
            Shingling::Word(_) => {
                tokeniser.push(simd, canonical, spans, |token| hashes.push(hasher.token(token)));
                hasher.tokens(simd, canonical, (spans.starts(), spans.ends()), batch, hashes);
            }
            Shingling::Char(_) => hashes.extend(code_points(canonical).map(|c| hasher.scalar(c))),
        }
    }

    /// Appends the hash of the token that ends with the text.
    pub(crate) fn finish(&mut self, tools: &Tools, hashes: &mut Vec<u64>) {
        self.tokeniser.finish(|token| hashes.push(tools.hasher().token(token)));
    }
}

/// Returns the scalar values of well-formed UTF-8.
fn code_points(text: &[u8]) -> impl Iterator<Item = u32> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let (c, bytes) = if rest.first()?.is_ascii() { (u32::from(rest[0]), 1) } else { decode(rest) };
        at += bytes;
        Some(c)
    })
}
