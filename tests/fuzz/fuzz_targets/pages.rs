//! The bytes of a page -> its text. Any bytes are a page. The main text is a part of the visible text, in the same
//! order. All results have a limited length.

use hapax::extract::{decode, extract};
use hapax::types::{Extract, Html, PageFacts, Syntax};

const CHARSETS: [Option<&str>; 5] = [None, Some("utf-8"), Some("windows-1251"), Some("utf-16le"), Some("nonsense")];

pub fn run(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    let markup = decode(bytes, CHARSETS[how as usize % CHARSETS.len()]);
    assert!(markup.len() <= 3 * bytes.len(), "a byte becomes at most three");
    let syntax = if how & 0x80 == 0 { Syntax::Html } else { Syntax::Xhtml };
    let html = Html { markup, syntax };
    let visible = extract(&html, Extract::Visible);
    let article = extract(&html, Extract::Article);
    assert_eq!(article, extract(&html, Extract::Article), "the same page has the same text");
    assert_eq!(visible.facts.extracted, Extract::Visible);
    // An entity of five bytes can become six.
    assert!(visible.text.len() <= 2 * html.markup.len() + 2, "{} of {}", visible.text.len(), html.markup.len());
    // A part that is left out may begin in the middle of a word, so letters are compared.
    let mut letters = visible.text.chars().filter(|letter| !letter.is_whitespace());
    for letter in article.text.chars().filter(|letter| !letter.is_whitespace()) {
        assert!(letters.any(|visible| visible == letter), "{letter:?} is not visible, or not there");
    }
    let PageFacts { title, canonical_url, language, .. } = &article.facts;
    for (text, max) in [
        (title, PageFacts::TITLE_BYTES_MAX),
        (canonical_url, PageFacts::URL_BYTES_MAX),
        (language, PageFacts::LANGUAGE_BYTES_MAX),
    ] {
        let fits = |text: &String| (1..=max).contains(&text.len()) && !text.contains(char::is_control);
        assert!(text.as_ref().is_none_or(fits), "{text:?}");
    }
}
