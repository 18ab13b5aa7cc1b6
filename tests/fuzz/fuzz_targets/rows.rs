//! A Parquet file of documents -> its documents, each from a row of its own. Its rows are copied to another Parquet file,
//! which has the same documents.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use hapax::input::{Chunk, Ids, LineForm, Place, RowCopier, Wanted, read_chunks};

/// A document with the number of its row.
type Row = (u64, Vec<u8>);

/// The documents of a file, and whether the file was read without failures.
fn documents(path: &Path) -> Option<(Vec<Row>, bool)> {
    let form = LineForm { ids: Ids::Optional, ..LineForm::default() };
    let wanted = Wanted { form, originals: true, ..Wanted::default() };
    let (mut documents, mut is_whole) = (Vec::new(), true);
    let read = read_chunks(path, &wanted, |chunk: Chunk| {
        is_whole &= chunk.failures.is_empty();
        for (line, origin) in chunk.lines.into_iter().zip(&chunk.origins) {
            let Place::Row(row) = origin.place else { panic!("{origin}") };
            assert!(documents.last().is_none_or(|(last, _)| *last < row), "{origin}");
            let _: serde_json::Value = serde_json::from_slice(&line).expect("a document is JSON");
            documents.push((row, line));
        }
        true
    });
    read.ok().map(|()| (documents, is_whole))
}

pub fn run(data: &[u8]) {
    if !data.starts_with(b"PAR1") {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(data).unwrap();
    let Some((read, is_whole)) = documents(file.path()) else { return };
    let mut copy = tempfile::NamedTempFile::new().unwrap();
    let mut copier = RowCopier::new(copy.as_file_mut());
    let copied = copier.copy(file.path(), |_| true, &AtomicBool::new(false));
    // Other columns may be damaged.
    if copied.is_err() || copier.finish().is_err() || !is_whole {
        return;
    }
    let (again, _) = documents(copy.path()).expect("a copy can be read");
    assert_eq!(again, read);
}
