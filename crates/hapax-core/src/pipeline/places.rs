//! Text -> the place of each word in the text as it was given. Words are found in the canonical text, which may have other
//! lengths. White space separates words, and nothing composes with it, so each part between two white spaces has the same
//! canonical text alone as in the whole text. This is for the few texts whose places are shown: it is much slower than
//! hashing.

use std::ops::Range;

use super::blocks::blocks;
use super::tools::Tools;
use crate::normalise::Normaliser;
use crate::tokens::{Spans, Tokeniser};
use crate::unicode::Class;

/// Returns the place of each word, in bytes of the text.
pub(super) fn word_places(tools: &Tools, text: &str) -> Vec<Range<usize>> {
    let table = tools.rules().table();
    let mut words = Words { tools, tokeniser: Tokeniser::new(table), spans: Spans::default(), places: Vec::new() };
    let mut at = 0;
    while at < text.len() {
        let beyond = text[at..].bytes().position(|byte| !byte.is_ascii());
        // The part with the first character outside ASCII.
        let (from, to) = match beyond.map(|beyond| at + beyond) {
            None => (text.len(), text.len()),
            Some(beyond) => {
                let from = text[at..beyond].rfind(is_space).map_or(at, |space| at + space + 1);
                (from, text[beyond..].find(is_space).map_or(text.len(), |space| beyond + space))
            }
        };
        words.ascii(&text[at..from], at);
        words.folded(&text[from..to], from);
        at = to;
    }
    words.places
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// The words that were found.
struct Words<'a> {
    tools: &'a Tools,
    tokeniser: Tokeniser,
    spans: Spans,
    places: Vec<Range<usize>>,
}

impl Words<'_> {
    /// Adds the words of a part in ASCII, which begins at `from`. Each character stays one byte, except white space, which
    /// is in no word.
    fn ascii(&mut self, part: &str, from: usize) {
        let count = self.places.len();
        self.words(part);
        self.places[count..].iter_mut().for_each(|place| *place = from + place.start..from + place.end);
    }

    /// Adds the words of a part that has other characters, and begins at `from`.
    fn folded(&mut self, part: &str, from: usize) {
        let mut normaliser = Normaliser::with_rules(self.tools.rules());
        let (mut canonical, mut end) = (Vec::new(), Vec::new());
        // For each character, the length of the canonical text of everything up to it.
        let mut reached = Vec::new();
        for (at, c) in part.char_indices() {
            normaliser.push(&part[at..at + c.len_utf8()], &mut canonical);
            end.clear();
            normaliser.clone().finish(&mut end);
            let before = reached.last().map_or(0, |(_, length)| *length);
            // A character that composes with others may make the canonical text shorter.
            reached.push((at, before.max(canonical.len() + end.len())));
        }
        normaliser.finish(&mut canonical);
        let canonical = String::from_utf8(canonical).expect("canonical text is UTF-8");
        let count = self.places.len();
        self.words(&canonical);
        let table = self.tools.rules().table();
        for place in &mut self.places[count..] {
            let first = reached.partition_point(|(_, length)| *length <= place.start);
            let last = reached.partition_point(|(_, length)| *length < place.end);
            // A mark or a letter that composes with the last character may add nothing to the length.
            let length = reached[last].1;
            let composed = part[reached[last].0..].chars().skip(1).zip(&reached[last + 1..]);
            let composed = composed.take_while(|(c, (_, reached))| {
                *reached == length && matches!(table.get(*c).class(), Class::Mark | Class::Letter)
            });
            let end = reached.get(last + 1 + composed.count()).map_or(part.len(), |(at, _)| *at);
            *place = from + reached[first].0..from + end;
        }
    }

    /// Adds the words of a canonical text, with their places in it.
    fn words(&mut self, canonical: &str) {
        let Self { tools, tokeniser, spans, places } = self;
        tokeniser.begin(tools.rules().table());
        let mut base = 0;
        for block in blocks(canonical) {
            let start = base - tokeniser.held_bytes();
            tokeniser.push(tools.simd(), block.as_bytes(), spans, |word| places.push(start..start + word.len()));
            let here = spans.starts().iter().zip(spans.ends());
            places.extend(here.map(|(&start, &end)| base + start as usize..base + end as usize));
            base += block.len();
        }
        let start = base - tokeniser.held_bytes();
        tokeniser.finish(|word| places.push(start..start + word.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::pipeline::{Pipeline, SignScratch};
    use crate::spec::{Digits, Fold, Marks, Shingling, TextSpec};

    fn pipeline(spec: &TextSpec) -> Pipeline {
        Pipeline::new(spec, None).expect("valid")
    }

    fn shown(text: &str) -> Vec<&str> {
        pipeline(&TextSpec::default()).word_places(text).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn places_are_in_the_text_as_it_was_given() {
        assert_eq!(shown("  Don't STOP,\n3.5 "), ["Don", "t", "STOP", "3", "5"]);
        assert_eq!(
            shown("a\u{200b}b \u{200b}Stra\u{df}e\u{200b}\u{a0}\u{ff11}x"),
            ["a\u{200b}b", "Stra\u{df}e", "\u{ff11}x"]
        );
        assert_eq!(shown("cafe\u{301} e\u{301}t\u{e9}."), ["cafe\u{301}", "e\u{301}t\u{e9}"]);
        assert_eq!(shown("web\u{6f22}\u{5b57}kana"), ["web", "\u{6f22}", "\u{5b57}", "kana"]);
        assert_eq!(shown("\u{fb01}x \u{33c2}"), ["\u{fb01}x", "\u{33c2}", "\u{33c2}"], "a sign for two words");
        // A syllable of Hangul from its parts, and one from a syllable and a consonant.
        assert_eq!(
            shown("\u{1112}\u{1161}\u{11ab} \u{d558}\u{11ab}."),
            ["\u{1112}\u{1161}\u{11ab}", "\u{d558}\u{11ab}"]
        );
        let long = "a".repeat(300);
        assert_eq!(shown(&long).iter().map(|word| word.len()).collect::<Vec<_>>(), [256, 44]);
    }

    #[test]
    fn words_may_span_blocks() {
        for pad in 4085..4100 {
            for word in ["crossing", "cross\u{df}ing"] {
                let text = format!("{} {word} end", ".".repeat(pad));
                assert_eq!(shown(&text), [word, "end"]);
                let text = format!("{}\u{2014}{word} end", ".".repeat(pad));
                assert_eq!(shown(&text), [word, "end"]);
            }
        }
    }

    proptest! {
        #[test]
        fn each_token_has_its_place(
            text in "([ -~]|[a-zA-Z ]{1,9}|\\PC|[\u{300}-\u{320}\u{345}\u{3099}]|[\u{1100}-\u{11ff}\u{ac00}-\u{ad00}]|\\s|[\u{200b}\u{feff}\u{ad}]){0,60}",
            marks in any::<bool>(),
            fold in 0..3usize,
        ) {
            let marks = if marks { Marks::Keep } else { Marks::Strip };
            let fold = [Fold::NfkcCasefold, Fold::Nfkc, Fold::None][fold];
            let spec = TextSpec { fold, marks, digits: Digits::Keep, shingling: Shingling::Word(5), ..TextSpec::default() };
            let pipeline = pipeline(&spec);
            let (tokens, places) = (pipeline.tokens(&text), pipeline.word_places(&text));
            prop_assert_eq!(tokens.len(), places.len());
            for (token, place) in tokens.iter().zip(&places) {
                let part = text.get(place.clone()).expect("at characters");
                // A composition may begin before the word.
                prop_assert!(!part.is_empty());
                if token.is_ascii() && part.is_ascii() {
                    prop_assert_eq!(&pipeline.canonical(part), token);
                }
            }
            prop_assert!(places.windows(2).all(|two| two[0].start <= two[1].start && two[0].end <= two[1].end));
            let mut hashes = Vec::new();
            pipeline.token_hashes(&mut SignScratch::default(), &text, &mut hashes);
            prop_assert_eq!(hashes, tokens.iter().map(|token| pipeline.token_hash(token)).collect::<Vec<_>>());
        }
    }
}
