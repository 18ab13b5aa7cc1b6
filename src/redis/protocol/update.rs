//! A change of the metadata of a stored document.
//!
//! The whole record is replaced, if it still has the head that was read. The new record has another token, so the change
//! is made once, even if the command is executed twice. The new record is kept, not sealed, so each reader confirms it
//! first, and a failover never undoes a sealed record. The document is stored all the time, so other insertions need not
//! know of the change.

use super::terms::{Answer, Body, Command, Found, Head, Next, Ref, Reply, State, Step, Token};

/// A change of a stored document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Update<B> {
    at: Ref,
    known: Known<B>,
    /// Whether the record may have been replaced.
    may_be_changed: bool,
    sent: Vec<Step<B>>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Updated<B> {
    Changed(B),
    /// There was nothing to change.
    Unchanged(B),
    /// The document is not stored any more.
    Gone,
}

/// What is known of the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Known<B> {
    Nothing,
    Seen(Head, B),
    /// It was written, but replicas may not have it.
    Unsure(Head, B),
    Certain(Head, B),
    Gone,
}

impl<B: Body> Update<B> {
    /// Begins a change of a document that was stored. Returns the machine and the first commands.
    pub(crate) fn begin(at: Ref) -> (Self, Vec<Step<B>>) {
        let steps = vec![Step::read(at)];
        (Self { at, known: Known::Nothing, may_be_changed: false, sent: steps.clone() }, steps)
    }

    /// Takes the answers to the commands that were sent, and returns what to do next. `change` returns the changed
    /// document, or nothing if it need not be changed.
    pub(crate) fn answered(
        &mut self,
        answers: Vec<Answer<B>>,
        token: &mut dyn FnMut(Option<Head>) -> Token,
        change: &dyn Fn(&B) -> Option<B>,
    ) -> Next<B, Updated<B>> {
        for (step, answer) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            self.note(step, answer);
        }
        let at = self.at;
        match self.known.clone() {
            Known::Nothing => self.send(Step::read(at)),
            Known::Gone => Next::Done { outcome: Updated::Gone, rest: Vec::new() },
            Known::Seen(from, body) => match change(&body) {
                Some(body) => {
                    self.may_be_changed = true;
                    let to = Head::new(State::Kept, token(Some(from)));
                    self.send(Step::waiting(Command::Rewrite { at, from, to, body }))
                }
                None if from.state == State::Sealed => self.end(from, body),
                None => self.send(Step::waiting(Command::Swap { at, from: Some(from), to: from })),
            },
            Known::Unsure(head, _) => self.send(Step::waiting(Command::Swap { at, from: Some(head), to: head })),
            Known::Certain(head, body) => self.end(head, body),
        }
    }

    fn note(&mut self, step: Step<B>, Answer { reply, replicated }: Answer<B>) {
        let held = match std::mem::replace(&mut self.known, Known::Nothing) {
            Known::Seen(_, body) | Known::Unsure(_, body) | Known::Certain(_, body) => Some(body),
            Known::Nothing | Known::Gone => None,
        };
        self.known = match (step.command, reply) {
            (_, Reply::Record(Some(Found { head, body: Some(body), expired: false }))) if head.state.is_stored() => {
                Known::Seen(head, body)
            }
            (_, Reply::Record(_)) => Known::Gone,
            (Command::Rewrite { to, body, .. }, Reply::Swapped(written)) => after(to, body, written, replicated),
            (Command::Swap { to, .. }, Reply::Swapped(written)) => {
                after(to, held.expect("only a record that was read is confirmed"), written, replicated)
            }
            _ => unreachable!("a change only reads, replaces and confirms the record"),
        };
    }

    fn end(&self, head: Head, body: B) -> Next<B, Updated<B>> {
        let sealed = Head::new(State::Sealed, head.token);
        let seal = Step::now(Command::Swap { at: self.at, from: Some(head), to: sealed });
        let rest = if head.state == State::Kept { vec![vec![seal]] } else { Vec::new() };
        let outcome = if self.may_be_changed { Updated::Changed(body) } else { Updated::Unchanged(body) };
        Next::Done { outcome, rest }
    }

    fn send(&mut self, step: Step<B>) -> Next<B, Updated<B>> {
        self.sent = vec![step.clone()];
        Next::Send(vec![step])
    }
}

/// Returns what is known after a record was to get this head and this body.
fn after<B>(to: Head, body: B, written: Result<(), Option<Head>>, replicated: bool) -> Known<B> {
    match written {
        Ok(()) if replicated => Known::Certain(to, body),
        Ok(()) => Known::Unsure(to, body),
        // Another server has confirmed it.
        Err(Some(head)) if head == Head::new(State::Sealed, to.token) => Known::Certain(head, body),
        // The command was sent twice, and the first one has done it.
        Err(Some(head)) if head == to => Known::Unsure(to, body),
        Err(Some(head)) if !head.state.is_over() => Known::Nothing,
        Err(_) => Known::Gone,
    }
}
