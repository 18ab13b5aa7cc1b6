//! A backup's folder: the names in it, and whose they are.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::Path;

use crate::store::data_dir::files;

/// Its name while it is no manifest yet.
pub(super) const PARTIAL: &str = "manifest.json.partial";
/// Its name while it is being written: the marker says whose the folder is until the whole manifest takes its place.
pub(super) const WRITING: &str = "manifest.json.partial.new";
/// What SQLite keeps beside a file that it makes.
const JOURNAL: &str = ".sqlite-journal";

/// Whether a backup that is being made, or was broken off, may have made a file of this name in its folder.
pub(super) fn is_ours(name: &str) -> bool {
    name == PARTIAL || name == WRITING || name.ends_with(files::SUFFIX) || name.ends_with(JOURNAL)
}

/// The names in a folder, sorted; those that are not UTF-8 with replacements.
pub(super) fn entries(dir: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = fs::read_dir(dir)?.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// With the parents it needs, on disk.
pub(super) fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.exists() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)?;
    files::sync_parent(dir)
}
