//! The documents that are deleted by label and still on disk. Reads that list documents skip them.

use std::sync::Arc;

use crate::types::Seq;

/// The documents that are deleted by label and still on disk.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Doomed {
    /// The number of each deletion, and its documents in order of `seq`.
    by_deletion: Vec<(Seq, Arc<[Seq]>)>,
}

impl Doomed {
    pub(in crate::store) fn with(&self, deletion: Seq, seqs: Arc<[Seq]>) -> Self {
        let mut with = self.clone();
        with.by_deletion.push((deletion, seqs));
        with
    }

    pub(in crate::store) fn without(&self, deletion: Seq) -> Self {
        let mut without = self.clone();
        without.by_deletion.retain(|(number, _)| *number != deletion);
        without
    }

    pub(in crate::store) fn has(&self, seq: Seq) -> bool {
        self.by_deletion.iter().any(|(_, seqs)| seqs.binary_search(&seq).is_ok())
    }
}
