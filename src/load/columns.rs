//! The columns of a file of signatures: their names, their types, their meanings, and the result of a load if a column
//! is missing. `docs/load.md` shows this list. A test compares this list of columns with that page, and with the SQLite
//! tables of a collection's file. `reader.rs` refuses a file whose required columns are missing or whose columns have
//! other types.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

/// A column of the format. The order is that of [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Id,
    Signature,
    ContentHash,
    Shingles,
    Verdict,
    Representative,
    Linked,
    FirstSeen,
    IdFirstSeen,
    LastSeen,
    Metadata,
    Labels,
    Payload,
    PayloadShingles,
    HtmlHash,
    Extractor,
    Date,
    PayloadDigest,
}

impl Column {
    /// Returns the column of this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        COLUMNS.iter().find(|doc| doc.name == name).map(|doc| doc.column)
    }

    pub(super) fn name(self) -> &'static str {
        COLUMNS[self as usize].name
    }
}

/// The name and the meaning of a column.
pub struct ColumnDoc {
    pub column: Column,
    pub name: &'static str,
    pub kind: &'static str,
    pub meaning: &'static str,
    /// The result of a load for a row without a value.
    pub absent: &'static str,
}

const fn doc(
    column: Column,
    name: &'static str,
    kind: &'static str,
    meaning: &'static str,
    absent: &'static str,
) -> ColumnDoc {
    ColumnDoc { column, name, kind, meaning, absent }
}

/// All columns, in the order in which they are written. Only the first two are required.
pub const COLUMNS: [ColumnDoc; 18] = [
    doc(Column::Id, "id", "string", "the id of the document", "an error"),
    doc(
        Column::Signature,
        "signature",
        "fixed-size binary",
        "its packed slots",
        "the row is skipped: its text was empty",
    ),
    doc(
        Column::ContentHash,
        "content_hash",
        "16 bytes",
        "the hash of its canonical text",
        "the document has only a signature",
    ),
    doc(Column::Shingles, "shingles", "integer", "the number of its shingles, repeats counted", "unknown"),
    doc(
        Column::Verdict,
        "verdict",
        "string, JSON",
        "what its insertion found",
        "`unique`; for a row with a representative, a duplicate of it",
    ),
    doc(
        Column::Representative,
        "representative",
        "string",
        "the id of an earlier row that represents its cluster, and is no link",
        "it is alone, or represents its cluster",
    ),
    doc(
        Column::Linked,
        "linked",
        "boolean",
        "whether it is a link, which a check finds only if the checked document is an exact copy of it",
        "true with a representative",
    ),
    doc(Column::FirstSeen, "first_seen", "timestamp", "when this content was first stored", "the time of the load"),
    doc(Column::IdFirstSeen, "id_first_seen", "timestamp", "when its id was first stored", "`first_seen`"),
    doc(Column::LastSeen, "last_seen", "timestamp", "when it was last seen", "`first_seen`"),
    doc(Column::Metadata, "metadata", "string, JSON", "its metadata, an object", "none"),
    doc(Column::Labels, "labels", "list of strings", "its labels, each `name:value`", "none"),
    doc(
        Column::Payload,
        "payload",
        "binary",
        "its shingles or its text, if the collection keeps them",
        "an error if the collection keeps them",
    ),
    doc(
        Column::PayloadShingles,
        "payload_shingles",
        "integer",
        "the number of distinct shingles in `payload`",
        "an error if there is a `payload`",
    ),
    doc(
        Column::HtmlHash,
        "html_hash",
        "16 bytes",
        "the hash of the page that its text came from",
        "it came from no page",
    ),
    doc(
        Column::Extractor,
        "extractor",
        "integer",
        "the version of the extractor for that page",
        "an error if there is an `html_hash`",
    ),
    doc(Column::Date, "date", "string", "the date of its capture", "none"),
    doc(Column::PayloadDigest, "payload_digest", "string", "the digest of the payload of its capture", "none"),
];

// `Column::name` and the columns of a batch rely on this order.
const _: () = {
    let mut at = 0;
    while at < COLUMNS.len() {
        assert!(COLUMNS[at].column as usize == at);
        at += 1;
    }
};

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
    let field = |(column, kind): (&ColumnDoc, DataType)| Field::new(column.name, kind, column.column != Column::Id);
    let fields: Fields = COLUMNS.iter().zip(kinds).map(field).collect();
    Arc::new(Schema::new(fields))
}
