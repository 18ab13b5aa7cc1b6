//! What a machine knows of the other documents that it has met, and what it must write before it may ignore one of them
//! or call it a duplicate.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::{Fault, has};
use super::terms::{Body, Command, Found, Head, Ref, State, Step, Token};

/// How often duplicates with one id are read again.
const READ_AGAIN_MAX: u8 = 4;

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
    /// Whether it has a posting of a band of the machine's own document. If not, it holds the id, or is a successor.
    shares_band: bool,
    /// Whether it still named its successor after that was known not to be stored.
    named_again: bool,
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
    /// It was stored, and its time is over. Until this is written, it may be stored for servers with other clocks.
    Expired(Head),
    /// It is stored until its successor is.
    Superseded(Head),
    /// It is not stored and never will be, and no failover undoes this.
    Over {
        was_stored: bool,
    },
    /// It is being inserted, but its server must read all postings again before it can finish.
    Wounded,
}

/// What becomes of a document that names a successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is stored: its successor is not stored yet, or never will be.
    Stored,
    /// It is over: its successor is stored, or was, and no failover undoes this.
    Over,
    /// The successor must be read or confirmed first, or this document read again.
    Open,
}

/// The other documents, in order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Others<B> {
    met: BTreeMap<Ref, Other<B>>,
    most: usize,
    /// The documents that were left out because there are too many.
    left_out: BTreeSet<Ref>,
    /// The documents that were deleted, or had no record or an empty one, when they were read.
    gone: BTreeSet<Ref>,
    /// Whether the machine inserts a document. Documents with its id are no duplicates of it: they are stored before it or
    /// after it.
    inserts: bool,
    /// The document that the machine's own one replaces.
    replaced: Option<Ref>,
    /// How often duplicates with one id were read again.
    read_again: u8,
}

impl<B: Body> Others<B> {
    /// At most `most` documents that share a band are read.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            met: BTreeMap::new(),
            most,
            left_out: BTreeSet::new(),
            gone: BTreeSet::new(),
            inserts: false,
            replaced: None,
            read_again: 0,
        }
    }

    /// Does the same as [`new`](Self::new) for a machine that inserts a document.
    pub(crate) fn of_insertion(most: usize) -> Self {
        Self { inserts: true, ..Self::new(most) }
    }

    /// Adds a document that shares a band.
    pub(crate) fn meet(&mut self, at: Ref) {
        if self.met.len() < self.most || self.met.contains_key(&at) || self.replaced == Some(at) {
            self.add(at);
            if let Some(other) = self.met.get_mut(&at) {
                other.shares_band = true;
            }
        } else {
            self.left_out.insert(at);
        }
    }

    /// Adds a document that must be read in any case, unless it is the one that is replaced.
    pub(crate) fn add(&mut self, at: Ref) {
        if self.replaced == Some(at) {
            return;
        }
        let other = Other { body: None, standing: Standing::Unread, shares_band: false, named_again: false };
        self.met.entry(at).or_insert(other);
    }

    /// Forgets the document that is to be replaced.
    pub(crate) fn replace(&mut self, at: Ref) {
        self.met.remove(&at);
        self.left_out.remove(&at);
        self.replaced = Some(at);
    }

    /// Adds the document again that was to be replaced.
    pub(crate) fn replace_no_more(&mut self) {
        if let Some(at) = self.replaced.take() {
            self.add(at);
        }
    }

    /// Returns how many documents were left out because there are too many.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.len() as u64
    }

    /// Returns how many documents were deleted, or had no record or an empty one, when they were read.
    pub(crate) fn gone(&self) -> usize {
        self.gone.len()
    }

    /// Returns whether a document is a duplicate of the machine's own one.
    fn is_alike(&self, found: &B, body: &B) -> bool {
        !(self.inserts && found.id() == body.id()) && found.is_alike(body)
    }

    /// Returns whether a document is a duplicate, as far as it is known.
    fn may_be_alike(&self, other: &Other<B>, body: &B) -> bool {
        other.body.as_ref().is_none_or(|found| self.is_alike(found, body))
    }

    pub(crate) fn get(&self, at: Ref) -> Option<&Other<B>> {
        self.met.get(&at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ref, &Other<B>)> {
        self.met.iter().map(|(&at, other)| (at, other))
    }

    /// Notes a record that was read.
    pub(crate) fn read(&mut self, at: Ref, found: Option<Found<B>>) {
        let head = found.as_ref().map(|found| found.head);
        let is_expired = found.as_ref().is_some_and(|found| found.expired);
        let has_lost = head.and_then(Head::successor).is_some_and(|by| self.is_lost(by));
        let has_body = found.as_ref().is_some_and(|found| found.body.is_some());
        if !has_body || head.is_some_and(|head| head.state == State::Deleted) {
            self.gone.insert(at);
        }
        let Some(other) = self.met.get_mut(&at) else { return };
        other.named_again = has_lost && head.map(Standing::Superseded) == Some(other.standing);
        other.standing = match head {
            Some(head) if head.state.is_stored() && is_expired => Standing::Expired(head),
            Some(head) if head.state == State::Sealed => Standing::Stored(head),
            Some(head) if head.state == State::Kept && has(Fault::TrustsKept) => Standing::Stored(head),
            Some(head) if head.state == State::Superseded => Standing::Superseded(head),
            head => Standing::Seen(head),
        };
        if let Some(body) = found.and_then(|found| found.body) {
            other.body = Some(body);
        }
    }

    /// Notes the answer to a write: the head that the record had instead, if it was not written.
    pub(crate) fn wrote(&mut self, at: Ref, to: Head, written: Result<(), Option<Head>>, replicated: bool) {
        let Some(other) = self.met.get_mut(&at) else { return };
        other.standing = match written {
            // There was no record when it was read, so its body is not known.
            Err(Some(_)) if other.body.is_none() => Standing::Unread,
            // Its metadata was changed, or a change of them was undone, or it is seen again or replaced.
            Err(Some(head)) if to.state.is_stored() && head.token != to.token => Standing::Unread,
            Err(Some(_)) if to.state == State::Deleted => Standing::Unread,
            // Only the record of a stored document has its verdict, and the number of the document that it has replaced.
            Err(Some(head)) if to.state == State::Aborted && head.state.is_stored() => Standing::Unread,
            Err(Some(head)) if head.state == State::Sealed => Standing::Stored(head),
            Err(head) => Standing::Seen(head),
            Ok(()) if !replicated && !has(Fault::NoWait) => Standing::Unsure(to),
            Ok(()) => match to.state {
                State::Pending => Standing::Wounded,
                State::Kept | State::Sealed => Standing::Stored(to),
                State::Aborted => Standing::Over { was_stored: false },
                State::Deleted => Standing::Over { was_stored: true },
                State::Superseded => unreachable!("only the machine's own document is named as a successor"),
            },
        };
        if matches!(other.standing, Standing::Over { .. }) {
            other.body = None;
        }
    }

    /// Forgets who was wounded: the machine itself must read all postings again.
    pub(crate) fn begin_again(&mut self) {
        for other in self.met.values_mut().filter(|other| other.standing == Standing::Wounded) {
            other.standing = Standing::Unread;
        }
    }

    /// Adds the successors of duplicates.
    pub(crate) fn add_successors(&mut self, body: &B) {
        let successor = |other: &Other<B>| match other.standing {
            Standing::Superseded(head) if self.may_be_alike(other, body) => head.successor(),
            _ => None,
        };
        let successors: Vec<_> = self.met.values().filter_map(successor).collect();
        successors.into_iter().for_each(|by| self.add(by));
    }

    /// Returns whether a successor is known not to be stored. A failover may undo this.
    fn is_lost(&self, by: Ref) -> bool {
        self.get(by).is_some_and(|by| match by.standing {
            Standing::Seen(head) => head.is_none_or(|head| head.state == State::Aborted),
            Standing::Over { was_stored } => !was_stored,
            _ => false,
        })
    }

    /// Returns what becomes of a document that names a successor.
    pub(crate) fn fate(&self, other: &Other<B>, head: Head) -> Fate {
        // Only a document that is stored for certain is replaced.
        if head.successor() == self.replaced {
            return Fate::Over;
        }
        let Some(by) = head.successor().and_then(|by| Some((by, self.get(by)?))) else { return Fate::Open };
        match by.1.standing {
            Standing::Wounded => Fate::Stored,
            Standing::Seen(Some(head)) if head.state == State::Pending => Fate::Stored,
            // Its record is removed only after this one is over. So if this one still names it, it was never stored.
            _ if self.is_lost(by.0) => {
                if other.named_again {
                    Fate::Stored
                } else {
                    Fate::Open
                }
            }
            Standing::Stored(_) | Standing::Superseded(_) | Standing::Over { .. } => Fate::Over,
            Standing::Expired(head) if head.state == State::Sealed => Fate::Over,
            Standing::Unread | Standing::Seen(_) | Standing::Unsure(_) | Standing::Expired(_) => Fate::Open,
        }
    }

    /// Returns the step after which more is known of the fate of `at`.
    pub(crate) fn ask_fate(&self, at: Ref, head: Head) -> Step<B> {
        let Some(by) = head.successor() else { return Step::read(at) };
        match self.get(by).map(|by| by.standing) {
            Some(Standing::Unsure(head)) => Step::confirm(by, head),
            Some(Standing::Seen(Some(head))) if head.state != State::Aborted => Step::confirm(by, head),
            Some(Standing::Expired(head)) => Step::confirm(by, head),
            Some(_) if self.is_lost(by) => Step::read(at),
            _ => Step::read(by),
        }
    }

    /// Returns whether a document is known to be stored for certain.
    fn is_certain(&self, other: &Other<B>) -> bool {
        match other.standing {
            Standing::Stored(_) => true,
            Standing::Superseded(head) => self.fate(other, head) == Fate::Stored,
            _ => false,
        }
    }

    /// Returns the documents that are duplicates and are stored for certain.
    pub(crate) fn matches(&self, body: &B) -> impl Iterator<Item = (Ref, &B)> {
        let certain = self.iter().filter(|(_, other)| self.is_certain(other));
        let found = certain.filter_map(|(at, other)| Some((at, other.body.as_ref()?)));
        found.filter(|(_, found)| self.is_alike(found, body))
    }

    /// Returns the reads of duplicates that have one id. One of them was replaced after it was read. If this happens again
    /// and again, or a cluster has lost writes, both are named.
    pub(crate) fn reads_of_one_id(&mut self, body: &B) -> Vec<Step<B>> {
        if self.read_again == READ_AGAIN_MAX {
            return Vec::new();
        }
        let found: Vec<_> = self.matches(body).collect();
        let mut counts = BTreeMap::new();
        found.iter().for_each(|(_, found)| *counts.entry(found.id()).or_insert(0) += 1);
        let twice = found.iter().filter(|(_, found)| counts[found.id()] > 1);
        let reads: Vec<_> = twice.map(|(at, _)| Step::read(*at)).collect();
        self.read_again += u8::from(!reads.is_empty());
        reads
    }

    /// Returns the documents that share a band with `body` and are stored, as far as it is known.
    pub(crate) fn stored(&self, body: &B) -> Vec<(Ref, &B)> {
        let stored = self.iter().filter(|(_, other)| other.standing.is_unconfirmed() || self.is_certain(other));
        let bodies = stored.filter_map(|(at, other)| Some((at, other, other.body.as_ref()?)));
        // A successor that is a duplicate may have been posted after the bands were read.
        let sharing = bodies.filter(|(_, other, found)| other.shares_band || self.is_alike(found, body));
        sharing.map(|(at, _, found)| (at, found)).collect()
    }

    /// Does the same as [`stored`](Self::stored), with copies.
    pub(crate) fn stored_ones(&self, body: &B) -> Met<B> {
        let stored = self.stored(body).into_iter().map(|(at, body)| (at, body.clone())).collect();
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
    pub(crate) fn reads_and_confirmations(&mut self, body: &B) -> Vec<Step<B>> {
        self.add_successors(body);
        let mut steps = Vec::new();
        for (at, other) in self.iter() {
            let is_alike = other.body.as_ref().is_some_and(|found| self.is_alike(found, body));
            let step = match other.standing {
                Standing::Unread => Step::read(at),
                Standing::Seen(Some(head)) | Standing::Unsure(head) if is_alike && head.state.is_stored() => {
                    Step::confirm(at, head)
                }
                Standing::Superseded(head) if is_alike && self.fate(other, head) == Fate::Open => {
                    self.ask_fate(at, head)
                }
                _ => continue,
            };
            add_once(&mut steps, step);
        }
        steps
    }

    /// Returns what is needed before the document `mine` may be stored beside this one, which shares a band with it. If
    /// this one is younger and pending, it is wounded: it gets another token, so that its server must read all postings
    /// again. If it is older, it goes first.
    pub(crate) fn needs_beside(
        &self,
        (at, other): (Ref, &Other<B>),
        mine: (Ref, &B),
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Needed<B> {
        if !self.may_be_alike(other, mine.1) {
            return Needed::Nothing;
        }
        match other.standing {
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
            Standing::Superseded(head) if self.fate(other, head) == Fate::Open => Needed::Send(self.ask_fate(at, head)),
            _ => other.needs(at, token),
        }
    }
}

/// Adds a step, unless it is there already.
pub(crate) fn add_once<B: Body>(steps: &mut Vec<Step<B>>, step: Step<B>) {
    let key = |step: &Step<B>| match step.command {
        Command::Read { at } => Some((at, None)),
        Command::Swap { at, from, .. } => Some((at, Some(from))),
        _ => None,
    };
    if !steps.iter().any(|known| key(known) == key(&step)) {
        steps.push(step);
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
            Standing::Unread => Needed::Send(Step::read(at)),
            Standing::Seen(None) => swap(None, Head::new(State::Aborted, token(None))),
            Standing::Seen(Some(head)) | Standing::Unsure(head) => match head.state {
                State::Pending => Needed::Wait(head),
                State::Kept | State::Sealed | State::Aborted | State::Deleted => swap(Some(head), head),
                State::Superseded => Needed::Send(Step::read(at)),
            },
            Standing::Expired(head) => swap(Some(head), Head::new(State::Deleted, token(Some(head)))),
            Standing::Stored(_) | Standing::Superseded(_) | Standing::Over { .. } | Standing::Wounded => {
                Needed::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of the same group are duplicates.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Doc {
        id: u8,
        group: u8,
    }

    impl Body for Doc {
        type Id = u8;

        fn id(&self) -> &u8 {
            &self.id
        }

        fn is_alike(&self, other: &Self) -> bool {
            self.group == other.group
        }

        fn repeats(&self, held: &Self) -> bool {
            self == held
        }

        fn replaces(&self) -> Option<Ref> {
            None
        }

        fn tail(&self, _: &[(Ref, &Self)], _: &[(Ref, &Self)], _: Option<(Ref, &Self)>) -> Vec<u8> {
            Vec::new()
        }
    }

    /// Returns the numbers of the candidates if document 1, a duplicate, was replaced by document 2.
    fn candidates(successor_group: u8) -> Vec<u64> {
        let (old, new, body) = (Ref(1), Ref(2), Doc { id: 9, group: 5 });
        let mut others = Others::of_insertion(10);
        others.meet(old);
        let mut read = |at, head, group| {
            others.read(at, Some(Found { head, body: Some(Doc { id: 1, group }), expired: false }));
            others.reads_and_confirmations(&body)
        };
        read(old, Head::superseded(new), body.group);
        let sealed = Head::new(State::Sealed, Token(7));
        assert!(read(new, sealed, successor_group).is_empty(), "all is known");
        others.stored(&body).into_iter().map(|(at, _)| at.0).collect()
    }

    #[test]
    fn a_successor_is_a_candidate_only_if_it_is_a_duplicate() {
        assert_eq!(candidates(5), [2]);
        assert_eq!(candidates(6), [0; 0]);
    }
}
