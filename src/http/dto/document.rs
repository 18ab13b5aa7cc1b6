//! Documents as JSON, as clients send them and as they are returned.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax_core::{IllFormed, Spec};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{capture, signed_text, values};
use crate::collections::{Attached, Prepared};
use crate::extract;
use crate::http::caller::Caller;
use crate::http::error::{FieldError, Problem};
use crate::http::json::{self, Object};
use crate::http::query::shown;
use crate::keys::Scope;
use crate::types::{Content, DocId, Document, Html, Label, Labels, Metadata, SetElement, Syntax};

/// A byte order mark, which some editors put before a text. It is removed, and offsets in error messages are counted
/// without it.
pub const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// The treatment of a text that has ill-formed Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Answer 422.
    Refuse,
    /// Replace ill-formed sequences with U+FFFD.
    Replace,
}

/// The treatment of fields that no document has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Answer 422: the name of a field may be misspelt.
    Refuse,
    /// Ignore these fields, as `hapax import` does.
    Ignore,
}

impl Extra {
    /// Refuses or ignores the fields that have not been read.
    pub fn finish(self, object: Object<'_>) -> Result<(), Problem> {
        match self {
            Self::Refuse => object.finish(),
            Self::Ignore => Ok(()),
        }
    }
}

impl From<Invalid> for IllFormed {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Refuse => Self::Refuse,
            Invalid::Replace => Self::Replace,
        }
    }
}

/// A document to look up or to store.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentInput {
    pub id: Option<DocId>,
    pub content: Content,
    /// The data to store with the document.
    pub attached: Attached,
}

impl DocumentInput {
    /// Returns the id, which is required to store a document.
    pub fn required_id(&self) -> Result<DocId, Problem> {
        self.id.clone().ok_or_else(|| Problem::invalid("id", "is required to store a document"))
    }
}

/// Parses a document in JSON. Refuses a kind of content that the caller may not send.
pub fn from_json(text: &str, invalid: Invalid, caller: &Caller) -> Result<DocumentInput, Problem> {
    of_fields(text, invalid, Extra::Refuse, caller)
}

/// Does the same as [`from_json`], and treats extra fields as `extra` says.
pub fn of_fields(text: &str, invalid: Invalid, extra: Extra, caller: &Caller) -> Result<DocumentInput, Problem> {
    let mut object = Object::parse(text)?;
    let id = object.string("id")?.map(DocId::new).transpose()?;
    let metadata = object
        .raw("metadata")
        .map(|raw| Ok::<_, Problem>(Metadata::new(json::compact("metadata", raw)?)?))
        .transpose()?;
    let labels = labels(&mut object)?;
    let capture = capture::of_fields(&mut object, extra == Extra::Ignore)?;
    let mut content = content(&mut object, invalid, caller)?;
    signed_text::add(&mut content, &mut object, extra == Extra::Ignore, caller)?;
    extra.finish(object)?;
    let content = content.ok_or_else(|| nothing("text, html, set and signature"))?;
    Ok(DocumentInput { id, content, attached: Attached { metadata, labels, capture } })
}

/// Parses `"labels": {"crawl": "2026-48", ...}`.
fn labels(object: &mut Object<'_>) -> Result<Option<Labels>, Problem> {
    let Some(object) = object.object("labels")? else { return Ok(None) };
    let label = |(name, raw): (Cow<'_, str>, &RawValue)| {
        let field = || format!("labels.{}", shown(&name));
        let value: String =
            serde_json::from_str(raw.get()).map_err(|_| Problem::invalid(field(), "must be a string"))?;
        Label::new(&name, &value).map_err(|error| Problem::invalid(field(), error.to_string()))
    };
    let labels = object.into_fields().map(label).collect::<Result<Vec<_>, _>>()?;
    Labels::new(labels).map(Some).map_err(|error| Problem::invalid("labels", error.to_string()))
}

/// Makes a document from a raw text.
pub fn from_raw(id: Option<DocId>, mut bytes: Vec<u8>, invalid: Invalid) -> Result<DocumentInput, Problem> {
    if bytes.starts_with(BYTE_ORDER_MARK.as_bytes()) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if invalid == Invalid::Replace => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(error) => return Err(Problem::ill_formed(error.utf8_error().valid_up_to() as u64)),
    };
    Ok(DocumentInput { id, content: Content::Text(text), attached: Attached::default() })
}

/// Makes a document from a raw page. Bytes that do not fit its charset are replaced, as browsers do.
pub fn from_page(id: Option<DocId>, bytes: &[u8], charset: Option<&str>, syntax: Syntax) -> DocumentInput {
    let markup = extract::decode(bytes, charset);
    DocumentInput { id, content: Content::Html(Html { markup, syntax }), attached: Attached::default() }
}

/// Returns the one content among an object's fields; `None` if there is none. The caller needs the scope `sign` for a
/// signature or a set, because these can be crafted to share bands with any document.
pub fn content(object: &mut Object<'_>, invalid: Invalid, caller: &Caller) -> Result<Option<Content>, Problem> {
    let text = object.raw("text");
    let markup = object.raw("html");
    let signature = object.raw("signature");
    if text.is_some() || signature.is_some() {
        object.leave_out_empty_array("set");
    }
    let set = object.raw("set");
    let fingerprint = object.raw("fingerprint");

    let given = [("text", text), ("html", markup), ("signature", signature), ("set", set)];
    let given = || given.iter().filter_map(|(name, raw)| raw.map(|_| *name));
    if given().count() > 1 {
        let detail = "only one of text, html, set and signature can be given";
        let errors = given().map(|name| FieldError { field: name.to_owned(), detail: detail.to_owned() });
        return Err(Problem::invalid_fields(errors.collect()));
    }
    if fingerprint.is_some() && signature.is_none() {
        return Err(Problem::invalid("fingerprint", "is only allowed together with `signature`"));
    }
    if set.is_some() || signature.is_some() {
        caller.require_for(Scope::Sign, if set.is_some() { "a `set`" } else { "a `signature`" })?;
    }
    let string = |name, raw| match invalid {
        Invalid::Refuse => json::string(name, raw),
        Invalid::Replace => json::string_lossy(name, raw),
    };
    if let Some(raw) = text {
        return string("text", raw).map(|text| Some(Content::Text(text)));
    }
    if let Some(raw) = markup {
        // A JSON string is Unicode already, so no charset is needed.
        return string("html", raw).map(|markup| Some(Content::Html(Html::untyped(markup))));
    }
    if let Some(raw) = set {
        let elements = json::array("set", raw)?;
        return elements.into_iter().map(element).collect::<Result<_, _>>().map(|set| Some(Content::Set(set)));
    }
    let Some(raw) = signature else { return Ok(None) };
    let bytes = STANDARD
        .decode(json::string("signature", raw)?)
        .map_err(|_| Problem::invalid("signature", "must be standard base64 with padding (RFC 4648, section 4)"))?;
    let fingerprint = fingerprint
        .map(|raw| {
            let text = json::string("fingerprint", raw)?;
            text.parse().map_err(|_| Problem::invalid("fingerprint", signed_text::HEX_DIGITS))
        })
        .transpose()?;
    Ok(Some(Content::Signature { bytes, fingerprint, text: None }))
}

/// Returns 422 for an object without content.
pub fn nothing(choices: &str) -> Problem {
    Problem::invalid("text", format!("exactly one of {choices} must be given"))
}

/// Parses a set's element: a string, or an integer from -2^63 to 2^64 - 1.
fn element(raw: &RawValue) -> Result<SetElement, Problem> {
    if raw.get().starts_with('"') {
        return json::string("set", raw).map(SetElement::Text);
    }
    let integer: Option<i128> = raw.get().parse().ok();
    integer
        .filter(|integer| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(integer))
        .map(SetElement::Integer)
        .ok_or_else(|| Problem::invalid("set", "each element must be a string or an integer from -2^63 to 2^64 - 1"))
}

/// A stored document as JSON.
#[derive(Debug, Serialize)]
pub struct DocumentRecord {
    id: String,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "values::labels")]
    labels: Option<Labels>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_digest: Option<String>,
    first_seen: String,
    id_first_seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shingles: Option<u64>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    representative: Option<String>,
    linked: bool,
}

/// A stored document with its text, as JSON.
#[derive(Debug, Serialize)]
pub struct DocumentWithText {
    #[serde(flatten)]
    pub record: DocumentRecord,
    /// Absent for a set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl From<Document> for DocumentRecord {
    fn from(document: Document) -> Self {
        Self {
            id: document.id.as_str().to_owned(),
            seq: document.seq.0,
            metadata: document.metadata.map(super::values::metadata),
            labels: document.labels,
            date: document.capture.date.map(|date| date.as_str().to_owned()),
            payload_digest: document.capture.digest.map(|digest| digest.as_str().to_owned()),
            first_seen: super::values::timestamp(document.first_seen),
            id_first_seen: super::values::timestamp(document.id_first_seen),
            last_seen: document.last_seen.map(super::values::timestamp),
            expires: document.expires.map(super::values::timestamp),
            shingles: document.shingles,
            verdict: document.verdict.as_str(),
            duplicate_of: document.duplicate_of.map(|id| id.as_str().to_owned()),
            representative: document.representative.map(|id| id.as_str().to_owned()),
            linked: document.linked,
        }
    }
}

/// A page of documents.
#[derive(Debug, Serialize)]
pub struct DocumentPage {
    /// The documents, in the order in which they were stored.
    pub documents: Vec<DocumentRecord>,
    /// The start of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A label, and how many documents have it.
#[derive(Debug, Serialize)]
pub struct LabelCount {
    name: String,
    value: String,
    documents: u64,
}

impl LabelCount {
    /// An upper bound on the size of a label count as JSON, in bytes.
    pub const BYTES_MAX: usize = Labels::JSON_BYTES_MAX;

    pub fn new(label: &Label, documents: u64) -> Self {
        Self { name: label.name().to_owned(), value: label.value().to_owned(), documents }
    }
}

/// A page of the labels that documents have.
#[derive(Debug, Serialize)]
pub struct LabelPage {
    /// The labels, in the order of their names and values.
    pub labels: Vec<LabelCount>,
    /// The start of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The documents with the requested ids.
#[derive(Debug, Serialize)]
pub struct FoundDocuments {
    /// The requested documents that are stored, in the order of the request.
    pub documents: Vec<DocumentRecord>,
    /// The ids that are not stored.
    pub missing: Vec<String>,
    /// How many ids at the end of the list are left out, because the answer would be too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct Deleted {
    /// How many of the ids were stored, and are deleted now.
    pub deleted: u64,
}

#[derive(Debug, Serialize)]
pub struct Signature {
    empty: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_slots: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shingles: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_hash: Option<String>,
    spec: String,
    fingerprint: String,
}

impl Signature {
    /// The signature of a document that was prepared under `spec`.
    pub fn new(prepared: &Prepared, spec: &Spec) -> Self {
        let ranks = |ranks: &[u64]| ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect::<Vec<_>>();
        Self {
            empty: prepared.signature().is_none(),
            signature: prepared.signature().map(|bytes| STANDARD.encode(bytes)),
            ranks: prepared.ranks().map(|all| STANDARD.encode(ranks(all))),
            empty_slots: prepared.empty_slots(),
            shingles: prepared.shingles(),
            content_hash: prepared.content().map(|hash| hash.to_string()),
            spec: spec.to_string(),
            fingerprint: spec.fingerprint().to_string(),
        }
    }
}

/// Parses `{"ids": [...]}`.
pub fn ids(text: &str, max: usize) -> Result<Vec<DocId>, Problem> {
    let mut object = Object::parse(text)?;
    let raw = object.raw("ids").ok_or_else(|| Problem::invalid("ids", "is required"))?;
    object.finish()?;
    let raws = json::array("ids", raw)?;
    if raws.len() > max {
        return Err(too_many("ids", raws.len(), max));
    }
    let id = |(at, raw): (usize, &RawValue)| {
        let text = json::string("ids", raw)?;
        DocId::new(text).map_err(|error| Problem::invalid(format!("ids[{at}]"), error.to_string()))
    };
    raws.into_iter().enumerate().map(id).collect()
}

/// Returns 413 for too many documents or ids in one request.
pub fn too_many(what: &str, given: usize, max: usize) -> Problem {
    let detail = format!("{what}: {given} in one request; at most {max} are allowed (`server.batch_documents_max`)");
    Problem::new(crate::http::error::Code::TooLarge, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::Code;
    use crate::types::DOCUMENT_FIELDS;

    fn parse(text: &str) -> Result<DocumentInput, Problem> {
        from_json(text, Invalid::Refuse, &Caller::anyone())
    }

    fn field(text: &str) -> String {
        let problem = parse(text).unwrap_err();
        assert_eq!(problem.code, Code::InvalidValue);
        problem.errors[0].field.clone()
    }

    #[test]
    fn a_document_is_flat() {
        let document = parse(r#"{"metadata": {"z": 1, "a": [ 2 ]}, "text": "a\nb", "id": "https://a.example/?x#y"}"#);
        let document = document.unwrap();
        assert_eq!(document.id.unwrap().as_str(), "https://a.example/?x#y");
        assert_eq!(document.content, Content::Text("a\nb".into()));
        assert_eq!(document.attached.metadata.unwrap().as_str(), r#"{"z":1,"a":[2]}"#);
    }

    #[test]
    fn exactly_one_content_is_asked_for() {
        assert_eq!(field(r#"{"id":"a"}"#), "text");
        assert_eq!(field(r#"{"id":"a","text":"x","set":[1]}"#), "text");
        assert_eq!(field(r#"{"id":"a","text":"x","html":"<p>x"}"#), "text");
        let html = Html { markup: "<p>".into(), syntax: Syntax::Html };
        assert_eq!(parse(r#"{"html":"<p>"}"#).unwrap().content, Content::Html(html.clone()));
        assert_eq!(parse(r#"{"html":"\uFEFF<p>"}"#).unwrap().content, Content::Html(html));
        for xhtml in [r#"<?xml version='1.0'?><html>"#, r#"<html xmlns='http://www.w3.org/1999/xhtml'>"#] {
            let html = Html { markup: xhtml.into(), syntax: Syntax::Xhtml };
            assert_eq!(parse(&format!(r#"{{"html":"{xhtml}"}}"#)).unwrap().content, Content::Html(html));
        }
        assert_eq!(field(r#"{"text":"x","fingerprint":"00"}"#), "fingerprint");
    }

    // A generated Java client (openapi-generator) sends an empty set with each document. Without this rule, all its
    // documents would be refused.
    #[test]
    fn an_empty_set_counts_only_alone() {
        for set in ["[]", "[ \n]"] {
            let document = parse(&format!(r#"{{"id":"a","set":{set},"text":"x"}}"#)).unwrap();
            assert_eq!(document.content, Content::Text("x".into()));
            assert_eq!(parse(&format!(r#"{{"id":"a","set":{set}}}"#)).unwrap().content, Content::Set(Vec::new()));
        }
        assert_eq!(field(r#"{"text":"x","set":{}}"#), "text");
        assert_eq!(field(r#"{"text":"x","set":[[]]}"#), "text");
    }

    #[test]
    fn wrong_types_name_their_field() {
        assert_eq!(field(r#"{"text":5}"#), "text");
        assert_eq!(field(r#"{"text":"x","id":5}"#), "id");
        assert_eq!(field(r#"{"text":"x","id":""}"#), "id");
        assert_eq!(field(r#"{"text":"x","metadata":"y"}"#), "metadata");
        assert_eq!(field(r#"{"signature":"???"}"#), "signature");
        assert_eq!(field(r#"{"text":"x","teXt":"y"}"#), "teXt");
    }

    #[test]
    fn the_fields_are_those_that_files_may_have() {
        let problem = parse(r#"{"text":"x","teXt":"y"}"#).unwrap_err();
        let (_, known) = problem.errors[0].detail.split_once("known fields: ").unwrap();
        let mut known: Vec<_> = known.split(", ").collect();
        let mut fields = DOCUMENT_FIELDS.to_vec();
        known.sort_unstable();
        fields.sort_unstable();
        assert_eq!(known, fields);
        let ignoring = |text| of_fields(text, Invalid::Refuse, Extra::Ignore, &Caller::anyone());
        assert_eq!(ignoring(r#"{"text":"x","teXt":"y"}"#).unwrap(), parse(r#"{"text":"x"}"#).unwrap());
        assert!(ignoring(r#"{"text":"x","text":"y"}"#).is_err() && ignoring(r#"{"teXt":"y"}"#).is_err());
    }

    #[test]
    fn metadata_is_measured_compact() {
        let text = |bytes: usize, space: usize| {
            format!(r#"{{"text":"x","metadata":{{{}"k":"{}"}}}}"#, " ".repeat(space), "v".repeat(bytes - 8))
        };
        assert!(parse(&text(16 * 1024, 10_000)).is_ok());
        assert_eq!(field(&text(16 * 1024 + 1, 0)), "metadata");
    }

    #[test]
    fn sets_take_strings_and_64_bit_integers() {
        let document = parse(r#"{"set":["a",-9223372036854775808,18446744073709551615,5,"5"]}"#).unwrap();
        let Content::Set(set) = document.content else { panic!("a set") };
        assert_eq!(set[1], SetElement::Integer(i128::from(i64::MIN)));
        assert_eq!(set[2], SetElement::Integer(i128::from(u64::MAX)));
        assert_ne!(set[3], set[4]);
        for set in ["[1.5]", "[18446744073709551616]", "[-9223372036854775809]", "[null]", "[[1]]", "{}", "[1e3]"] {
            assert_eq!(field(&format!(r#"{{"set":{set}}}"#)), "set", "{set}");
        }
    }

    #[test]
    fn raw_texts_lose_their_byte_order_mark_and_must_be_utf8() {
        let text = from_raw(None, b"\xEF\xBB\xBFa".to_vec(), Invalid::Refuse).unwrap().content;
        assert_eq!(text, Content::Text("a".into()));
        assert!(from_raw(None, b"a\xFFb".to_vec(), Invalid::Refuse).is_err());
        let text = from_raw(None, b"a\xFFb".to_vec(), Invalid::Replace).unwrap().content;
        assert_eq!(text, Content::Text("a\u{FFFD}b".into()));
    }

    #[test]
    fn ids_are_bounded_and_named_by_place() {
        assert_eq!(ids(r#"{"ids":["a","b"]}"#, 2).unwrap().len(), 2);
        assert_eq!(ids(r#"{"ids":["a","b"]}"#, 1).unwrap_err().code, Code::TooLarge);
        assert_eq!(ids(r#"{"ids":["a",""]}"#, 9).unwrap_err().errors[0].field, "ids[1]");
    }
}
