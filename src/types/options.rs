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

impl OnDuplicate {
    pub const ALL: [Self; 3] = [Self::Skip, Self::Link, Self::Store];

    /// Returns the name in the API and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Link => "link",
            Self::Store => "store",
        }
    }
}

/// The treatment of an id that already has other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnExisting {
    #[default]
    Conflict,
    /// Delete the old content. Store the new content, unless it is empty or a duplicate that is skipped.
    Replace,
    Keep,
}

impl OnExisting {
    pub const ALL: [Self; 3] = [Self::Conflict, Self::Replace, Self::Keep];

    /// Returns the name in the API and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Replace => "replace",
            Self::Keep => "keep",
        }
    }
}
