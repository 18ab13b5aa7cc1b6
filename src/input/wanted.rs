//! The form of a file's lines, and the parts of the file that the caller wants.

/// The form of the lines of a file.
#[derive(Clone, Debug)]
pub struct LineForm {
    /// The field with the id.
    pub id_field: String,
    /// The field with the text.
    pub text_field: String,
    /// Whether a document must have an id.
    pub id_required: bool,
}

/// The parts of a file that are wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub form: LineForm,
    /// Whether the unchanged lines of the file are wanted too.
    pub originals: bool,
    /// Another field that the originals of rows of Parquet files must have. Lines have all their fields.
    pub also: Option<String>,
}
