//! Two texts -> the passages that both have: runs of words. Each window of a run is in the other text, too. A window has
//! as many words as a shingle of the collection, so the passages are what makes the two texts similar.

use std::collections::HashSet;

use hapax_core::{Pipeline, Shingling, TextSpec, TokenLocator, TokenPlace};

use super::windows::{Windower, Windows};

/// The length of a window in collections whose shingles are runs of characters.
const WORDS_OF_CHARACTER_SHINGLES: usize = 2;

/// Returns the passages of both texts. A text that has fewer words than a shingle is one window, and the windows of the
/// other text are then as short.
pub fn shared_passages(spec: &TextSpec, texts: [&str; 2]) -> [Vec<TokenPlace>; 2] {
    // The passages are the same with any key.
    let spec = TextSpec { key: None, ..spec.clone() };
    let Ok(pipeline) = Pipeline::new(&spec, None) else { return Default::default() };
    let words = match spec.shingling {
        Shingling::Word(words) => usize::from(words),
        Shingling::Char(_) => WORDS_OF_CHARACTER_SHINGLES,
    };
    let windows = |words| texts.map(|text| Windower::new(&pipeline, words).windows(text));
    let [mut a, mut b] = windows(words);
    if a.hashes().is_empty() || b.hashes().is_empty() {
        let count = |text| {
            let mut locator = TokenLocator::new(&pipeline);
            locator.locate(text);
            locator.hashes().len()
        };
        [a, b] = windows(words.min(count(texts[0])).min(count(texts[1])));
    }
    [runs(&a, &b), runs(&b, &a)]
}

/// Returns the runs of windows that the other text has. Runs that overlap are one.
fn runs(windows: &Windows, other: &Windows) -> Vec<TokenPlace> {
    let known: HashSet<u64> = other.hashes().iter().copied().collect();
    let mut runs: Vec<TokenPlace> = Vec::new();
    let mut before = None;
    for (at, hash) in windows.hashes().iter().enumerate() {
        if !known.contains(hash) {
            continue;
        }
        let (from, to) = windows.place(at);
        match (before.replace(at), runs.last_mut()) {
            (Some(before), Some(last)) if at <= before + windows.length() => last.1 = to,
            _ => runs.push((from, to)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(shingling: Shingling, texts: [&'static str; 2]) -> [Vec<&'static str>; 2] {
        let spec = TextSpec { shingling, ..TextSpec::default() };
        let [a, b] = shared_passages(&spec, texts);
        let quote = |text: &'static str, places: Vec<TokenPlace>| {
            places.into_iter().map(|(from, to)| &text[from as usize..to as usize]).collect()
        };
        [quote(texts[0], a), quote(texts[1], b)]
    }

    #[test]
    fn passages_are_runs_of_whole_shingles_in_both_texts() {
        let texts = ["One two three, four FIVE. Six seven", "zero one two three four five seven six"];
        assert_eq!(
            quoted(Shingling::Word(3), texts),
            [vec!["One two three, four FIVE"], vec!["one two three four five"]]
        );
        // Two runs without a word between them are one.
        let texts = ["a b c d e f", "a b c x d e f"];
        assert_eq!(quoted(Shingling::Word(3), texts), [vec!["a b c d e f"], vec!["a b c", "d e f"]]);
        assert_eq!(quoted(Shingling::Word(7), ["a b c", "x a b c"]), [vec!["a b c"], vec!["a b c"]]);
        assert_eq!(quoted(Shingling::Word(5), ["", "a b"]), [Vec::<&str>::new(), Vec::new()]);
        assert_eq!(
            quoted(Shingling::Char(5), ["naïve Café, open", "the CAFÉ open"]),
            [vec!["Café, open"], vec!["CAFÉ open"]]
        );
    }
}
