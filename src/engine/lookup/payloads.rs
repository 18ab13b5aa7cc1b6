//! A stored payload -> the shingles of its document, or its text.

use hapax_core::{Pipeline, ShingleSet};

use crate::store::Flaw;
use crate::types::{Payload, StoredText};
use crate::verdicts;

const UNDECODABLE: Flaw = "its payload cannot be decoded";

/// Returns the shingles of a payload. If the payload is a text, the pipeline makes them.
pub(super) fn set_of(pipeline: Option<&Pipeline>, payload: &Payload) -> Result<ShingleSet, Flaw> {
    verdicts::set_of(pipeline, payload).ok_or(UNDECODABLE)
}

/// Returns the text of a payload. If the text has more than `bytes_max` bytes as JSON, returns
/// [`StoredText::TooLong`] instead. If the payload is a set of shingles, returns [`StoredText::Absent`].
pub(super) fn text_of(payload: &Payload, bytes_max: usize) -> Result<StoredText, Flaw> {
    verdicts::text_of(payload, bytes_max).ok_or(UNDECODABLE)
}
