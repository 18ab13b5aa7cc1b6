//! Text -> the hash of each token, and where the token is in the text itself. The tokens are those of the canonical text.
//! Signing does not need their places in the text, so it does not use this, and is faster.

use crate::normalise::Normaliser;
use crate::pipeline::{Pipeline, Tools};
use crate::tokens::{Spans, TOKEN_BYTES_MAX, Tokeniser};

/// Where a token is in a text: its first byte, and the byte after it.
pub type TokenPlace = (u32, u32);

/// Finds the tokens of texts. Its buffers are reused.
///
/// ```
/// use hapax_core::{Pipeline, TextSpec, TokenLocator};
///
/// let pipeline = Pipeline::new(&TextSpec::default(), None)?;
/// let mut locator = TokenLocator::new(&pipeline);
/// let text = "The “CAFÉ” is open.";
/// locator.locate(text);
/// let words: Vec<_> = locator.places().iter().map(|&(from, to)| &text[from as usize..to as usize]).collect();
/// assert_eq!(words, ["The", "CAFÉ", "is", "open"]);
/// assert_eq!(locator.hashes()[1], pipeline.token_hash("café"));
/// # Ok::<(), hapax_core::SpecError>(())
/// ```
pub struct TokenLocator<'a> {
    tools: &'a Tools,
    tokeniser: Tokeniser,
    spans: Spans,
    /// The canonical text of a run.
    canonical: Vec<u8>,
    /// For each character of a run: its place in the run, and the length of the canonical text that ends with it.
    characters: Vec<(usize, usize)>,
    hashes: Vec<u64>,
    places: Vec<TokenPlace>,
}

impl<'a> TokenLocator<'a> {
    /// Makes a locator of words. It folds texts as the pipeline does; the pipeline may have any shingling.
    pub fn new(pipeline: &'a Pipeline) -> Self {
        let tools = pipeline.tools();
        Self {
            tools,
            tokeniser: Tokeniser::new(tools.rules().table()),
            spans: Spans::default(),
            canonical: Vec::new(),
            characters: Vec::new(),
            hashes: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The hash of each token of the last text, in order.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The place of each token of the last text. If one character becomes several tokens, these have the same place.
    pub fn places(&self) -> &[TokenPlace] {
        &self.places
    }

    /// Finds the tokens of a text. Panics if the text has 4 GiB or more.
    pub fn locate(&mut self, text: &str) {
        assert!(u32::try_from(text.len()).is_ok(), "a text is shorter than 4 GiB");
        self.hashes.clear();
        self.places.clear();
        let (bytes, mut at) = (text.as_bytes(), 0);
        // An ASCII character that is neither a letter nor a digit is in no token, and begins a new one after it. So the
        // runs between such characters can be folded one by one.
        while let Some(skipped) = bytes[at..].iter().position(|&byte| is_in_run(byte)) {
            let from = at + skipped;
            let len = bytes[from..].iter().position(|&byte| !is_in_run(byte));
            let to = len.map_or(bytes.len(), |len| from + len);
            let run = &text[from..to];
            if run.is_ascii() {
                self.ascii(from, run)
            } else {
                self.other(from, run)
            }
            at = to;
        }
    }

    /// Takes a run of ASCII letters and digits. Folding keeps its length.
    fn ascii(&mut self, from: usize, run: &str) {
        self.fold(run);
        for (number, token) in self.canonical.chunks(TOKEN_BYTES_MAX).enumerate() {
            let start = from + number * TOKEN_BYTES_MAX;
            self.hashes.push(self.tools.hasher().token(token));
            self.places.push((start as u32, (start + token.len()) as u32));
        }
    }

    fn fold(&mut self, run: &str) {
        self.canonical.clear();
        let mut normaliser = Normaliser::with_rules(self.tools.rules());
        normaliser.push(run, &mut self.canonical);
        normaliser.finish(&mut self.canonical);
    }

    /// Takes a run with other characters. After each character, looks how long the canonical text would be if the run
    /// ended there.
    fn other(&mut self, from: usize, run: &str) {
        self.characters.clear();
        let mut normaliser = Normaliser::with_rules(self.tools.rules());
        let mut length = 0;
        let (mut out, mut ended) = (std::mem::take(&mut self.canonical), Vec::new());
        out.clear();
        for (at, character) in run.char_indices() {
            normaliser.push(&run[at..at + character.len_utf8()], &mut out);
            ended.clear();
            normaliser.clone().finish(&mut ended);
            length = length.max(out.len() + ended.len());
            self.characters.push((at, length));
        }
        normaliser.finish(&mut out);
        // So the last token ends, too.
        out.push(b' ');
        let Self { tools, tokeniser, spans, characters, hashes, places, .. } = self;
        tokeniser.begin(tools.rules().table());
        tokeniser.push(tools.simd(), &out, spans, |_| {});
        for (&start, &end) in spans.starts().iter().zip(spans.ends()) {
            let (start, end) = (start as usize, end as usize);
            hashes.push(tools.hasher().token(&out[start..end]));
            let first = characters.partition_point(|&(_, length)| length <= start);
            // Characters that add nothing belong to the token before them: they were composed with it, or removed.
            let mut last = characters.partition_point(|&(_, length)| length < end);
            let character = |number: usize| run[characters[number].0..].chars().next().expect("a character is there");
            while characters.get(last + 1).is_some_and(|&(_, length)| length <= end)
                && !character(last + 1).is_whitespace()
            {
                last += 1;
            }
            let place = |at: usize| (from + at) as u32;
            let to = characters.get(last + 1).map_or(run.len(), |&(at, _)| at);
            places.push((place(characters[first.min(last)].0), place(to)));
        }
        self.canonical = out;
    }
}

fn is_in_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix64;
    use crate::spec::{Digits, Fold, Marks, TextSpec};
    use crate::stages::Stages;

    /// Pieces of text that fold, compose or end tokens in all kinds of ways.
    const ALPHABET: &[&str] = &[
        "a",
        "B",
        "z9",
        " ",
        "\n",
        "-",
        ".",
        "é",
        "e\u{301}",
        "\u{301}",
        "\u{323}",
        "ß",
        "ﬁ",
        "½",
        "㍿",
        "漢",
        "字",
        "ก",
        "า",
        "한",
        "ᄒ",
        "ᅡ",
        "ᆫ",
        "\u{200d}",
        "\u{feff}",
        "\u{a0}",
        "\u{3000}",
        "—",
        "“",
        "ﷺ",
        "<\u{338}",
        "Å",
        "İ",
        "ſ",
        "²",
        "①",
        "🙂",
        "अ",
        "ि",
        "\u{ad}",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "ééééééééééééééééééééééééééééééééééééééééééééééééé",
    ];

    fn specs() -> impl Iterator<Item = TextSpec> {
        let folds = [Fold::NfkcCasefold, Fold::Nfkc, Fold::None];
        folds.into_iter().flat_map(|fold| {
            [(Marks::Keep, Digits::Keep), (Marks::Strip, Digits::Zero)].map(|(marks, digits)| TextSpec {
                fold,
                marks,
                digits,
                ..TextSpec::default()
            })
        })
    }

    #[test]
    fn the_tokens_are_those_of_the_canonical_text() {
        let mut random = SplitMix64::new(5);
        for spec in specs() {
            let pipeline = Pipeline::new(&spec, None).unwrap();
            let (mut stages, mut locator) = (Stages::new(&pipeline), TokenLocator::new(&pipeline));
            for _ in 0..3000 {
                let length = random.next_u64() % 24;
                let text: String = (0..length).map(|_| ALPHABET[random.next_u64() as usize % ALPHABET.len()]).collect();
                locator.locate(&text);
                let canonical = stages.canonical(&text).to_owned();
                assert_eq!(locator.hashes(), stages.token_hashes(&canonical), "{text:?} {spec:?}");
                assert_eq!(locator.places().len(), locator.hashes().len());
                let places = locator.places();
                assert!(places.is_sorted(), "{text:?} {places:?}");
                for &(from, to) in places {
                    let token = &text[from as usize..to as usize];
                    assert!(from < to && token.chars().any(|c| !c.is_whitespace()), "{text:?} {places:?}");
                }
            }
        }
    }

    #[test]
    fn a_place_has_the_characters_of_the_token() {
        let pipeline = Pipeline::new(&TextSpec::default(), None).unwrap();
        let mut locator = TokenLocator::new(&pipeline);
        let text = "Cafe\u{301}\u{a0}e\u{301}te\u{301} — STRA\u{ad}ßE 漢字 ½!";
        locator.locate(text);
        let tokens: Vec<_> = locator.places().iter().map(|&(from, to)| &text[from as usize..to as usize]).collect();
        assert_eq!(tokens, ["Cafe\u{301}", "e\u{301}te\u{301}", "STRA\u{ad}ßE", "漢", "字", "½", "½"]);
    }
}
