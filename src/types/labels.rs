//! Labels, which a client gives to documents, and scopes, which choose documents by their labels.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::ids::json_bytes;

/// The largest number of labels of a document.
pub const LABELS_MAX: usize = 8;
/// The longest name of a label, in bytes.
pub(super) const LABEL_NAME_BYTES_MAX: usize = 64;
/// The longest value of a label, in bytes of UTF-8.
pub(super) const LABEL_VALUE_BYTES_MAX: usize = 256;
/// The name of the label that gives the source of a document, for the limits on sources.
pub const SOURCE: &str = "source";
/// The largest number of labels that the parameter `scope` names.
pub const SCOPE_TERMS_MAX: usize = 8;

/// The labels of a document: names with one value each.
/// They are stored as a text: a line `name:value` for each label, in the order of the names. The order is fixed, so
/// equal labels have equal texts. A name has no colon, and a value has no end of line, so different labels have
/// different texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Labels(Arc<str>);

/// One label: `name:value`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(Arc<str>);

/// Limits on the labels of the documents of a collection.
#[derive(Clone, Copy, Debug)]
pub struct LabelLimits {
    pub labels_max: usize,
    /// The largest number of documents that may have the same value of the label [`SOURCE`].
    pub source_documents_max: Option<u64>,
}

impl LabelLimits {
    /// No limits.
    pub const NONE: Self = Self { labels_max: usize::MAX, source_documents_max: None };
}

/// The reason why a text is not a valid label, or why a document cannot have these labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    #[error("a label must be given as `name:value`, but this has no colon")]
    NoColon,
    #[error("a label's name must be 1 to {LABEL_NAME_BYTES_MAX} of `a-z`, `0-9`, `-`, `_` and `.`")]
    Name,
    #[error("a label's value must have 1 to {LABEL_VALUE_BYTES_MAX} bytes of UTF-8 and no control characters")]
    Value,
    #[error("a document has at most {LABELS_MAX} labels, but this one has {count}")]
    TooMany { count: usize },
    #[error("a label has one value, but `{name}` is given twice")]
    Twice { name: String },
    #[error("a scope names at most {SCOPE_TERMS_MAX} labels, but this one names {count}")]
    ScopeTooLong { count: usize },
}

impl Borrow<str> for Labels {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Label {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Label {
    pub fn new(name: &str, value: &str) -> Result<Self, InvalidLabel> {
        if !Self::is_name(name) {
            return Err(InvalidLabel::Name);
        }
        if !(1..=LABEL_VALUE_BYTES_MAX).contains(&value.len()) || value.chars().any(char::is_control) {
            return Err(InvalidLabel::Value);
        }
        Ok(Self(format!("{name}:{value}").into()))
    }

    /// Returns whether a label may have this name.
    pub fn is_name(name: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        (1..=LABEL_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
    }

    /// Reads `name:value`. The name ends at the first colon.
    pub fn parse(text: &str) -> Result<Self, InvalidLabel> {
        let (name, value) = text.split_once(':').ok_or(InvalidLabel::NoColon)?;
        Self::new(name, value)
    }

    /// Returns the label as `name:value`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn name(&self) -> &str {
        self.parts().0
    }

    pub fn value(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once(':').expect("a label has a colon")
    }
}

impl Labels {
    /// The largest possible size of a document's labels as JSON, in bytes.
    pub const JSON_BYTES_MAX: usize = 2 + LABELS_MAX * (LABEL_NAME_BYTES_MAX + 2 * LABEL_VALUE_BYTES_MAX + 6);

    /// Sorts the labels by name.
    pub fn new(mut labels: Vec<Label>) -> Result<Self, InvalidLabel> {
        if labels.len() > LABELS_MAX {
            return Err(InvalidLabel::TooMany { count: labels.len() });
        }
        labels.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        if let Some(pair) = labels.windows(2).find(|pair| pair[0].name() == pair[1].name()) {
            return Err(InvalidLabel::Twice { name: pair[0].name().to_owned() });
        }
        let lines: Vec<&str> = labels.iter().map(Label::as_str).collect();
        Ok(Self(lines.join("\n").into()))
    }

    /// Reads the text of labels.
    pub fn parse(text: &str) -> Result<Self, InvalidLabel> {
        Self::new(text.lines().map(Label::parse).collect::<Result<_, _>>()?)
    }

    /// Returns the text of the labels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether there are no labels. Such labels are stored as absent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the largest possible size of these labels as JSON, in bytes.
    pub fn json_bytes(&self) -> usize {
        2 + self.iter().map(|(name, value)| name.len() + json_bytes(value) + 6).sum::<usize>()
    }

    /// Returns the value of the label with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns the name and the value of each label, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once(':'))
    }
}

/// The documents that a check may find: those that have some labels and lack others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(Vec<ScopeTerm>);

/// A condition of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeTerm {
    pub label: Label,
    /// Whether the documents lack the label.
    pub lacks: bool,
}

impl ScopeTerm {
    /// Reads `name:value`, or `!name:value` for documents without that label.
    pub fn parse(text: &str) -> Result<Self, InvalidLabel> {
        let (lacks, label) = text.strip_prefix('!').map_or((false, text), |label| (true, label));
        Ok(Self { label: Label::parse(label)?, lacks })
    }
}

impl fmt::Display for ScopeTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.lacks { "!" } else { "" }, self.label.as_str())
    }
}

impl Scope {
    /// Makes the scope of the documents that meet all conditions.
    pub fn new(terms: Vec<ScopeTerm>) -> Result<Self, InvalidLabel> {
        if terms.len() > SCOPE_TERMS_MAX {
            return Err(InvalidLabel::ScopeTooLong { count: terms.len() });
        }
        Ok(Self(terms))
    }

    pub fn terms(&self) -> &[ScopeTerm] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_by_name_and_have_one_value_each() {
        let labels = |texts: &[&str]| Labels::new(texts.iter().map(|text| Label::parse(text).unwrap()).collect());
        let sorted = labels(&["site:a.example", "crawl:2026-48"]).unwrap();
        assert_eq!(sorted.as_str(), "crawl:2026-48\nsite:a.example");
        assert_eq!(Labels::parse(sorted.as_str()), Ok(sorted.clone()));
        assert_eq!(sorted.iter().collect::<Vec<_>>(), [("crawl", "2026-48"), ("site", "a.example")]);
        assert_eq!(labels(&["a:1", "a:2"]), Err(InvalidLabel::Twice { name: "a".into() }));
        assert!(labels(&[]).unwrap().is_empty());
        let nine: Vec<String> = (0..9).map(|number| format!("n{number}:x")).collect();
        let nine: Vec<&str> = nine.iter().map(String::as_str).collect();
        assert_eq!(labels(&nine), Err(InvalidLabel::TooMany { count: 9 }));
    }

    #[test]
    fn a_label_ends_its_name_at_the_first_colon() {
        let label = Label::parse("site:http://a:80").unwrap();
        assert_eq!((label.name(), label.value()), ("site", "http://a:80"));
        for (text, error) in [
            ("site", InvalidLabel::NoColon),
            (":a", InvalidLabel::Name),
            ("Site:a", InvalidLabel::Name),
            ("si te:a", InvalidLabel::Name),
            ("site:", InvalidLabel::Value),
            ("site:a\nb", InvalidLabel::Value),
        ] {
            assert_eq!(Label::parse(text), Err(error), "{text}");
        }
        assert!(Label::new(&"n".repeat(64), &"v".repeat(256)).is_ok());
        assert_eq!(Label::new(&"n".repeat(65), "v"), Err(InvalidLabel::Name));
        assert_eq!(Label::new("n", &"v".repeat(257)), Err(InvalidLabel::Value));
    }

    #[test]
    fn a_scope_negates_with_an_exclamation_mark() {
        let term = ScopeTerm::parse("!crawl:2026:48").unwrap();
        assert!(term.lacks && term.label.value() == "2026:48");
        assert!(Scope::new(vec![term; 9]).is_err());
    }
}
