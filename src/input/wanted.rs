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

impl LineForm {
    /// The names of the fields, in the order of [`SeenFields`].
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let labels = self.label_fields.iter().map(|label| &label.field);
        [&self.id_field, &self.text_field, &self.html_field].into_iter().chain(labels).map(String::as_str)
    }
}

/// The fields of a form that at least one document has. The form has at most 64 fields; later ones count as seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenFields(u64);

impl SeenFields {
    /// Adds the fields of a document. `has`: whether the document has a field.
    pub(super) fn add(&mut self, form: &LineForm, has: impl Fn(&str) -> bool) {
        for (at, field) in form.fields().take(64).enumerate() {
            self.0 |= u64::from(has(field)) << at;
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the fields that the caller has named, and that no document has. Names that are the default are left out.
    pub fn unseen<'a>(&self, form: &'a LineForm) -> impl Iterator<Item = &'a str> {
        let (seen, usual) = (self.0, LineForm::default());
        let is_unseen = move |(at, field): &(usize, &str)| {
            seen >> at & 1 == 0 && usual.fields().nth(*at).is_none_or(|usual| usual != *field)
        };
        form.fields().take(64).enumerate().filter(is_unseen).map(|(_, field)| field)
    }
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
    /// Whether the originals are read as objects only: with [`Chunk::object`](super::Chunk::object). Then tables may have
    /// different headers.
    pub objects: bool,
    /// Another field that is read: the field of [`Chunk::ranked`].
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
