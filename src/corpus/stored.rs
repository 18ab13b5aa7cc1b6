//! A signed document -> bytes that can wait on a disk, and back. Only the process that wrote them reads them, so they have
//! no checksum and no version.

use std::sync::Arc;

use hapax_core::{ContentHash, ShingleSet};

use super::signer::{CorpusSigner, SignedDocument};
use crate::verdicts::{Kept, Made, Prepared};

const HAS_CONTENT: u8 = 1;
const HAS_SHINGLES: u8 = 2;

/// Appends the bytes of a document.
///
/// # Panics
/// If it has no tokens.
pub fn write_signed(document: &SignedDocument, bytes: &mut Vec<u8>) {
    let made = document.prepared().made().expect("the document has tokens");
    let has = |is: bool, flag: u8| if is { flag } else { 0 };
    bytes.push(has(made.content.is_some(), HAS_CONTENT) | has(made.kept.is_some(), HAS_SHINGLES));
    bytes.extend_from_slice(&made.signature);
    bytes.extend(made.content.iter().flat_map(|content| content.0.to_le_bytes()));
    if let Some(Kept { set, .. }) = &made.kept {
        bytes.extend_from_slice(&set.len().to_le_bytes());
        bytes.extend_from_slice(&set.to_bytes());
    }
}

/// Returns the document that was written to these bytes. `None`: they are damaged.
pub fn read_signed(signer: &CorpusSigner, bytes: &[u8]) -> Option<SignedDocument> {
    let (&flags, bytes) = bytes.split_first()?;
    let (signature, mut bytes) = bytes.split_at_checked(signer.settings().spec.shape().bytes())?;
    let mut content = None;
    if flags & HAS_CONTENT != 0 {
        let (hash, rest) = bytes.split_first_chunk()?;
        (content, bytes) = (Some(ContentHash(u128::from_le_bytes(*hash))), rest);
    }
    let mut kept = None;
    if flags & HAS_SHINGLES != 0 {
        let (len, set) = bytes.split_first_chunk()?;
        let set = ShingleSet::from_bytes(set, u64::from_le_bytes(*len))?;
        kept = Some(Kept { set: Arc::new(set), payload: None });
    }
    let made = Made { signature: signature.to_vec(), content, kept, page: None };
    Some(SignedDocument::of(Prepared::new(Some(made), None)))
}
