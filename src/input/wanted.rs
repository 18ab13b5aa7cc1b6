//! The form of a file, and the parts of it that are wanted.

/// The form of the lines of a file.
#[derive(Clone, Debug)]
pub struct LineForm {
    /// The field that holds the id.
    pub id_field: String,
    /// The field that holds the text.
    pub text_field: String,
    /// Whether a document must have an id.
    pub id_required: bool,
}

/// The parts of a file that are wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub form: LineForm,
    /// Whether the lines are also wanted as they are in the file.
    pub originals: bool,
}
