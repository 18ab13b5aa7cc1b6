//! Text -> pieces short enough for the cache.

/// The bytes of text that go through all stages before more text is read: at this size all buffers stay in the cache.
pub(super) const BLOCK_BYTES: usize = 4096;

/// Cuts a text into pieces of at most [`BLOCK_BYTES`].
pub(crate) fn blocks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (block, rest) = text.split_at(text.floor_char_boundary(BLOCK_BYTES));
        text = rest;
        (!block.is_empty()).then_some(block)
    })
}
