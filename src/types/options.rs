//! The options of an insertion.

/// The treatment of a document that has a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// Do not store it.
    #[default]
    Skip,
    /// Store the id with a reference to the original, without postings.
    Link,
    /// Store and index it anyway.
    Store,
}

/// The treatment of an id that already holds other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnExisting {
    #[default]
    Conflict,
    /// Delete the old content. Store the new content, unless it is empty or a duplicate that is skipped.
    Replace,
    Keep,
}
