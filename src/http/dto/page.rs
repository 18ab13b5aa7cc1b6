//! A page as JSON: its title, address and language, and its text.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::extract::Page;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::types::{Metadata, PageFacts, json_bytes};

/// The field of the metadata that contains a page's facts.
const FIELD: &str = "page";

/// The title, address and language of a page, and how its text was extracted.
#[derive(Debug, Serialize)]
pub struct PageBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    extracted: &'static str,
}

impl From<PageFacts> for PageBody {
    fn from(facts: PageFacts) -> Self {
        let PageFacts { title, canonical_url, language, extracted } = facts;
        Self { title, canonical_url, language, extracted: extracted.as_str() }
    }
}

/// The text of a page, as it is compared.
#[derive(Debug, Serialize)]
pub struct ExtractedBody {
    text: String,
    #[serde(flatten)]
    page: PageBody,
    extractor: u32,
}

impl ExtractedBody {
    pub fn new(page: Page) -> Self {
        let Page { text, facts } = page;
        Self { text, page: facts.into(), extractor: crate::extract::EXTRACTOR_VERSION }
    }

    /// Returns the most bytes that such an answer takes as JSON if its page has `page_bytes` bytes. JSON needs up to
    /// six bytes for a control character.
    pub fn bytes_max(page_bytes: usize) -> usize {
        6 * page_bytes + PageFacts::JSON_BYTES_MAX
    }

    /// Returns an upper bound on the size of this answer as JSON, in bytes.
    pub fn json_bytes(&self) -> usize {
        json_bytes(&self.text) + PageFacts::JSON_BYTES_MAX
    }
}

/// Adds the facts of a page to the metadata of its document.
pub fn with_page(metadata: Option<&Metadata>, facts: &PageFacts) -> Result<Metadata, Problem> {
    let page = to_raw_value(&PageBody::from(facts.clone())).expect("strings can be written as JSON");
    let sent = metadata.map_or("{}", Metadata::as_str);
    if Object::parse(sent)?.raw(FIELD).is_some() {
        let detail = "already has a field `page`; rename it, or leave out page_metadata=true";
        return Err(Problem::invalid("metadata", detail));
    }
    Ok(Metadata::new(joined(sent, &page))?)
}

/// Appends a field to the compact text of an object.
fn joined(object: &str, page: &RawValue) -> String {
    let inside = &object[1..object.len() - 1];
    let comma = if inside.is_empty() { "" } else { "," };
    format!("{{{inside}{comma}\"{FIELD}\":{page}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Extract;

    fn facts() -> PageFacts {
        PageFacts { title: Some("a \"b\"".into()), canonical_url: None, language: None, extracted: Extract::Article }
    }

    #[test]
    fn facts_are_added_to_metadata() {
        let page = r#""page":{"title":"a \"b\"","extracted":"article"}"#;
        assert_eq!(with_page(None, &facts()).unwrap().as_str(), format!("{{{page}}}"));
        let sent = Metadata::new(r#"{"a":1}"#).unwrap();
        assert_eq!(with_page(Some(&sent), &facts()).unwrap().as_str(), format!("{{\"a\":1,{page}}}"));
        let sent = Metadata::new(r#"{"page":1}"#).unwrap();
        assert_eq!(with_page(Some(&sent), &facts()).unwrap_err().errors[0].field, "metadata");
    }

    #[test]
    fn the_length_of_facts_is_not_underestimated() {
        let longest = PageFacts {
            title: Some("\"".repeat(PageFacts::TITLE_BYTES_MAX)),
            canonical_url: Some("\\".repeat(PageFacts::URL_BYTES_MAX)),
            language: Some("x".repeat(PageFacts::LANGUAGE_BYTES_MAX)),
            extracted: Extract::Article,
        };
        for facts in [facts(), longest] {
            let (json_bytes, body) = (facts.json_bytes(), PageBody::from(facts));
            let bytes = serde_json::to_string(&body).unwrap().len() + ",\"page\":".len();
            assert!(bytes <= json_bytes && json_bytes <= PageFacts::JSON_BYTES_MAX, "{bytes} {json_bytes}");
        }
    }
}
