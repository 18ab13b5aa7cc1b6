//! The tasks of the servers in the model, and their answers.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::super::How;
use super::super::terms::Ref;
use super::world::Doc;

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Insert(How),
    Delete,
    Check,
    /// Changes the document of the first server.
    Update,
    /// Looks at the record of the first server.
    Sweep,
}

/// The document of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Given {
    pub task: Task,
    pub doc: Doc,
    pub id: u8,
    pub bands: Vec<u8>,
    /// Whether the clock of the server is so far ahead that documents of others are expired once they are stored.
    pub is_ahead: bool,
    /// The server begins when this other one has ended.
    pub after: Option<usize>,
}

impl Given {
    /// Returns whether documents of others may be over after this.
    pub(super) fn removes(&self) -> bool {
        self.is_ahead || matches!(self.task, Task::Delete | Task::Insert(How { replaces: true, .. }))
    }

    /// Returns whether this may leave no document under the id of `first`, other than by a deletion.
    pub(super) fn may_empty(&self, first: &Self) -> bool {
        let others = !(1 << first.doc.number | 1 << self.doc.number);
        let replaces = matches!(self.task, Task::Insert(How { replaces: true, .. })) && self.id == first.id;
        self.is_ahead || replaces && self.doc.alike & others != 0
    }
}

/// What stays the same in all states, so that it is not compared.
#[derive(Clone, Debug)]
pub(super) struct Same<T>(pub Rc<T>);

impl<T> PartialEq for Same<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Same<T> {}

impl<T> Hash for Same<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What a server answered its client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    Stored(Ref),
    /// A document is stored in the place of another one.
    Replaced {
        old: Ref,
        by: Ref,
    },
    DuplicateOf(Vec<Ref>),
    Held(Ref),
    /// Also of a request that has failed.
    Unknown,
    Deleted(Option<Ref>),
    /// A document that was to be replaced was deleted instead, because the new one is a duplicate.
    Removed {
        old: Ref,
        found: Vec<Ref>,
    },
    Found(Vec<Ref>),
    /// The document that was changed.
    Changed(Ref),
    /// There was nothing to change.
    NotChanged,
    Swept,
}
