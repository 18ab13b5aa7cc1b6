//! A log is emptied: when its file is opened, so that each life of it begins with an empty one, and when it is closed.

use std::path::Path;

use rusqlite::Connection;

use super::checkpoint::{Mode, run};
use crate::store::data_dir::files;
use crate::store::log::moved::{self, Moved};

/// Moves the log into the database, notes that for [`look`](crate::store::log::look::look), and empties it. The first
/// sync that fails is told, whatever the next would say.
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

/// Without this note only a power failure that keeps an old `-shm` file would be taken for damage.
fn note_moved(connection: &Connection, collection: &str, frames: u64) {
    let Some(path) = connection.path().map(|path| files::log(Path::new(path))) else { return };
    let noted = Moved::of_log(&path, frames, connection).and_then(|moved| moved.write(&moved::path_of(&path)));
    if let Err(error) = noted {
        tracing::warn!(collection, %error, "no note that the log is in the database");
    }
}
