//! A page of HTML as a client sends it, and the facts that are found in it in addition to its text.

/// The text of a page that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Extract {
    /// The main text of the page, or all its visible text if no main text is found.
    #[default]
    Article,
    /// All visible text.
    Visible,
}

impl Extract {
    pub const ALL: [Self; 2] = [Self::Article, Self::Visible];

    /// Returns the name in the API and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::Visible => "visible",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extract| extract.as_str() == name)
    }
}

/// A page of HTML, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Html {
    pub markup: String,
    pub syntax: Syntax,
}

impl Html {
    /// Makes a page from markup that came without a media type. A byte order mark is left out.
    pub fn untyped(markup: String) -> Self {
        let markup = markup.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(markup);
        Self { syntax: Syntax::of(&markup), markup }
    }
}

/// The syntax of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    #[default]
    Html,
    /// XHTML: an element can end with `/>`.
    Xhtml,
}

impl Syntax {
    /// Returns the syntax of a page that came without a media type. It is XHTML if the page begins like XML, or if its
    /// first kilobyte contains the namespace of XHTML.
    fn of(markup: &str) -> Self {
        const NAMESPACE: &[u8] = b"http://www.w3.org/1999/xhtml";
        let start = markup.trim_start();
        let beginning = &start.as_bytes()[..start.len().min(1024)];
        let names_it = || beginning.windows(NAMESPACE.len()).any(|window| window == NAMESPACE);
        if start.starts_with("<?xml") || names_it() { Self::Xhtml } else { Self::Html }
    }
}

/// The mark of the page that a stored text was extracted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMark {
    /// A hash of the decoded HTML.
    pub hash: u128,
    /// The version of the extractor.
    pub extractor: u32,
}

/// The title, address and language of a page, as the page states them. They may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFacts {
    pub title: Option<String>,
    /// The address that the page gives for itself. It may be relative.
    pub canonical_url: Option<String>,
    pub language: Option<String>,
    /// The text that was extracted: the requested one, or all visible text if the page has no main text.
    pub extracted: Extract,
}

impl PageFacts {
    pub const TITLE_BYTES_MAX: usize = 1024;
    pub const URL_BYTES_MAX: usize = 2048;
    pub const LANGUAGE_BYTES_MAX: usize = 35;
    /// The largest possible size of the facts as JSON, in bytes. The facts have no control characters, so each of their
    /// bytes takes at most two bytes of JSON.
    pub const JSON_BYTES_MAX: usize =
        2 * (Self::TITLE_BYTES_MAX + Self::URL_BYTES_MAX + Self::LANGUAGE_BYTES_MAX) + Self::NAMES_BYTES;
    /// The most bytes of JSON that names, quotes, commas and `extracted` take.
    const NAMES_BYTES: usize = 128;

    /// Returns the largest possible size of these facts as JSON, in bytes.
    pub fn json_bytes(&self) -> usize {
        let texts = [&self.title, &self.canonical_url, &self.language];
        Self::NAMES_BYTES + 2 * texts.into_iter().flatten().map(String::len).sum::<usize>()
    }
}
