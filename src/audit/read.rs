//! Files of the log -> their lines, in order. A line that is incomplete, or not a line of the log, is reported with its
//! number, and reading continues.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::files::list;
use super::line::AuditLine;
use crate::plain_file::open_plain_file;

/// The longest line that is read. The server never writes a longer one.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// A line of a file.
pub enum ReadLine<'a> {
    /// The decision, and its line as it was written, without the line feed.
    Decision(Box<AuditLine<'a>>, &'a str),
    /// The last line has no line feed, because the server was killed while it wrote the line, or is writing it now.
    Torn,
    /// The reason why the line is not a line of the log.
    Unreadable(String),
}

/// Returns the files that a path names: the path itself if it is a file, or the log files of a directory, the oldest
/// first.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_dir() { list(path) } else { Ok(vec![path.to_owned()]) }
}

/// Passes each line of a file to `each`, with its number from 1 on, until `each` returns an error.
pub fn lines<E: From<io::Error>>(
    path: &Path,
    mut each: impl FnMut(u64, ReadLine<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = BufReader::new(open_plain_file(path)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if line.pop_if(|last| *last == b'\n').is_some() {
            each(number, parsed(&line))?;
        } else if line.len() <= LINE_BYTES_MAX {
            each(number, ReadLine::Torn)?;
        } else {
            reader.skip_until(b'\n')?;
            each(number, ReadLine::Unreadable(format!("it is longer than {LINE_BYTES_MAX} bytes")))?;
        }
    }
    Ok(())
}

fn parsed(line: &[u8]) -> ReadLine<'_> {
    let Ok(text) = std::str::from_utf8(line) else { return ReadLine::Unreadable("it is not UTF-8".into()) };
    match serde_json::from_str(text) {
        Ok(decision) => ReadLine::Decision(decision, text),
        Err(error) => ReadLine::Unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_and_foreign_lines_are_told_and_the_others_read() {
        let good =
            r#"{"time":"t","request_id":"r","key":null,"op":"delete","collection":"c","spec":"s","bands":1,"rows":1}"#;
        let long = "x".repeat(LINE_BYTES_MAX + 10);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit-20261123T210000.123Z.jsonl");
        std::fs::write(&path, [good, "\n{}\n", &long, "\n\n", good, "\n", &good[..30]].concat()).unwrap();
        let mut seen = Vec::new();
        for file in files(dir.path()).unwrap() {
            lines::<io::Error>(&file, |number, line| {
                seen.push((
                    number,
                    match line {
                        ReadLine::Decision(decision, text) => {
                            assert_eq!((&*decision.op, text), ("delete", good));
                            "good"
                        }
                        ReadLine::Torn => "torn",
                        ReadLine::Unreadable(_) => "bad",
                    },
                ));
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(seen, [(1, "good"), (2, "bad"), (3, "bad"), (4, "bad"), (5, "good"), (6, "torn")]);
        assert!(lines::<io::Error>(dir.path(), |_, _| Ok(())).is_err(), "a directory is not a file");
    }
}
