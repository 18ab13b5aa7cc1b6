//! The terms of the protocol: records and their states, the commands on one key, and the answers to these commands.

use std::fmt::Debug;
use std::hash::Hash;

/// The number of a document. No number is used for two documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ref(pub u64);

/// A random number in a record. A write that depends on a record names the token that it has read. Tokens are not
/// counters: if a failover undoes a write, a counter would give the same number to another write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token(pub u64);

/// The state of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// A server is inserting the document.
    Pending,
    /// The document is stored, but a failover may undo this.
    Kept,
    /// The document is stored, and no failover undoes this.
    Sealed,
    /// The document was not stored, and never will be.
    Aborted,
    /// The document was stored, and then deleted.
    Deleted,
    /// The document is stored until its successor is. The token is the number of the successor.
    Superseded,
}

impl State {
    /// Returns whether the document is stored.
    pub(crate) fn is_stored(self) -> bool {
        matches!(self, Self::Kept | Self::Sealed)
    }

    /// Returns whether the document is not stored and never will be.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Aborted | Self::Deleted)
    }
}

/// The part of a record that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Head {
    pub state: State,
    pub token: Token,
}

impl Head {
    pub(crate) fn new(state: State, token: Token) -> Self {
        Self { state, token }
    }

    /// Returns the head of a document that `by` replaces.
    pub(crate) fn superseded(by: Ref) -> Self {
        Self::new(State::Superseded, Token(by.0))
    }

    /// Returns the document that replaces this one as soon as it is stored.
    pub(crate) fn successor(self) -> Option<Ref> {
        (self.state == State::Superseded).then_some(Ref(self.token.0))
    }
}

/// A record as it was read. A record that was written for a missing document has no body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Found<B> {
    pub head: Head,
    pub body: Option<B>,
    /// Whether the time of the document is over, by the clock of the server that has read it.
    pub expired: bool,
}

/// A band key of the machine's own document. It names a set of postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Band(pub u16);

/// An atomic command on one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command<B> {
    /// Writes a record, if there is none.
    Create { at: Ref, head: Head, body: B },
    /// Replaces the head of a record, if it is `from`. `None`: there must be no record. It writes also if `from` is `to`.
    Swap { at: Ref, from: Option<Head>, to: Head },
    /// Changes the head of a pending record to kept, and appends the tail to the record.
    Keep { at: Ref, from: Head, to: Head, body: B, tail: Vec<u8> },
    /// Replaces the head and the body of a record, if its head is `from`.
    Rewrite { at: Ref, from: Head, to: Head, body: B },
    /// Reads a record.
    Read { at: Ref },
    /// Removes a record, if it has this head.
    Remove { at: Ref, head: Head },
    /// Removes everything but the head from a record, if it has this head.
    Strip { at: Ref, head: Head },
    /// Replaces the document that holds the id, if it is `from`. `None`: nobody holds it. It writes also if `from` is
    /// `to`.
    Claim { from: Option<Ref>, to: Option<Ref> },
    /// Reads which document holds the id.
    Holder,
    /// Reads the postings of a band.
    Probe { band: Band },
    /// Writes a posting, and then reads the postings of the band; see `postings.rs`. `again`: the posting may exist, so it
    /// is written in any case, because a write that changes nothing reaches no replica.
    Post { band: Band, at: Ref, again: bool },
    /// Removes a posting.
    Unpost { band: Band, at: Ref },
}

impl<B> Command<B> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Swap { .. } => "swap",
            Self::Keep { .. } => "keep",
            Self::Rewrite { .. } => "rewrite",
            Self::Read { .. } => "read",
            Self::Remove { .. } => "remove",
            Self::Strip { .. } => "strip",
            Self::Claim { .. } => "claim",
            Self::Holder => "holder",
            Self::Probe { .. } => "probe",
            Self::Post { .. } => "post",
            Self::Unpost { .. } => "unpost",
        }
    }
}

/// A command, and whether the answer must say that enough replicas have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step<B> {
    pub command: Command<B>,
    /// Whether a `WAIT` follows on the same connection.
    pub waits: bool,
}

impl<B> Step<B> {
    pub(crate) fn now(command: Command<B>) -> Self {
        Self { command, waits: false }
    }

    pub(crate) fn waiting(command: Command<B>) -> Self {
        Self { command, waits: true }
    }

    /// Returns the next look at a pending document of another server. If its lease has expired, the look aborts it.
    pub(crate) fn look_again(
        (at, head): (Ref, Head),
        expired: bool,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Self {
        if !expired {
            return Self::read(at);
        }
        let to = Head::new(State::Aborted, token(Some(head)));
        Self::waiting(Command::Swap { at, from: Some(head), to })
    }

    /// Returns the reads of all bands.
    pub(crate) fn probes(bands: u16) -> impl Iterator<Item = Self> {
        (0..bands).map(|band| Self::now(Command::Probe { band: Band(band) }))
    }

    /// Returns the write that makes a head certain.
    pub(crate) fn confirm(at: Ref, head: Head) -> Self {
        Self::waiting(Command::Swap { at, from: Some(head), to: head })
    }

    /// Returns the write that ends a replaced document, before the record of its successor is removed. If it names
    /// another successor, or none, nothing is written.
    pub(crate) fn finalize(old: Ref, by: Ref) -> Self {
        let to = Head::new(State::Deleted, Token(by.0));
        Self::waiting(Command::Swap { at: old, from: Some(Head::superseded(by)), to })
    }

    /// Returns the write that takes its successor from a document, if that one is never stored. The number of the successor
    /// is the token of no other head of the document.
    pub(crate) fn restore(old: Ref, by: Ref) -> Self {
        let to = Head::new(State::Sealed, Token(by.0));
        Self::waiting(Command::Swap { at: old, from: Some(Head::superseded(by)), to })
    }

    /// Returns the removals of all postings of a document.
    pub(crate) fn unposts(at: Ref, bands: u16) -> impl Iterator<Item = Self> {
        (0..bands).map(move |band| Self::now(Command::Unpost { band: Band(band), at }))
    }

    pub(crate) fn read(at: Ref) -> Self {
        Self::now(Command::Read { at })
    }

    pub(crate) fn remove(at: Ref, head: Head) -> Self {
        Self::now(Command::Remove { at, head })
    }

    pub(crate) fn holder() -> Self {
        Self::now(Command::Holder)
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply<B> {
    /// Of `Create`: whether the record was written.
    Created(bool),
    /// Of `Swap`, `Keep` and `Rewrite`: the head that the record had instead, if it was not replaced.
    Swapped(Result<(), Option<Head>>),
    /// Of `Read`.
    Record(Option<Found<B>>),
    /// Of `Claim`: who holds the id instead, if it was not replaced.
    Claimed(Result<(), Option<Ref>>),
    /// Of `Holder`.
    Holder(Option<Ref>),
    /// Of `Probe` and `Post`.
    Postings(Vec<Ref>),
    /// Of `Remove`, `Strip` and `Unpost`.
    Removed,
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Answer<B> {
    pub reply: Reply<B>,
    /// Whether enough replicas have the write. False if the command has changed nothing: a `WAIT` behind such a command
    /// proves nothing.
    pub replicated: bool,
}

impl<B> Answer<B> {
    /// Returns whether a command has written, and too few replicas have the write.
    pub(crate) fn is_short(&self) -> bool {
        let wrote = match &self.reply {
            Reply::Swapped(written) => written.is_ok(),
            Reply::Claimed(claimed) => claimed.is_ok(),
            Reply::Postings(_) => true,
            Reply::Created(_) | Reply::Record(_) | Reply::Holder(_) | Reply::Removed => false,
        };
        wrote && !self.replicated
    }
}

/// What a machine does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Next<B, O> {
    /// Send these commands, all at once, and give the machine their answers in this order.
    Send(Vec<Step<B>>),
    /// Another server is inserting the document `at`. Wait a little. If the record has had this head for longer than
    /// the lease, its server has probably ended.
    Wait { at: Ref, head: Head },
    /// The machine has ended. Nobody needs to wait for the commands in `rest`, which remove what is no longer needed.
    /// Each list is sent after the answers of the one before.
    Done { outcome: O, rest: Vec<Vec<Step<B>>> },
}

/// What the protocol needs to know about a document.
pub(crate) trait Body: Clone {
    type Id: Clone + Ord + Hash + Debug;

    /// At most one document with an id is stored at a time.
    fn id(&self) -> &Self::Id;

    /// Whether one of the two is a duplicate of the other. It is symmetric.
    fn is_alike(&self, other: &Self) -> bool;

    /// Whether a document that is sent again under the id of `held` is the same.
    fn repeats(&self, held: &Self) -> bool;

    /// Returns the document that this one has replaced.
    fn replaces(&self) -> Option<Ref>;

    /// Returns what is appended to the record when the document is stored. `met`: all documents that share a band with
    /// it. `beside`: those of them that are duplicates. `replaced`: the document that it replaces.
    fn tail(&self, met: &[(Ref, &Self)], beside: &[(Ref, &Self)], replaced: Option<(Ref, &Self)>) -> Vec<u8>;
}
