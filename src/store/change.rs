//! What a writer is given: the entries of the commit order, and what changes no answer and has no place in it.

use std::sync::Arc;

use super::record::Record;
use crate::types::{Metadata, Seq, TimestampMs};

/// One entry of the commit order.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new document, at its own `seq`.
    Insert(Arc<Record>),
    Delete {
        /// The delete's place in the order.
        seq: Seq,
        /// The document that goes.
        target: Seq,
        /// The link that is none from here on: it is the first now of the cluster that `target` leaves.
        promoted: Option<Seq>,
    },
    /// A document takes the place of another, which goes.
    Replace {
        /// The new document, at its own `seq`.
        record: Arc<Record>,
        /// The document that goes.
        target: Seq,
        /// As with a delete.
        promoted: Option<Seq>,
    },
    /// A document has other metadata.
    Update {
        /// The update's place in the order.
        seq: Seq,
        target: Seq,
        /// What it has from here on.
        metadata: Option<Metadata>,
    },
    /// A document was seen again. Where it is gone there is nothing to note.
    Touch { target: Seq, seen: TimestampMs },
}

impl Change {
    /// Its place in the order; none where it changes no answer.
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Insert(record) | Self::Replace { record, .. } => Some(record.seq),
            Self::Delete { seq, .. } | Self::Update { seq, .. } => Some(*seq),
            Self::Touch { .. } => None,
        }
    }
}
