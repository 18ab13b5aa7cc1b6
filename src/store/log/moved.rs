//! A note beside a log that is about to be emptied: all of it is in the database.
//! A power failure may leave a `-shm` file from before that, which says that frames are missing; with this note it is
//! known to be old. A log that was lost after later commits has other salts, or more frames, and the note says nothing
//! of it; nor of a database that does not have the ledger of that moment, because an older one was put in its place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use xxhash_rust::xxh3::xxh3_64;

use crate::store::data_dir::files;

const NOTE_BYTES: usize = 8 + 8 + 8 + 8;
/// Each time SQLite starts a log again it adds one to the first salt. A `-shm` file that is so many logs old is still
/// known as older; a log of another life of the file, whose salt is random, is taken for one with a chance of 1e-6.
const GENERATIONS_MAX: u32 = 4096;

/// What was in the database when the log was emptied last.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct Moved {
    /// The log's salts, as in its header.
    salts: [u8; 8],
    frames: u64,
    /// Hash of the ledger, which each change of documents moves.
    ledger: u64,
}

impl Moved {
    /// The log at `path`, of which so many frames were written and all are in the database of `connection`, on disk.
    pub(in crate::store) fn of_log(path: &Path, frames: u64, connection: &Connection) -> io::Result<Self> {
        let mut header = [0; 32];
        File::open(path)?.read_exact(&mut header)?;
        let ledger = ledger_of(connection).map_err(io::Error::other)?;
        Ok(Self { salts: header[16..24].try_into().expect("8 bytes"), frames, ledger })
    }

    /// Brings the note to the disk.
    pub(in crate::store) fn write(&self, path: &Path) -> io::Result<()> {
        let is_new = !path.exists();
        let mut bytes = [&self.salts[..], &self.frames.to_le_bytes(), &self.ledger.to_le_bytes()].concat();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        // Over the one before: if this is cut off, the log that it would have vouched for is still there.
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        if is_new { files::sync_parent(path) } else { Ok(()) }
    }

    /// `None` if there is no note, or no sound one.
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

    /// Whether so many frames of a log with these salts are in the database whose log is at `log`. Call it if there is
    /// no such log, or an empty one.
    pub(in crate::store) fn covers(&self, log: &Path, salts: [u8; 8], frames: u64) -> bool {
        self.covers_log(salts, frames) && ledger_without_log(log) == Some(self.ledger)
    }

    fn covers_log(&self, salts: [u8; 8], frames: u64) -> bool {
        if salts == self.salts {
            return frames <= self.frames;
        }
        let first = |salts: [u8; 8]| u32::from_be_bytes(salts[..4].try_into().expect("4 bytes"));
        // An earlier log was all moved before a later one began.
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

/// As the database alone has it, without a log; `None` if it can't be read.
fn ledger_without_log(log: &Path) -> Option<u64> {
    let path = log.to_str()?.strip_suffix("-wal")?;
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    // Immutable: no log is played back, and nothing is made beside the database.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags).ok()?;
    ledger_of(&connection).ok()
}

/// Where the note of the log at `log` is.
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
