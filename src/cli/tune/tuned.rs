//! A banding together with the values for which it was chosen. Reports are made from it.

use hapax_core::tuning::{Targets, Unrelated};
use hapax_core::{Banding, SignatureShape};

use super::arguments::Args;
use super::sample::Sample;
use crate::cli::plot::Curve;

/// A chosen banding, and the values for which it was chosen.
pub(super) struct Tuned<'a> {
    pub args: &'a Args,
    pub targets: Targets,
    pub banding: Banding,
    pub shape: SignatureShape,
    pub unrelated: &'a Unrelated,
    /// The documents with which `unrelated` was measured.
    pub sample: Option<Sample>,
    pub curve: &'a Curve<'a>,
}
