//! The requests of clients, and their answers.

use std::time::Duration;

use super::contents::Content;

/// How long after an unclear answer the request may still have an effect.
const GRACE: Duration = Duration::from_secs(3);

/// The number of an id.
pub type Id = usize;

/// A request and its answer. Times are counted from the beginning of the run.
#[derive(Clone, Debug)]
pub struct Note {
    pub sent: Duration,
    /// The time of the answer, or of the failure.
    pub ended: Duration,
    pub asked: Asked,
    pub told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Insert(Id, Content),
    Delete(Id),
    Check(Content),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Of an insertion: this content is stored under this id.
    Stored,
    /// Of an insertion or a check: it is a duplicate of this id. Nothing was stored.
    Duplicate(Id),
    /// Of a check: no similar document is stored.
    Unique,
    /// Of an insertion: the id has other content.
    Conflict,
    /// Of a deletion: whether a document was deleted.
    Deleted(bool),
    /// Nothing was done.
    Refused,
    /// Anything may have happened.
    Unclear,
}

/// A time during which a document is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    pub id: Id,
    pub content: Content,
    pub from: Duration,
    pub to: Duration,
}

impl Note {
    /// Returns the time after which the request has no more effect.
    fn over(&self) -> Duration {
        if self.told == Told::Unclear { self.ended + GRACE } else { self.ended }
    }

    /// Returns what the note inserts, if this may have happened.
    fn inserted(&self) -> Option<(Id, Content)> {
        match self.asked {
            Asked::Insert(id, content) if matches!(self.told, Told::Stored | Told::Unclear) => Some((id, content)),
            _ => None,
        }
    }
}

/// Returns the times during which documents are stored for certain.
pub fn certain(notes: &[Note]) -> Vec<Stored> {
    let sure = notes.iter().filter(|note| note.told == Told::Stored);
    let sure = sure.filter_map(|note| Some((note, note.inserted()?)));
    let stored = sure.map(|(insert, (id, content))| {
        let deletions = notes.iter().filter(|note| note.asked == Asked::Delete(id));
        let deletions = deletions.filter(|note| matches!(note.told, Told::Deleted(true) | Told::Unclear));
        let ends = deletions.filter(|note| note.over() >= insert.sent).map(|note| note.sent.max(insert.ended));
        Stored { id, content, from: insert.ended, to: ends.min().unwrap_or(Duration::MAX) }
    });
    stored.filter(|stored| stored.from < stored.to).collect()
}

/// Returns the times during which documents may be stored.
pub fn possible(notes: &[Note]) -> Vec<Stored> {
    let inserts = notes.iter().filter_map(|note| Some((note, note.inserted()?)));
    let stored = inserts.map(|(insert, (id, content))| {
        let deletions = notes.iter().filter(|note| note.asked == Asked::Delete(id));
        let deletions = deletions.filter(|note| note.told == Told::Deleted(true) && note.sent >= insert.over());
        let to = deletions.map(|note| note.ended).min().unwrap_or(Duration::MAX);
        Stored { id, content, from: insert.sent, to }
    });
    stored.collect()
}
