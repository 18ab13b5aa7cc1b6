//! The deletion of the document that holds an id.

use super::faults::{Fault, has};
use super::terms::{Answer, Body, Command, Head, Next, Ref, Reply, State, Step, Token};

/// A deletion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Delete<B> {
    known: Known<B>,
    /// The head that marks the document as deleted, once it may have been written. It is the same in each attempt.
    mark: Option<Head>,
    sent: Vec<Step<B>>,
}

/// What is known of the document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Known<B> {
    Nothing,
    /// Nobody holds the id.
    NoHolder,
    Holder(Ref),
    Seen(Ref, Head, Option<B>),
    /// It is over, but replicas may not have this, or the node that says so may have been replaced. `None`: it has no
    /// record.
    Unsure(Ref, Option<Head>, Option<B>),
    Deleted(Ref, Head, Option<B>),
    /// The document that held the id was over before the deletion began.
    Over,
}

impl<B: Body> Delete<B> {
    /// Begins a deletion. Returns the machine and the first commands.
    pub(crate) fn begin() -> (Self, Vec<Step<B>>) {
        let steps = vec![Step::now(Command::Holder)];
        (Self { known: Known::Nothing, mark: None, sent: steps.clone() }, steps)
    }

    /// Takes the answers to the commands that were sent, and returns what to do next. The result is the document that
    /// was deleted, if the id was stored. The caller then removes its postings (see [`rest_of`]).
    pub(crate) fn answered(
        &mut self,
        answers: Vec<Answer<B>>,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Option<(Ref, Head, B)>> {
        for (step, answer) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            self.note(step, answer);
        }
        let swap = |at, from, to| Step::waiting(Command::Swap { at, from, to });
        match self.known.clone() {
            Known::Nothing => self.send(vec![Step::now(Command::Holder)]),
            Known::NoHolder | Known::Over => Next::Done { outcome: None, rest: Vec::new() },
            Known::Holder(at) => self.send(vec![Step::now(Command::Read { at })]),
            Known::Seen(at, head, _) if head.state == State::Pending => Next::Wait { at, head },
            Known::Seen(at, head, _) => {
                let to = *self.mark.get_or_insert_with(|| Head::new(State::Deleted, token(Some(head))));
                self.send(vec![swap(at, Some(head), to)])
            }
            Known::Unsure(at, head, _) => {
                let to = head.unwrap_or_else(|| Head::new(State::Aborted, token(None)));
                self.send(vec![swap(at, head, to)])
            }
            Known::Deleted(at, head, body) => {
                Next::Done { outcome: body.map(|body| (at, head, body)), rest: Vec::new() }
            }
        }
    }

    /// Goes on after [`Next::Wait`]. `expired`: the record had the head for longer than the lease.
    pub(crate) fn waited(
        &mut self,
        awaited: (Ref, Head),
        expired: bool,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Option<(Ref, Head, B)>> {
        self.send(vec![Step::look_again(awaited, expired, token)])
    }

    fn note(&mut self, step: Step<B>, Answer { reply, replicated }: Answer<B>) {
        let body = match &self.known {
            Known::Seen(_, _, body) | Known::Unsure(_, _, body) | Known::Deleted(_, _, body) => body.clone(),
            _ => None,
        };
        self.known = match (step.command, reply) {
            (Command::Holder, Reply::Holder(holder)) => holder.map_or(Known::NoHolder, Known::Holder),
            (Command::Read { at }, Reply::Record(Some(found))) => self.seen(at, Some(found.head), found.body.or(body)),
            (Command::Read { at }, _) => self.seen(at, None, body),
            (Command::Swap { at, to, .. }, Reply::Swapped(written)) => match written {
                Ok(()) if !replicated => Known::Unsure(at, Some(to), body),
                Ok(()) if Some(to) == self.mark => Known::Deleted(at, to, body),
                Ok(()) => Known::Over,
                Err(head) => self.seen(at, head, body),
            },
            _ => unreachable!("a deletion only reads the holder and its record, and marks it"),
        };
    }

    /// Takes the head of the record, as a node has answered. `None`: there is no record.
    fn seen(&self, at: Ref, head: Option<Head>, body: Option<B>) -> Known<B> {
        match head {
            Some(head) if !head.state.is_over() => Known::Seen(at, head, body),
            // Perhaps the mark was written, or the node that answers has been replaced.
            _ if self.mark.is_some() && !has(Fault::ForgetsItsWrites) => Known::Unsure(at, head, body),
            _ => Known::Over,
        }
    }

    fn send(&mut self, steps: Vec<Step<B>>) -> Next<B, Option<(Ref, Head, B)>> {
        self.sent.clone_from(&steps);
        Next::Send(steps)
    }
}

/// Returns the commands that remove a deleted document. Its record goes last: as long as it exists, whoever finds a
/// posting of it learns that the document is deleted.
pub(crate) fn rest_of<B>(at: Ref, head: Head, bands: u16) -> Vec<Vec<Step<B>>> {
    let mut steps: Vec<_> = Step::unposts(at, bands).collect();
    steps.push(Step::now(Command::Claim { from: Some(at), to: None }));
    vec![steps, vec![Step::now(Command::Remove { at, head })]]
}
