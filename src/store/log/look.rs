//! Checks the write-ahead log before SQLite opens it. SQLite replays a log up to its first bad frame and silently drops
//! the rest, because a crash can leave a bad end. But each commit is synced before the next one begins, so a crash can
//! damage only the last transaction. If two or more commits follow a bad frame, an acknowledged commit was lost: the
//! log is damaged.
//!
//! Within the last transaction, a torn write and a flipped bit look the same. Both are [`Condition::Torn`].
//!
//! The log itself does not show that it was cut short. But a killed process leaves its `-shm` file next to the log, and
//! that file says how many frames were committed. SQLite writes the `-shm` file after it has synced the frames. SQLite
//! recreates the file when it opens the database, so this check must run before SQLite opens it. If the `-shm` file is
//! missing or invalid, a log that was cut short looks like a complete log. A power failure may leave an older `-shm`
//! file next to a log that was emptied later. A note shows that this happened (`moved.rs`).
//!
//! In `src/store/format/outside.rs`, [`Condition::Torn`] becomes a warning, and [`Condition::Damaged`] an error.
//!
//! The formats: <https://sqlite.org/fileformat2.html#the_write_ahead_log>, <https://sqlite.org/walformat.html>.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;

use super::bytes::fill;
use super::frames::{Frames, HEADER_BYTES, Header, foreign_frames};
use super::moved::{self, Moved};
use super::shared::Noted;

/// The condition of a log.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) enum Condition {
    /// Nothing is wrong. A missing log is sound, too.
    Sound,
    /// The last transaction is incomplete: it was torn or damaged.
    Torn(String),
    /// Committed frames are missing or damaged.
    Damaged(String),
}

/// Checks a log against itself and against `shared`, its `-shm` file.
pub(in crate::store) fn look(path: &Path, shared: &Path) -> io::Result<Condition> {
    // The `-shm` file is read before the log. If another connection is recreating both files, the log is then at least
    // as new as the `-shm` file.
    let noted = Noted::read(shared)?;
    let moved = Moved::read(&moved::path_of(path))?;
    let gone = || gone(path, noted.as_ref(), moved.as_ref());
    let mut log = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 18, file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(gone()),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; HEADER_BYTES];
    if !fill(&mut log, &mut bytes)? {
        return Ok(gone());
    }
    let Some(header) = Header::read(&bytes) else {
        return Ok(foreign_frames(&mut log, &bytes)?.map_or_else(gone, Condition::Damaged));
    };
    let Frames { committed, last_of_ours, bad, commits_behind } = Frames::read(&mut log, &header)?;
    if let Some(bad) = bad.filter(|_| commits_behind > 1) {
        let detail = format!("frame {bad} of its write-ahead log is damaged, and {commits_behind} commits follow it");
        return Ok(Condition::Damaged(detail));
    }
    if let Some(noted) = noted.filter(|noted| noted.salts == header.salts() && noted.frames > committed) {
        let detail = format!(
            "its write-ahead log is intact up to frame {committed}, but {} frames were committed",
            noted.frames
        );
        return Ok(Condition::Damaged(detail));
    }
    if last_of_ours > committed {
        let detail = format!("its write-ahead log is intact up to frame {committed}; the transaction after it is lost");
        return Ok(Condition::Torn(detail));
    }
    Ok(Condition::Sound)
}

/// Judges a log that is missing or empty. The log is damaged if the `-shm` file counts frames that are not in the
/// database, unless the note shows that the `-shm` file is old.
fn gone(path: &Path, noted: Option<&Noted>, moved: Option<&Moved>) -> Condition {
    let covered = |noted: &Noted| moved.is_some_and(|moved| moved.covers(path, noted.salts, noted.frames));
    match noted {
        Some(noted) if noted.frames > noted.moved && !covered(noted) => Condition::Damaged(format!(
            "its write-ahead log is missing, and {} of its frames are not in the database",
            noted.frames - noted.moved
        )),
        _ => Condition::Sound,
    }
}
