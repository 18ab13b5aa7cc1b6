//! What a machine knows of the other documents that it has met, and what it must write before it may ignore one of them
//! or call it a duplicate.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::{Fault, has};
use super::terms::{Body, Command, Found, Head, Ref, State, Step, Token};

/// The bounds of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The number of bands of its document.
    pub bands: u16,
    /// The largest number of documents that share a band and are read.
    pub candidates_max: usize,
}

/// The documents that share a band with a machine's document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Met<B> {
    /// Those that are stored.
    pub stored: Vec<(Ref, B)>,
    /// The number of those that were not read because there are too many.
    pub left_out: u64,
}

/// What is known of another document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Other<B> {
    pub body: Option<B>,
    pub standing: Standing,
}

/// What is known of the state of another document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    Unread,
    /// Its head was read; `None`: it has no record. A failover may undo this.
    Seen(Option<Head>),
    /// This head was written, but replicas may not have it.
    Unsure(Head),
    /// It is stored, and no failover undoes this.
    Stored(Head),
    /// It is not stored and never will be, and no failover undoes this.
    Over,
    /// It is being inserted, but its server must read all postings again before it can finish.
    Wounded,
}

/// The other documents, in order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Others<B> {
    met: BTreeMap<Ref, Other<B>>,
    most: usize,
    /// The documents that were left out because there are too many.
    left_out: BTreeSet<Ref>,
}

impl<B: Body> Others<B> {
    /// At most `most` documents that share a band are read.
    pub(crate) fn new(most: usize) -> Self {
        Self { met: BTreeMap::new(), most, left_out: BTreeSet::new() }
    }

    /// Adds a document that shares a band.
    pub(crate) fn meet(&mut self, at: Ref) {
        if self.met.len() < self.most || self.met.contains_key(&at) {
            self.add(at);
        } else {
            self.left_out.insert(at);
        }
    }

    /// Adds a document that must be read in any case.
    pub(crate) fn add(&mut self, at: Ref) {
        self.met.entry(at).or_insert(Other { body: None, standing: Standing::Unread });
    }

    /// Returns how many documents were left out because there are too many.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.len() as u64
    }

    pub(crate) fn get(&self, at: Ref) -> Option<&Other<B>> {
        self.met.get(&at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ref, &Other<B>)> {
        self.met.iter().map(|(&at, other)| (at, other))
    }

    /// Notes a record that was read.
    pub(crate) fn read(&mut self, at: Ref, found: Option<Found<B>>) {
        let Some(other) = self.met.get_mut(&at) else { return };
        other.standing = Standing::Seen(found.as_ref().map(|found| found.head));
        if let Some(body) = found.and_then(|found| found.body) {
            other.body = Some(body);
        }
        if let Standing::Seen(Some(head)) = other.standing
            && (head.state == State::Sealed || head.state == State::Kept && has(Fault::TrustsKept))
        {
            other.standing = Standing::Stored(head);
        }
    }

    /// Notes the answer to a write: the head that the record had instead, if it was not written.
    pub(crate) fn wrote(&mut self, at: Ref, to: Head, written: Result<(), Option<Head>>, replicated: bool) {
        let Some(other) = self.met.get_mut(&at) else { return };
        other.standing = match written {
            // There was no record when it was read, so its body is not known.
            Err(Some(_)) if other.body.is_none() => Standing::Unread,
            // Its metadata was changed, or a change of them was undone.
            Err(Some(head)) if to.state.is_stored() && head.token != to.token => Standing::Unread,
            Err(Some(head)) if head.state == State::Sealed => Standing::Stored(head),
            Err(head) => Standing::Seen(head),
            Ok(()) if !replicated && !has(Fault::NoWait) => Standing::Unsure(to),
            Ok(()) => match to.state {
                State::Pending => Standing::Wounded,
                State::Kept | State::Sealed => Standing::Stored(to),
                State::Aborted | State::Deleted => Standing::Over,
            },
        };
        if other.standing == Standing::Over {
            other.body = None;
        }
    }

    /// Forgets who was wounded: the machine itself must read all postings again.
    pub(crate) fn begin_again(&mut self) {
        for other in self.met.values_mut().filter(|other| other.standing == Standing::Wounded) {
            other.standing = Standing::Unread;
        }
    }

    /// Returns the documents that are duplicates and are stored for certain.
    pub(crate) fn matches(&self, body: &B) -> impl Iterator<Item = (Ref, &B)> {
        let certain = self.iter().filter(|(_, other)| matches!(other.standing, Standing::Stored(_)));
        let found = certain.filter_map(|(at, other)| Some((at, other.body.as_ref()?)));
        found.filter(|(_, found)| found.is_alike(body))
    }

    /// Returns the documents that are stored, as far as it is known.
    pub(crate) fn stored(&self) -> Vec<(Ref, &B)> {
        let is_stored = |standing: Standing| standing.is_unconfirmed() || matches!(standing, Standing::Stored(_));
        let stored = self.iter().filter(|(_, other)| is_stored(other.standing));
        stored.filter_map(|(at, other)| Some((at, other.body.as_ref()?))).collect()
    }

    /// Does the same as [`stored`](Self::stored), with copies.
    pub(crate) fn stored_ones(&self) -> Met<B> {
        let stored = self.stored().into_iter().map(|(at, body)| (at, body.clone())).collect();
        Met { stored, left_out: self.left_out() }
    }

    /// Returns the commands that seal the documents that were found to be stored for certain.
    pub(crate) fn seals(&self) -> impl Iterator<Item = Step<B>> {
        self.iter().filter_map(|(at, other)| match other.standing {
            Standing::Stored(head) if head.state == State::Kept => {
                let to = Head::new(State::Sealed, head.token);
                Some(Step::now(Command::Swap { at, from: Some(head), to }))
            }
            _ => None,
        })
    }

    /// Returns the reads of all documents that are not known yet, and the writes that make certain that duplicates are
    /// stored.
    pub(crate) fn reads_and_confirmations(&self, body: &B) -> Vec<Step<B>> {
        let step = |(at, other): (Ref, &Other<B>)| {
            let is_alike = other.body.as_ref().is_some_and(|found| found.is_alike(body));
            match other.standing {
                Standing::Unread => Some(Step::read(at)),
                Standing::Seen(Some(head)) | Standing::Unsure(head) if is_alike && head.state.is_stored() => {
                    Some(Step::waiting(Command::Swap { at, from: Some(head), to: head }))
                }
                _ => None,
            }
        };
        self.iter().filter_map(step).collect()
    }
}

impl Standing {
    /// Returns whether the document was stored when it was read. A failover may undo this.
    fn is_unconfirmed(self) -> bool {
        match self {
            Self::Seen(Some(head)) | Self::Unsure(head) => head.state.is_stored(),
            _ => false,
        }
    }
}

/// What must happen before a machine is certain of another document.
pub(crate) enum Needed<B> {
    Nothing,
    Send(Step<B>),
    /// Its server must finish first.
    Wait(Head),
}

impl<B: Body> Other<B> {
    /// Returns what is needed to be certain whether this document is stored. A state other than "pending" is written
    /// again, because the node that answered may have been replaced: then no replica acknowledges the write.
    pub(crate) fn needs(&self, at: Ref, token: &mut dyn FnMut(Option<Head>) -> Token) -> Needed<B> {
        let swap = |from: Option<Head>, to: Head| Needed::Send(Step::waiting(Command::Swap { at, from, to }));
        match self.standing {
            Standing::Unread => Needed::Send(Step::now(Command::Read { at })),
            Standing::Seen(None) => swap(None, Head::new(State::Aborted, token(None))),
            Standing::Seen(Some(head)) | Standing::Unsure(head) => match head.state {
                State::Pending => Needed::Wait(head),
                State::Kept | State::Sealed | State::Aborted | State::Deleted => swap(Some(head), head),
            },
            Standing::Stored(_) | Standing::Over | Standing::Wounded => Needed::Nothing,
        }
    }

    /// Returns what is needed before the document `mine` may be stored beside this one, which shares a band with it. If
    /// this one is younger and pending, it is wounded: it gets another token, so that its server must read all postings
    /// again. If it is older, it goes first.
    pub(crate) fn needs_beside(
        &self,
        at: Ref,
        mine: (Ref, &B),
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Needed<B> {
        if self.body.as_ref().is_some_and(|body| !body.is_alike(mine.1)) {
            return Needed::Nothing;
        }
        match self.standing {
            Standing::Seen(Some(head)) | Standing::Unsure(head) if head.state == State::Pending && at > mine.0 => {
                if has(Fault::IgnoresYounger) {
                    return Needed::Nothing;
                }
                let to = Head::new(State::Pending, token(Some(head)));
                Needed::Send(Step::waiting(Command::Swap { at, from: Some(head), to }))
            }
            Standing::Seen(head) if has(Fault::TrustsAbsence) && head.is_none_or(|head| head.state.is_over()) => {
                Needed::Nothing
            }
            _ => self.needs(at, token),
        }
    }
}
