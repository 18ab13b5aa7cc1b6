//! The data that is stored with the content of a document.

use crate::types::{Capture, Labels, Metadata, PageMark};

/// The parts of a record that can change while its content stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    pub metadata: Option<Metadata>,
    pub labels: Option<Labels>,
    /// The capture that the content came from.
    pub capture: Capture,
    /// The page that the content came from last.
    pub page: Option<PageMark>,
}
