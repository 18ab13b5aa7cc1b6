//! A spec with its secret, ready to sign: text -> canonical text -> tokens -> shingles -> signature and content hash,
//! block by block in bounded memory. Knows nothing of bands, storage or threads.

mod blocks;
mod collect;
mod hashing;
mod scratch;
mod signed;
mod signer;
mod stream;
mod tools;

use crate::hash::{SecretKey, content_of_set};
use crate::normalise::Normaliser;
use crate::simd::Simd;
use crate::sketch::Ranks;
use crate::spec::{Shingling, SpecError, TextSpec};
use crate::tokens::{Spans, Tokeniser};

pub(crate) use blocks::blocks;
pub use collect::{Collect, Collected};
pub(crate) use hashing::TokenHashing;
pub use scratch::SignScratch;
pub use signed::Signed;
pub use signer::Signer;
pub(crate) use tools::Tools;

/// A spec with its secret, ready to sign. Cheap to share, `Send + Sync`.
///
/// ```
/// use hapax_core::{Pipeline, SignScratch, TextSpec};
///
/// let pipeline = Pipeline::new(&TextSpec::default(), None)?;
/// let mut scratch = SignScratch::default();
/// let a = pipeline.sign(&mut scratch, "The quick brown fox jumps over the dog").expect("it has tokens");
/// let b = pipeline.sign(&mut scratch, "the QUICK brown fox\njumps over the dog ").expect("it has tokens");
/// assert_eq!((a.signature, a.content, a.shingles), (b.signature, b.content, 4));
/// assert!(pipeline.sign(&mut scratch, "❤️ — …").is_none());
/// # Ok::<(), hapax_core::SpecError>(())
/// ```
pub struct Pipeline {
    spec: TextSpec,
    tools: Tools,
}

impl Pipeline {
    /// Makes a pipeline. Refuses a spec that is out of range. Refuses a keyed spec if the secret is absent or has
    /// another fingerprint. A spec without a key does not use the secret, so one process may have collections of both
    /// kinds.
    pub fn new(spec: &TextSpec, secret: Option<&SecretKey>) -> Result<Self, SpecError> {
        Self::with_simd(spec, secret, Simd::best())
    }

    /// Like [`Pipeline::new`], with the given vector instructions instead of the best ones, for tests and benchmarks.
    pub fn with_simd(spec: &TextSpec, secret: Option<&SecretKey>, simd: Simd) -> Result<Self, SpecError> {
        Ok(Self { spec: spec.clone(), tools: Tools::new(spec, secret, simd)? })
    }

    /// Returns the spec.
    pub fn spec(&self) -> &TextSpec {
        &self.spec
    }

    /// Signs a text. `None` if the text has no token.
    pub fn sign(&self, scratch: &mut SignScratch, text: &str) -> Option<Signed> {
        let mut signed = Signed::default();
        self.sign_into(scratch, text, &mut signed).then_some(signed)
    }

    /// Signs a text into an existing [`Signed`]. Returns `false` and leaves `signed` as it was if the text has no
    /// token.
    pub fn sign_into(&self, scratch: &mut SignScratch, text: &str, signed: &mut Signed) -> bool {
        let mut signer = self.signer(scratch);
        signer.push(text);
        signer.finish_into(signed)
    }

    /// Begins to sign a text that is given in pieces.
    pub fn signer<'a>(&'a self, scratch: &'a mut SignScratch) -> Signer<'a> {
        Signer::begin(&self.tools, scratch)
    }

    /// Continues the text that [`Pipeline::signer`] began on this scratch. The scratch may have moved to another
    /// thread, but must not have been used for anything else.
    ///
    /// # Panics
    /// If no text was begun.
    pub fn resume<'a>(&'a self, scratch: &'a mut SignScratch) -> Signer<'a> {
        Signer::resume(&self.tools, scratch)
    }

    /// Signs a set. Its elements are 64-bit shingle hashes from `element_text` or `element_integer`. Sorts the elements
    /// and removes repeats. `None` if the set is empty.
    pub fn sign_set(&self, scratch: &mut SignScratch, elements: &mut Vec<u64>) -> Option<Signed> {
        elements.sort_unstable();
        elements.dedup();
        if elements.is_empty() {
            return None;
        }
        let (sketcher, sketch) = (self.tools.sketcher(), scratch.sketch_mut());
        sketcher.begin(sketch);
        sketcher.push(sketch, elements);
        sketcher.finish(sketch);
        let mut signed = Signed {
            content: content_of_set(self.tools.hasher(), elements),
            shingles: elements.len() as u64,
            ..Signed::default()
        };
        signed.empty_slots = self.tools.pack_into(sketch, signed.content, &mut signed.signature);
        Some(signed)
    }

    /// Takes the collected data of the last text signed on this scratch, if [`Signer::collect`] requested it. A second
    /// call returns nothing.
    pub fn collected(&self, scratch: &mut SignScratch) -> Collected {
        scratch.collector().take()
    }

    /// Returns the ranks of the last text or set signed on this scratch. Unlike signatures, ranks can be merged.
    pub fn ranks(&self, scratch: &SignScratch) -> Ranks {
        self.tools.sketcher().take_ranks(scratch.sketch())
    }

    /// Returns the shingle hash of a string in a set. The string is not normalised.
    pub fn element_text(&self, element: &str) -> u64 {
        self.tools.hasher().element_text(element)
    }

    /// Returns the shingle hash of an integer in a set.
    pub fn element_integer(&self, element: i128) -> u64 {
        self.tools.hasher().element_integer(element)
    }

    /// Returns the sorted distinct shingle hashes, for exact comparison. There are none if the text has no token.
    pub fn shingle_set(&self, scratch: &mut SignScratch, text: &str) -> Vec<u64> {
        let (stream, ..) = scratch.begin(&self.tools);
        for block in blocks(text) {
            stream.push(&self.tools, block);
            stream.drop_canonical();
        }
        stream.finish(&self.tools);
        sorted_distinct(stream.take_shingles())
    }

    /// Like [`Pipeline::shingle_set`], for a text that is canonical already.
    pub fn shingle_set_of_canonical(&self, scratch: &mut SignScratch, canonical: &str) -> Vec<u64> {
        let (stream, ..) = scratch.begin(&self.tools);
        blocks(canonical).for_each(|block| stream.push_canonical(&self.tools, block));
        stream.finish_canonical(&self.tools);
        sorted_distinct(stream.take_shingles())
    }

    /// Returns the canonical text.
    pub fn canonical(&self, text: &str) -> String {
        let mut canonical = Vec::with_capacity(text.len());
        let mut normaliser = Normaliser::with_rules(self.tools.rules());
        normaliser.push(text, &mut canonical);
        normaliser.finish(&mut canonical);
        String::from_utf8(canonical).expect("canonical text is UTF-8")
    }

    /// Returns the tokens of a text as they are hashed; for `char` shingles, the scalar values of the canonical text.
    pub fn tokens(&self, text: &str) -> Vec<String> {
        let canonical = self.canonical(text);
        if matches!(self.spec.shingling, Shingling::Char(_)) {
            return canonical.chars().map(String::from).collect();
        }
        let (mut tokeniser, mut spans) = (Tokeniser::new(self.tools.rules().table()), Spans::default());
        let mut tokens = Vec::new();
        let mut carried = Vec::new();
        for block in blocks(&canonical) {
            tokeniser.push(self.tools.simd(), block.as_bytes(), &mut spans, |token| carried.extend_from_slice(token));
            let here = spans.starts().iter().zip(spans.ends()).map(|(&s, &e)| block[s as usize..e as usize].to_owned());
            tokens.extend(utf8(&mut carried).into_iter().chain(here));
        }
        tokeniser.finish(|token| carried.extend_from_slice(token));
        tokens.extend(utf8(&mut carried));
        tokens
    }

    /// Returns the hash of a token. For `char` shingles, this is the hash of its first scalar value.
    pub fn token_hash(&self, token: &str) -> u64 {
        match self.spec.shingling {
            Shingling::Word(_) => self.tools.hasher().token(token.as_bytes()),
            Shingling::Char(_) => self.tools.hasher().scalar(token.chars().next().unwrap_or_default().into()),
        }
    }

    /// Appends the hash of each token of a text, in order, repeats included.
    pub fn token_hashes(&self, scratch: &mut SignScratch, text: &str, hashes: &mut Vec<u64>) {
        let (stream, ..) = scratch.begin(&self.tools);
        blocks(text).for_each(|block| stream.push_tokens(&self.tools, block, hashes));
        stream.finish_tokens(&self.tools, hashes);
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }
}

fn sorted_distinct(mut shingles: Vec<u64>) -> Vec<u64> {
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

/// Takes the token that spanned two pieces, if there was one.
fn utf8(token: &mut Vec<u8>) -> Option<String> {
    (!token.is_empty()).then(|| String::from_utf8(std::mem::take(token)).expect("tokens are cut at characters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::IllFormed;
    use crate::spec::{Fold, SignatureShape, SketchKind};

    fn plain() -> Pipeline {
        Pipeline::new(&TextSpec::default(), None).expect("the default spec is valid")
    }

    fn keyed(secret: &SecretKey) -> TextSpec {
        TextSpec { key: Some(secret.fingerprint()), ..TextSpec::default() }
    }

    #[test]
    fn pipelines_and_scratches_go_between_threads() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<Pipeline>();
        is_shared::<SignScratch>();
    }

    #[test]
    fn a_keyed_spec_needs_its_own_secret() {
        let (secret, other) = (SecretKey::new([1; 16]), SecretKey::new([2; 16]));
        assert!(Pipeline::new(&keyed(&secret), Some(&secret)).is_ok());
        let refusal = |given| Pipeline::new(&keyed(&secret), given).err().expect("refused").to_string();
        for text in [refusal(None), refusal(Some(&other))] {
            assert!(text.contains(&format!("{:016x}", secret.fingerprint())), "{text}");
        }
        assert!(refusal(Some(&other)).contains(&format!("{:016x}", other.fingerprint())));
        assert!(Pipeline::new(&TextSpec::default(), Some(&secret)).is_ok(), "a spec without key uses none");
    }

    #[test]
    fn a_secret_changes_every_hash() {
        let (secret, other) = (SecretKey::new([1; 16]), SecretKey::new([2; 16]));
        let pipelines = [
            plain(),
            Pipeline::new(&keyed(&secret), Some(&secret)).expect("valid"),
            Pipeline::new(&keyed(&other), Some(&other)).expect("valid"),
        ];
        let mut scratch = SignScratch::default();
        let made = pipelines.each_ref().map(|pipeline| pipeline.sign(&mut scratch, "one two three").expect("tokens"));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert_ne!(made[a].content, made[b].content);
            assert_ne!(made[a].signature, made[b].signature);
            assert_ne!(pipelines[a].element_text("x"), pipelines[b].element_text("x"));
            assert_ne!(pipelines[a].element_integer(1), pipelines[b].element_integer(1));
        }
    }

    #[test]
    fn a_spec_out_of_range_is_refused() {
        for spec in [
            TextSpec { shingling: Shingling::Word(0), ..TextSpec::default() },
            TextSpec { shingling: Shingling::Char(33), ..TextSpec::default() },
            TextSpec { shape: SignatureShape { k: 100, bits: 8 }, ..TextSpec::default() },
            TextSpec { shape: SignatureShape { k: 256, bits: 64 }, ..TextSpec::default() },
        ] {
            assert!(Pipeline::new(&spec, None).is_err(), "{spec:?}");
        }
    }

    #[test]
    fn empty_is_named_and_a_scratch_remembers_nothing() {
        let (pipeline, mut scratch) = (plain(), SignScratch::default());
        let alone = pipeline.sign(&mut SignScratch::default(), "a text by itself");
        for before in ["", " \u{200b} ", "!?", "something else altogether, and rather longer than that", "half"] {
            pipeline.signer(&mut scratch).push("a text left halfway thr");
            let made = pipeline.sign(&mut scratch, before);
            assert_eq!(made.is_none(), !before.contains('e') && !before.contains('a'), "{before:?}");
            assert_eq!(pipeline.sign(&mut scratch, "a text by itself"), alone);
        }
        assert!(pipeline.shingle_set(&mut scratch, "…").is_empty());
        assert!(pipeline.sign_set(&mut scratch, &mut Vec::new()).is_none());
    }

    #[test]
    fn shingles_are_windows_and_repeats_count() {
        let (pipeline, mut scratch) = (plain(), SignScratch::default());
        let mut count = |text: &str| pipeline.sign(&mut scratch, text).map(|signed| signed.shingles);
        assert_eq!(count("a"), Some(1));
        assert_eq!(count("a b c d"), Some(1));
        assert_eq!(count("a b c d e"), Some(1));
        assert_eq!(count("a b c d e f"), Some(2));
        assert_eq!(count(&"a ".repeat(10_000)), Some(9_996));
    }

    #[test]
    fn ranks_and_signature_are_of_the_shingle_set() {
        let spec = TextSpec { fold: Fold::Nfkc, shingling: Shingling::Char(7), ..TextSpec::default() };
        let (pipeline, mut scratch) = (Pipeline::new(&spec, None).expect("valid"), SignScratch::default());
        let text = "The harbour, the boat; the harbour, the gull. ".repeat(300);
        let signed = pipeline.sign(&mut scratch, &text).expect("tokens");
        assert_eq!(pipeline.ranks(&scratch).pack(8), signed.signature);
        let set = pipeline.shingle_set(&mut scratch, &text);
        assert!(set.is_sorted_by(|a, b| a < b));
        assert!((set.len() as u64) < signed.shingles);
        let of_set = pipeline.sign_set(&mut scratch, &mut set.clone()).expect("not empty");
        assert_eq!(of_set.signature, signed.signature);
        assert_ne!(of_set.content, signed.content, "a set is no text");
    }

    #[test]
    fn what_is_collected_is_the_canonical_text_and_its_shingles() {
        let mut scratch = SignScratch::default();
        let all = Collect { shingles: true, canonical: true };
        let texts = ["", "…", "One two", "Ǆ ﷺ e\u{301}\u{200b} STRASSE, 東京 タワー\u{345}\n\n x", "half \u{1F1E6}"];
        let texts = texts.map(str::to_owned).into_iter().chain([
            "Tall oaks from little acorns GROW; ".repeat(900),
            (0..90_000).map(|word| format!("w{word} ")).collect(),
            "e".to_owned() + &"\u{301}".repeat(200),
        ]);
        for text in texts {
            for shingling in [Shingling::Word(5), Shingling::Word(1), Shingling::Char(4)] {
                let spec = TextSpec { shingling, ..TextSpec::default() };
                let pipeline = Pipeline::new(&spec, None).expect("valid");
                let set = pipeline.shingle_set(&mut scratch, &text);
                let canonical = pipeline.canonical(&text);
                assert_eq!(pipeline.shingle_set_of_canonical(&mut scratch, &canonical), set, "{text:.40}");
                let plain = pipeline.sign(&mut scratch, &text);
                assert_eq!(pipeline.collected(&mut scratch), Collected::default());
                for piece in [1 + text.len() / 3, text.len() + 1] {
                    let mut signer = pipeline.signer(&mut scratch);
                    signer.collect(all);
                    for piece in text.as_bytes().chunks(piece) {
                        signer.push_bytes(piece, IllFormed::Refuse).expect("UTF-8");
                    }
                    assert_eq!(signer.finish_bytes(IllFormed::Refuse).expect("UTF-8"), plain);
                    let Collected { mut shingles, canonical: kept, .. } = pipeline.collected(&mut scratch);
                    shingles.sort_unstable();
                    shingles.dedup();
                    assert_eq!(shingles, set, "{text:.40}");
                    if plain.is_some() {
                        assert_eq!(kept, canonical.as_bytes(), "{text:.40}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_a_sketch_the_signature_is_the_content_hash_and_short_texts_keep_their_tokens() {
        let (sketch, shape) = (SketchKind::None, SignatureShape::OF_CONTENT);
        let spec = TextSpec { shingling: Shingling::Word(5), sketch, shape, ..TextSpec::default() };
        let (pipeline, mut scratch) = (Pipeline::new(&spec, None).expect("valid"), SignScratch::default());
        for text in ["one", "one two three four", "one two three four five", "one two three four five six"] {
            let mut signer = pipeline.signer(&mut scratch);
            signer.collect(Collect { shingles: true, canonical: false });
            // A text that is mostly white space, in several blocks.
            signer.push(text);
            signer.push(&" ".repeat(100_000));
            let signed = signer.finish().expect("it has tokens");
            assert_eq!(signed.content, plain().sign(&mut SignScratch::default(), text).expect("tokens").content);
            assert_eq!(signed.signature, signed.content.0.to_be_bytes());
            let mut tokens = Vec::new();
            let collected = pipeline.collected(&mut scratch);
            pipeline.token_hashes(&mut scratch, text, &mut tokens);
            let expected = if tokens.len() < 5 { tokens } else { Vec::new() };
            assert_eq!(collected.short, expected, "{text}");
        }
    }

    #[test]
    fn a_set_has_neither_order_nor_repeats() {
        let (pipeline, mut scratch) = (plain(), SignScratch::default());
        let mut sign = |elements: &[&str]| {
            let mut hashes: Vec<u64> = elements.iter().map(|element| pipeline.element_text(element)).collect();
            pipeline.sign_set(&mut scratch, &mut hashes).expect("not empty")
        };
        assert_eq!(sign(&["a", "b", "c"]), sign(&["c", "a", "b", "a"]));
        assert_eq!(sign(&["a", "b", "c"]).shingles, 3);
        assert_ne!(sign(&["a", "b"]).content, sign(&["a", "B"]).content);
    }
}
