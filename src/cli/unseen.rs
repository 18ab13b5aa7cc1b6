//! Fields that were named but that no document has -> warnings at the end of a run. A misspelt name is found by them.

use std::io::{self, Write};

use crate::input::LineForm;

/// The arguments that name the fields of documents, in the order of the fields of a form.
pub(super) const FIELD_FLAGS: [&str; 3] = ["--id-field", "--text-field", "--html-field"];
/// The argument that names the fields after these.
const LABEL_FLAG: &str = "--label-field";

/// Writes a warning for each field that no document has. `flags`: the arguments that name the id, the text and the page.
pub(super) fn warn_unseen(form: &LineForm, flags: [&str; 3], out: &mut impl Write) -> io::Result<()> {
    for (at, field) in form.seen.unseen(form) {
        let flag = flags.get(at).unwrap_or(&LABEL_FLAG);
        writeln!(out, "warning: no document has the field {field:?} ({flag})")?;
    }
    Ok(())
}
