//! What is stored with the content of a document.

use crate::types::{Labels, Metadata, PageMark};

/// The parts of a record that can change while its content stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Additions {
    pub metadata: Option<Metadata>,
    pub labels: Option<Labels>,
    /// The page that the content came from last.
    pub page: Option<PageMark>,
}
