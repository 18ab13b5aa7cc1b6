//! Empties a log when its file is opened and when it is closed. Each session therefore begins with an empty log.

use std::path::Path;

use rusqlite::Connection;

use super::checkpoint::{Mode, run};
use crate::store::data_dir::files;
use crate::store::log::moved::{self, Moved};

/// Moves the log into the database, writes a note about this for [`look`](crate::store::log::look::look), and empties
/// the log. If a sync fails, that error is returned, even if a later sync would succeed.
pub(super) fn empty(connection: &Connection, collection: &str) -> rusqlite::Result<()> {
    let log = run(connection, Mode::Passive)?;
    if log.frames > 0 && log.frames == log.checkpointed_frames && syncs(connection) {
        note_moved(connection, collection, log.frames);
    }
    run(connection, Mode::Truncate).map(drop)
}

fn syncs(connection: &Connection) -> bool {
    let level = connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
    level.is_ok_and(|level| level > 0)
}

/// Writes the note. If this fails, an old `-shm` file that a power failure leaves behind will be mistaken for damage.
fn note_moved(connection: &Connection, collection: &str, frames: u64) {
    let Some(path) = connection.path().map(|path| files::log(Path::new(path))) else { return };
    let noted = Moved::of_log(&path, frames, connection).and_then(|moved| moved.write(&moved::path_of(&path)));
    if let Err(error) = noted {
        tracing::warn!(collection, %error, "could not record that all of the write-ahead log is in the database");
    }
}
