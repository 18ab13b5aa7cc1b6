//! A table in CSV or TSV -> its documents. Each document is JSON with one content, each record is counted once, and its
//! place leads to its bytes. A table that has only its header and its kept records has the same documents.

use hapax::input::{Chunk, Fields, Ids, LineForm, Place, Wanted};
use hapax_fuzz::read_file;

/// The documents of a table, with the records from which they were made.
#[derive(Debug, Default, PartialEq)]
struct Rows {
    header: Vec<u8>,
    documents: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
    failed: usize,
}

fn rows(name: &str, table: &[u8]) -> Option<Rows> {
    let form = LineForm { ids: Ids::Optional, ..LineForm::default() };
    let wanted = Wanted { form, originals: true, also: Some("score".to_owned()), ..Wanted::default() };
    let (mut rows, mut last) = (Rows::default(), 0);
    let take = |chunk: Chunk| {
        let Some(header) = &chunk.header else { return };
        rows.header = header.line().to_vec();
        assert_eq!((chunk.lines.len(), chunk.lines.len()), (chunk.originals.len(), chunk.origins.len()));
        for (at, origin) in chunk.origins.iter().enumerate() {
            let Place::Record { number, offset } = origin.place else { panic!("{origin}") };
            assert!(number > last, "{origin}, after record {last}");
            last = number;
            let record = chunk.original(at);
            assert!(table[offset as usize..].starts_with(record), "{origin}");
            let document: serde_json::Value = serde_json::from_slice(&chunk.lines[at]).expect("a document is JSON");
            let has = |field: &str| document.get(field).is_some();
            assert!(has("text") || has("html") || has("set") || has("signature"), "{document}");
            let _: Fields<'_> = serde_json::from_slice(chunk.ranked(at)).expect("the rank is JSON");
        }
        rows.failed += chunk.failures.len();
        rows.documents.extend(chunk.lines);
        rows.records.extend(chunk.originals);
    };
    read_file(name, table, &wanted, take).then_some(rows)
}

pub fn run(data: &[u8]) {
    let Some((&how, table)) = data.split_first() else { return };
    let name = ["x", "x.csv", "x.tsv"][usize::from(how) % 3];
    let compressed = [&[0x1F, 0x8B][..], &[0x28, 0xB5], &[0x5D, 0x2A]].iter().any(|magic| table.starts_with(magic));
    let skipped = table.get(1..4) == Some(&[0x2A, 0x4D, 0x18]);
    if compressed || skipped {
        return;
    }
    let Some(rows) = rows(name, table).filter(|rows| !rows.header.is_empty()) else { return };
    let kept: Vec<u8> =
        [&rows.header].into_iter().chain(&rows.records).flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    let again = self::rows(name, &kept).expect("it has the same header");
    assert_eq!(again.failed, 0, "each kept record is a row");
    assert_eq!(again.documents, rows.documents);
}
