//! The deletion of the document that holds an id.

use super::faults::{Fault, has};
use super::terms::{Answer, Body, Command, Found, Head, Next, Ref, Reply, State, Step, Token};

/// A deletion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Delete<B: Body> {
    id: B::Id,
    known: Known,
    /// The head that marks the document as deleted, once it may have been written. It is the same in each attempt.
    mark: Option<Head>,
    /// The document that names as its successor the one that is looked at.
    old: Option<Ref>,
    /// A successor that is never stored, for certain.
    lost: Option<Ref>,
    /// Whether another deletion has marked the document.
    is_others: bool,
    /// The document that was read last.
    body: Option<(Ref, B)>,
    sent: Vec<Step<B>>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deleted<B> {
    /// This document was deleted.
    This(Ref, Head, B),
    /// Nothing was stored under the id.
    Nothing,
    /// This deletion or another one has deleted the document, and its record is removed already.
    Unknown,
}

/// What is known of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    Nothing,
    /// Nobody holds the id.
    NoHolder,
    Holder(Ref),
    Seen(Ref, Head),
    /// It is over, but replicas may not have this, or the node that says so may have been replaced. `None`: it has no
    /// record.
    Unsure(Ref, Option<Head>),
    Deleted(Ref, Head),
    /// The successor of the holder is aborted or has no record, but a failover may undo this.
    Lost(Ref, Option<Head>),
    /// The record was removed after the document may have been marked.
    Removed,
    /// The document that held the id was over before the deletion began.
    Over,
}

impl<B: Body> Delete<B> {
    /// Begins a deletion. Returns the machine and the first commands.
    pub(crate) fn begin(id: B::Id) -> (Self, Vec<Step<B>>) {
        let steps = vec![Step::now(Command::Holder)];
        (
            Self {
                id,
                known: Known::Nothing,
                mark: None,
                old: None,
                lost: None,
                is_others: false,
                body: None,
                sent: steps.clone(),
            },
            steps,
        )
    }

    /// Takes the answers to the commands that were sent, and returns what to do next. The caller then removes the
    /// postings of the document that was deleted (see [`rest_of`](super::rest_of)).
    pub(crate) fn answered(
        &mut self,
        answers: Vec<Answer<B>>,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Deleted<B>> {
        for (step, answer) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            self.note(step, answer);
        }
        let swap = |at, from, to| Step::waiting(Command::Swap { at, from, to });
        match self.known {
            Known::Nothing => self.send(vec![Step::now(Command::Holder)]),
            Known::NoHolder | Known::Over => Next::Done { outcome: Deleted::Nothing, rest: Vec::new() },
            Known::Removed => Next::Done { outcome: Deleted::Unknown, rest: Vec::new() },
            Known::Holder(at) => self.send(vec![Step::now(Command::Read { at })]),
            Known::Seen(at, head) if head.state == State::Pending => Next::Wait { at, head },
            Known::Seen(at, head) if head.successor().is_some_and(|by| self.lost != Some(by)) => {
                self.old = Some(at);
                self.send(vec![Step::read(head.successor().expect("it has one"))])
            }
            Known::Lost(at, head) => {
                let to = head.unwrap_or_else(|| Head::new(State::Aborted, token(None)));
                self.send(vec![swap(at, head, to)])
            }
            Known::Seen(at, head) => {
                let to = *self.mark.get_or_insert_with(|| Head::new(State::Deleted, token(Some(head))));
                self.send(vec![swap(at, Some(head), to)])
            }
            Known::Unsure(at, head) => {
                let to = head.unwrap_or_else(|| Head::new(State::Aborted, token(None)));
                self.send(vec![swap(at, head, to)])
            }
            Known::Deleted(at, head) => {
                let body = self.body.take().filter(|(read, _)| *read == at);
                let outcome = body.map_or(Deleted::Unknown, |(_, body)| Deleted::This(at, head, body));
                Next::Done { outcome, rest: Vec::new() }
            }
        }
    }

    /// Goes on after [`Next::Wait`]. `expired`: the record had the head for longer than the lease.
    pub(crate) fn waited(
        &mut self,
        awaited: (Ref, Head),
        expired: bool,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Deleted<B>> {
        self.send(vec![Step::look_again(awaited, expired, token)])
    }

    fn note(&mut self, step: Step<B>, Answer { reply, replicated }: Answer<B>) {
        // Only the record of a stored document names the one that it has replaced.
        if let (Command::Read { at }, Reply::Record(Some(Found { head, body: Some(body), .. }))) =
            (&step.command, &reply)
            && head.state != State::Pending
        {
            self.body = Some((*at, body.clone()));
        }
        if let Reply::Swapped(Err(Some(head))) = &reply
            && head.state == State::Deleted
        {
            self.is_others = Some(*head) != self.mark;
        }
        self.known = match (step.command, reply) {
            (Command::Holder, Reply::Holder(holder)) => holder.map_or(Known::NoHolder, Known::Holder),
            (Command::Read { .. }, Reply::Record(Some(found))) if found.expired => Known::Over,
            // The cluster has lost the document of the id and the number of it, which another document got then.
            (Command::Read { .. }, Reply::Record(Some(Found { body: Some(body), .. }))) if *body.id() != self.id => {
                Known::Over
            }
            (Command::Read { at }, Reply::Record(Some(found))) => self.seen(at, Some(found.head)),
            (Command::Read { at }, _) => self.seen(at, None),
            (Command::Swap { at, to, .. }, Reply::Swapped(written)) => match written {
                Ok(()) if to.state == State::Aborted && self.is_successor(at) => match self.old {
                    // It must still name its successor.
                    Some(old) if replicated => {
                        self.lost = Some(at);
                        Known::Holder(old)
                    }
                    _ => Known::Lost(at, Some(to)),
                },
                Ok(()) if !replicated => Known::Unsure(at, Some(to)),
                Ok(()) if Some(to) == self.mark => Known::Deleted(at, to),
                // There was no record.
                Ok(()) if self.may_be_own() && to.state == State::Aborted && !self.is_successor(at) => Known::Removed,
                Ok(()) => Known::Over,
                // The record has changed. Only that of a stored document names the one that it has replaced.
                Err(Some(head)) if !head.state.is_over() => Known::Holder(at),
                Err(head) => self.seen(at, head),
            },
            _ => unreachable!("a deletion only reads the holder and its record, and marks it"),
        };
    }

    /// Takes the head of the record, as a node has answered. `None`: there is no record.
    fn seen(&self, at: Ref, head: Option<Head>) -> Known {
        match head {
            head if self.is_successor(at) && head.is_none_or(|head| head.state == State::Aborted) => {
                Known::Lost(at, head)
            }
            Some(head) if !head.state.is_over() => Known::Seen(at, head),
            // Perhaps the mark was written, or the node that answers has been replaced.
            _ if self.mark.is_some() && !has(Fault::ForgetsItsWrites) => Known::Unsure(at, head),
            _ => Known::Over,
        }
    }

    /// Returns whether this deletion may have deleted a document whose record is removed.
    fn may_be_own(&self) -> bool {
        self.mark.is_some() && !self.is_others
    }

    fn is_successor(&self, at: Ref) -> bool {
        self.old.is_some_and(|old| old != at)
    }

    fn send(&mut self, steps: Vec<Step<B>>) -> Next<B, Deleted<B>> {
        self.sent.clone_from(&steps);
        Next::Send(steps)
    }
}
