//! The attributes of an element -> hints at its role in the page: `class="sidebar"`, `role="navigation"`. Authors choose
//! names freely, so these are guesses. `main_text` decides how much they count.

/// The hints that the attributes of an element give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hints(u8);

/// Bytes of a `class` or `id` that are read. Longer ones are made by machines.
const NAMES_BYTES_MAX: usize = 512;

/// Words that name the parts around the main text, sorted.
#[rustfmt::skip]
const CHROME: &[&str] = &[
    "ad", "ads", "adsense", "advert", "advertisement", "advertising", "banner", "banners", "bottomnav",
    "commentlist", "comments", "consent", "crumbs", "disclaimer", "dropdown", "foot", "gdpr", "legal", "login",
    "menu", "menus", "modal", "nav", "navlist", "navs", "outbrain", "pager", "popular", "popup", "promo",
    "promos", "promotion", "rail", "recommendations", "recommended", "related", "replies", "respond", "rss",
    "search", "share", "sharing", "sidenav", "signup", "skip", "social", "sponsor", "sponsored", "submenu",
    "subnav", "subscribe", "subscription", "taboola", "tagcloud", "toolbar", "topnav", "trending", "widgets",
];

fn names_chrome(word: &[u8]) -> bool {
    CHROME.binary_search_by(|known| known.as_bytes().cmp(word)).is_ok()
}

/// Longer words of the same kind, which are also found inside of others: `sphinxsidebar`, `mw-navigation`.
const CHROME_PARTS: &[&str] = &[
    "breadcrumb",
    "cookie",
    "copyright",
    "disqus",
    "footer",
    "masthead",
    "menubar",
    "navbar",
    "navigation",
    "newsletter",
    "pagination",
    "sidebar",
    "skiplink",
    "skipnav",
];

/// Words that name the main text.
fn names_content(word: &[u8]) -> bool {
    matches!(
        word,
        b"article"
            | b"body"
            | b"content"
            | b"contents"
            | b"document"
            | b"documentation"
            | b"entry"
            | b"main"
            | b"maincontent"
            | b"post"
            | b"story"
            | b"text"
    )
}

/// Words that turn the meaning of others around: `has-sidebar`, `no-footer`.
fn is_about_others(word: &[u8]) -> bool {
    matches!(word, b"has" | b"no" | b"with" | b"without")
}

impl Hints {
    const CHROME: u8 = 1;
    const CONTENT: u8 = 2;
    const MAIN: u8 = 4;
    const SITE_HEADER: u8 = 8;
    /// Hidden from everyone.
    const HIDDEN: u8 = 16;
    /// Hidden from readers that speak the page aloud, such as icons.
    const SILENT: u8 = 32;
    const CHROME_ROLE: u8 = 64;
    /// An `a` that leads somewhere.
    const LINK: u8 = 128;

    /// Reads one attribute.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.0 |= match name {
            b"class" | b"id" => of_names(&value[..value.len().min(NAMES_BYTES_MAX)]),
            b"role" => of_role(value.trim_ascii()),
            b"hidden" if !value.eq_ignore_ascii_case(b"until-found") => Self::HIDDEN,
            b"style" if hides(value) => Self::HIDDEN,
            b"aria-hidden" if value.eq_ignore_ascii_case(b"true") => Self::SILENT,
            b"href" => Self::LINK,
            _ => 0,
        };
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// Whether names say that this is around the main text, and none says the opposite.
    pub(super) fn names_chrome(self) -> bool {
        self.has(Self::CHROME) && !self.has(Self::CONTENT)
    }

    pub(super) fn names_content(self) -> bool {
        self.has(Self::CONTENT) && !self.has(Self::CHROME)
    }

    pub(super) fn is_main(self) -> bool {
        self.has(Self::MAIN)
    }

    pub(super) fn is_site_header(self) -> bool {
        self.has(Self::SITE_HEADER)
    }

    pub(super) fn is_hidden(self) -> bool {
        self.has(Self::HIDDEN)
    }

    /// Whether the role is one of the parts around the main text.
    pub(super) fn has_chrome_role(self) -> bool {
        self.has(Self::CHROME_ROLE) || self.has(Self::SILENT)
    }

    pub(super) fn is_link(self) -> bool {
        self.has(Self::LINK)
    }
}

fn of_role(role: &[u8]) -> u8 {
    match role.to_ascii_lowercase().as_slice() {
        b"main" => Hints::MAIN,
        b"article" => Hints::CONTENT,
        b"banner" => Hints::SITE_HEADER,
        b"navigation" | b"complementary" | b"contentinfo" | b"search" | b"menu" | b"menubar" | b"toolbar"
        | b"dialog" | b"alertdialog" | b"tooltip" => Hints::CHROME_ROLE,
        _ => 0,
    }
}

fn hides(style: &[u8]) -> bool {
    let style: Vec<u8> = style
        .iter()
        .take(NAMES_BYTES_MAX)
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(u8::to_ascii_lowercase)
        .collect();
    [&b"display:none"[..], b"visibility:hidden"].iter().any(|hidden| memchr::memmem::find(&style, hidden).is_some())
}

/// Reads the names in a `class` or an `id`. `topNav`, `top-nav` and `top_nav` are two words each.
fn of_names(names: &[u8]) -> u8 {
    let (mut bits, mut about_others) = (0, false);
    for name in names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()) {
        let mut in_name = 0;
        let mut word = Vec::with_capacity(name.len());
        let mut before = b'-';
        for &byte in name.iter().chain(b"-") {
            let cut = !byte.is_ascii_alphanumeric() || byte.is_ascii_uppercase() && before.is_ascii_lowercase();
            if cut && !word.is_empty() {
                about_others |= is_about_others(&word);
                in_name |= of_word(&word);
                word.clear();
            }
            if byte.is_ascii_alphanumeric() {
                word.push(byte.to_ascii_lowercase());
            }
            before = byte;
        }
        bits |= if about_others { in_name & !Hints::CHROME } else { in_name };
    }
    bits
}

fn of_word(word: &[u8]) -> u8 {
    if word == b"header" {
        return Hints::SITE_HEADER;
    }
    if names_content(word) {
        return Hints::CONTENT;
    }
    let part = |part: &&str| word.len() >= part.len() && memchr::memmem::find(word, part.as_bytes()).is_some();
    if names_chrome(word) || CHROME_PARTS.iter().any(part) { Hints::CHROME } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(value: &str) -> Hints {
        let mut hints = Hints::default();
        hints.add(b"class", value.as_bytes());
        hints
    }

    #[test]
    fn the_words_are_sorted() {
        assert!(CHROME.is_sorted());
    }

    #[test]
    fn names_of_menus_are_chrome() {
        for name in
            ["topNav", "spirit-nav", "sphinxsidebar", "site footer", "copyright-footer", "ads", "post related nav x"]
        {
            let chrome = class(name).names_chrome();
            assert_eq!(chrome, !name.contains("post"), "{name}");
        }
    }

    #[test]
    fn names_of_the_main_text_are_not() {
        for name in ["contentContainer", "main-content", "post", "has-sidebar", "loading", "comment", "navy", "header"]
        {
            assert!(!class(name).names_chrome(), "{name}");
        }
        assert!(class("contentContainer").names_content());
        assert!(!class("content-with-sidebar").names_chrome());
    }

    #[test]
    fn styles_hide() {
        let hidden = |style: &str| {
            let mut hints = Hints::default();
            hints.add(b"style", style.as_bytes());
            hints.is_hidden()
        };
        assert!(hidden("color: red; Display : none"));
        assert!(!hidden("display: block"));
    }
}
