//! The Content-Type of a body, with its charset. Knows nothing of the body's content.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

use super::beginning::beginning;
use super::error::{Code, Problem};
use crate::types::Syntax;

/// The most characters of a Content-Type that an error shows.
const SHOWN_CHARS_MAX: usize = 100;

/// The Content-Type without its parameters, and the charset. Case does not matter.
struct MediaType<'a> {
    essence: &'a str,
    charset: Option<&'a str>,
}

impl<'a> MediaType<'a> {
    fn of(text: &'a str) -> Self {
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let named = name.trim().eq_ignore_ascii_case("charset");
            named.then(|| value.trim().trim_matches('"'))
        });
        Self { essence, charset }
    }

    fn is(&self, essence: &str) -> bool {
        self.essence.eq_ignore_ascii_case(essence)
    }

    fn utf8(&self) -> bool {
        self.charset.is_none_or(|charset| ["utf-8", "utf8"].iter().any(|utf8| charset.eq_ignore_ascii_case(utf8)))
    }
}

/// The media types of pages. Only these may have a charset other than UTF-8.
const PAGES: [(&str, Syntax); 2] = [("text/html", Syntax::Html), ("application/xhtml+xml", Syntax::Xhtml)];

/// The syntax and the charset of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageType {
    pub(super) syntax: Syntax,
    /// The charset as it is in the header.
    pub(super) charset: Option<String>,
}

/// Returns the type of a page, or `None` if the Content-Type is not the type of a page.
pub(super) fn page(headers: &HeaderMap) -> Option<PageType> {
    let sent = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media = MediaType::of(sent);
    let (_, syntax) = PAGES.into_iter().find(|(essence, _)| media.is(essence))?;
    Some(PageType { syntax, charset: media.charset.map(str::to_owned) })
}

/// Returns the one of `essences` that matches the Content-Type; 415 if none matches, or if the charset is not UTF-8.
pub(super) fn expect(headers: &HeaderMap, essences: &[&'static str]) -> Result<&'static str, Problem> {
    let wanted = essences[0];
    let Some(sent) = headers.get(CONTENT_TYPE) else {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            format!("the Content-Type header is missing; send {wanted}"),
        ));
    };
    let ascii = sent.to_str().is_ok();
    let sent = String::from_utf8_lossy(sent.as_bytes());
    let media = MediaType::of(&sent);
    let Some(essence) = essences.iter().find(|essence| ascii && media.is(essence)) else {
        let allowed = match essences {
            [one] => (*one).to_owned(),
            several => format!("one of {}", several.join(", ")),
        };
        // curl sends this type with -d, unless another type is given.
        let advice = match media.is("application/x-www-form-urlencoded") {
            true => format!("; with curl, add -H 'content-type: {wanted}'"),
            false => String::new(),
        };
        let detail = format!("the Content-Type is `{}`; it must be {allowed}{advice}", shown(&sent));
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    };
    if !media.utf8() {
        let detail = format!("the charset must be utf-8; the Content-Type is `{}`", shown(&sent));
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    Ok(essence)
}

/// Returns the beginning of a header's value. Control characters and ill-formed bytes are replaced.
fn shown(sent: &str) -> String {
    let printable = |character: char| if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
    beginning(&sent.chars().map(printable).collect::<String>(), SHOWN_CHARS_MAX)
}

/// The type of JSON lines.
const LINES: &str = "application/x-ndjson";
/// The type with which some generated clients send lines, because their generator has no type for lines.
const BYTES: &str = "application/octet-stream";

/// Returns the Content-Type of the answer to JSON lines; 415 if the request's type is not one for lines.
pub(super) fn expect_lines(headers: &HeaderMap) -> Result<&'static str, Problem> {
    let types = [LINES, "application/ndjson", "application/jsonl", "application/json-lines", BYTES];
    // A client that sends bytes can parse only an answer of the same type.
    expect(headers, &types).map(|sent| if sent == BYTES { BYTES } else { LINES })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn refusal(content_type: &[u8], essences: &[&'static str]) -> String {
        let value = HeaderValue::from_bytes(content_type).unwrap();
        expect(&HeaderMap::from_iter([(CONTENT_TYPE, value)]), essences).map(drop).unwrap_err().detail
    }

    #[test]
    fn pages_may_have_any_charset() {
        let of = |value: &'static str| page(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]));
        let html = |charset: Option<&str>| PageType { syntax: Syntax::Html, charset: charset.map(str::to_owned) };
        assert_eq!(of("Text/HTML"), Some(html(None)));
        assert_eq!(of("text/html; charset=\"windows-1251\""), Some(html(Some("windows-1251"))));
        assert_eq!(of("application/xhtml+xml").map(|page| page.syntax), Some(Syntax::Xhtml));
        assert_eq!(of("text/plain"), None);
    }

    #[test]
    fn a_refusal_names_the_type_that_was_sent() {
        let json = ["application/json"];
        assert_eq!(
            refusal(b"application/xml", &["application/json", "text/plain"]),
            "the Content-Type is `application/xml`; it must be one of application/json, text/plain"
        );
        assert_eq!(
            refusal(b"application/x-www-form-urlencoded", &json),
            "the Content-Type is `application/x-www-form-urlencoded`; it must be application/json; with curl, add -H \
             'content-type: application/json'"
        );
        assert_eq!(
            refusal(b"application/json; charset=latin1", &json),
            "the charset must be utf-8; the Content-Type is `application/json; charset=latin1`"
        );
        assert_eq!(
            refusal(b"a\tb\xFF", &json),
            "the Content-Type is `a\u{FFFD}b\u{FFFD}`; it must be application/json"
        );
        let long = refusal(&[b'x'; 5000], &json);
        assert!(long.contains(&format!("`{}…`", "x".repeat(100))), "{long}");
    }
}
