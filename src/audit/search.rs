//! A filter -> the newest lines of a log that meet it, one page at a time. The files are read while the log is written.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::files::list;
use super::filter::Filter;
use super::read::{ReadLine, lines};

/// A search ends after the file with which this many bytes are read. The next page continues with older files.
const BYTES_AT_ONCE: u64 = 256 << 20;

/// Where a page ends: the next page has the lines before this line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// The name of the file.
    file: String,
    /// The number of the line, from 1 on.
    line: u64,
}

/// The limits of one page.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    pub lines: usize,
    pub bytes: usize,
}

/// A page of lines.
#[derive(Debug, Default)]
pub struct FoundLines {
    /// The lines as they were written, the newest first.
    pub lines: Vec<String>,
    /// Where the page ends, if there may be more lines.
    pub next: Option<LinePlace>,
}

impl LinePlace {
    /// Reads the text of a place.
    pub fn parse(text: &str) -> Option<Self> {
        let (file, line) = text.rsplit_once(':')?;
        let is_name = !file.is_empty() && !file.contains(['/', '\0']);
        is_name.then_some(())?;
        Some(Self { file: file.to_owned(), line: line.parse().ok()? })
    }

    fn of(path: &Path, line: u64) -> Self {
        Self { file: name(path), line }
    }
}

impl std::fmt::Display for LinePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Finds the newest lines of the log in a directory that meet a filter, before `before`. A page has at least one line if
/// there is one in the files that are read.
pub fn search(dir: &Path, filter: &Filter, before: Option<&LinePlace>, limits: PageLimits) -> io::Result<FoundLines> {
    let mut page = FoundLines::default();
    let (mut left, mut read) = (limits, 0);
    let is_due = |path: &PathBuf| before.is_none_or(|before| name(path) <= before.file);
    let files: Vec<PathBuf> = list(dir)?.into_iter().filter(is_due).collect();
    for path in files.iter().rev() {
        if page.next.is_some() {
            break;
        }
        if left.lines == 0 || read >= BYTES_AT_ONCE {
            page.next = Some(LinePlace::of(path, u64::MAX));
            break;
        }
        let end = before.filter(|before| name(path) == before.file).map_or(u64::MAX, |before| before.line);
        let newest = match newest_of(path, filter, end, left) {
            // The server has removed the file meanwhile, because the log is full or the file is too old.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            newest => newest?,
        };
        read += newest.read;
        page.next = newest.dropped.map(|number| LinePlace::of(path, number + 1));
        for (number, line) in newest.lines.into_iter().rev() {
            if line.len() > left.bytes && !page.lines.is_empty() {
                page.next = Some(LinePlace::of(path, number + 1));
                break;
            }
            left = PageLimits { lines: left.lines - 1, bytes: left.bytes.saturating_sub(line.len()) };
            page.lines.push(line);
        }
    }
    Ok(page)
}

/// The newest lines of a file.
#[derive(Default)]
struct Newest {
    /// The lines in their order, each with its number.
    lines: VecDeque<(u64, String)>,
    /// The number of the last line that meets the filter but does not fit into the page.
    dropped: Option<u64>,
    /// The number of bytes read.
    read: u64,
}

/// Returns the newest lines of a file before the line `end`: as many as fit into the page, but at least one.
fn newest_of(path: &Path, filter: &Filter, end: u64, limits: PageLimits) -> io::Result<Newest> {
    let (mut newest, mut bytes) = (Newest::default(), 0);
    lines::<io::Error>(path, |number, line| {
        let ReadLine::Decision(decision, text) = line else { return Ok(()) };
        newest.read += text.len() as u64;
        if number < end && filter.takes(&decision) {
            bytes += text.len();
            newest.lines.push_back((number, text.to_owned()));
            while newest.lines.len() > limits.lines || (newest.lines.len() > 1 && bytes > limits.bytes) {
                let (number, line) = newest.lines.pop_front().expect("there is a line");
                bytes -= line.len();
                newest.dropped = Some(number);
            }
        }
        Ok(())
    })?;
    Ok(newest)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: PageLimits = PageLimits { lines: 100, bytes: 1 << 20 };

    fn log(files: &[usize]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut number = 0;
        for (at, lines) in files.iter().enumerate() {
            let mut text = String::from("not a line\n");
            for _ in 0..*lines {
                number += 1;
                let op = if number % 2 == 0 { "insert" } else { "delete" };
                text += &format!(
                    "{{\"time\":\"2026-11-20T10:00:00.000Z\",\"request_id\":\"{number}\",\"key\":null,\"op\":\"{op}\",\
                     \"collection\":\"c\",\"spec\":\"s\",\"bands\":1,\"rows\":1}}\n"
                );
            }
            std::fs::write(dir.path().join(format!("audit-2026112{at}T210000.000Z.jsonl")), text).unwrap();
        }
        dir
    }

    /// Returns the numbers of the lines of all pages.
    fn pages(dir: &Path, filter: &Filter, limits: PageLimits) -> Vec<Vec<u64>> {
        let (mut pages, mut next) = (Vec::new(), None);
        loop {
            let page = search(dir, filter, next.as_ref(), limits).unwrap();
            let number = |line: &String| {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                value["request_id"].as_str().unwrap().parse().unwrap()
            };
            pages.push(page.lines.iter().map(number).collect());
            match page.next {
                Some(place) => next = LinePlace::parse(&place.to_string()),
                None => return pages,
            }
        }
    }

    #[test]
    fn pages_have_every_line_once_and_the_newest_first() {
        let dir = log(&[5, 0, 4]);
        let all: Vec<u64> = (1..=9).rev().collect();
        assert_eq!(pages(dir.path(), &Filter::default(), ALL), std::slice::from_ref(&all));
        for lines in 1..=10 {
            for bytes in [1, 150, 400, 1 << 20] {
                let pages = pages(dir.path(), &Filter::default(), PageLimits { lines, bytes });
                assert_eq!(pages.concat(), all, "{lines} {bytes}");
                assert!(pages.iter().all(|page| page.len() <= lines));
            }
        }
        let inserts = Filter { op: Some("insert".into()), ..Filter::default() };
        assert_eq!(pages(dir.path(), &inserts, PageLimits { lines: 3, ..ALL }).concat(), [8, 6, 4, 2]);
    }

    #[test]
    fn a_removed_file_ends_no_search() {
        let dir = log(&[3, 3]);
        let page = search(dir.path(), &Filter::default(), None, PageLimits { lines: 2, ..ALL }).unwrap();
        std::fs::remove_file(dir.path().join("audit-20261121T210000.000Z.jsonl")).unwrap();
        let rest = search(dir.path(), &Filter::default(), page.next.as_ref(), ALL).unwrap();
        assert_eq!((page.lines.len(), rest.lines.len(), rest.next), (2, 3, None));
        assert!(LinePlace::parse("../x:1").is_none() && LinePlace::parse("x").is_none());
    }
}
