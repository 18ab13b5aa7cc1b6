//! A note that all frames of a log are in the database. It is written just before the log is emptied. A power failure
//! may leave a `-shm` file from before that moment. According to this `-shm` file, frames are missing from the empty
//! log. The note shows that the `-shm` file is old. The note does not cover a log that was lost after later commits,
//! because that log has other salts or more frames. It also does not cover a database with another ledger, such as an
//! older copy that replaced the original.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use xxhash_rust::xxh3::xxh3_64;

use crate::store::data_dir::files;

const NOTE_BYTES: usize = 8 + 8 + 8 + 8;
/// Each time SQLite restarts a log, it adds one to the first salt. A `-shm` file from up to this many logs ago is
/// recognised as older. A log that was newly created has a random salt, and is mistaken for an older log with a
/// probability of 1e-6.
const GENERATIONS_MAX: u32 = 4096;

/// The state of the log when it was last emptied.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct Moved {
    /// The salts in the header of the log.
    salts: [u8; 8],
    frames: u64,
    /// The hash of the ledger, which changes with every change of documents.
    ledger: u64,
}

impl Moved {
    /// Makes the note for the log at `path`. All of its `frames` frames are on disk in the database of `connection`.
    pub(in crate::store) fn of_log(path: &Path, frames: u64, connection: &Connection) -> io::Result<Self> {
        let mut header = [0; 32];
        File::open(path)?.read_exact(&mut header)?;
        let ledger = ledger_of(connection).map_err(io::Error::other)?;
        Ok(Self { salts: header[16..24].try_into().expect("8 bytes"), frames, ledger })
    }

    /// Writes the note to disk.
    pub(in crate::store) fn write(&self, path: &Path) -> io::Result<()> {
        let is_new = !path.exists();
        let mut bytes = [&self.salts[..], &self.frames.to_le_bytes(), &self.ledger.to_le_bytes()].concat();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        // Overwrites the previous note. If a crash interrupts the write, the log that the note would cover still
        // exists.
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        if is_new { files::sync_parent(path) } else { Ok(()) }
    }

    /// Reads the note; `None` if the note is missing or not valid.
    pub(in crate::store) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut bytes = [0; NOTE_BYTES];
        match File::open(path).and_then(|mut file| file.read_exact(&mut bytes)) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let sound = xxh3_64(&bytes[..24]) == number(24);
        let salts = bytes[..8].try_into().expect("8 bytes");
        Ok(sound.then(|| Self { salts, frames: number(8), ledger: number(16) }))
    }

    /// Returns whether `frames` frames of a log with these salts are in the database whose log is at `log`. Call this
    /// only if the log at `log` is missing or empty.
    pub(in crate::store) fn covers(&self, log: &Path, salts: [u8; 8], frames: u64) -> bool {
        self.covers_log(salts, frames) && ledger_without_log(log) == Some(self.ledger)
    }

    fn covers_log(&self, salts: [u8; 8], frames: u64) -> bool {
        if salts == self.salts {
            return frames <= self.frames;
        }
        let first = |salts: [u8; 8]| u32::from_be_bytes(salts[..4].try_into().expect("4 bytes"));
        // Each log was moved into the database completely before the next log began.
        (1..=GENERATIONS_MAX).contains(&first(self.salts).wrapping_sub(first(salts)))
    }
}

fn ledger_of(connection: &Connection) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare("SELECT tally, rows, sum, last_seq FROM ledger ORDER BY tally")?;
    let mut rows = statement.query([])?;
    let mut text = String::new();
    while let Some(row) = rows.next()? {
        let (tally, numbers): (String, [i64; 3]) = (row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?]);
        text.push_str(&format!("{tally} {numbers:?}\n"));
    }
    Ok(xxh3_64(text.as_bytes()))
}

/// Hashes the ledger in the database, without the log; `None` if it cannot be read.
fn ledger_without_log(log: &Path) -> Option<u64> {
    let path = log.to_str()?.strip_suffix("-wal")?;
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    // `immutable` makes SQLite replay no log and create no file next to the database.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags).ok()?;
    ledger_of(&connection).ok()
}

/// Returns the path of the note for the log at `log`.
pub(in crate::store) fn path_of(log: &Path) -> PathBuf {
    match log.to_str().and_then(|path| path.strip_suffix("-wal")) {
        Some(database) => PathBuf::from(format!("{database}{}", files::MOVED)),
        None => files::with_suffix(log, files::MOVED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_covers_what_is_older_and_nothing_that_came_after() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        assert_eq!(Moved::read(&path).unwrap(), None);
        let moved = Moved { salts: [0, 0, 0, 5, 9, 9, 9, 9], frames: 7, ledger: 3 };
        moved.write(&path).unwrap();
        let read = Moved::read(&path).unwrap().unwrap();
        assert_eq!(read, moved);
        assert!(read.covers_log(moved.salts, 7) && read.covers_log(moved.salts, 1));
        assert!(!read.covers_log(moved.salts, 8), "written after it");
        assert!(read.covers_log([0, 0, 0, 4, 1, 2, 3, 4], 1000), "an earlier log");
        assert!(
            !read.covers_log([0, 0, 0, 6, 1, 2, 3, 4], 1) && !read.covers_log([0, 0, 0, 5, 9, 9, 9, 8], 1),
            "a later one"
        );
        let sound = std::fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(Moved::read(&path).unwrap(), None, "byte {at}");
            std::fs::write(&path, &sound[..at]).unwrap();
            assert_eq!(Moved::read(&path).unwrap(), None, "cut at {at}");
        }
    }
}
