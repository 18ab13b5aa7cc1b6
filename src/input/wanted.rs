//! The form of a file's lines, and the parts of the file that the caller wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// The fields that documents have.
    pub seen: SeenFields,
}

/// Returns the names of the fields of a form, in the order of [`SeenFields`].
fn fields(form: &LineForm) -> impl Iterator<Item = &str> {
    let labels = form.label_fields.iter().map(|label| &label.field);
    [&form.id_field, &form.text_field, &form.html_field].into_iter().chain(labels).map(String::as_str)
}

/// The fields of a form that at least one document has. Clones share them. Fields after the first 64 ones are not
/// counted.
#[derive(Clone, Debug, Default)]
pub struct SeenFields(Arc<AtomicU64>);

impl SeenFields {
    /// Adds the fields of a document. `has`: whether the document has a field.
    pub(super) fn add(&self, form: &LineForm, has: impl Fn(&str) -> bool) {
        let before = self.0.load(Ordering::Relaxed);
        let is_new = |(at, field): &(usize, &str)| before >> at & 1 == 0 && has(field);
        let new = fields(form).take(64).enumerate().filter(is_new).fold(0, |new, (at, _)| new | 1 << at);
        if new != 0 {
            self.0.fetch_or(new, Ordering::Relaxed);
        }
    }

    /// Returns the fields that the caller has named, and that no document has had so far: the number of each field, which
    /// is 0 for the id, 1 for the text, 2 for the page and more for labels, and its name. Usual names are left out.
    pub fn unseen<'a>(&self, form: &'a LineForm) -> impl Iterator<Item = (usize, &'a str)> {
        let (seen, usual) = (self.0.load(Ordering::Relaxed), LineForm::default());
        let is_unseen = move |(at, field): &(usize, &str)| {
            seen >> at & 1 == 0 && fields(&usual).nth(*at).is_none_or(|usual| usual != *field)
        };
        fields(form).take(64).enumerate().filter(is_unseen)
    }
}

impl Default for LineForm {
    fn default() -> Self {
        let [id_field, text_field, html_field] = ["id", "text", "html"].map(str::to_owned);
        Self {
            id_field,
            text_field,
            html_field,
            label_fields: Vec::new(),
            ids: Ids::default(),
            seen: SeenFields::default(),
        }
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
        let LineForm { id_field, text_field, html_field, label_fields, ids: _, seen: _ } = &self.form;
        [id_field, text_field, html_field].into_iter().chain(&self.also).any(|field| field == name)
            || label_fields.iter().any(|label| label.field == name)
            || DOCUMENT_FIELDS.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_field_that_no_document_has_is_told() {
        let label = LabelField { label: "site".to_owned(), field: "sitee".to_owned() };
        let form = LineForm { text_field: "body".to_owned(), label_fields: vec![label], ..LineForm::default() };
        let unseen =
            |form: &LineForm| form.seen.unseen(form).map(|(at, field)| (at, field.to_owned())).collect::<Vec<_>>();
        assert_eq!(unseen(&form), [(1, "body".to_owned()), (3, "sitee".to_owned())]);
        // Each thread has a clone.
        form.seen.clone().add(&form, |field| field == "body");
        assert_eq!(unseen(&form), [(3, "sitee".to_owned())]);
    }
}
