//! The limits on pages, for all routes that return pages.

/// The number of documents in a page if the request gives no limit.
pub(super) const PAGE_DEFAULT: usize = 100;
/// The most documents in a page.
pub(super) const PAGE_MAX: usize = 1000;
/// The bytes of JSON in a page in addition to its documents.
pub(super) const ENVELOPE_BYTES: usize = 256;
