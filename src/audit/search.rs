//! A filter -> the newest lines of a log that meet it, one page at a time. The files are read while the log is written.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;

use super::files::{begun_at, list};
use super::filter::Filter;
use super::read::{ReadLine, lines};

/// A search ends after the file with which this many bytes are read. The next page continues with older files.
const BYTES_AT_ONCE: u64 = 256 << 20;
/// After so many lines, the search looks whether its result is still wanted.
const LOOK_EVERY: u64 = 1000;
/// How far the times of lines can be out of order.
const DISORDER: SignedDuration = SignedDuration::from_secs(300);

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

/// Returns the newest lines of the log in a directory that meet the filter and are older than `before`. A page has at
/// least one line if there is one in the files that are read. If `is_wanted` returns false, the search ends with an error.
pub fn search(
    dir: &Path,
    filter: &Filter,
    before: Option<&LinePlace>,
    limits: PageLimits,
    is_wanted: impl Fn() -> bool,
) -> io::Result<FoundLines> {
    let mut page = FoundLines::default();
    let (mut left, mut read) = (limits, 0);
    for path in due_files(list(dir)?, filter, before).iter().rev() {
        if page.next.is_some() {
            break;
        }
        if left.lines == 0 || read >= BYTES_AT_ONCE {
            page.next = Some(LinePlace::of(path, u64::MAX));
            break;
        }
        let end = before.filter(|before| name(path) == before.file).map_or(u64::MAX, |before| before.line);
        let newest = match newest_of(path, filter, end, left, &is_wanted) {
            // The server has removed the file meanwhile, because the log is full or the file is too old.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            newest => newest?,
        };
        read += path.metadata().map_or(0, |file| file.len());
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

/// Returns the files that can have lines of the page, the oldest first.
fn due_files(files: Vec<PathBuf>, filter: &Filter, before: Option<&LinePlace>) -> Vec<PathBuf> {
    let next_begin = |at: usize| files.get(at + 1).and_then(|next| begun_at(next));
    let is_due = |at: usize, path: &PathBuf| {
        before.is_none_or(|before| name(path) <= before.file)
            // Lines are slightly out of order, so those of the last moments of a file can be in the next one.
            && filter.until.is_none_or(|until| begun_at(path).is_none_or(|begin| begin.duration_since(until) < DISORDER))
            && filter.since.is_none_or(|since| next_begin(at).is_none_or(|end| since.duration_since(end) <= DISORDER))
    };
    let due: Vec<bool> = files.iter().enumerate().map(|(at, path)| is_due(at, path)).collect();
    files.into_iter().zip(due).filter_map(|(path, is_due)| is_due.then_some(path)).collect()
}

/// The newest lines of a file.
#[derive(Default)]
struct Newest {
    /// The lines in their order, each with its number.
    lines: VecDeque<(u64, String)>,
    /// The number of the last line that meets the filter but does not fit into the page.
    dropped: Option<u64>,
}

/// The reason why a file is not read to its end.
enum End {
    /// The next lines belong to an earlier page.
    Page,
    Error(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Error(error)
    }
}

/// Returns the newest lines of a file before the line `end`: as many as fit into the page, but at least one.
fn newest_of(
    path: &Path,
    filter: &Filter,
    end: u64,
    limits: PageLimits,
    is_wanted: &impl Fn() -> bool,
) -> io::Result<Newest> {
    let (mut newest, mut bytes) = (Newest::default(), 0);
    let read = lines::<End>(path, |number, line| {
        if number >= end {
            return Err(End::Page);
        }
        if number % LOOK_EVERY == 0 && !is_wanted() {
            return Err(End::Error(io::Error::other("the result is no longer wanted")));
        }
        let ReadLine::Decision(decision, text) = line else { return Ok(()) };
        if filter.takes(&decision) {
            bytes += text.len();
            newest.lines.push_back((number, text.to_owned()));
            while newest.lines.len() > limits.lines || (newest.lines.len() > 1 && bytes > limits.bytes) {
                let (number, line) = newest.lines.pop_front().expect("there is a line");
                bytes -= line.len();
                newest.dropped = Some(number);
            }
        }
        Ok(())
    });
    match read {
        Ok(()) | Err(End::Page) => Ok(newest),
        Err(End::Error(error)) => Err(error),
    }
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
            let page = search(dir, filter, next.as_ref(), limits, || true).unwrap();
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
    fn a_search_continues_after_a_file_is_removed() {
        let dir = log(&[3, 3]);
        let page = search(dir.path(), &Filter::default(), None, PageLimits { lines: 2, ..ALL }, || true).unwrap();
        std::fs::remove_file(dir.path().join("audit-20261121T210000.000Z.jsonl")).unwrap();
        let rest = search(dir.path(), &Filter::default(), page.next.as_ref(), ALL, || true).unwrap();
        assert_eq!((page.lines.len(), rest.lines.len(), rest.next), (2, 3, None));
        assert!(LinePlace::parse("../x:1").is_none() && LinePlace::parse("x").is_none());
    }

    #[test]
    fn files_outside_of_the_times_are_not_read() {
        let dir = log(&[1, 1, 1]);
        let files = list(dir.path()).unwrap();
        let due = |since: Option<&str>, until: Option<&str>| {
            let at = |text: Option<&str>| text.map(|text| text.parse().unwrap());
            due_files(files.clone(), &Filter { since: at(since), until: at(until), ..Filter::default() }, None)
        };
        assert_eq!(due(None, None), files);
        assert_eq!(due(Some("2026-11-21T22:00:00Z"), None), files[1..]);
        assert_eq!(due(None, Some("2026-11-21T20:00:00Z")), files[..1]);
        assert_eq!(due(Some("-009999-01-03T00:00:00Z"), Some("9999-12-30T00:00:00Z")), files);
        assert_eq!(due(Some("2026-11-21T21:01:00Z"), Some("2026-11-21T22:00:00Z")), files[..2], "a margin");
    }

    #[test]
    fn a_search_ends_when_its_result_is_not_wanted() {
        let dir = log(&[2500]);
        assert!(search(dir.path(), &Filter::default(), None, ALL, || false).is_err());
    }
}
