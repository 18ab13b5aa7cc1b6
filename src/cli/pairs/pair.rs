//! A pair, as the output has it.

use crate::cli::corpus::named::Named;
use crate::types::Similarity;

/// Two similar documents. `a` comes first in the order of the input.
pub(super) struct Pair<'a> {
    pub a: &'a Named,
    pub b: &'a Named,
    pub similarity: Similarity,
}
