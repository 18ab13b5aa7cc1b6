//! The buffers of signing, kept from one text to the next.

use super::collect::Collector;
use super::stream::Stream;
use super::tools::Tools;
use crate::sketch::SketchState;

/// Reusable buffers, and the state of a text that is given in pieces. Any pipeline may use them. After the longest text
/// has been signed with them, signing allocates nothing.
#[derive(Default)]
pub struct SignScratch {
    /// `None` before the first text.
    stream: Option<Stream>,
    sketch: SketchState,
    collector: Collector,
}

impl SignScratch {
    /// Prepares for a text.
    pub(super) fn begin(&mut self, tools: &Tools) -> (&mut Stream, &mut SketchState, &mut Collector) {
        self.collector.begin();
        tools.sketcher().begin(&mut self.sketch);
        let stream = self.stream.get_or_insert_with(|| Stream::new(tools));
        stream.begin(tools);
        (stream, &mut self.sketch, &mut self.collector)
    }

    /// Frees the shingles and the canonical text that were collected from the last text but not taken.
    pub fn forget(&mut self) {
        self.collector.begin();
    }

    /// Returns the state of the text that was begun last.
    ///
    /// # Panics
    /// If no text was begun.
    pub(super) fn resume(&mut self) -> (&mut Stream, &mut SketchState, &mut Collector) {
        (self.stream.as_mut().expect("a text was begun"), &mut self.sketch, &mut self.collector)
    }

    pub(super) fn sketch(&self) -> &SketchState {
        &self.sketch
    }

    pub(super) fn sketch_mut(&mut self) -> &mut SketchState {
        &mut self.sketch
    }

    pub(super) fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }
}
