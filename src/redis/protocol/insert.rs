//! The insertion of one document: the claim.
//!
//! 1. The record is written as pending, the id is claimed, and all bands are probed. If a document that is stored is a
//!    duplicate, this is the answer.
//! 2. A posting is written to each band, and the band is read *after* it. Of two documents that share a band, at least
//!    one finds the other.
//! 3. Each document found like this that is a duplicate is settled: it is stored (then this one is a duplicate), or it
//!    is over, or it is older and must finish first, or it is younger and is wounded, so that it must read again.
//! 4. The record changes from pending to kept, if nobody has wounded or aborted it. Once replicas have this, the
//!    document is stored.
//!
//! If the id is held by a document that is to be replaced, that one gets this document as its successor before anything is
//! posted. It stays stored until this one is: the step from pending to kept is the moment for both. Only one document at
//! a time is a successor, and the others that are sent under the id wait for it without postings. If this document turns
//! out to be a duplicate, the old one is deleted instead.
//!
//! The machine sends no command itself. It is given answers, and says what to send next.

use super::faults::{Fault, has};
use super::known::{Claim, How, Naming, Own, Replaced};
use super::others::{Bounds, Fate, Met, Needed, Other, Others, Standing, add_once};
use super::terms::{Answer, Band, Body, Command, Head, Next, Ref, Reply, State, Step, Token};

/// The result of an insertion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Inserted<B> {
    /// The document is stored. Documents of which it is a duplicate are named if it was to be stored in any case.
    /// `replaced`: the document that held the id before. The caller then removes it (see [`rest_of_replaced`](super::rest_of_replaced)).
    Stored { beside: Vec<(Ref, B)>, met: Met<B>, replaced: Option<(Ref, B)> },
    /// The document is not stored, because it is a duplicate of `found`. `removed`: the document that held the id, which
    /// was to be replaced. It is deleted. The caller then removes it (see [`rest_of`](super::rest_of)).
    Duplicate { found: Vec<(Ref, B)>, met: Met<B>, removed: Option<(Ref, Head, B)> },
    /// The id is held by another document.
    Held { by: Ref, body: B },
    /// The document may have been stored, and deleted since.
    Unknown,
    /// The number is taken, or another server has aborted this insertion. It must begin again with another number.
    Again,
}

/// An insertion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Insert<B> {
    at: Ref,
    body: B,
    bands: u16,
    how: How,
    own: Own,
    claim: Claim,
    others: Others<B>,
    replaced: Option<Replaced<B>>,
    /// Whether each band has the posting, and was read after it, by a node whose replicas have the posting.
    posted: Vec<bool>,
    /// Whether a posting may exist.
    has_posted: bool,
    /// Whether the record may have been changed to kept.
    may_be_kept: bool,
    sent: Vec<Step<B>>,
}

impl<B: Body> Insert<B> {
    /// Begins an insertion. Returns the machine and the first commands.
    pub(crate) fn begin(at: Ref, token: Token, body: B, bounds: Bounds, how: How) -> (Self, Vec<Step<B>>) {
        let Bounds { bands, candidates_max } = bounds;
        let head = Head::new(State::Pending, token);
        let mut steps = vec![
            Step::now(Command::Create { at, head, body: body.clone() }),
            Step::waiting(Command::Claim { from: None, to: Some(at) }),
        ];
        steps.extend(Step::probes(bands));
        let machine = Self {
            at,
            body,
            bands,
            how,
            own: Own::Pending(token),
            claim: Claim::Unsure(None),
            others: Others::of_insertion(candidates_max),
            replaced: None,
            posted: vec![false; bands.into()],
            has_posted: false,
            may_be_kept: false,
            sent: steps.clone(),
        };
        (machine, steps)
    }

    /// Takes the answers to the commands that were sent, and returns what to do next. `token` makes a token that is
    /// used for nothing else.
    pub(crate) fn answered(
        &mut self,
        answers: Vec<Answer<B>>,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Inserted<B>> {
        for (step, answer) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            self.note(step, answer);
        }
        self.decide(token)
    }

    /// Goes on after [`Next::Wait`]. `expired`: the record had the head for longer than the lease.
    pub(crate) fn waited(
        &mut self,
        awaited: (Ref, Head),
        expired: bool,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Inserted<B>> {
        let mut steps = vec![Step::look_again(awaited, expired, token)];
        if self.claim == Claim::By(awaited.0) {
            // Perhaps a replaced node has named this holder, and it waits for this insertion, which holds the id.
            steps.push(Step::waiting(Command::Claim { from: Some(self.at), to: Some(self.at) }));
        }
        self.send(steps)
    }

    fn note(&mut self, step: Step<B>, Answer { reply, replicated }: Answer<B>) {
        match (step.command, reply) {
            (Command::Create { .. }, Reply::Created(created)) if !created => self.own = Own::Lost,
            (Command::Create { .. }, _) => {}
            (Command::Claim { to, .. }, Reply::Claimed(claimed)) => {
                self.claim = match claimed {
                    // The id was moved to the successor of a document that is over.
                    Ok(()) if to != Some(self.at) => Claim::By(to.expect("an insertion only claims ids")),
                    Ok(()) if replicated || has(Fault::NoWait) => Claim::Mine,
                    Ok(()) => Claim::Unsure(to),
                    Err(Some(by)) if by != self.at => Claim::By(by),
                    Err(holder) => Claim::Unsure(holder),
                };
                if let Claim::By(by) = self.claim {
                    self.others.add(by);
                }
            }
            (Command::Post { band, .. }, Reply::Postings(found)) => {
                self.posted[usize::from(band.0)] = replicated || has(Fault::NoWait);
                self.meet(found);
            }
            (Command::Probe { .. }, Reply::Postings(found)) => self.meet(found),
            (Command::Read { at }, Reply::Record(found)) => self.others.read(at, found),
            (Command::Swap { to, at, .. } | Command::Keep { to, at, .. }, Reply::Swapped(written)) if at == self.at => {
                self.own = self.own_after(to, written, replicated);
            }
            (Command::Swap { at, to, .. }, Reply::Swapped(written)) => {
                let is_replaced = self.replaced.as_ref().is_some_and(|replaced| replaced.at == at);
                if is_replaced {
                    self.named(to, written, replicated || has(Fault::NoWait));
                } else {
                    self.others.wrote(at, to, written, replicated);
                }
            }
            (command, _) => {
                unreachable!("an insertion sent another command, or got another answer: {}", command.name())
            }
        }
    }

    fn meet(&mut self, found: Vec<Ref>) {
        let at = self.at;
        found.into_iter().filter(|&found| found != at).for_each(|found| self.others.meet(found));
    }

    /// Takes the answer to a write to the document that is to be replaced.
    fn named(&mut self, to: Head, written: Result<(), Option<Head>>, replicated: bool) {
        let Some(replaced) = &mut self.replaced else { return };
        match replaced.naming_after(to, written, replicated, self.has_posted) {
            Some(naming) => replaced.naming = naming,
            None => {
                self.replaced = None;
                self.others.replace_no_more();
            }
        }
    }

    /// Returns what is known of the own record after it was to be changed to kept.
    fn own_after(&mut self, to: Head, written: Result<(), Option<Head>>, replicated: bool) -> Own {
        match written {
            Ok(()) if (replicated || has(Fault::NoWait)) && to.state == State::Aborted => Own::Lost,
            Ok(()) if replicated || has(Fault::NoWait) => Own::Kept(to),
            Ok(()) => Own::Unsure(to),
            Err(Some(head)) => match head.state {
                State::Pending if !matches!(self.own, Own::Pending(_)) => Own::Undone(head),
                State::Pending => {
                    if head.token != to.token && !has(Fault::NoSecondRead) {
                        self.wounded();
                    }
                    Own::Pending(head.token)
                }
                State::Kept if has(Fault::ForgetsItsWrites) => Own::Lost,
                // Another server has confirmed it, and perhaps deleted it since. Both are after this insertion. Or it has
                // aborted it: but the node that says so may have been replaced, and the present one may have kept it
                // before, when the command was executed the first time.
                State::Kept | State::Sealed | State::Deleted | State::Aborted | State::Superseded => Own::Unsure(head),
            },
            Err(None) if self.may_be_kept => Own::Unknown,
            Err(None) => Own::Lost,
        }
    }

    /// An older document has wounded this one, so all postings must be read again.
    fn wounded(&mut self) {
        self.posted.fill(false);
        self.others.begin_again();
    }

    fn send(&mut self, steps: Vec<Step<B>>) -> Next<B, Inserted<B>> {
        self.sent.clone_from(&steps);
        Next::Send(steps)
    }

    fn decide(&mut self, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Inserted<B>> {
        match self.own {
            Own::Lost => return self.end(Inserted::Again),
            Own::Unknown => return Next::Done { outcome: Inserted::Unknown, rest: Vec::new() },
            Own::Unsure(head) => {
                let swap = Command::Swap { at: self.at, from: Some(head), to: head };
                return self.send(vec![Step::waiting(swap)]);
            }
            Own::Undone(head) => {
                let to = Head::new(State::Aborted, head.token);
                return self.send(vec![Step::waiting(Command::Swap { at: self.at, from: Some(head), to })]);
            }
            Own::Kept(head) => return self.stored(head),
            Own::Pending(_) => {}
        }
        match self.replaced.as_ref().map(|replaced| (replaced.at, replaced.naming)) {
            Some((at, Naming::Unsure(head))) => return self.swap(at, head, head),
            Some((_, Naming::Deleted(_))) => return self.duplicate(token),
            Some((_, Naming::Lost)) => return self.end(Inserted::Again),
            _ => {}
        }
        match self.claim {
            Claim::Mine => {}
            Claim::Unsure(from) => {
                return self.send(vec![Step::waiting(Command::Claim { from, to: Some(self.at) })]);
            }
            Claim::By(by) if self.replaced.is_none() => return self.settle_holder(by, token),
            Claim::By(_) => {}
        }
        if !self.posted.iter().all(|&posted| posted) {
            return self.before_posts(token);
        }
        self.settle(token)
    }

    /// Settles the document that holds the id.
    fn settle_holder(&mut self, by: Ref, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Inserted<B>> {
        let other = self.others.get(by).expect("the holder was met").clone();
        match (other.standing, &other.body) {
            // The cluster has lost the document of the id and the number of it, which another document got then.
            (Standing::Stored(_) | Standing::Superseded(_), Some(body)) if body.id() != self.body.id() => {
                self.claim(by, self.at)
            }
            (Standing::Stored(head), Some(body)) => self.held((by, head), body.clone(), token),
            (Standing::Superseded(head), Some(body)) => {
                let body = body.clone();
                self.settle_superseded((by, head), &other, body, token)
            }
            (Standing::Over { .. }, _) => self.claim(by, self.at),
            _ => self.ask(by, &other, token),
        }
    }

    /// Settles the document that holds the id, and names a successor.
    fn settle_superseded(
        &mut self,
        (at, head): (Ref, Head),
        other: &Other<B>,
        body: B,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Inserted<B>> {
        let by = head.successor().expect("a superseded document has a successor");
        if by == self.at {
            self.others.replace(at);
            self.replaced = Some(Replaced { at, body, naming: Naming::Unsure(head) });
            return self.decide(token);
        }
        self.others.add(by);
        let successor = self.others.get(by).expect("it was added").clone();
        match (self.others.fate(other, head), successor.standing) {
            (Fate::Over, Standing::Over { .. }) => self.claim(at, self.at),
            (Fate::Over, _) => self.claim(at, by),
            (Fate::Stored, Standing::Over { .. }) => self.held((at, head), body, token),
            (Fate::Stored, _) if !self.replaces(&body) => self.held((at, head), body, token),
            // It must be certain that the successor is never stored.
            (Fate::Stored, _) => self.ask(by, &successor, token),
            (Fate::Open, _) => {
                let step = self.others.ask_fate(at, head);
                self.send(vec![step])
            }
        }
    }

    /// Goes on after it is known which stored document holds the id.
    fn held(
        &mut self,
        (by, head): (Ref, Head),
        body: B,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Inserted<B>> {
        if !self.replaces(&body) {
            return self.end(Inserted::Held { by, body });
        }
        self.others.replace(by);
        self.replaced = Some(Replaced { at: by, body, naming: Naming::Not(head) });
        self.decide(token)
    }

    fn replaces(&self, held: &B) -> bool {
        self.how.replaces && !self.body.repeats(held)
    }

    /// Sends the next command about a document that holds the id, or that is the successor of the holder; or waits for it.
    fn ask(&mut self, at: Ref, other: &Other<B>, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Inserted<B>> {
        match other.needs(at, token) {
            Needed::Send(step) => self.send(vec![step]),
            Needed::Wait(head) => Next::Wait { at, head },
            Needed::Nothing => unreachable!("a holder is never wounded, and a stored document has a body"),
        }
    }

    fn claim(&mut self, from: Ref, to: Ref) -> Next<B, Inserted<B>> {
        self.send(vec![Step::waiting(Command::Claim { from: Some(from), to: Some(to) })])
    }

    fn swap(&mut self, at: Ref, from: Head, to: Head) -> Next<B, Inserted<B>> {
        self.send(vec![Step::waiting(Command::Swap { at, from: Some(from), to })])
    }

    /// Before the postings are written, looks for a document that is stored and makes them unnecessary.
    fn before_posts(&mut self, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Inserted<B>> {
        if !self.has_posted && !self.how.beside {
            let steps = self.others.reads_and_confirmations(&self.body);
            if !steps.is_empty() {
                return self.send(steps);
            }
            if let Some(next) = self.found_duplicate(token) {
                return next;
            }
        }
        if let Some(Replaced { at, naming: Naming::Not(head), .. }) = self.replaced {
            return self.swap(at, head, Head::superseded(self.at));
        }
        let again = std::mem::replace(&mut self.has_posted, true) && !has(Fault::TrustsNoOp);
        let left = (0..self.bands).filter(|&band| !self.posted[usize::from(band)]);
        let posts = left.map(|band| Step::waiting(Command::Post { band: Band(band), at: self.at, again })).collect();
        self.send(posts)
    }

    /// Settles all documents that share a band with this one. Then this one is a duplicate, or it is stored.
    fn settle(&mut self, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Inserted<B>> {
        self.others.add_successors(&self.body);
        let (mut steps, mut wait) = (Vec::new(), None);
        for (at, other) in self.others.iter() {
            match self.others.needs_beside((at, other), (self.at, &self.body), token) {
                Needed::Nothing => {}
                Needed::Send(step) => add_once(&mut steps, step),
                Needed::Wait(head) => wait = wait.or(Some(Next::Wait { at, head })),
            }
        }
        if !steps.is_empty() {
            return self.send(steps);
        }
        if !self.how.beside
            && let Some(next) = self.found_duplicate(token)
        {
            return next;
        }
        if let Some(wait) = wait {
            return wait;
        }
        let Own::Pending(own) = self.own else { unreachable!("only a pending document is settled") };
        let (from, to) = (Head::new(State::Pending, own), Head::new(State::Kept, own));
        let beside: Vec<_> = self.others.matches(&self.body).collect();
        let replaced = self.replaced.as_ref().map(|replaced| (replaced.at, &replaced.body));
        let tail = self.body.tail(&self.others.stored(&self.body), &beside, replaced);
        self.may_be_kept = true;
        self.send(vec![Step::waiting(Command::Keep { at: self.at, from, to, body: self.body.clone(), tail })])
    }

    fn found(&self) -> Vec<(Ref, B)> {
        self.others.matches(&self.body).map(|(at, body)| (at, body.clone())).collect()
    }

    /// If there is a duplicate, goes on to the end.
    fn found_duplicate(&mut self, token: &mut dyn FnMut(Option<Head>) -> Token) -> Option<Next<B, Inserted<B>>> {
        self.others.matches(&self.body).next()?;
        let steps = self.others.reads_of_one_id(&self.body);
        Some(if steps.is_empty() { self.duplicate(token) } else { self.send(steps) })
    }

    /// Ends with a duplicate. A document that was to be replaced is deleted first.
    fn duplicate(&mut self, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Inserted<B>> {
        let removed = match self.replaced.clone() {
            None | Some(Replaced { naming: Naming::Lost, .. }) => None,
            Some(Replaced { at, body, naming: Naming::Deleted(head) }) => Some((at, head, body)),
            Some(Replaced { at, naming: Naming::Not(head) | Naming::Unsure(head) | Naming::Named(head), .. }) => {
                return self.swap(at, head, Head::new(State::Deleted, token(Some(head))));
            }
        };
        self.end(Inserted::Duplicate { found: self.found(), met: self.others.stored_ones(&self.body), removed })
    }

    fn stored(&mut self, head: Head) -> Next<B, Inserted<B>> {
        let replaced = self.replaced.take().map(|replaced| (replaced.at, replaced.body));
        let outcome = Inserted::Stored { beside: self.found(), met: self.others.stored_ones(&self.body), replaced };
        let mut rest = Vec::new();
        if head.state == State::Kept {
            let sealed = Head::new(State::Sealed, head.token);
            rest.push(Step::now(Command::Swap { at: self.at, from: Some(head), to: sealed }));
        }
        rest.extend(self.others.seals());
        Next::Done { outcome, rest: vec![rest] }
    }

    /// Returns the commands after an error. If the document may be stored, they only abort it if it is not.
    pub(crate) fn give_up(&self) -> Vec<Vec<Step<B>>> {
        if self.may_be_kept { vec![self.abort().into_iter().collect()] } else { self.rest() }
    }

    /// Returns the command that aborts the own record, if it is pending.
    fn abort(&self) -> Option<Step<B>> {
        let (Own::Pending(token) | Own::Undone(Head { token, .. })) = self.own else { return None };
        let (from, to) = (Head::new(State::Pending, token), Head::new(State::Aborted, token));
        Some(Step::now(Command::Swap { at: self.at, from: Some(from), to }))
    }

    /// Ends without a stored document.
    fn end(&mut self, outcome: Inserted<B>) -> Next<B, Inserted<B>> {
        Next::Done { outcome, rest: self.rest() }
    }

    /// Returns the commands that remove a document that is not stored. The record goes last: as long as it exists,
    /// whoever finds a posting of it learns that the document is over.
    fn rest(&self) -> Vec<Vec<Step<B>>> {
        let at = self.at;
        let mut rest = vec![Vec::new(), Vec::new(), Vec::new()];
        rest[0].extend(self.abort().into_iter().chain(self.others.seals()));
        if self.has_posted {
            rest[1].extend(Step::unposts(at, self.bands));
        }
        // After an error, the id may be claimed although no answer has said so.
        if !matches!(self.claim, Claim::By(_)) {
            rest[1].push(Step::now(Command::Claim { from: Some(at), to: None }));
        }
        if let Some(Replaced { at: old, naming: Naming::Named(head) | Naming::Unsure(head), .. }) = self.replaced
            && head == Head::superseded(at)
        {
            rest[1].push(Step::restore(old, at));
        }
        if let Own::Pending(token) = self.own {
            rest[2].push(Step::now(Command::Remove { at, head: Head::new(State::Aborted, token) }));
        }
        rest.retain(|steps| !steps.is_empty());
        rest
    }
}
