//! Text -> pieces short enough for the cache.

/// Bytes of text that go through all stages before the next are looked at: all buffers stay in the cache.
pub(super) const BLOCK_BYTES: usize = 4096;

/// Pieces of a text of at most [`BLOCK_BYTES`].
pub(crate) fn blocks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (block, rest) = text.split_at(text.floor_char_boundary(BLOCK_BYTES));
        text = rest;
        (!block.is_empty()).then_some(block)
    })
}
