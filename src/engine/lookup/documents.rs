//! Stored documents, by id or page by page.

use std::sync::Arc;

use super::existing::{Existing, representative_of};
use super::lookup::Lookup;
use super::retry::{ATTEMPTS, changing, wait_for_commit};
use crate::engine::long_work::beside;
use crate::store::Record;
use crate::types::{DocId, Document, Keep, Scope, Seq, StoredText, TimestampMs, fitting};
use crate::verdicts::{CollectionError, Result};

/// Returns the document with this id.
pub(crate) async fn document(lookup: &Arc<Lookup>, id: &DocId) -> Result<Option<Document>> {
    let id = id.clone();
    beside(lookup, move |lookup| {
        let (_reading, view) = lookup.read();
        Existing::find(lookup, &id, view)?
            .map(|existing| described(lookup, &existing.record, existing.lifetime(lookup)))
            .transpose()
    })
    .await
}

/// Returns the document with this id and its text. If both together have more than `bytes_max` bytes as JSON, returns
/// [`StoredText::TooLong`] in place of the text.
pub(crate) async fn document_with_text(
    lookup: &Arc<Lookup>,
    id: &DocId,
    bytes_max: usize,
) -> Result<Option<(Document, StoredText)>> {
    let keep = lookup.preparer().keep();
    if keep != Keep::Text {
        let detail = format!(
            "must be `none` in this collection: its `keep` is `{}`, so no texts are stored; create a collection with `keep` \
             `text`, and insert the documents there",
            keep.as_str()
        );
        return Err(CollectionError::Invalid { field: "with", detail });
    }
    let id = id.clone();
    beside(lookup, move |lookup| {
        // If the document was deleted or replaced since its id was looked up, the id is looked up again.
        for attempt in 0..ATTEMPTS {
            let (reading, view) = lookup.read();
            let Some(existing) = Existing::find(lookup, &id, view)? else { return Ok(None) };
            let document = described(lookup, &existing.record, existing.lifetime(lookup))?;
            let beside_text = document.bytes();
            match lookup.stored_text(document.seq, bytes_max.saturating_sub(beside_text))? {
                Some(StoredText::TooLong { bytes }) => {
                    return Ok(Some((document, StoredText::TooLong { bytes: beside_text + bytes })));
                }
                Some(text) => return Ok(Some((document, text))),
                None => {
                    // The guard is dropped before the wait, because it keeps removed documents in memory.
                    drop(reading);
                    wait_for_commit(attempt);
                }
            }
        }
        Err(changing())
    })
    .await
}

/// Returns the document as clients see it. `lifetime` is the time when it was last seen, and the time when it expires.
fn described(lookup: &Lookup, record: &Record, lifetime: Option<(TimestampMs, TimestampMs)>) -> Result<Document> {
    let representative = representative_of(lookup, record)?;
    Ok(Document {
        id: record.id.clone(),
        seq: record.seq,
        metadata: record.metadata.clone(),
        labels: record.labels.clone(),
        capture: record.capture.clone(),
        first_seen: record.first_seen,
        id_first_seen: record.id_first_seen,
        last_seen: lifetime.map(|(last_seen, _)| last_seen),
        expires: lifetime.map(|(_, expires)| expires),
        shingles: record.shingles,
        verdict: record.verdict.kind,
        duplicate_of: record.verdict.duplicate_of.clone(),
        representative,
        linked: record.linked,
    })
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
            // The bytes are counted again, because the ids of representatives have been added.
            let fitting = fitting(&documents, bytes_max, Document::bytes);
            let more = more || fitting < documents.len();
            documents.truncate(fitting);
            return Ok((documents, more));
        }
    })
    .await
}

/// Like [`documents_within`], for the documents of a scope.
pub(crate) async fn scoped_documents_within(
    lookup: &Arc<Lookup>,
    scope: Arc<Scope>,
    after: Seq,
    limit: usize,
    bytes_max: usize,
) -> Result<(Vec<Document>, bool)> {
    beside(lookup, move |lookup| {
        // The documents stay readable until the guard is dropped.
        let (_reading, view) = lookup.read();
        let index = lookup.index();
        let seqs = index.in_scope(view, &index.scope(&scope), after, limit);
        let (mut documents, mut bytes) = (Vec::new(), 0);
        for &seq in &seqs {
            let Some(record) = lookup.records().record(seq)? else { continue };
            let document = described(lookup, &record, None)?;
            bytes += document.bytes();
            if bytes > bytes_max && !documents.is_empty() {
                return Ok((documents, true));
            }
            documents.push(document);
        }
        Ok((documents, seqs.len() == limit))
    })
    .await
}
