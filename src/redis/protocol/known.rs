//! What an insertion knows of its own record, of the id, and of the document that it replaces.

use super::terms::{Head, Ref, State, Token};

/// How a document is inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct How {
    /// Whether the document is stored even if it is a duplicate.
    pub beside: bool,
    /// Whether it replaces other content that holds its id.
    pub replaces: bool,
}

/// The document that is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Replaced<B> {
    pub at: Ref,
    pub body: B,
    pub naming: Naming,
}

/// How far the document that is to be replaced has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Naming {
    /// It has this head, and does not name this document yet.
    Not(Head),
    /// This head was written, but replicas may not have it.
    Unsure(Head),
    /// It names this document as its successor.
    Named(Head),
    /// It was deleted instead.
    Deleted(Head),
    /// It names this document no more, although postings exist: another server has aborted this insertion.
    Lost,
}

/// What is known of the document's own record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Own {
    Pending(Token),
    /// It has this head, and is not pending any more, but replicas may not have it.
    Unsure(Head),
    Kept(Head),
    /// It was not pending any more, and has this head again. Either a failover has undone that, or the document was
    /// stored, deleted and removed, and its first command was executed once more. So it must be aborted.
    Undone(Head),
    /// Another server has aborted it, or a failover has undone its first write.
    Lost,
    /// There is no record, although it may have been kept: perhaps it was stored, and deleted since.
    Unknown,
}

/// What is known of the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Claim {
    /// It was held by this document, or by nobody (`None`), but replicas may not have the claim.
    Unsure(Option<Ref>),
    Mine,
    By(Ref),
}

impl<B> Replaced<B> {
    /// Returns how far it has got after it was to get the head `to`. `None`: it has changed, so the holder of the id must
    /// be looked at again.
    pub(super) fn naming_after(
        &self,
        to: Head,
        written: Result<(), Option<Head>>,
        replicated: bool,
        has_posted: bool,
    ) -> Option<Naming> {
        match written {
            Ok(()) if !replicated => Some(Naming::Unsure(to)),
            Ok(()) if to.state == State::Deleted => Some(Naming::Deleted(to)),
            Ok(()) => Some(Naming::Named(to)),
            // The command was sent twice, and the first one has done it.
            Err(Some(head)) if head == to => Some(Naming::Unsure(to)),
            Err(_) => has_posted.then_some(Naming::Lost),
        }
    }
}
