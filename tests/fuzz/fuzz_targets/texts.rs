//! A text, a page or a file of JSON Lines -> its documents. A text is one document whose id is its name, or one failure.
//! Lines are the same documents in a file with a byte order mark and other ends of lines.

use hapax::input::{Chunk, Fields, Ids, LineForm, Place, Wanted};
use hapax_fuzz::read_file;

/// The documents of a file, and the number of failures.
fn documents(name: &str, bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let form = LineForm { ids: Ids::Made, ..LineForm::default() };
    let wanted = Wanted { form, originals: true, ..Wanted::default() };
    let (mut documents, mut failed, mut last) = (Vec::new(), 0, 0);
    let take = |chunk: Chunk| {
        for (line, origin) in chunk.lines.iter().zip(&chunk.origins) {
            // A line may have an escape that is no character. It is refused later.
            let document: Fields<'_> = serde_json::from_slice(line).expect("a document is an object");
            if let Place::Line { number, .. } = origin.place {
                assert!(number > last, "{origin}, after line {last}");
                last = number;
            } else if origin.place == Place::File {
                let value = |field: &str| document.get(field);
                assert_eq!(value("id"), Some(&*format!("{name:?}")));
                assert!(value("text").is_some() ^ value("html").is_some());
            }
        }
        failed += chunk.failures.len();
        documents.extend(chunk.lines);
    };
    read_file(name, bytes, &wanted, take).then_some((documents, failed))
}

pub fn run(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    match how % 3 {
        0 | 1 => {
            let name = if how % 3 == 0 { "x.txt" } else { "x.html" };
            if let Some((documents, failed)) = documents(name, bytes) {
                assert_eq!(documents.len() + failed, 1, "a text is one document");
            }
        }
        _ => {
            let Some(read) = documents("x", bytes).filter(|_| bytes.starts_with(b"{")) else { return };
            let ends = bytes.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
            assert_eq!(documents("x", &[b"\xEF\xBB\xBF", &*ends].concat()), Some(read));
        }
    }
}
