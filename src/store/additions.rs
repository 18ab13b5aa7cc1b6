//! The data that is stored with the content of a document.

use crate::types::{Capture, Labels, Metadata, PageMark};

/// The parts of a record that can change while its content stays the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    pub metadata: Option<Metadata>,
    pub labels: Option<Labels>,
    /// The capture that the content came from.
    pub capture: Capture,
    /// The latest page that the content came from.
    pub page: Option<PageMark>,
}
