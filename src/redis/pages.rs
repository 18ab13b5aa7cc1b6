//! Pages of documents, in order of their numbers.

use super::counters::Counters;
use super::drive::Driver;
use super::keys::FIRST;
use super::protocol::Ref;
use super::reads::stored;
use super::record::Stored;
use crate::types::Seq;
use crate::verdicts::{Cursor, DocumentsPage, Result};

/// How many records are read at a time.
const AT_ONCE: u64 = 64;
/// How many numbers a page tries, at most. Insertions that store nothing take numbers, too, so a page may be empty
/// although there are more documents.
const TRIED: u64 = 1 << 14;

/// Returns a page of documents after `after`, of at most `bytes_max` bytes of JSON. It has one document at least, even
/// if it is longer, unless many numbers have none. A document that is stored from the first page to the last one is in
/// exactly one of them.
pub(super) async fn page(
    (counters, driver): (&Counters, &mut Driver),
    after: Seq,
    limit: usize,
    bytes_max: usize,
) -> Result<DocumentsPage> {
    let last = FIRST + counters.reserved().await?;
    let first = after.0.max(FIRST);
    let (mut documents, mut bytes, mut at) = (Vec::new(), 0, first);
    while at < last && at - first < TRIED {
        let end = last.min(at + AT_ONCE);
        for (number, stored) in stored(driver, &(at + 1..=end).map(Ref).collect::<Vec<_>>()).await? {
            let document = Stored::clone(&stored.stored).document(number);
            bytes += document.bytes();
            if documents.len() == limit || !documents.is_empty() && bytes > bytes_max {
                return Ok(DocumentsPage::new(documents, true));
            }
            documents.push(document);
        }
        at = end;
    }
    Ok(DocumentsPage { documents, next: (at < last).then(|| Cursor::from(Seq(at))) })
}
