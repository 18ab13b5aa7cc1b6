//! The write-ahead log, looked at before SQLite does. SQLite plays a log back up to its first bad frame and drops the
//! rest in silence, because a crash leaves such an end. But each commit is synced before the next one begins: a crash
//! can spoil the last transaction alone. A second commit behind a bad frame was acknowledged, so the log is damaged.
//!
//! Within the last transaction a torn write and a flipped bit look the same: there it is [`Condition::Torn`].
//!
//! A log that was cut, or lost, shows nothing itself. But beside it a killed process leaves its `-shm` file, which says
//! how many frames were committed; SQLite writes that once they are synced, and makes the file anew when it opens the
//! database. So this has to look before. If that file is missing or unsound, a cut looks like an end. A power failure may
//! leave an older one beside a log that was emptied since: then a note says so (`moved.rs`).
//!
//! The formats: <https://sqlite.org/fileformat2.html#the_write_ahead_log>, <https://sqlite.org/walformat.html>.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;

use super::bytes::fill;
use super::frames::{Frames, HEADER_BYTES, Header, foreign_frames};
use super::moved::{self, Moved};
use super::shared::Noted;

/// What a log looks like.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) enum Condition {
    /// Nothing is wrong with it. No log is a good log.
    Sound,
    /// Its last transaction is not whole: it was torn, or damaged.
    Torn(String),
    /// It does not hold what was committed.
    Damaged(String),
}

/// Looks at a log, and at what `shared` (the `-shm` file) says of it.
pub(in crate::store) fn look(path: &Path, shared: &Path) -> io::Result<Condition> {
    // First: where another connection is just making both anew, the log is seen at least as new as this.
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
        let detail = format!("frame {bad} of its write-ahead log is bad, and {commits_behind} commits stand behind it");
        return Ok(Condition::Damaged(detail));
    }
    if let Some(noted) = noted.filter(|noted| noted.salts == header.salts() && noted.frames > committed) {
        let detail =
            format!("its write-ahead log is good up to frame {committed}, and {} were committed", noted.frames);
        return Ok(Condition::Damaged(detail));
    }
    if last_of_ours > committed {
        let detail =
            format!("its write-ahead log is good up to frame {committed}; what follows, one transaction, is gone");
        return Ok(Condition::Torn(detail));
    }
    Ok(Condition::Sound)
}

/// There is no log, or an empty one: whether there should be more of it.
fn gone(path: &Path, noted: Option<&Noted>, moved: Option<&Moved>) -> Condition {
    let covered = |noted: &Noted| moved.is_some_and(|moved| moved.covers(path, noted.salts, noted.frames));
    match noted {
        Some(noted) if noted.frames > noted.moved && !covered(noted) => Condition::Damaged(format!(
            "its write-ahead log is gone, and {} frames of it are not in the database",
            noted.frames - noted.moved
        )),
        _ => Condition::Sound,
    }
}
