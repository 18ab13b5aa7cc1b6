//! The tasks of the servers in the model, and their answers.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::super::terms::Ref;
use super::world::Doc;

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Insert {
        beside: bool,
    },
    Delete,
    Check,
    /// Changes the document of the first server.
    Update,
}

/// The document of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Given {
    pub task: Task,
    pub doc: Doc,
    pub id: u8,
    pub bands: Vec<u8>,
    /// The server begins when this other one has ended.
    pub after: Option<usize>,
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
    DuplicateOf(Vec<Ref>),
    Held(Ref),
    /// Also of a request that has failed.
    Unknown,
    Deleted(Option<Ref>),
    Found(Vec<Ref>),
    /// The document that was changed.
    Changed(Ref),
    /// There was nothing to change.
    NotChanged,
}
