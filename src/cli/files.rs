//! Arguments that name files of documents -> the files, or errors that name these arguments.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use glob::{MatchOptions, glob_with};

use crate::input::{Chunk, Ids, InputError, LabelField, LineForm, NoField, TableHeader, Wanted, look_at, read_chunks};
use crate::plain_file::are_of_one_file;
use crate::types::Label;

/// The names of the fields with the id and the content.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FieldArgs {
    /// Field or column with the id of the document
    #[arg(long, value_name = "FIELD", default_value = "id")]
    pub(super) id_field: String,
    /// Field or column with the text of the document
    #[arg(long, value_name = "FIELD", default_value = "text")]
    pub(super) text_field: String,
    /// Field or column with the page of HTML. It is used if the document has no text
    #[arg(long, value_name = "FIELD", default_value = "html")]
    pub(super) html_field: String,
}

impl FieldArgs {
    /// Returns the form that lines must have: the names of the fields, and whether an id is required.
    pub(super) fn wanted(&self, id_required: bool) -> Wanted {
        let form = LineForm {
            id_field: self.id_field.clone(),
            text_field: self.text_field.clone(),
            html_field: self.html_field.clone(),
            ids: if id_required { Ids::Required } else { Ids::Optional },
            ..LineForm::default()
        };
        Wanted { form, ..Wanted::default() }
    }
}

/// The fields that become labels, and documents without an id, for the verbs that pass on both.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DocumentArgs {
    /// Field or column that becomes a label of this name: a string, a number, or a list of one string. With LABEL=FIELD,
    /// the label has another name than the field. Can be repeated
    #[arg(long, value_name = "FIELD", value_parser = label_field)]
    label_field: Vec<LabelField>,
    /// Give each document without an id the id FILE:NUMBER, from its file and its line, row or record
    #[arg(long)]
    made_ids: bool,
}

impl DocumentArgs {
    /// Adds what these arguments say.
    pub(super) fn add_to(&self, wanted: &mut Wanted) {
        wanted.form.label_fields.clone_from(&self.label_field);
        if self.made_ids {
            wanted.form.ids = Ids::Made;
        }
    }
}

fn label_field(text: &str) -> Result<LabelField, String> {
    let (label, field) = text.split_once('=').unwrap_or((text, text));
    if field.is_empty() {
        return Err("must be FIELD or LABEL=FIELD".to_owned());
    }
    // The value of the label comes from the documents.
    Label::new(label, "value").map_err(|wrong| format!("{wrong}; to give it another name, write LABEL=FIELD"))?;
    Ok(LabelField { label: label.to_owned(), field: field.to_owned() })
}

/// Replaces each pattern such as `*.warc.gz` by the files that match it, in the order of their names, and each folder by
/// the files in it and in its folders, in the order of their paths. A pattern that is the name of a file is not
/// replaced. A shell also replaces patterns, unless they are quoted or match too many files.
pub(super) fn matching(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.append(&mut files_in(path)?);
            continue;
        }
        let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists()) else {
            files.push(path.clone());
            continue;
        };
        // As in a shell, `*` matches no hidden file.
        let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
        let found = glob_with(pattern, options).with_context(|| format!("{pattern} is not a pattern of file names"))?;
        let before = files.len();
        for file in found {
            let file = file.with_context(|| format!("cannot look for {pattern}"))?;
            if file.is_dir() {
                files.append(&mut files_in(&file)?);
            } else {
                files.push(file);
            }
        }
        if files.len() == before {
            bail!("no file matches {pattern}");
        }
    }
    Ok(files)
}

/// Returns the files of a folder and of its folders, in the order of their paths. Hidden ones are left out, and those whose
/// names begin with `_`, as Spark and Hive do. A link to a folder is not followed, because it may lead in a circle.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let cannot = |path: &Path| format!("cannot read {}", path.display());
        for entry in folder.read_dir().with_context(|| cannot(&folder))? {
            let entry = entry.with_context(|| cannot(&folder))?;
            let path = entry.path();
            if matches!(entry.file_name().as_encoded_bytes().first(), Some(b'.' | b'_')) {
                continue;
            }
            if entry.file_type().with_context(|| cannot(&path))?.is_dir() {
                folders.push(path);
            } else if path.metadata().with_context(|| cannot(&path))?.is_file() {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        bail!(
            "the folder {} has no file to read; names that begin with a dot or with _ are left out",
            folder.display()
        );
    }
    found.sort();
    Ok(found)
}

/// Checks the outputs of a verb, each with its flag, before any file is written. An output must not be an input or another
/// output. The inputs must exist: otherwise, outputs of an earlier run would be emptied although there is nothing to do.
pub(super) fn check_outputs(inputs: &[PathBuf], outputs: &[(&str, Option<&Path>)]) -> Result<()> {
    let outputs: Vec<_> = outputs.iter().filter_map(|&(flag, path)| Some((flag, path?))).collect();
    for input in inputs {
        let found = if input == Path::new("-") { stdin() } else { input.metadata() };
        let found = found.with_context(|| format!("cannot read {}", input.display()))?;
        if let Some((flag, path)) = outputs.iter().find(|(_, path)| is_same(path, &found)) {
            bail!("{flag} {}: this file is also an input, and would be emptied; name another file", path.display());
        }
    }
    for (at, &(other_flag, other)) in outputs.iter().enumerate() {
        for &(flag, path) in &outputs[..at] {
            let is_one = target(path) == target(other) || other.metadata().is_ok_and(|other| is_same(path, &other));
            if is_one && !path.metadata().is_ok_and(|found| !found.is_file()) {
                return Err(one_file(flag, (other_flag, other)));
            }
        }
    }
    Ok(())
}

/// Returns the path of a file without links, whether or not the file exists.
pub(super) fn target(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// The error for two outputs that are one file.
pub(super) fn one_file(flag: &str, (other_flag, path): (&str, &Path)) -> anyhow::Error {
    anyhow!("{flag} and {other_flag} {}: they must be two different files", path.display())
}

/// Returns the first of these files that is also one of the others, whatever its path is.
pub(super) fn one_of_both<'a>(files: &'a [PathBuf], others: &[PathBuf]) -> Option<&'a Path> {
    let file = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|data| (data.dev(), data.ino()));
    let others: HashSet<_> = others.iter().filter_map(|path| file(path)).collect();
    files.iter().map(PathBuf::as_path).find(|path| file(path).is_some_and(|file| others.contains(&file)))
}

fn stdin() -> io::Result<Metadata> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
}

/// Returns whether a path leads to this file, and the file is a regular file.
fn is_same(path: &Path, file: &Metadata) -> bool {
    path.metadata().is_ok_and(|found| are_one(&found, file))
}

/// Returns whether both are the metadata of the same file, and the file is a regular file.
pub(super) fn are_one(one: &Metadata, other: &Metadata) -> bool {
    one.is_file() && are_of_one_file(one, other)
}

/// Reads all files, and passes each chunk with the number of its file to `give`, until it returns false. Returns the error
/// that ended the reading of a file.
pub(super) fn read_all(
    files: &[PathBuf],
    wanted: &Wanted,
    mut give: impl FnMut(usize, Chunk) -> bool,
) -> Option<anyhow::Error> {
    for (at, file) in files.iter().enumerate() {
        let mut is_taken = true;
        let given = |chunk| {
            is_taken = give(at, chunk);
            is_taken
        };
        if let Err(error) = read_chunks(file, wanted, given) {
            return Some(with_unread(unreadable(error, file), &files[at + 1..]));
        }
        if !is_taken {
            break;
        }
    }
    None
}

/// Like [`read_all`], but passes many texts in one chunk: each of them is a file.
pub(super) fn read_all_joined(
    files: &[PathBuf],
    wanted: &Wanted,
    mut give: impl FnMut(Chunk) -> bool,
) -> Option<anyhow::Error> {
    let mut waiting: Option<Chunk> = None;
    let error = read_all(files, wanted, |_, chunk| {
        let chunk = match &mut waiting {
            None => chunk,
            Some(before) => match before.join(chunk) {
                Ok(()) => return true,
                Err(chunk) => *chunk,
            },
        };
        if waiting.take().is_some_and(|before| !give(before)) {
            return false;
        }
        if chunk.is_of_whole_files() {
            waiting = Some(chunk);
            true
        } else {
            give(chunk)
        }
    });
    waiting.map(give);
    error
}

/// Refuses stdin if it is given more than once.
pub(super) fn refuse_stdin_twice(files: &[PathBuf]) -> Result<()> {
    if files.iter().filter(|file| *file == Path::new("-")).count() > 1 {
        bail!("- is given twice; stdin can be read only once");
    }
    Ok(())
}

/// Returns the first input that can be read only once: stdin, a pipe or a device.
pub(super) fn read_once(files: &[PathBuf]) -> Option<&Path> {
    files.iter().map(PathBuf::as_path).find(|path| *path == Path::new("-") || !path.is_file())
}

/// Opens each file and looks at its format, so that an unreadable file is reported before other files are read to their
/// end. Returns the header of the first table.
pub(super) fn look_at_all(files: &[PathBuf], wanted: &Wanted) -> Result<Option<Arc<TableHeader>>> {
    refuse_stdin_twice(files)?;
    let headers = files.iter().map(|file| look_at(file, wanted).map_err(|error| unreadable(error, file)));
    let headers = headers.collect::<Result<Vec<_>>>()?;
    // If the records of a table are written unchanged, they need a header, and one file has only one.
    let mut tables = files.iter().zip(&headers).filter(|(_, header)| wanted.originals && header.is_some());
    let Some((table, header)) = tables.next() else { return Ok(None) };
    if wanted.objects {
        return Ok(header.clone());
    }
    // A file that was not looked at is compared when it is read.
    let other = files.iter().zip(&headers).find(|(file, other)| *other != header && file.is_file());
    match other {
        Some((other, Some(_))) => bail!(
            "{}: its columns differ from those of {}; all CSV files must have the same header",
            other.display(),
            table.display()
        ),
        Some((other, None)) => bail!(
            "{}: this is not CSV, but {} is; the output has the format of the input, so give them separately",
            other.display(),
            table.display()
        ),
        None => Ok(header.clone()),
    }
}

/// Adds to an error how many files were not read because of it.
fn with_unread(error: anyhow::Error, unread: &[PathBuf]) -> anyhow::Error {
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
