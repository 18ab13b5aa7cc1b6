//! The directory of a backup: the names in it, and whether a backup wrote them.

use std::fs;
use std::io;
use std::path::Path;

use crate::store::data_dir::files;

/// The marker of an unfinished backup. At first, the marker is an empty file, or contains the name of the series. In
/// the last step, the complete manifest replaces the marker under this name, and is then renamed to its final name.
pub(super) const PARTIAL: &str = "manifest.json.partial";
/// The name under which the manifest is written. The complete manifest is renamed to [`PARTIAL`] and so replaces the
/// marker.
pub(super) const WRITING: &str = "manifest.json.partial.new";
/// The file that SQLite keeps next to a database that it creates.
const JOURNAL: &str = ".sqlite-journal";

/// Returns whether a running or interrupted backup may have written a file with this name.
pub(super) fn is_ours(name: &str) -> bool {
    name == PARTIAL || name == WRITING || name.ends_with(files::SUFFIX) || name.ends_with(JOURNAL)
}

/// Returns the names in a directory, sorted. Bytes that are not UTF-8 are replaced.
pub(super) fn entries(dir: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = fs::read_dir(dir)?.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
