//! Arguments that name files of documents -> the files, or errors that name these arguments.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::input::{InputError, LineForm, NoField, Wanted, look_at};

/// The names of the fields with the id and the text.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FieldArgs {
    /// Field with the id of the document, in JSON Lines
    #[arg(long, value_name = "FIELD", default_value = "id")]
    pub(super) id_field: String,
    /// Field with the text of the document, in JSON Lines
    #[arg(long, value_name = "FIELD", default_value = "text")]
    pub(super) text_field: String,
}

impl FieldArgs {
    /// Returns the form that lines must have: the names of the two fields, and whether an id is required.
    pub(super) fn wanted(&self, id_required: bool) -> Wanted {
        let form = LineForm { id_field: self.id_field.clone(), text_field: self.text_field.clone(), id_required };
        Wanted { form, originals: false }
    }
}

/// Replaces each pattern such as `*.warc.gz` by the files that match it, in the order of their names. A pattern that is
/// the name of a file is not replaced. A shell also replaces patterns, unless they are quoted or match too many files.
pub(super) fn matching(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists()) else {
            files.push(path.clone());
            continue;
        };
        let found = glob::glob(pattern).with_context(|| format!("{pattern} is not a pattern of file names"))?;
        let before = files.len();
        for file in found {
            let file = file.with_context(|| format!("cannot look for {pattern}"))?;
            if !file.is_dir() {
                files.push(file);
            }
        }
        if files.len() == before {
            bail!("no file matches {pattern}");
        }
    }
    Ok(files)
}

/// Opens each file and looks at its format, so that an unreadable file is reported before other files are read to their
/// end.
pub(super) fn look_at_all(files: &[PathBuf], wanted: &Wanted) -> Result<()> {
    if files.iter().filter(|file| *file == Path::new("-")).count() > 1 {
        bail!("- is given twice; stdin can be read only once");
    }
    files.iter().try_for_each(|file| look_at(file, wanted).map_err(|error| unreadable(error, file)))
}

/// Adds to an error how many files were not read because of it.
pub(super) fn with_unread(error: anyhow::Error, unread: &[PathBuf]) -> anyhow::Error {
    match unread {
        [] => error,
        [one] => anyhow!("{error:#}; the next file, {}, was not read", one.display()),
        [first, ..] => {
            let count = unread.len();
            anyhow!("{error:#}; the next {count} files were not read; the first of them is {}", first.display())
        }
    }
}

/// Adds to an error the name of the argument that can correct it, if there is one.
pub(super) fn unreadable(error: InputError, path: &Path) -> anyhow::Error {
    let error = match error {
        InputError::NoField(field) => anyhow!("{field}: use {}", flag(&field)),
        error => error.into(),
    };
    error.context(format!("cannot read {}", path.display()))
}

/// Returns the argument that names a field.
fn flag(field: &NoField) -> &'static str {
    if field.is_id { "--id-field" } else { "--text-field" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_replaced_by_the_files_that_match() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for name in ["b.jsonl", "a.jsonl", "c.txt", "[x].jsonl"] {
            std::fs::write(dir.path().join(name), "").expect("write");
        }
        let matching = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| dir.path().join(name)).collect();
            let found = matching(&paths).map_err(|error| error.to_string())?;
            Ok::<_, String>(
                found.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(matching(&["?.jsonl", "c.txt", "missing"]).unwrap(), ["a.jsonl", "b.jsonl", "c.txt", "missing"]);
        assert_eq!(matching(&["[x].jsonl"]).unwrap(), ["[x].jsonl"], "a file of that name");
        assert!(matching(&["*.warc"]).unwrap_err().starts_with("no file matches "));
        assert!(matching(&["**[.warc"]).is_err());
    }
}
