//! Stored documents, by id or page by page.

use std::sync::Arc;

use super::existing::{Existing, representative_of};
use super::sources::Lookup;
use crate::engine::long_work::beside;
use crate::types::{DocId, Document, Seq, fitting};
use crate::verdicts::Result;

/// Returns the document with this id.
pub(crate) async fn document(lookup: &Arc<Lookup>, id: &DocId) -> Result<Option<Document>> {
    let id = id.clone();
    beside(lookup, move |lookup| {
        let (_reading, view) = lookup.read();
        let Some(existing) = Existing::find(lookup, &id, view)? else { return Ok(None) };
        let representative = representative_of(lookup, &existing.record)?;
        let lifetime = existing.lifetime(lookup);
        let record = &existing.record;
        Ok(Some(Document {
            id: record.id.clone(),
            seq: record.seq,
            metadata: record.metadata.clone(),
            first_seen: record.first_seen,
            id_first_seen: record.id_first_seen,
            last_seen: lifetime.map(|(last_seen, _)| last_seen),
            expires: lifetime.map(|(_, expires)| expires),
            shingles: record.shingles,
            verdict: record.verdict.kind,
            duplicate_of: record.verdict.duplicate_of.clone(),
            representative,
            linked: record.linked,
        }))
    })
    .await
}

/// Returns documents in order of `seq`, beginning after `after`, and whether more may follow. Returns as many as fit
/// into `bytes_max` bytes of JSON, but at least one.
pub(crate) async fn documents_within(
    lookup: &Arc<Lookup>,
    after: Seq,
    limit: usize,
    bytes_max: usize,
) -> Result<(Vec<Document>, bool)> {
    beside(lookup, move |lookup| {
        let (mut documents, mut after) = (Vec::new(), after);
        loop {
            let asked = limit - documents.len();
            let mut read: usize = documents.iter().map(Document::bytes).sum();
            let fits = |document: &Document| {
                read += document.bytes();
                read <= bytes_max
            };
            let page = lookup.records().store().page_while(after, asked, fits)?;
            let more = page.len() == asked || read > bytes_max;
            after = page.last().map_or(after, |document| document.seq);
            documents.extend(lookup.doubts().without_doubtful(page)?);
            let has_room = documents.len() < limit && read <= bytes_max;
            if more && (has_room || documents.is_empty()) {
                continue;
            }
            // Counted again, because the ids of representatives have been added.
            let fitting = fitting(&documents, bytes_max, Document::bytes);
            let more = more || fitting < documents.len();
            documents.truncate(fitting);
            return Ok((documents, more));
        }
    })
    .await
}
