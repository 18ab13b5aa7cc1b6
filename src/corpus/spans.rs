//! The windows of a text that appear in earlier documents -> the longest runs of tokens all of whose windows do.

use super::first_places::FirstPlace;
use super::windows::Windows;

/// A run of tokens. Each of its windows appears in an earlier document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte in the text.
    pub from: u32,
    /// The byte after the last token.
    pub to: u32,
    pub tokens: u32,
    /// The first place of the first window.
    pub first: FirstPlace,
}

/// Returns the runs, in their order. Two runs may overlap: the windows that have tokens of both are new. `found`: the
/// windows that appear in earlier documents, in their order.
pub fn spans(windows: &Windows, found: &[(u32, FirstPlace)]) -> Vec<Span> {
    let runs = found.chunk_by(|(before, _), (window, _)| before + 1 == *window);
    let span = |run: &[(u32, FirstPlace)]| {
        let (begin, first) = run[0];
        let tokens = (run.len() + windows.length() - 1) as u32;
        let (from, to) = windows.place_of(begin as usize, begin as usize + run.len() - 1);
        Span { from, to, tokens, first }
    };
    runs.map(span).collect()
}

/// Returns the text without these spans.
pub fn without(text: &str, spans: &[Span]) -> String {
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    for span in spans {
        let (from, to) = (span.from as usize, span.to as usize);
        if from > at {
            kept.push_str(&text[at..from]);
        }
        at = at.max(to);
    }
    kept.push_str(&text[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_are_cut_once() {
        let span = |from, to| Span { from, to, tokens: 0, first: FirstPlace::default() };
        assert_eq!(without("abcdefgh", &[span(1, 4), span(3, 6)]), "agh");
        assert_eq!(without("abcdefgh", &[span(0, 8)]), "");
        assert_eq!(without("abcdefgh", &[]), "abcdefgh");
    }
}
