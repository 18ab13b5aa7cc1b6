//! The look at one record that no client asks for: what a server has left that was killed, and documents that are expired
//! or over. It ends what was begun, and removes what nobody needs.
//!
//! Whoever meets such a document first settles it. The look does the same, so it needs no right to do so: several servers
//! may look at one record at the same time.

use super::others::{Fate, Needed, Others, Standing};
use super::rest::{Rest, rest_of, rest_of_replaced};
use super::terms::{Answer, Body, Command, Head, Next, Ref, Reply, State, Step, Token};

/// A look at one record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sweep<B> {
    at: Ref,
    /// The document, if it was read when it was not pending. Before that, the record does not name the document that it has
    /// replaced.
    body: Option<B>,
    /// Whether the record has a document.
    has_document: bool,
    /// Its last head that was read or written.
    head: Option<Head>,
    others: Others<B>,
    /// Who holds the id, once it was asked.
    holder: Option<Option<Ref>>,
    bands: u16,
    sent: Vec<Step<B>>,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Swept {
    /// There was nothing to do, or another server must do it.
    Nothing,
    /// The document is sealed, or has no successor any more, or is over.
    Settled,
}

impl<B: Body> Sweep<B> {
    /// Begins a look at the record `at`, whose document has so many bands.
    pub(crate) fn begin(at: Ref, bands: u16) -> (Self, Vec<Step<B>>) {
        let steps = vec![Step::read(at)];
        let mut others = Others::new(0);
        others.add(at);
        (
            Self { at, body: None, has_document: false, head: None, others, holder: None, bands, sent: steps.clone() },
            steps,
        )
    }

    /// Takes the answers to the commands that were sent, and returns what to do next.
    pub(crate) fn answered(
        &mut self,
        answers: Vec<Answer<B>>,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Swept> {
        for (step, answer) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            self.note(step, answer);
        }
        let other = self.others.get(self.at).expect("it was added").clone();
        match other.standing {
            Standing::Seen(None) => done(Swept::Nothing, Vec::new()),
            // Another server, with another clock, has sealed it meanwhile.
            Standing::Stored(head) if head.state == State::Sealed => done(Swept::Nothing, Vec::new()),
            Standing::Stored(_) => {
                done(Swept::Settled, vec![self.others.seals().filter(|step| is_on(step, self.at)).collect()])
            }
            Standing::Superseded(head) => self.superseded(head, token),
            Standing::Over { was_stored } => self.over(was_stored),
            _ => match other.needs(self.at, token) {
                Needed::Send(step) => self.send(step),
                Needed::Wait(head) => Next::Wait { at: self.at, head },
                Needed::Nothing => done(Swept::Nothing, Vec::new()),
            },
        }
    }

    /// Goes on after [`Next::Wait`]. `expired`: the record had the head for longer than the lease.
    pub(crate) fn waited(
        &mut self,
        awaited: (Ref, Head),
        expired: bool,
        token: &mut dyn FnMut(Option<Head>) -> Token,
    ) -> Next<B, Swept> {
        self.send(Step::look_again(awaited, expired, token))
    }

    fn note(&mut self, step: Step<B>, Answer { reply, replicated }: Answer<B>) {
        match (step.command, reply) {
            (Command::Read { at }, Reply::Record(found)) => {
                if at == self.at {
                    self.head = found.as_ref().map(|found| found.head);
                    let body = found.as_ref().and_then(|found| found.body.clone());
                    self.has_document |= body.is_some();
                    if body.is_some() && self.head.is_some_and(|head| head.state != State::Pending) {
                        self.body = body;
                    }
                }
                self.others.read(at, found);
            }
            (Command::Swap { at, to, .. }, Reply::Swapped(written)) => {
                if at == self.at && written.is_ok() {
                    self.head = Some(to);
                }
                self.others.wrote(at, to, written, replicated);
            }
            (Command::Holder, Reply::Holder(holder)) => {
                self.holder = Some(holder);
                if let Some(holder) = holder {
                    self.others.add(holder);
                }
            }
            (command, _) => unreachable!("a look sent another command: {}", command.name()),
        }
    }

    /// Goes on with a document that names a successor.
    fn superseded(&mut self, head: Head, token: &mut dyn FnMut(Option<Head>) -> Token) -> Next<B, Swept> {
        let by = head.successor().expect("a superseded document has a successor");
        self.others.add(by);
        let other = self.others.get(self.at).expect("it was added");
        let successor = self.others.get(by).expect("it was added");
        match (self.others.fate(other, head), successor.standing) {
            (Fate::Over, _) => {
                let before = self.body.as_ref().and_then(Body::replaces);
                done(Swept::Settled, rest_of_replaced(self.at, by, before, self.bands))
            }
            (Fate::Open, _) => {
                let step = self.others.ask_fate(self.at, head);
                self.send(step)
            }
            (Fate::Stored, Standing::Over { .. }) => done(Swept::Settled, vec![vec![Step::restore(self.at, by)]]),
            (Fate::Stored, _) => match successor.needs(by, token) {
                Needed::Send(step) => self.send(step),
                Needed::Wait(_) | Needed::Nothing => done(Swept::Nothing, Vec::new()),
            },
        }
    }

    /// Removes a document that is over.
    fn over(&mut self, was_stored: bool) -> Next<B, Swept> {
        let head = self.head.expect("it was read");
        if !self.has_document {
            return done(Swept::Nothing, Vec::new());
        }
        if was_stored {
            let Some(body) = &self.body else { return self.send(Step::read(self.at)) };
            return done(Swept::Settled, rest_of(self.at, head, body.replaces(), self.bands));
        }
        // Perhaps the holder of the id has named it as its successor.
        let Some(holder) = self.holder else { return self.send(Step::holder()) };
        let mut rest = rest_of(self.at, head, None, self.bands);
        // The commands of its server may arrive late. As long as there is a record, they do not store it.
        rest.pop();
        rest.push(vec![Step::now(Command::Strip { at: self.at, head })]);
        if let Some(holder) = holder.filter(|&holder| holder != self.at) {
            match self.others.get(holder).map(|holder| holder.standing) {
                Some(Standing::Unread) => return self.send(Step::read(holder)),
                Some(Standing::Superseded(head)) if head.successor() == Some(self.at) => {
                    rest.insert(0, vec![Step::restore(holder, self.at)]);
                }
                _ => {}
            }
        }
        done(Swept::Settled, rest)
    }

    fn send(&mut self, step: Step<B>) -> Next<B, Swept> {
        self.sent = vec![step.clone()];
        Next::Send(vec![step])
    }
}

fn is_on<B>(step: &Step<B>, record: Ref) -> bool {
    matches!(step.command, Command::Swap { at, .. } if at == record)
}

fn done<B>(swept: Swept, rest: Rest<B>) -> Next<B, Swept> {
    Next::Done { outcome: swept, rest }
}
