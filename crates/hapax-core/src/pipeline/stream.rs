//! Pieces of a text -> shingles and content hash, with the buffers between the stages.

use super::hashing::TokenHashing;
use super::tools::Tools;
use crate::hash::{ContentHash, ContentHasher};
use crate::normalise::{IllFormed, Normaliser, NotUtf8};
use crate::shingle::Shingler;

/// The state of the work that makes shingles and the content hash of a text that arrives in pieces.
pub(super) struct Stream {
    normaliser: Normaliser,
    hashing: TokenHashing,
    shingler: Shingler,
    content: ContentHasher,
    /// Canonical text that was not passed on yet.
    canonical: Vec<u8>,
    /// The hashes of tokens that a later shingle needs.
    hashes: Vec<u64>,
    /// Shingles that were not passed on yet.
    shingles: Vec<u64>,
}

impl Stream {
    pub(super) fn new(tools: &Tools) -> Self {
        Self {
            normaliser: Normaliser::with_rules(tools.rules()),
            hashing: TokenHashing::new(tools),
            shingler: Shingler::new(tools.window()),
            content: ContentHasher::new(tools.hasher()),
            canonical: Vec::new(),
            hashes: Vec::new(),
            shingles: Vec::new(),
        }
    }

    /// Makes the stream ready for another text.
    pub(super) fn begin(&mut self, tools: &Tools) {
        self.normaliser.begin(tools.rules());
        self.hashing.begin(tools);
        self.shingler = Shingler::new(tools.window());
        self.content.begin(tools.hasher());
        self.canonical.clear();
        self.hashes.clear();
        self.shingles.clear();
    }

    /// Takes the next piece. The canonical text of the piece before must have been passed on or dropped.
    pub(super) fn push(&mut self, tools: &Tools, piece: &str) {
        self.normaliser.push(piece, &mut self.canonical);
        self.advance(tools, 0);
    }

    /// Like [`Self::push`], for a piece given as bytes.
    pub(super) fn push_bytes(&mut self, tools: &Tools, piece: &[u8], ill_formed: IllFormed) -> Result<(), NotUtf8> {
        self.normaliser.push_bytes(piece, ill_formed, &mut self.canonical)?;
        self.advance(tools, 0);
        Ok(())
    }

    /// Takes the next piece of a text that is already canonical.
    pub(super) fn push_canonical(&mut self, tools: &Tools, piece: &str) {
        self.hashing.push(tools, piece.as_bytes(), &mut self.hashes);
        self.shingler.push(tools.simd(), &mut self.hashes, &mut self.shingles);
    }

    /// Takes the next piece, and appends the hashes of the tokens that end in it. Makes no shingles.
    pub(super) fn push_tokens(&mut self, tools: &Tools, piece: &str, hashes: &mut Vec<u64>) {
        self.normaliser.push(piece, &mut self.canonical);
        self.hashing.push(tools, &self.canonical, hashes);
        self.canonical.clear();
    }

    /// Ends the text that [`Self::push_tokens`] has got, and appends the hashes of its last tokens.
    pub(super) fn finish_tokens(&mut self, tools: &Tools, hashes: &mut Vec<u64>) {
        self.normaliser.finish(&mut self.canonical);
        self.hashing.push(tools, &self.canonical, hashes);
        self.hashing.finish(tools, hashes);
        self.canonical.clear();
    }

    /// Ends a text given as bytes. [`Stream::finish`] must be called next.
    pub(super) fn finish_bytes(&mut self, tools: &Tools, ill_formed: IllFormed) -> Result<(), NotUtf8> {
        let from = self.canonical.len();
        self.normaliser.finish_bytes(ill_formed, &mut self.canonical)?;
        self.advance(tools, from);
        Ok(())
    }

    /// Appends the shingles that are complete only at the end of the text. Returns the number of shingles, including
    /// repeats.
    pub(super) fn finish(&mut self, tools: &Tools) -> u64 {
        let from = self.canonical.len();
        self.normaliser.finish(&mut self.canonical);
        self.advance(tools, from);
        self.finish_canonical(tools)
    }

    /// Like [`Self::finish`], for a text that was already canonical.
    pub(super) fn finish_canonical(&mut self, tools: &Tools) -> u64 {
        self.hashing.finish(tools, &mut self.hashes);
        self.shingler.push(tools.simd(), &mut self.hashes, &mut self.shingles);
        self.shingler.finish(&self.hashes, &mut self.shingles)
    }

    /// Returns the canonical text that was not passed on yet.
    pub(super) fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// Returns the shingles that were not passed on yet.
    pub(super) fn shingles(&self) -> &[u64] {
        &self.shingles
    }

    /// Returns the hashes of all tokens of a text that has ended, if it has fewer of them than a shingle; else nothing.
    pub(super) fn short(&self) -> &[u64] {
        if self.shingler.has_window() { &[] } else { &self.hashes }
    }

    /// Adds the canonical text to the content hash, then clears the canonical text and the shingles.
    pub(super) fn hand_on(&mut self) {
        if !self.canonical.is_empty() {
            self.content.update(&self.canonical);
            self.canonical.clear();
        }
        self.shingles.clear();
    }

    /// Drops the canonical text. This is for callers that do not need the content hash.
    pub(super) fn drop_canonical(&mut self) {
        self.canonical.clear();
    }

    /// Returns the content hash of the whole text, after its end.
    pub(super) fn content(&mut self) -> ContentHash {
        self.content.finish(&self.canonical)
    }

    /// Takes all shingles that were not passed on yet.
    pub(super) fn take_shingles(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.shingles)
    }

    /// Appends the shingles that the new canonical text completes. The canonical text is new from byte `from` on.
    fn advance(&mut self, tools: &Tools, from: usize) {
        self.hashing.push(tools, &self.canonical[from..], &mut self.hashes);
        self.shingler.push(tools.simd(), &mut self.hashes, &mut self.shingles);
    }
}
