//! Reads data for a merge of two collections: whole stored documents to insert into the other collection, and the
//! reports of the merge.

use std::sync::Arc;

use super::lookup::Lookup;
use super::payloads::set_of;
use crate::engine::long_work::beside;
use crate::store::Record;
use crate::types::{CollectionName, Seq};
use crate::verdicts::{CollectionError, Kept, Made, Result};

/// Turns a stored document, which was read with its payload, into a document to insert.
pub(crate) fn stored_whole(lookup: &Lookup, collection: &CollectionName, record: &Record) -> Result<Made> {
    let set = |payload| {
        set_of(lookup.preparer().pipeline(), payload).map_err(|flaw| CollectionError::Damaged {
            collection: collection.to_string(),
            record: Some(record.seq),
            detail: flaw.to_owned(),
        })
    };
    let kept = match &record.payload {
        None => None,
        Some(payload) => Some(Kept { set: Arc::new(set(payload)?), payload: Some(Arc::clone(payload)) }),
    };
    let content = (!record.given).then_some(record.content);
    Ok(Made { signature: record.signature.clone(), content, kept, page: record.page })
}

/// Returns up to `limit` reports of a merge, in the order of their documents, beginning after the document `after`.
pub(crate) async fn merge_reports(
    lookup: &Arc<Lookup>,
    merge: Seq,
    after: Seq,
    limit: usize,
) -> Result<Vec<(Seq, String)>> {
    beside(lookup, move |lookup| Ok(lookup.records().store().reports(merge, after, limit)?)).await
}
