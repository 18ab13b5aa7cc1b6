//! A stored payload -> the shingles of its document.

use hapax_core::{Pipeline, ShingleSet};

use crate::store::Flaw;
use crate::types::Payload;
use crate::verdicts;

/// Returns the shingles of a payload. If the payload is a text, the pipeline makes them.
pub(super) fn set_of(pipeline: Option<&Pipeline>, payload: &Payload) -> Result<ShingleSet, Flaw> {
    verdicts::set_of(pipeline, payload).ok_or("its payload cannot be decoded")
}
