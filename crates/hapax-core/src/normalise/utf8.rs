//! The handling of bytes that are not UTF-8.

/// The treatment of bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IllFormed {
    /// Refuse the text.
    Refuse,
    /// Write U+FFFD for each maximal ill-formed subpart, as `String::from_utf8_lossy` does.
    Replace,
}

/// An error: the text is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ill-formed UTF-8 at byte {offset}")]
pub struct NotUtf8 {
    /// The byte at which the ill-formed sequence begins, counted from the start of the text.
    pub offset: u64,
}
