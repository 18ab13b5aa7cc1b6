//! One stage at a time, for measuring, testing and explaining. Signing works block by block, but these functions do
//! each stage over a whole text. The output of one stage is the input of the next.

use crate::normalise::Normaliser;
use crate::pipeline::{Pipeline, TokenHashing, Tools, blocks};
use crate::shingle::Shingler;

/// The stages of a pipeline, with their own buffers.
///
/// ```
/// use hapax_core::{Pipeline, SignScratch, Stages, TextSpec};
///
/// let pipeline = Pipeline::new(&TextSpec::default(), None)?;
/// let mut stages = Stages::new(&pipeline);
/// let canonical = stages.canonical("One STAGE at a time: text goes in, shingles come out.").to_owned();
/// let hashes = stages.token_hashes(&canonical).to_owned();
/// let mut shingles = stages.shingles(&hashes).to_owned();
/// assert_eq!((hashes.len(), shingles.len()), (11, 7));
/// shingles.sort_unstable();
/// assert_eq!(shingles, pipeline.shingle_set(&mut SignScratch::default(), &canonical));
/// # Ok::<(), hapax_core::SpecError>(())
/// ```
pub struct Stages<'a> {
    tools: &'a Tools,
    hashing: TokenHashing,
    canonical: String,
    hashes: Vec<u64>,
    shingles: Vec<u64>,
}

impl<'a> Stages<'a> {
    /// Makes the stages of this pipeline.
    pub fn new(pipeline: &'a Pipeline) -> Self {
        let tools = pipeline.tools();
        let (canonical, hashes, shingles) = (String::new(), Vec::new(), Vec::new());
        Self { tools, hashing: TokenHashing::new(tools), canonical, hashes, shingles }
    }

    /// Turns a text into its canonical text.
    pub fn canonical(&mut self, text: &str) -> &str {
        let mut bytes = std::mem::take(&mut self.canonical).into_bytes();
        bytes.clear();
        let mut normaliser = Normaliser::with_rules(self.tools.rules());
        blocks(text).for_each(|block| normaliser.push(block, &mut bytes));
        normaliser.finish(&mut bytes);
        self.canonical = String::from_utf8(bytes).expect("canonical text is UTF-8");
        &self.canonical
    }

    /// Turns canonical text into the hash of each token (of each scalar value, for `char` shingles).
    pub fn token_hashes(&mut self, canonical: &str) -> &[u64] {
        self.hashes.clear();
        self.hashing.begin(self.tools);
        for block in blocks(canonical) {
            self.hashing.push(self.tools, block.as_bytes(), &mut self.hashes);
        }
        self.hashing.finish(self.tools, &mut self.hashes);
        &self.hashes
    }

    /// Turns token hashes into the hash of each shingle, in order, repeats included.
    pub fn shingles(&mut self, token_hashes: &[u64]) -> &[u64] {
        self.shingles.clear();
        self.hashes.clear();
        self.hashes.extend_from_slice(token_hashes);
        let mut shingler = Shingler::new(self.tools.window());
        shingler.push(self.tools.simd(), &mut self.hashes, &mut self.shingles);
        shingler.finish(&self.hashes, &mut self.shingles);
        &self.shingles
    }
}
