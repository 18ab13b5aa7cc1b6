//! The files of an input, and the format that was asked for -> the format of the output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::columns::first_repeated;
use crate::input::{TableHeader, columns_of_parquet, is_parquet};

/// The argument that names the format.
pub(in crate::cli) const FORMAT: &str = "--format";

/// A format that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Asked {
    Jsonl,
    Csv,
    Tsv,
    Parquet,
}

/// The format of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Format {
    /// Lines and records as they were read.
    Lines,
    /// Rows of Parquet, which are copied from the files.
    Parquet,
    /// A JSON object with all fields of each document.
    Objects,
    /// A table with this separator. The columns are those of the Parquet files; `None`: those of the header.
    Cells { separator: u8, columns: Option<Vec<String>> },
    /// A Parquet file with the columns of a table, which are texts.
    Table,
}

/// Returns the format of the output if none was asked for: that of the input.
pub(in crate::cli) fn format_of(files: &[PathBuf]) -> Result<Format> {
    let are = are_parquet(files)?;
    if !are.contains(&true) {
        return Ok(Format::Lines);
    }
    match files.iter().zip(are).find(|(_, is_parquet)| !is_parquet) {
        None => Ok(Format::Parquet),
        Some((other, _)) => bail!(
            "{}: this is not Parquet, but other files are; the output has the format of the input, so give them separately",
            other.display()
        ),
    }
}

/// Returns the format of the output. `header`: that of the tables, if the files are tables that were looked at.
pub(in crate::cli) fn format(
    asked: Option<Asked>,
    files: &[PathBuf],
    header: Option<&Arc<TableHeader>>,
) -> Result<Format> {
    let separator = match asked {
        None => return format_of(files),
        Some(Asked::Jsonl) => {
            if let Some(name) = header.and_then(|header| first_repeated(header.names())) {
                bail!(
                    "{FORMAT}: two columns are named {name:?}, and an object has a name only once; rename one of them"
                );
            }
            return Ok(Format::Objects);
        }
        Some(Asked::Csv) => Some(b','),
        Some(Asked::Tsv) => Some(b'\t'),
        Some(Asked::Parquet) => None,
    };
    let are = are_parquet(files)?;
    let others = files.iter().zip(&are).filter(|(_, is_parquet)| !**is_parquet).map(|(file, _)| file);
    let others: Vec<_> = others.cloned().collect();
    match (separator, others.is_empty()) {
        (None, true) => return Ok(Format::Parquet),
        (Some(separator), true) => {
            return Ok(Format::Cells { separator, columns: Some(columns_of_all(files)?) });
        }
        (_, false) if others.len() < files.len() => bail!(
            "{}: this is not Parquet, but other files are; with this {FORMAT}, all files must have the same columns",
            others[0].display()
        ),
        (_, false) => {}
    }
    // A file that can be read only once was not looked at.
    if header.is_none() && files.iter().all(|file| file.is_file()) {
        return Err(without_columns(&files[0].display().to_string()));
    }
    Ok(match (separator, header) {
        (Some(separator), Some(header)) if header.separator() == separator => Format::Lines,
        (Some(separator), _) => Format::Cells { separator, columns: None },
        (None, _) => Format::Table,
    })
}

/// The error for documents that have no columns.
pub(in crate::cli) fn without_columns(file: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{FORMAT}: {file} is no table, so its columns are not known; only --format jsonl can have its documents"
    )
}

fn are_parquet(files: &[PathBuf]) -> Result<Vec<bool>> {
    let parquet = |path: &PathBuf| is_parquet(path).with_context(|| format!("cannot read {}", path.display()));
    files.iter().map(parquet).collect()
}

/// Returns the names of the columns of Parquet files.
fn columns_of_all(files: &[PathBuf]) -> Result<Vec<String>> {
    let columns = |path: &PathBuf| columns_of_parquet(path).with_context(|| format!("cannot read {}", path.display()));
    let first = columns(&files[0])?;
    for file in &files[1..] {
        if columns(file)? != first {
            let (file, first) = (file.display(), files[0].display());
            bail!("{file}: its columns differ from those of {first}; a table has the same columns in each row");
        }
    }
    Ok(first)
}

/// The ends of names of files, and the formats that they promise.
const NAMES: [(&str, Asked); 6] = [
    ("json", Asked::Jsonl),
    ("jsonl", Asked::Jsonl),
    ("ndjson", Asked::Jsonl),
    ("csv", Asked::Csv),
    ("tsv", Asked::Tsv),
    ("parquet", Asked::Parquet),
];

/// Checks that the name of an output fits its format. `flag`: the argument that has given the name.
pub(in crate::cli) fn check_name(output: &Path, flag: &str, format: &Format) -> Result<()> {
    let name = output.display();
    let extension = output.extension().and_then(|extension| extension.to_str());
    let packed = matches!(extension, Some("gz" | "zst"));
    let inner = if packed { output.file_stem().map(Path::new).and_then(Path::extension) } else { output.extension() };
    let inner = inner.and_then(|extension| extension.to_str());
    let promised = NAMES.iter().find(|(end, _)| inner == Some(end)).map(|(_, asked)| *asked);
    let is_text = matches!(inner, Some("txt" | "text"));
    let is = |wanted| promised.is_none_or(|promised| promised == wanted);
    let (found, end, fits) = match format {
        Format::Lines if promised == Some(Asked::Parquet) => {
            bail!("{flag} {name}: this output has lines, not Parquet; name a file that does not end in .parquet")
        }
        Format::Lines => return Ok(()),
        Format::Parquet | Format::Table if packed => {
            bail!("{flag} {name}: Parquet is not compressed as a whole; name a file that ends in .parquet")
        }
        Format::Parquet | Format::Table => ("Parquet", ".parquet", !is_text && is(Asked::Parquet)),
        Format::Objects => ("JSON Lines", ".jsonl", is(Asked::Jsonl)),
        Format::Cells { separator: b'\t', .. } => ("TSV", ".tsv", is(Asked::Tsv)),
        Format::Cells { .. } => ("CSV", ".csv", is(Asked::Csv)),
    };
    if !fits {
        bail!("{flag} {name}: the format of this output is {found}; name a file that ends in {end}");
    }
    Ok(())
}
