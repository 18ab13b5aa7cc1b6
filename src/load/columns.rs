//! The columns of a file of signatures: their names, their types, and what they mean if they are absent. `docs/load.md`
//! shows this table; a test compares the two, and this table with the tables of a collection's file.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

/// The name and the meaning of a column.
pub struct ColumnDoc {
    pub name: &'static str,
    pub kind: &'static str,
    pub meaning: &'static str,
    /// What it means if a row has no value.
    pub absent: &'static str,
}

pub(super) const ID: &str = "id";
pub(super) const SIGNATURE: &str = "signature";
pub(super) const CONTENT_HASH: &str = "content_hash";
pub(super) const SHINGLES: &str = "shingles";
pub(super) const VERDICT: &str = "verdict";
pub(super) const REPRESENTATIVE: &str = "representative";
pub(super) const LINKED: &str = "linked";
pub(super) const FIRST_SEEN: &str = "first_seen";
pub(super) const ID_FIRST_SEEN: &str = "id_first_seen";
pub(super) const LAST_SEEN: &str = "last_seen";
pub(super) const METADATA: &str = "metadata";
pub(super) const LABELS: &str = "labels";
pub(super) const PAYLOAD: &str = "payload";
pub(super) const PAYLOAD_SHINGLES: &str = "payload_shingles";
pub(super) const HTML_HASH: &str = "html_hash";
pub(super) const EXTRACTOR: &str = "extractor";
pub(super) const DATE: &str = "date";
pub(super) const PAYLOAD_DIGEST: &str = "payload_digest";

const fn column(name: &'static str, kind: &'static str, meaning: &'static str, absent: &'static str) -> ColumnDoc {
    ColumnDoc { name, kind, meaning, absent }
}

/// All columns, in the order in which they are written. Only the first two are required.
pub const COLUMNS: [ColumnDoc; 18] = [
    column(ID, "string", "the id of the document", "an error"),
    column(SIGNATURE, "fixed-size binary", "its packed slots", "the row is passed over: its text was empty"),
    column(CONTENT_HASH, "16 bytes", "the hash of its canonical text", "the document has only a signature"),
    column(SHINGLES, "integer", "the number of its shingles, repeats counted", "unknown"),
    column(
        VERDICT,
        "string, JSON",
        "what its insertion found",
        "`unique`; for a row with a representative, a duplicate of it",
    ),
    column(
        REPRESENTATIVE,
        "string",
        "the id of an earlier row that represents its cluster, and is no link",
        "it is alone, or represents its cluster",
    ),
    column(LINKED, "boolean", "whether it is a link, which is never found by a check", "true with a representative"),
    column(FIRST_SEEN, "timestamp", "when this content was first stored", "the time of the load"),
    column(ID_FIRST_SEEN, "timestamp", "when its id was first stored", "`first_seen`"),
    column(LAST_SEEN, "timestamp", "when it was last seen", "`first_seen`"),
    column(METADATA, "string, JSON", "its metadata, an object", "none"),
    column(LABELS, "list of strings", "its labels, each `name:value`", "none"),
    column(PAYLOAD, "binary", "its shingles or its text, if the collection keeps them", "an error if it keeps them"),
    column(PAYLOAD_SHINGLES, "integer", "the number of distinct shingles in `payload`", "an error with a payload"),
    column(HTML_HASH, "16 bytes", "the hash of the page that its text came from", "it came from no page"),
    column(EXTRACTOR, "integer", "the version of the extractor for that page", "an error with an `html_hash`"),
    column(DATE, "string", "the date of its capture", "none"),
    column(PAYLOAD_DIGEST, "string", "the digest of the payload of its capture", "none"),
];

fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// Returns the schema that is written for signatures of this many bytes.
pub(super) fn schema(signature_bytes: i32) -> Arc<Schema> {
    let labels = DataType::List(Arc::new(Field::new("element", DataType::Utf8, false)));
    let kinds = [
        DataType::Utf8,
        DataType::FixedSizeBinary(signature_bytes),
        DataType::FixedSizeBinary(16),
        DataType::UInt64,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Boolean,
        time(),
        time(),
        time(),
        DataType::Utf8,
        labels,
        DataType::Binary,
        DataType::UInt64,
        DataType::FixedSizeBinary(16),
        DataType::UInt32,
        DataType::Utf8,
        DataType::Utf8,
    ];
    let field = |(column, kind): (&ColumnDoc, DataType)| Field::new(column.name, kind, column.name != ID);
    let fields: Fields = COLUMNS.iter().zip(kinds).map(field).collect();
    Arc::new(Schema::new(fields))
}
