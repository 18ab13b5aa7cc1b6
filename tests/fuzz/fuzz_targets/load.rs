//! A Parquet file of signatures -> a collection, or an error that says where the file is wrong. The collection is not
//! damaged, and its export can be loaded again without a difference.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use hapax::collections::offline::{CollectionFiles, StoredCollection, load};
use hapax::load::{FileSource, LoadFile, ParquetWriter};
use hapax::types::{CollectionName, Seq};

/// A number of rows that no input reaches.
const ROWS: usize = 1 << 20;

fn opened(bytes: &[u8]) -> Option<LoadFile> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    of(file)
}

fn of(file: File) -> Option<LoadFile> {
    match LoadFile::open(FileSource { label: "file".into(), file }) {
        Ok(file) => Some(file),
        Err(error) => {
            assert!(error.to_string().len() < 4000, "{error}");
            None
        }
    }
}

/// Loads a file into a new directory, and returns the rows of the export; `None` if the file is wrong.
fn loaded(dir: &Path, file: LoadFile) -> Option<Vec<u8>> {
    let name = CollectionName::new("loaded").unwrap();
    let default = hapax::config::defaults().collections.default_settings;
    let wait = std::time::Duration::ZERO;
    if let Err(error) = load(dir, wait, (&name, vec![file]), &default, &|_| {}, &|| false) {
        assert!(error.to_string().len() < 20_000, "{error}");
        let left = std::fs::read_dir(dir.join("collections")).into_iter().flatten().count();
        assert_eq!(left, 0, "nothing is left of a failed load");
        return None;
    }
    {
        let files = CollectionFiles::take(dir).unwrap();
        assert!(files.check(&name, &|_| {}).unwrap().is_sound());
    }
    let stored = StoredCollection::open(dir, wait, &name).expect("it is sound");
    let mut writer = ParquetWriter::new(Vec::new(), &stored.file_settings()).unwrap();
    writer.write(&stored.rows(Seq(0), ROWS).unwrap()).unwrap();
    Some(writer.finish().unwrap())
}

pub fn run(data: &[u8]) {
    let Some(file) = opened(data) else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(once) = loaded(&dir.path().join("once"), file) else { return };
    let again = opened(&once).expect("an export is a file of signatures");
    assert_eq!(loaded(&dir.path().join("again"), again).expect("an export can be loaded"), once);
}
