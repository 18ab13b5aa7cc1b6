//! Options of an insertion.

/// What to do with a document that has a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// Do not store it.
    #[default]
    Skip,
    /// Keep the id, pointing to the original, without postings.
    Link,
    /// Store and index it all the same.
    Store,
}

/// What to do when the id already holds other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnExisting {
    #[default]
    Conflict,
    /// Let the old content go, and store the new one unless it is empty or a duplicate that is to be skipped.
    Replace,
    Keep,
}
