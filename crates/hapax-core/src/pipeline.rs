//! A spec with its secret, ready to sign: text -> canonical text -> tokens -> shingles -> signature and content hash,
//! block by block in bounded memory. Knows nothing of bands, storage or threads.

use crate::hash::{ContentHash, ContentHasher, SecretKey, TokenBatch, TokenHasher, content_of_set};
use crate::normalise::{IllFormed, Normaliser, NotUtf8, Rules};
use crate::shingle::Shingler;
use crate::simd::Simd;
use crate::sketch::{Ranks, SketchState, Sketcher};
use crate::spec::{Shingling, SpecError, TextSpec};
use crate::tokens::{Spans, Tokeniser};
use crate::unicode::decode;

/// Bytes of text that go through all stages before the next are looked at: all buffers stay in the cache.
const BLOCK_BYTES: usize = 4096;

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
    rules: Rules,
    hasher: TokenHasher,
    sketcher: Sketcher,
    pub(crate) simd: Simd,
}

/// Reusable buffers, and how far a text that is given in pieces has come. Any pipeline may use them. Once they have
/// met the longest text, signing allocates nothing.
#[derive(Default)]
pub struct SignScratch {
    /// Absent before the first text.
    stream: Option<Stream>,
    buffers: Buffers,
}

/// What goes from stage to stage.
#[derive(Default)]
pub(crate) struct Buffers {
    canonical: Vec<u8>,
    pub(crate) tokens: Tokens,
    hashes: Vec<u64>,
    shingles: Vec<u64>,
    sketch: SketchState,
    collect: Collect,
    collected: Collected,
}

/// What to keep of a text while it is signed. It takes memory as long as the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collect {
    /// Its shingle hashes.
    pub shingles: bool,
    /// Its canonical text.
    pub canonical: bool,
}

/// What was kept of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Shingle hashes, all of them, in no order, some of them more than once.
    pub shingles: Vec<u64>,
    /// The canonical text, in UTF-8.
    pub canonical: Vec<u8>,
    /// Shingles after the last time that repeats were dropped.
    distinct: usize,
}

impl Collected {
    fn add(&mut self, collect: Collect, canonical: &[u8], shingles: &[u64]) {
        /// Repeats are dropped each time this many, or twice as many as were left, have come together.
        const REPEATS_MIN: usize = 1 << 16;
        if collect.canonical {
            self.canonical.extend_from_slice(canonical);
        }
        if collect.shingles {
            self.shingles.extend_from_slice(shingles);
            if self.shingles.len() >= REPEATS_MIN.max(2 * self.distinct) {
                // The first part is sorted: a stable sort finds that, and merges.
                self.shingles.sort();
                self.shingles.dedup();
                self.distinct = self.shingles.len();
            }
        }
    }
}

/// What token hashes are made with.
#[derive(Default)]
pub(crate) struct Tokens {
    spans: Spans,
    batch: TokenBatch,
}

/// What a document is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// k packed slots.
    pub signature: Vec<u8>,
    /// Equal for equal canonical texts, or equal sets.
    pub content: ContentHash,
    /// Windows of a text, repeats counted; distinct elements of a set.
    pub shingles: u64,
    /// Slots that no shingle reached and densification filled; 0 but with an `oph` sketch.
    pub empty_slots: u32,
}

impl Default for Signed {
    fn default() -> Self {
        Self { signature: Vec::new(), content: ContentHash(0), shingles: 0, empty_slots: 0 }
    }
}

impl Pipeline {
    /// Refuses a spec out of range, and a keyed spec without its secret or with another one. A spec without a key does
    /// not use the secret: one process may have both kinds of collections.
    pub fn new(spec: &TextSpec, secret: Option<&SecretKey>) -> Result<Self, SpecError> {
        Self::with_simd(spec, secret, Simd::best())
    }

    /// The same, with given vector instructions instead of the best: for tests and benchmarks.
    pub fn with_simd(spec: &TextSpec, secret: Option<&SecretKey>, simd: Simd) -> Result<Self, SpecError> {
        spec.validate()?;
        let hasher = match (spec.key, secret) {
            (None, _) => TokenHasher::Plain,
            (Some(key), Some(secret)) if secret.fingerprint() == key => TokenHasher::Keyed(secret.clone()),
            (Some(key), Some(secret)) => {
                let given = secret.fingerprint();
                return Err(SpecError(format!("key: the spec names secret {key:016x}, but {given:016x} was given")));
            }
            (Some(key), None) => {
                return Err(SpecError(format!("key: the spec names secret {key:016x}, but none was given")));
            }
        };
        Ok(Self {
            spec: spec.clone(),
            rules: Rules::new(spec.fold, spec.marks, spec.digits, simd),
            hasher,
            sketcher: Sketcher::with_simd(spec.sketch, spec.shape.k, simd),
            simd,
        })
    }

    /// The spec.
    pub fn spec(&self) -> &TextSpec {
        &self.spec
    }

    /// Signs a text. `None`: it has no token.
    pub fn sign(&self, scratch: &mut SignScratch, text: &str) -> Option<Signed> {
        let mut signed = Signed::default();
        self.sign_into(scratch, text, &mut signed).then_some(signed)
    }

    /// Signs a text into what an earlier one was signed into. `false`: it has no token, and `signed` is as it was.
    pub fn sign_into(&self, scratch: &mut SignScratch, text: &str, signed: &mut Signed) -> bool {
        let mut signer = self.signer(scratch);
        signer.push(text);
        signer.finish_into(signed)
    }

    /// Signs a text that is given in pieces.
    pub fn signer<'a>(&'a self, scratch: &'a mut SignScratch) -> Signer<'a> {
        let (stream, buffers) = self.begin(scratch);
        Signer { pipeline: self, stream, buffers }
    }

    /// Goes on with the text that [`Pipeline::signer`] began on this scratch: the scratch may have changed threads, and
    /// must not have been used for anything else.
    ///
    /// # Panics
    /// If no text was begun.
    pub fn resume<'a>(&'a self, scratch: &'a mut SignScratch) -> Signer<'a> {
        let SignScratch { stream, buffers } = scratch;
        Signer { pipeline: self, stream: stream.as_mut().expect("a text was begun"), buffers }
    }

    /// A ready set, elements given as 64-bit shingle hashes from `element_text` / `element_integer`; sorted and made
    /// distinct on the way. `None` if empty.
    pub fn sign_set(&self, scratch: &mut SignScratch, elements: &mut Vec<u64>) -> Option<Signed> {
        elements.sort_unstable();
        elements.dedup();
        if elements.is_empty() {
            return None;
        }
        let sketch = &mut scratch.buffers.sketch;
        self.sketcher.begin(sketch);
        self.sketcher.push(sketch, elements);
        self.sketcher.finish(sketch);
        let mut signed = Signed {
            content: content_of_set(&self.hasher, elements),
            shingles: elements.len() as u64,
            ..Signed::default()
        };
        signed.empty_slots = self.sketcher.pack_into(sketch, self.spec.shape.bits, &mut signed.signature);
        Some(signed)
    }

    /// What was kept of the text that was signed last on this scratch, as [`Signer::collect`] asked for; once.
    pub fn collected(&self, scratch: &mut SignScratch) -> Collected {
        std::mem::take(&mut scratch.buffers.collected)
    }

    /// The ranks of what was signed last on this scratch: unlike signatures they merge.
    pub fn ranks(&self, scratch: &SignScratch) -> Ranks {
        self.sketcher.take_ranks(&scratch.buffers.sketch)
    }

    /// Shingle hash of a string of a given set; the string is not normalised.
    pub fn element_text(&self, element: &str) -> u64 {
        self.hasher.element_text(element)
    }

    /// Shingle hash of an integer of a given set.
    pub fn element_integer(&self, element: i128) -> u64 {
        self.hasher.element_integer(element)
    }

    /// Sorted distinct shingle hashes, for exact comparison. Empty: the text has no token.
    pub fn shingle_set(&self, scratch: &mut SignScratch, text: &str) -> Vec<u64> {
        let (stream, buffers) = self.begin(scratch);
        for block in blocks(text) {
            stream.normaliser.push(block, &mut buffers.canonical);
            stream.advance(self, buffers, 0);
            buffers.canonical.clear();
        }
        stream.finish(self, buffers);
        let mut set = std::mem::take(&mut buffers.shingles);
        set.sort_unstable();
        set.dedup();
        set
    }

    /// The same of a text that is canonical already.
    pub fn shingle_set_of_canonical(&self, scratch: &mut SignScratch, canonical: &str) -> Vec<u64> {
        let (stream, buffers) = self.begin(scratch);
        let Buffers { tokens, hashes, shingles, .. } = buffers;
        for block in blocks(canonical) {
            stream.hash_tokens(self, block.as_bytes(), tokens, hashes);
            stream.shingler.push(self.simd, hashes, shingles);
        }
        stream.hash_last_token(self, hashes);
        stream.shingler.push(self.simd, hashes, shingles);
        stream.shingler.finish(hashes, shingles);
        let mut set = std::mem::take(shingles);
        set.sort_unstable();
        set.dedup();
        set
    }

    /// The canonical text.
    pub fn canonical(&self, text: &str) -> String {
        let mut canonical = Vec::with_capacity(text.len());
        let mut normaliser = Normaliser::with_rules(self.rules);
        normaliser.push(text, &mut canonical);
        normaliser.finish(&mut canonical);
        String::from_utf8(canonical).expect("canonical text is UTF-8")
    }

    /// The tokens of a text as they are hashed; in char mode the scalar values of the canonical text.
    pub fn tokens(&self, text: &str) -> Vec<String> {
        let canonical = self.canonical(text);
        if matches!(self.spec.shingling, Shingling::Char(_)) {
            return canonical.chars().map(String::from).collect();
        }
        let (mut tokeniser, mut spans) = (Tokeniser::new(self.rules.table()), Spans::default());
        let mut tokens = Vec::new();
        let mut carried = Vec::new();
        for block in blocks(&canonical) {
            tokeniser.push(self.simd, block.as_bytes(), &mut spans, |token| carried.extend_from_slice(token));
            let here = spans.starts().iter().zip(spans.ends()).map(|(&s, &e)| block[s as usize..e as usize].to_owned());
            tokens.extend(utf8(&mut carried).into_iter().chain(here));
        }
        tokeniser.finish(|token| carried.extend_from_slice(token));
        tokens.extend(utf8(&mut carried));
        tokens
    }

    /// The hash of a token (of its first scalar value, in char mode).
    pub fn token_hash(&self, token: &str) -> u64 {
        match self.spec.shingling {
            Shingling::Word(_) => self.hasher.token(token.as_bytes()),
            Shingling::Char(_) => self.hasher.scalar(token.chars().next().unwrap_or_default().into()),
        }
    }

    pub(crate) fn begin<'a>(&self, scratch: &'a mut SignScratch) -> (&'a mut Stream, &'a mut Buffers) {
        let SignScratch { stream, buffers } = scratch;
        buffers.canonical.clear();
        buffers.hashes.clear();
        buffers.shingles.clear();
        buffers.collect = Collect::default();
        buffers.collected = Collected::default();
        self.sketcher.begin(&mut buffers.sketch);
        let (Shingling::Word(window) | Shingling::Char(window)) = self.spec.shingling;
        let stream = stream.get_or_insert_with(|| Stream {
            normaliser: Normaliser::with_rules(self.rules),
            tokeniser: Tokeniser::new(self.rules.table()),
            shingler: Shingler::new(window),
            content: ContentHasher::new(&self.hasher),
        });
        stream.normaliser.begin(self.rules);
        stream.tokeniser.begin(self.rules.table());
        stream.shingler = Shingler::new(window);
        stream.content.begin(&self.hasher);
        (stream, buffers)
    }
}

/// The scalar values of well-formed UTF-8.
fn code_points(text: &[u8]) -> impl Iterator<Item = u32> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let (c, bytes) = if rest.first()?.is_ascii() { (u32::from(rest[0]), 1) } else { decode(rest) };
        at += bytes;
        Some(c)
    })
}

/// Takes out a token that spanned two pieces, if there was one.
fn utf8(token: &mut Vec<u8>) -> Option<String> {
    (!token.is_empty()).then(|| String::from_utf8(std::mem::take(token)).expect("tokens are cut at characters"))
}

/// Pieces of a text of at most [`BLOCK_BYTES`].
pub(crate) fn blocks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (block, rest) = text.split_at(text.floor_char_boundary(BLOCK_BYTES));
        text = rest;
        (!block.is_empty()).then_some(block)
    })
}

/// Where a text stands on its way from pieces to shingles and content hash.
pub(crate) struct Stream {
    pub(crate) normaliser: Normaliser,
    tokeniser: Tokeniser,
    pub(crate) shingler: Shingler,
    content: ContentHasher,
}

impl Stream {
    /// Appends the shingles that the canonical text in the buffers completes; it is new from byte `from` on.
    fn advance(&mut self, pipeline: &Pipeline, buffers: &mut Buffers, from: usize) {
        let Buffers { canonical, tokens, hashes, shingles, .. } = buffers;
        self.hash_tokens(pipeline, &canonical[from..], tokens, hashes);
        self.shingler.push(pipeline.simd, hashes, shingles);
    }

    /// Appends the hashes of the tokens (of the scalar values, in char mode) that end in this canonical text.
    pub(crate) fn hash_tokens(
        &mut self,
        pipeline: &Pipeline,
        canonical: &[u8],
        Tokens { spans, batch }: &mut Tokens,
        hashes: &mut Vec<u64>,
    ) {
        let (simd, hasher) = (pipeline.simd, &pipeline.hasher);
        match pipeline.spec.shingling {
            Shingling::Word(_) => {
                self.tokeniser.push(simd, canonical, spans, |token| hashes.push(hasher.token(token)));
                hasher.tokens(simd, canonical, (spans.starts(), spans.ends()), batch, hashes);
            }
            Shingling::Char(_) => hashes.extend(code_points(canonical).map(|c| hasher.scalar(c))),
        }
    }

    /// Appends the hash of the token that the end of the text ends.
    pub(crate) fn hash_last_token(&mut self, pipeline: &Pipeline, hashes: &mut Vec<u64>) {
        self.tokeniser.finish(|token| hashes.push(pipeline.hasher.token(token)));
    }

    /// Appends what only the end of the text completes, and returns how many shingles there were, repeats counted.
    fn finish(&mut self, pipeline: &Pipeline, buffers: &mut Buffers) -> u64 {
        let from = buffers.canonical.len();
        self.normaliser.finish(&mut buffers.canonical);
        self.advance(pipeline, buffers, from);
        let Buffers { hashes, shingles, .. } = buffers;
        self.hash_last_token(pipeline, hashes);
        self.shingler.push(pipeline.simd, hashes, shingles);
        self.shingler.finish(hashes, shingles)
    }
}

/// A text on its way to a signature, given in pieces cut anywhere. Memory is bounded whatever the length. Everything is
/// in the scratch: a signer that is dropped is taken up again by [`Pipeline::resume`].
pub struct Signer<'a> {
    pipeline: &'a Pipeline,
    stream: &'a mut Stream,
    buffers: &'a mut Buffers,
}

impl Signer<'_> {
    /// Asks to keep something of the text, before its first piece; [`Pipeline::collected`] gives it out at the end.
    pub fn collect(&mut self, collect: Collect) {
        self.buffers.collect = collect;
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) {
        for block in blocks(piece) {
            self.hand_on();
            self.stream.normaliser.push(block, &mut self.buffers.canonical);
            self.stream.advance(self.pipeline, self.buffers, 0);
        }
    }

    /// Takes the next piece of a text given as bytes, which may be cut inside a character. After an error the text is
    /// lost.
    pub fn push_bytes(&mut self, piece: &[u8], ill_formed: IllFormed) -> Result<(), NotUtf8> {
        for block in piece.chunks(BLOCK_BYTES) {
            self.hand_on();
            self.stream.normaliser.push_bytes(block, ill_formed, &mut self.buffers.canonical)?;
            self.stream.advance(self.pipeline, self.buffers, 0);
        }
        Ok(())
    }

    /// The end of a text given as bytes. `None`: it has no token.
    pub fn finish_bytes(self, ill_formed: IllFormed) -> Result<Option<Signed>, NotUtf8> {
        let from = self.buffers.canonical.len();
        self.stream.normaliser.finish_bytes(ill_formed, &mut self.buffers.canonical)?;
        self.stream.advance(self.pipeline, self.buffers, from);
        Ok(self.finish())
    }

    /// The end of the text. `None`: it has no token.
    pub fn finish(self) -> Option<Signed> {
        let mut signed = Signed::default();
        self.finish_into(&mut signed).then_some(signed)
    }

    /// The end of the text. `false`: it has no token, and `signed` is as it was.
    pub fn finish_into(self, signed: &mut Signed) -> bool {
        let Self { pipeline, stream, buffers } = self;
        let shingles = stream.finish(pipeline, buffers);
        if shingles == 0 {
            return false;
        }
        signed.shingles = shingles;
        buffers.collected.add(buffers.collect, &buffers.canonical, &buffers.shingles);
        signed.content = stream.content.finish(&buffers.canonical);
        pipeline.sketcher.push(&mut buffers.sketch, &buffers.shingles);
        pipeline.sketcher.finish(&mut buffers.sketch);
        let bits = pipeline.spec.shape.bits;
        signed.empty_slots = pipeline.sketcher.pack_into(&mut buffers.sketch, bits, &mut signed.signature);
        true
    }

    /// Hands on what the last piece came to. It waits until there is another piece, because most texts have but one,
    /// whose content hash is then made in one go.
    fn hand_on(&mut self) {
        let Buffers { canonical, shingles, sketch, collect, collected, .. } = &mut *self.buffers;
        collected.add(*collect, canonical, shingles);
        if !canonical.is_empty() {
            self.stream.content.update(canonical);
            canonical.clear();
        }
        self.pipeline.sketcher.push(sketch, shingles);
        shingles.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Fold, SignatureShape};

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
