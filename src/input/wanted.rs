//! The form of a file's lines, and the parts of the file that the caller wants.

use crate::types::DOCUMENT_FIELDS;

/// How a document without an id is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// The document fails.
    #[default]
    Required,
    /// The document has no id.
    Optional,
    /// The document gets an id from its place: see [`Origin::made_id`](super::Origin::made_id).
    Made,
}

/// A field whose value becomes a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelField {
    /// The name of the label.
    pub label: String,
    pub field: String,
}

/// The form of the lines of a file.
#[derive(Clone, Debug)]
pub struct LineForm {
    /// The field with the id.
    pub id_field: String,
    /// The field with the text.
    pub text_field: String,
    /// The field with the page, if there is no text.
    pub html_field: String,
    pub label_fields: Vec<LabelField>,
    pub ids: Ids,
}

impl Default for LineForm {
    fn default() -> Self {
        let [id_field, text_field, html_field] = ["id", "text", "html"].map(str::to_owned);
        Self { id_field, text_field, html_field, label_fields: Vec::new(), ids: Ids::default() }
    }
}

/// The parts of a file that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub form: LineForm,
    /// Whether the unchanged lines of the file are wanted too.
    pub originals: bool,
    /// Another field that the originals of rows of Parquet files must have, and the field of [`Chunk::ranked`]. Lines
    /// have all their fields.
    ///
    /// [`Chunk::ranked`]: super::Chunk::ranked
    pub also: Option<String>,
}

impl Wanted {
    /// Whether a column of this name is read.
    pub(super) fn reads(&self, name: &str) -> bool {
        let LineForm { id_field, text_field, html_field, label_fields, ids: _ } = &self.form;
        [id_field, text_field, html_field].into_iter().chain(&self.also).any(|field| field == name)
            || label_fields.iter().any(|label| label.field == name)
            || DOCUMENT_FIELDS.contains(&name)
    }
}
