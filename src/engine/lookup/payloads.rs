//! What is stored beside a signature -> the shingles that it was made of.

use hapax_core::{Pipeline, ShingleSet};

use crate::store::Flaw;
use crate::types::Payload;
use crate::verdicts;

/// The shingles of a payload; a pipeline makes them of a text.
pub(super) fn set_of(pipeline: Option<&Pipeline>, payload: &Payload) -> Result<ShingleSet, Flaw> {
    verdicts::set_of(pipeline, payload).ok_or("its payload cannot be read")
}
