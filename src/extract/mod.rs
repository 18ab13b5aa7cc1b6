//! A page of HTML -> the text that is compared: the main text of the page, or all its visible text.
//! This module is pure: it turns bytes into text, and knows nothing of HTTP or collections.
//!
//! The text of a stored document is never extracted again. Therefore, after a change of the extractor, a page that is
//! sent again with other HTML may look changed although its main text is the same. A change of the extracted texts
//! needs a new [`EXTRACTOR_VERSION`]; otherwise `tests/it/html/golden.rs` fails.
//!
//! Time and memory are linear in the bytes of the page, and nothing recurses: see `outline.rs`.

mod decode;
mod head;
mod hints;
mod main_text;
mod outline;
mod tag;
mod tokens;

use crate::types::{Extract, Html, PageFacts, PageMark, Syntax};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use outline::{Gap, Outline};

pub use decode::{decode, is_utf8};

/// The version of all code that decides which text is extracted from a page.
pub const EXTRACTOR_VERSION: u32 = 2;

/// The text of a page, and its title, address and language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The text. Each paragraph or similar block is a line.
    pub text: String,
    pub facts: PageFacts,
}

/// Extracts the text of a page.
pub fn extract(html: &Html, extract: Extract) -> Page {
    let outline = tokens::outline(&html.markup, html.syntax);
    let main_text = match extract {
        Extract::Article => main_text::main_text(&outline),
        Extract::Visible => None,
    };
    let extracted = if main_text.is_some() { Extract::Article } else { Extract::Visible };
    Page { text: text(&outline, main_text.as_deref()), facts: outline.head.facts(extracted) }
}

/// Returns the mark of a page, to be stored with the text that is extracted now.
pub fn mark(html: &Html) -> PageMark {
    // The hash is stored, so another hash function would make every page look changed. A test pins the hash function.
    // The same bytes may yield another text if they are read as XHTML, so the syntax is part of the hash.
    let seed = match html.syntax {
        Syntax::Html => 0,
        Syntax::Xhtml => 1,
    };
    PageMark { hash: xxh3_128_with_seed(html.markup.as_bytes(), seed), extractor: EXTRACTOR_VERSION }
}

/// Returns the text of the runs that are kept; of all runs if `kept` is `None`.
fn text(outline: &Outline, kept: Option<&[bool]>) -> String {
    let mut text = String::with_capacity(outline.text.len() + outline.runs.len());
    let mut gap = Gap::None;
    for (at, run) in outline.runs.iter().enumerate() {
        gap = gap.max(run.gap);
        if kept.is_some_and(|kept| !kept[at]) {
            // A space separates the words before and after a part that is left out.
            gap = gap.max(Gap::Space);
            continue;
        }
        match gap {
            _ if text.is_empty() => (),
            Gap::None => (),
            Gap::Space => text.push(' '),
            Gap::Line => text.push('\n'),
        }
        text.push_str(&outline.text[run.bytes.0 as usize..run.bytes.1 as usize]);
        gap = Gap::None;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Syntax;

    fn page(markup: &str, extract: Extract) -> Page {
        super::extract(&Html { markup: markup.to_owned(), syntax: Syntax::Html }, extract)
    }

    fn visible(markup: &str) -> String {
        page(markup, Extract::Visible).text
    }

    #[test]
    fn blocks_are_lines_and_inline_elements_separate_nothing() {
        assert_eq!(visible("<p>a<b>b</b>c <i> d</i><p>e<br>f<div>g</div>h"), "abc d\ne\nf\ng\nh");
        assert_eq!(visible("<table><tr><td>a<td>b<tr><td>c</table>d"), "a b\nc\nd");
        assert_eq!(visible("<ul><li>a<li>b</ul>"), "a\nb");
        assert_eq!(visible("<pre>a\n  b</pre>"), "a\nb");
        assert_eq!(visible("a&amp;b &nbsp; c&#x1F350;"), "a&b c🍐");
    }

    #[test]
    fn what_is_not_shown_is_left_out() {
        for unseen in [
            "<script>if (a < b) x</script>",
            "<style>p { color: red }</style>",
            "<noscript>x</noscript>",
            "<template><p>x</template>",
            "<!-- x -->",
            "<div hidden>x</div>",
            "<div style='Display: none'>x</div>",
            "<svg><title>x</title><text>x</text></svg>",
            "<head><title>x</title></head>",
        ] {
            assert_eq!(visible(&format!("<p>a</p>{unseen}<p>b</p>")), "a\nb", "{unseen}");
        }
    }

    #[test]
    fn a_drawing_hides_nothing_behind_it() {
        let icons: String = (0..3000).map(|number| format!("<symbol id=i{number}><path d='M0 0'/></symbol>")).collect();
        let open: String = (0..3000).map(|_| "<g><path d='M0 0'>".to_owned()).collect();
        for drawing in [
            "<svg class=icon />",
            "<svg><title/><style/><use href=#a /></svg>",
            "<svg><title>x</title><a><text>x</text></a></svg>",
            "<svg><g><text>x<div>a2</div>",
            "<div><svg><g><text>x</div>",
            "<svg><foreignObject><div/><p>x</div></p></div></foreignObject></svg>",
            "<svg><path></svg>",
            "<div><video src=x /></div>",
            "<div><video><p>x</div>",
            "<object><span><p>x</object>",
            "<template><svg><g></template>",
            "<math><mspace/><mi/></math>",
            &format!("<svg style='display:none'>{icons}</svg>"),
            &format!("<svg>{open}</svg>"),
            &format!("<template>{}</template>", "<li><span>".repeat(3000)),
        ] {
            let text = visible(&format!("<main><p>a</p>{drawing}<p>b</p></main>c")).replace("a2\n", "");
            assert_eq!(text, "a\nb\nc", "{drawing}");
        }
        assert_eq!(visible("a<span>b<svg><g></g><a></a></svg>c</span>d"), "abcd");
        assert_eq!(visible("<a href=x>b<svg><a><text>x</text></a></svg>c</a>d"), "bcd");
        assert_eq!(page("<svg><title>x</title></svg><title>y</title>", Extract::Visible).facts.title.unwrap(), "y");
    }

    #[test]
    fn end_tags_that_are_left_out_or_too_many_do_no_harm() {
        assert_eq!(visible("<div>a</span></li></table>b</div></div>c</p>d"), "ab\nc\nd");
        let article = page(
            "<div class=content><p>one two three four five six seven eight nine ten eleven twelve thirteen fourteen\
             <p>fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three</div>\
             <div class=sidebar>side<div>inside</div></div>after",
            Extract::Article,
        );
        assert_eq!(article.facts.extracted, Extract::Article);
        assert!(article.text.starts_with("one two") && article.text.ends_with("twenty-three"), "{}", article.text);
    }

    #[test]
    fn words_around_a_part_that_is_left_out_stay_apart() {
        let text = "words of the main text that go on for long enough to be a paragraph, and then for a little longer, \
                    until it is clear to everyone that they are one";
        let article = page(&format!("<main><p>{text}<button>x</button>end</p></main>"), Extract::Article);
        assert_eq!(article.text, format!("{text} end"));
    }

    #[test]
    fn a_page_of_links_alone_keeps_them() {
        let links: String = (0..20).map(|number| format!("<li><a href=x>link number {number}</a>")).collect();
        let article = page(&format!("<h1>Index</h1><ul>{links}</ul>"), Extract::Article);
        assert!(article.text.starts_with("Index\nlink number 0") && article.text.ends_with("19"), "{}", article.text);
    }

    #[test]
    fn a_page_with_hardly_any_text_is_taken_as_it_is() {
        let Page { text, facts } = page("<nav>a b</nav><p>c", Extract::Article);
        assert_eq!((text.as_str(), facts.extracted), ("a b\nc", Extract::Visible));
        let Page { text, facts } = page("", Extract::Article);
        assert_eq!((text.as_str(), facts.extracted), ("", Extract::Visible));
    }

    #[test]
    fn a_page_says_what_it_is() {
        let facts = page(
            "<html lang=pt-BR><head><meta property=og:title content='Other'><title> A\n page </title>\
             <link rel='alternate' href=/no><link href=' https://a.example/x ' rel='nofollow Canonical'>",
            Extract::Article,
        )
        .facts;
        assert_eq!(facts.title.as_deref(), Some("A page"));
        assert_eq!(facts.canonical_url.as_deref(), Some("https://a.example/x"));
        assert_eq!(facts.language.as_deref(), Some("pt-BR"));
        let social = "<meta property='og:title' content='T'><meta property=og:url content=/u>\
                      <meta http-equiv=Content-Language content='de, en'>";
        let facts = page(social, Extract::Visible).facts;
        assert_eq!((facts.title.as_deref(), facts.canonical_url.as_deref()), (Some("T"), Some("/u")));
        assert_eq!(facts.language.as_deref(), Some("de"));
    }
}
