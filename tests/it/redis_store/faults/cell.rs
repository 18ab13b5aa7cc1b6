//! What a cell does: a few groups and ids that are used only with each other.
//!
//! An insertion is about an id and a group at once: it needs that the id is free, and that no document of the group is
//! stored. So a history of a group alone, or of an id alone, misses anomalies of the two together. No operation is about
//! two cells. So a whole history is linearizable if and only if that of each cell is (Herlihy and Wing, "Linearizability",
//! 1990, theorem 1), and each can be judged alone. Cells have different shapes: many ids of one group, some ids of
//! some groups, and one id of many groups.

use crate::support::orders::Object;

/// Ids of one cell, at most.
pub const IDS_MAX: usize = 4;

/// An id of a cell.
pub type Id = u8;

/// A document without its id. All documents of a group are duplicates of each other, and of no others. Documents with
/// another variant have other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Doc {
    pub group: u8,
    pub variant: u8,
}

/// An operation and its answer. All insertions have `on_duplicate=skip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The document was stored. The id was free, and no document of the group was stored.
    Stored(Id, Doc),
    /// The id has this document already.
    Repeated(Id, Doc),
    /// `on_existing=replace`: the document was stored instead of the other one that the id had.
    Replaced(Id, Doc),
    /// `on_existing=replace` without an answer: the document was stored, whatever the id had.
    Put(Id, Doc),
    /// The document of the id was deleted.
    Deleted(Id),
    /// An insertion or a check has named this document of the group.
    Named(Id, u8),
    /// An insertion was refused, because the id has other content.
    Conflicted(Id, Doc),
    /// A check has found no document of the group.
    Unique(u8),
    /// The id has this document.
    Shown(Id, Option<Doc>),
}

/// The documents by their ids.
pub type State = [Option<Doc>; IDS_MAX];

pub struct Cell;

/// Returns the id that holds the document of a group.
fn holder(state: &State, group: u8) -> Option<usize> {
    state.iter().position(|held| held.is_some_and(|held| held.group == group))
}

fn with(state: &State, id: Id, doc: Option<Doc>) -> State {
    let mut next = *state;
    next[usize::from(id)] = doc;
    next
}

impl Object for Cell {
    type State = State;
    type Event = Event;

    fn after(&self, state: &State, event: &Event) -> Option<State> {
        let of = |id: Id| state[usize::from(id)];
        let is_at = |id: Id, group: u8| holder(state, group) == Some(usize::from(id));
        let is_other = |id: Id, doc: Doc| of(id).is_some_and(|held| held != doc);
        match *event {
            Event::Stored(id, doc) => {
                (of(id).is_none() && holder(state, doc.group).is_none()).then(|| with(state, id, Some(doc)))
            }
            Event::Repeated(id, doc) => (of(id) == Some(doc)).then_some(*state),
            Event::Replaced(id, doc) => (is_other(id, doc)
                && (holder(state, doc.group).is_none() || is_at(id, doc.group)))
            .then(|| with(state, id, Some(doc))),
            Event::Put(id, doc) => {
                (holder(state, doc.group).is_none() || is_at(id, doc.group)).then(|| with(state, id, Some(doc)))
            }
            Event::Deleted(id) => of(id).map(|_| with(state, id, None)),
            Event::Named(id, group) => is_at(id, group).then_some(*state),
            Event::Conflicted(id, doc) => is_other(id, doc).then_some(*state),
            Event::Unique(group) => holder(state, group).is_none().then_some(*state),
            Event::Shown(id, doc) => (of(id) == doc).then_some(*state),
        }
    }

    fn is_read(&self, event: &Event) -> bool {
        matches!(
            event,
            Event::Repeated(..) | Event::Named(..) | Event::Conflicted(..) | Event::Unique(_) | Event::Shown(..)
        )
    }
}
