//! The files of one directory. Begins and ends files, and removes the oldest, so that all files together stay within
//! their limits. Knows nothing of threads, or of the contents of lines.
//!
//! The name of a file is the time at which it was begun, so names sort by time. A file is never appended to by a later
//! run of the server.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::error::AuditError;
use super::settings::AuditSettings;
use crate::plain_file::lock_within;

/// The name of the lock file in the directory.
const LOCK_FILE: &str = "audit.lock";
const BEGINNING: &str = "audit-";
const ENDING: &str = ".jsonl";
/// A file is ended after this time, or after an eighth of the retention if that is shorter. A file is removed as a
/// whole. Because this time is short, the oldest lines of a file are kept only a little longer than the retention.
const AGE_MAX: Duration = Duration::from_secs(86_400);

/// The files of a directory to which no other process writes.
pub(super) struct Files {
    dir: PathBuf,
    _lock: File,
    file_bytes_max: u64,
    bytes_max: u64,
    retention: Option<Duration>,
    /// The ended files, the oldest first.
    ended: VecDeque<Ended>,
    current: Option<Current>,
    /// The time in the name of the newest file.
    newest: Timestamp,
}

struct Ended {
    path: PathBuf,
    bytes: u64,
    /// The time at which the last line was written.
    at: SystemTime,
}

struct Current {
    file: File,
    path: PathBuf,
    bytes: u64,
    begun: SystemTime,
}

impl Files {
    /// Takes a directory, and creates it if it is missing. If another process uses the directory, waits at most `wait`
    /// until that process leaves it.
    pub(super) fn take(settings: &AuditSettings, wait: Duration) -> Result<Self, AuditError> {
        let dir = settings.dir.clone();
        let failed = |cause| AuditError::Dir { dir: dir.clone(), cause };
        if !dir.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
        }
        let lock = lock(&dir, wait)?;
        let mut ended = VecDeque::new();
        for path in list(&dir).map_err(failed)? {
            let file = match fs::metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.map_err(failed)?,
            };
            ended.push_back(Ended { bytes: file.len(), at: file.modified().unwrap_or(SystemTime::UNIX_EPOCH), path });
        }
        let newest = ended.back().and_then(|last| begun_at(&last.path)).unwrap_or(Timestamp::UNIX_EPOCH);
        let AuditSettings { file_bytes_max, bytes_max, retention, .. } = *settings;
        Ok(Self { dir, _lock: lock, file_bytes_max, bytes_max, retention, ended, current: None, newest })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The number of bytes of all files together.
    pub(super) fn bytes(&self) -> u64 {
        self.ended.iter().map(|file| file.bytes).sum::<u64>() + self.current.as_ref().map_or(0, |file| file.bytes)
    }

    /// Writes whole lines. Returns how many of their bytes are written, and the error that prevented the rest.
    pub(super) fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < lines.len() {
            match self.append_some(&lines[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Writes as many lines as fit into one file, but at least one.
    fn append_some(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.end_if_removed();
        let room = |file: &Current| self.file_bytes_max.saturating_sub(file.bytes);
        let room = self.current.as_ref().map_or(self.file_bytes_max, room);
        let fitting = match usize::try_from(room).ok().and_then(|room| lines.get(..room)) {
            None => lines.len(),
            Some(fitting) => fitting.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1),
        };
        let fitting = match (fitting, &self.current) {
            (0, Some(_)) => {
                self.end_current();
                return Ok(0);
            }
            // A line that is longer than a file gets its own file.
            (0, None) => lines.iter().position(|&byte| byte == b'\n').map_or(lines.len(), |at| at + 1),
            (fitting, _) => fitting,
        };
        self.make_room(fitting as u64)?;
        let current = match &mut self.current {
            Some(current) => current,
            None => self.current.insert(begin(&self.dir, &mut self.newest)?),
        };
        if let Err(error) = current.file.write_all(&lines[..fitting]) {
            // Removes the part that was written. If even that fails, the next line begins another file.
            if current.file.set_len(current.bytes).is_err() {
                self.end_current();
            }
            return Err(error);
        }
        current.bytes += fitting as u64;
        Ok(fitting)
    }

    /// Ends a file that was removed or renamed since the last line, because further lines in it would be lost.
    fn end_if_removed(&mut self) {
        if let Some(current) = self.current.take_if(|current| matches!(current.path.try_exists(), Ok(false))) {
            // The file may have been renamed. If this sync fails, a power failure may lose lines.
            let _ = current.file.sync_data();
        }
    }

    fn end_current(&mut self) {
        if let Some(Current { file, path, bytes, .. }) = self.current.take() {
            // If this sync fails, a power failure may lose lines. A crash of the process alone does not.
            let _ = file.sync_data();
            self.ended.push_back(Ended { path, bytes, at: SystemTime::now() });
        }
    }

    /// Removes the oldest files until there is room for `bytes` more bytes.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        while self.bytes() + bytes > self.bytes_max && !self.ended.is_empty() {
            self.remove_oldest()?;
        }
        Ok(())
    }

    fn remove_oldest(&mut self) -> io::Result<()> {
        let Some(oldest) = self.ended.front() else { return Ok(()) };
        match fs::remove_file(&oldest.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => {
                self.ended.pop_front();
                Ok(())
            }
        }
    }

    /// Ends the current file if it is old, and removes the files whose last line is older than the retention.
    pub(super) fn expire(&mut self) -> io::Result<()> {
        let (now, retention) = (SystemTime::now(), self.retention);
        let older = |at: SystemTime, than: Duration| now.duration_since(at).is_ok_and(|age| age > than);
        let age_max = retention.map_or(AGE_MAX, |retention| AGE_MAX.min(retention / 8));
        if self.current.as_ref().is_some_and(|current| older(current.begun, age_max)) {
            self.end_current();
        }
        let Some(retention) = retention else { return Ok(()) };
        while self.ended.front().is_some_and(|oldest| older(oldest.at, retention)) {
            self.remove_oldest()?;
        }
        Ok(())
    }

    /// Ends the current file, and waits until it is on disk.
    pub(super) fn close(&mut self) {
        self.end_current();
    }
}

/// Locks the directory. The kernel releases the lock when the file is closed or the process ends.
fn lock(dir: &Path, wait: Duration) -> Result<File, AuditError> {
    let failed = |cause| AuditError::Dir { dir: dir.to_owned(), cause };
    let path = dir.join(LOCK_FILE);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
    if lock_within(&file, wait).map_err(failed)? { Ok(file) } else { Err(AuditError::Held { dir: dir.to_owned() }) }
}

/// Returns the files of a directory, the oldest first.
pub(super) fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if begun_at(&path).is_some() && entry.file_type()?.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the time in the name of a file; `None` if it is not a file of the log.
pub(super) fn begun_at(path: &Path) -> Option<Timestamp> {
    let time = path.file_name()?.to_str()?.strip_prefix(BEGINNING)?.strip_suffix(ENDING)?;
    let (date, rest) = time.split_at_checked(8)?;
    let time = rest.strip_prefix('T')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(date) || time.len() != 11 || !time.is_ascii() {
        return None;
    }
    let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
    let (hour, minute, second) = (&time[..2], &time[2..4], &time[4..]);
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}").parse().ok()
}

fn name_of(begun: Timestamp) -> String {
    let time: String = format!("{begun:.3}").chars().filter(|&letter| letter != '-' && letter != ':').collect();
    format!("{BEGINNING}{time}{ENDING}")
}

/// Creates a file whose name sorts after all other names, even if the clock was set back.
fn begin(dir: &Path, newest: &mut Timestamp) -> io::Result<Current> {
    let next = Timestamp::from_millisecond(newest.as_millisecond() + 1).unwrap_or(*newest);
    let begun = Timestamp::now().max(next);
    let path = dir.join(name_of(begun));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
    *newest = begun;
    Ok(Current { file, path, bytes: 0, begun: SystemTime::now() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    use super::*;

    fn settings(dir: &Path) -> AuditSettings {
        AuditSettings {
            dir: dir.to_owned(),
            checks: false,
            queue_bytes_max: 1000,
            file_bytes_max: 10,
            bytes_max: 25,
            retention: None,
        }
    }

    fn contents(dir: &Path) -> Vec<String> {
        list(dir).unwrap().iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    fn append(files: &mut Files, lines: &str) {
        let (written, outcome) = files.append(lines.as_bytes());
        outcome.unwrap();
        assert_eq!(written, lines.len());
    }

    #[test]
    fn files_are_ended_at_whole_lines_and_the_oldest_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("new/audit");
        let mut files = Files::take(&settings(&dir), Duration::ZERO).unwrap();
        append(&mut files, "1234\n6789\nabcd\n");
        assert_eq!(contents(&dir), ["1234\n6789\n", "abcd\n"]);
        append(&mut files, "efg\n");
        assert_eq!(contents(&dir), ["1234\n6789\n", "abcd\nefg\n"]);
        append(&mut files, "a line that is longer\n");
        assert_eq!(contents(&dir), ["a line that is longer\n"]);
        append(&mut files, "x\n");
        assert_eq!((contents(&dir), files.bytes()), (vec!["a line that is longer\n".into(), "x\n".into()], 24));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&list(&dir).unwrap()[0])), (0o700, 0o600));
    }

    #[test]
    fn a_directory_has_one_writer_and_each_run_begins_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Files::take(&settings(dir.path()), Duration::ZERO).unwrap();
        append(&mut first, "a\n");
        let second = Files::take(&settings(dir.path()), Duration::from_millis(60));
        assert!(matches!(second, Err(AuditError::Held { .. })));
        drop(first);
        let mut second = Files::take(&settings(dir.path()), Duration::ZERO).unwrap();
        append(&mut second, "b\n");
        assert_eq!((contents(dir.path()), second.bytes()), (vec!["a\n".into(), "b\n".into()], 4));
    }

    #[test]
    fn a_file_that_was_removed_gets_no_further_lines() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::take(&settings(dir.path()), Duration::ZERO).unwrap();
        append(&mut files, "a\n");
        fs::remove_file(&list(dir.path()).unwrap()[0]).unwrap();
        append(&mut files, "b\n");
        assert_eq!(contents(dir.path()), ["b\n"]);
    }

    #[test]
    fn old_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let retention = Some(Duration::from_millis(400));
        let mut files = Files::take(&AuditSettings { retention, ..settings(dir.path()) }, Duration::ZERO).unwrap();
        append(&mut files, "a\n");
        files.expire().unwrap();
        assert_eq!(contents(dir.path()).len(), 1);
        thread::sleep(Duration::from_millis(100));
        files.expire().unwrap();
        append(&mut files, "b\n");
        assert_eq!(contents(dir.path()).len(), 2, "an eighth of the retention is over");
        thread::sleep(Duration::from_millis(450));
        files.expire().unwrap();
        assert_eq!(contents(dir.path()), ["b\n"], "its file has just been ended");
    }

    #[test]
    fn names_sort_by_time_and_other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(name_of(at("2026-11-23T21:00:00.1234Z")), "audit-20261123T210000.123Z.jsonl");
        assert_eq!(begun_at(Path::new("audit-20261123T210000.123Z.jsonl")), Some(at("2026-11-23T21:00:00.123Z")));
        for other in
            ["audit-20261123T210000.123Z.json", "audit-.jsonl", "audit.lock", "audit-20261123T2100000123Z.jsonl"]
        {
            assert_eq!(begun_at(Path::new(other)), None, "{other}");
        }
        fs::write(dir.path().join("audit-20991123T210000.123Z.jsonl"), "from the future\n").unwrap();
        let mut files = Files::take(&settings(dir.path()), Duration::ZERO).unwrap();
        append(&mut files, "a\n");
        assert_eq!(contents(dir.path()), ["from the future\n", "a\n"]);
    }
}
