//! The changes that a writer stores. Most changes have a position in the commit order. A [`Touch`](Change::Touch) has
//! no position, because it changes no answer.

use std::sync::Arc;

use super::additions::Additions;
use super::format::jobs::DoomedPart;
use super::record::Record;
use crate::types::{LabelDeletion, Merge, Merged, Seq, TimestampMs};

/// A change to the stored documents.
#[derive(Clone, Debug)]
pub enum Change {
    /// Stores a new document at its own `seq`.
    Insert(Arc<Record>),
    Delete {
        /// The position of the delete in the commit order.
        seq: Seq,
        /// The document to delete.
        target: Seq,
        /// The link that becomes an ordinary document, because it is now the first of the cluster that `target` leaves.
        promoted: Option<Seq>,
    },
    /// Stores a document and deletes the one that it replaces.
    Replace {
        /// The new document, at its own `seq`.
        record: Arc<Record>,
        /// The document to delete.
        target: Seq,
        /// As in [`Change::Delete`].
        promoted: Option<Seq>,
    },
    /// Changes the metadata, the labels, the capture and the page of a document, but not its content.
    Update {
        /// The position of the update in the commit order.
        seq: Seq,
        target: Seq,
        /// The data that is stored with the content from now on.
        additions: Box<Additions>,
    },
    /// Deletes documents by label: they count as deleted from this position on, and are removed later.
    DeleteLabelled {
        deletion: Arc<LabelDeletion>,
        doomed: Arc<[DoomedPart]>,
        /// The links that become ordinary documents, as in [`Change::Delete`].
        promoted: Vec<Seq>,
    },
    /// Begins a merge of another collection.
    BeginMerge(Arc<Merge>),
    /// Notes what a merge did with a document. This change has no position of its own, because it is written with the
    /// document.
    Merged(Arc<Merged>),
    /// Notes that a document was seen again. Ignored if the document is gone.
    Touch { target: Seq, seen: TimestampMs },
}

impl Change {
    /// Returns the document of an [`Insert`](Self::Insert).
    pub(super) fn inserted(&self) -> Option<&Record> {
        match self {
            Self::Insert(record) => Some(record),
            _ => None,
        }
    }

    /// Returns the position in the commit order; `None` if the change affects no answer.
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Insert(record) | Self::Replace { record, .. } => Some(record.seq),
            Self::Delete { seq, .. } | Self::Update { seq, .. } => Some(*seq),
            Self::DeleteLabelled { deletion, .. } => Some(deletion.number),
            Self::BeginMerge(merge) => Some(merge.number),
            Self::Merged(_) | Self::Touch { .. } => None,
        }
    }
}
