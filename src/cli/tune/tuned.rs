//! A banding with everything that it was chosen for. Reports are made of it.

use hapax_core::tuning::{Targets, Unrelated};
use hapax_core::{Banding, SignatureShape};

use super::arguments::Args;
use super::sample::Sample;
use crate::cli::plot::Curve;

/// A choice, and everything that it was made with.
pub(super) struct Tuned<'a> {
    pub args: &'a Args,
    pub targets: Targets,
    pub banding: Banding,
    pub shape: SignatureShape,
    pub unrelated: &'a Unrelated,
    /// The documents that `unrelated` was measured with.
    pub sample: Option<Sample>,
    pub curve: &'a Curve<'a>,
}
