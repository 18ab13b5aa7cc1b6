//! What all pages have in common.

/// Documents in a page that names no limit.
pub(super) const PAGE_DEFAULT: usize = 100;
/// Most documents in a page.
pub(super) const PAGE_MAX: usize = 1000;
/// What a page has around its documents.
pub(super) const ENVELOPE_BYTES: usize = 256;
