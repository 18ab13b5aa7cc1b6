//! Collects the statements of a page about itself: its title, its canonical address and its language. Only the first
//! statement of each kind counts. All values are the author's own words. A title that is too long is cut. A text that
//! cannot be an address or the name of a language is left out.

use crate::types::{Extract, PageFacts};

/// The title, address and language of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    title: Option<String>,
    open_graph_title: Option<String>,
    link_url: Option<String>,
    open_graph_url: Option<String>,
    html_language: Option<String>,
    meta_language: Option<String>,
}

/// The attributes of `html`, `link` and `meta` that say something about the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement {
    pub rel: Vec<u8>,
    pub href: Vec<u8>,
    /// The value of `name`, `property` or `http-equiv`.
    pub key: Vec<u8>,
    pub content: Vec<u8>,
    /// The value of `lang` or `xml:lang`.
    pub language: Vec<u8>,
}

impl Head {
    /// Takes the text of a `title`.
    pub(super) fn title(&mut self, text: &str) {
        set(&mut self.title, one_line(text, PageFacts::TITLE_BYTES_MAX));
    }

    /// Takes the attributes of the `html` element.
    pub(super) fn html(&mut self, statement: &Statement) {
        set(&mut self.html_language, language(&statement.language));
    }

    /// Takes the attributes of a `link` element.
    pub(super) fn link(&mut self, statement: &Statement) {
        let mut relations = statement.rel.split(u8::is_ascii_whitespace);
        if relations.any(|relation| relation.eq_ignore_ascii_case(b"canonical")) {
            set(&mut self.link_url, url(&statement.href));
        }
    }

    /// Takes the attributes of a `meta` element.
    pub(super) fn meta(&mut self, statement: &Statement) {
        let content = &statement.content;
        match statement.key.to_ascii_lowercase().as_slice() {
            b"og:title" => {
                let title = one_line(&String::from_utf8_lossy(content), PageFacts::TITLE_BYTES_MAX);
                set(&mut self.open_graph_title, title);
            }
            b"og:url" => set(&mut self.open_graph_url, url(content)),
            b"content-language" | b"language" | b"dc.language" => set(&mut self.meta_language, language(content)),
            _ => (),
        }
    }

    /// Returns the facts about the page. Statements for all readers are preferred to statements for social networks.
    pub(super) fn facts(self, extracted: Extract) -> PageFacts {
        PageFacts {
            title: self.title.or(self.open_graph_title),
            canonical_url: self.link_url.or(self.open_graph_url),
            language: self.html_language.or(self.meta_language),
            extracted,
        }
    }
}

fn set(field: &mut Option<String>, value: Option<String>) {
    if field.is_none() {
        *field = value;
    }
}

/// Returns the text on one line, without control characters. It is cut after `max` bytes, between characters.
fn one_line(text: &str, max: usize) -> Option<String> {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max {
            line.truncate(line.floor_char_boundary(max));
            break;
        }
    }
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}

fn url(value: &[u8]) -> Option<String> {
    let url = std::str::from_utf8(value.trim_ascii()).ok()?;
    let usable = !url.is_empty()
        && url.len() <= PageFacts::URL_BYTES_MAX
        && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    usable.then(|| url.to_owned())
}

/// Returns the name of a language if the value looks like one, such as `pt-BR`. If the value is a list, its first entry
/// is used.
fn language(value: &[u8]) -> Option<String> {
    let first = value.split(|&byte| byte == b',').next()?.trim_ascii();
    let name = std::str::from_utf8(first).ok()?.replace('_', "-");
    let usable = (2..=PageFacts::LANGUAGE_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && name.as_bytes()[0].is_ascii_alphabetic();
    usable.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_line_of_bounded_length() {
        assert_eq!(one_line(" a\n b ", 10).as_deref(), Some("a b"));
        assert_eq!(one_line(" \n ", 10), None);
        assert_eq!(one_line(&"é".repeat(2000), 5).as_deref(), Some("éé"));
    }

    #[test]
    fn languages_look_like_languages() {
        assert_eq!(language(b" en_US ").as_deref(), Some("en-US"));
        assert_eq!(language(b"de, en").as_deref(), Some("de"));
        for not_one in ["", "x", "en us", "{{lang}}", "1234567890123456789012345678901234567890"] {
            assert_eq!(language(not_one.as_bytes()), None, "{not_one}");
        }
    }
}
