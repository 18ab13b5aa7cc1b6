//! Metrics of signing: its time, and the share of empty slots in sketches.

use std::time::Duration;

use hapax_core::{SignatureShape, SketchKind, Spec, TextSpec};
use metrics::{Histogram, histogram};

use crate::telemetry::names::{self, label};
use crate::telemetry::recorder;

/// The metrics of one collection. Their series are labelled by sketch. Collections with the same sketch share the
/// series, which are removed with the last of these collections.
pub(super) struct SignMeters {
    seconds: Histogram,
    /// Present only for an `oph` sketch.
    empty_slots_ratio: Option<Histogram>,
    sketch: String,
}

impl SignMeters {
    pub(super) fn new(spec: &Spec) -> Self {
        let sketch = sketch_name(spec);
        recorder::admit(label::SKETCH, &sketch);
        Self {
            seconds: histogram!(names::SIGN_DURATION, label::SKETCH => sketch.clone()),
            empty_slots_ratio: matches!(spec, Spec::Text(TextSpec { sketch: SketchKind::Oph, .. }))
                .then(|| histogram!(names::OPH_EMPTY_SLOTS, label::SKETCH => sketch.clone())),
            sketch,
        }
    }

    pub(super) fn text(&self, took: Duration) {
        self.seconds.record(took);
    }

    /// Records that `empty` of `k` slots were not reached by any shingle.
    pub(super) fn empty_slots(&self, empty: u32, k: u32) {
        if let Some(ratio) = &self.empty_slots_ratio {
            ratio.record(f64::from(empty) / f64::from(k));
        }
    }
}

impl Drop for SignMeters {
    fn drop(&mut self) {
        recorder::release(label::SKETCH, &self.sketch);
    }
}

/// Returns the name of the sketch as in the spec.
fn sketch_name(spec: &Spec) -> String {
    let SignatureShape { k, bits } = spec.shape();
    match spec {
        Spec::Text(TextSpec { sketch, .. }) => format!("{}{k}x{bits}", sketch.name()),
        Spec::External { name, .. } => format!("external:{name}:{k}x{bits}"),
    }
}
