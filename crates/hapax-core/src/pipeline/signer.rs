//! A text in pieces -> its signature, content hash and shingle count.

use super::blocks::{BLOCK_BYTES, blocks};
use super::collect::{Collect, Collector};
use super::scratch::SignScratch;
use super::signed::Signed;
use super::stream::Stream;
use super::tools::Tools;
use crate::normalise::{IllFormed, NotUtf8};
use crate::sketch::SketchState;

/// A text that is being signed. It is given in pieces, and a piece may end anywhere, even inside a word. Memory is
/// bounded for texts of any length. All state is in the scratch: after a signer is dropped, [`Pipeline::resume`]
/// continues its text.
///
/// [`Pipeline::resume`]: crate::Pipeline::resume
pub struct Signer<'a> {
    tools: &'a Tools,
    stream: &'a mut Stream,
    sketch: &'a mut SketchState,
    collector: &'a mut Collector,
}

impl<'a> Signer<'a> {
    /// Begins a text.
    pub(super) fn begin(tools: &'a Tools, scratch: &'a mut SignScratch) -> Self {
        let (stream, sketch, collector) = scratch.begin(tools);
        Self { tools, stream, sketch, collector }
    }

    /// Continues the text that was begun last.
    pub(super) fn resume(tools: &'a Tools, scratch: &'a mut SignScratch) -> Self {
        let (stream, sketch, collector) = scratch.resume();
        Self { tools, stream, sketch, collector }
    }

    /// Chooses the data to keep of the text. Call it before the first piece; [`Pipeline::collected`] returns the data
    /// at the end.
    ///
    /// [`Pipeline::collected`]: crate::Pipeline::collected
    pub fn collect(&mut self, collect: Collect) {
        self.collector.keep(collect);
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) {
        for block in blocks(piece) {
            self.hand_on();
            self.stream.push(self.tools, block);
        }
    }

    /// Takes the next piece of a text, as bytes. A piece may begin or end inside a character. After an error the text
    /// is lost.
    pub fn push_bytes(&mut self, piece: &[u8], ill_formed: IllFormed) -> Result<(), NotUtf8> {
        for block in piece.chunks(BLOCK_BYTES) {
            self.hand_on();
            self.stream.push_bytes(self.tools, block, ill_formed)?;
        }
        Ok(())
    }

    /// Ends a text given as bytes. `None` if it has no token.
    pub fn finish_bytes(self, ill_formed: IllFormed) -> Result<Option<Signed>, NotUtf8> {
        self.stream.finish_bytes(self.tools, ill_formed)?;
        Ok(self.finish())
    }

    /// Ends the text. `None` if it has no token.
    pub fn finish(self) -> Option<Signed> {
        let mut signed = Signed::default();
        self.finish_into(&mut signed).then_some(signed)
    }

    /// Ends the text. Returns `false` and leaves `signed` as it was if the text has no token.
    pub fn finish_into(self, signed: &mut Signed) -> bool {
        let Self { tools, stream, sketch, collector } = self;
        let shingles = stream.finish(tools);
        if shingles == 0 {
            return false;
        }
        signed.shingles = shingles;
        collector.add(stream.canonical(), stream.shingles());
        collector.add_short(stream.short());
        signed.content = stream.content();
        tools.sketcher().push(sketch, stream.shingles());
        tools.sketcher().finish(sketch);
        signed.empty_slots = tools.pack_into(sketch, signed.content, &mut signed.signature);
        true
    }

    /// Passes on the results of the last block. This is done only when another block arrives, so that the content hash
    /// of a text with a single block is computed in one go.
    fn hand_on(&mut self) {
        self.collector.add(self.stream.canonical(), self.stream.shingles());
        self.tools.sketcher().push(self.sketch, self.stream.shingles());
        self.stream.hand_on();
    }
}
