//! The commands that are left when a machine has ended: they remove what is no longer needed, one list after the other.
//! Nobody waits for them, but their order matters: a record goes only when nothing leads to it any more.

use super::terms::{Answer, Command, Head, Ref, Reply, State, Step, Token};

/// Lists of commands. Each list is sent after the answers of the one before.
pub(crate) type Rest<B> = Vec<Vec<Step<B>>>;

/// Returns the commands that remove a deleted document. Its record goes last: as long as it exists, whoever finds a
/// posting of it learns that the document is deleted. `replaced`: the document that it has replaced. It counts as over
/// only as long as the record of its successor exists, so it is ended first.
pub(crate) fn rest_of<B>(at: Ref, head: Head, replaced: Option<Ref>, bands: u16) -> Rest<B> {
    let mut steps: Vec<_> = Step::unposts(at, bands).collect();
    let release = |from: Ref| Step::now(Command::Claim { from: Some(from), to: None });
    steps.extend([at].into_iter().chain(replaced).map(release));
    steps.extend(replaced.map(|old| Step::finalize(old, at)));
    let mut last = vec![Step::now(Command::Remove { at, head })];
    last.extend(replaced.map(|old| Step::now(Command::Remove { at: old, head: absent(at) })));
    vec![steps, last]
}

/// Returns the commands that remove the document `old`, after the document `by` has replaced it. `before`: the document
/// that `old` itself has replaced. Its record goes last, when the id leads to its successor.
pub(crate) fn rest_of_replaced<B>(old: Ref, by: Ref, before: Option<Ref>, bands: u16) -> Rest<B> {
    let moved = Step::waiting(Command::Claim { from: Some(old), to: Some(by) });
    let first = before.map(|before| Step::finalize(before, old)).into_iter().chain([moved]).collect();
    let mut last = vec![Step::now(Command::Remove { at: old, head: Head::superseded(by) })];
    last.extend(before.map(|before| Step::now(Command::Remove { at: before, head: absent(old) })));
    vec![first, Step::unposts(old, bands).collect(), last]
}

/// Returns the head of the record that is written if a replaced document has none. `by` is its successor.
fn absent(by: Ref) -> Head {
    Head::new(State::Aborted, Token(by.0))
}

/// A command of the rest that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Open<B> {
    /// What must be done.
    wanted: Step<B>,
    /// What was sent to do it, or to make sure that it is done.
    pub sent: Step<B>,
}

impl<B: Clone> Open<B> {
    pub(crate) fn new(wanted: Step<B>) -> Self {
        Self { sent: wanted.clone(), wanted }
    }

    fn then(self, command: Command<B>) -> Self {
        let sent = Step { command, waits: self.wanted.waits };
        Self { sent, ..self }
    }

    /// Returns what must be sent next, if anything. `Err`: it cannot be done.
    fn after(self, Answer { reply, replicated }: Answer<B>) -> Result<Option<Self>, ()> {
        let (wanted, waits) = (self.wanted.command.clone(), self.wanted.waits);
        Ok(Some(match (wanted, reply) {
            // Another document has wounded it meanwhile. If it stayed pending, younger documents that have read its
            // postings would wait for the end of its lease.
            (Command::Swap { at, to, .. }, Reply::Swapped(Err(Some(head))))
                if to.state == State::Aborted && head.state == State::Pending =>
            {
                self.then(Command::Swap { at, from: Some(head), to })
            }
            _ if !waits || replicated => return Ok(None),
            (Command::Swap { at, from, to }, Reply::Swapped(written)) => {
                let head = match (written, &self.sent.command) {
                    (Ok(()), Command::Swap { to, .. }) => Some(*to),
                    (Ok(()), _) => return Err(()),
                    (Err(head), _) => head,
                };
                match head {
                    // A node that was replaced has answered before.
                    _ if head == from => self.then(Command::Swap { at, from, to }),
                    // The node that says so may have been replaced.
                    Some(_) => self.then(Command::Swap { at, from: head, to: head.unwrap_or(to) }),
                    None if to.state == State::Sealed => return Err(()),
                    None => self.then(Command::Swap { at, from: None, to: absent(Ref(to.token.0)) }),
                }
            }
            (Command::Claim { from, to }, Reply::Claimed(claimed)) => {
                let holder = match (claimed, &self.sent.command) {
                    (Ok(()), Command::Claim { to, .. }) => *to,
                    (Ok(()), _) => return Err(()),
                    (Err(holder), _) => holder,
                };
                match holder {
                    _ if holder == from => self.then(Command::Claim { from, to }),
                    None => return Err(()),
                    Some(_) => self.then(Command::Claim { from: holder, to: holder }),
                }
            }
            _ => return Err(()),
        }))
    }
}

/// Returns the commands that must be sent before the next list: a write counts only when replicas have it. `None`: the
/// other lists must not be sent.
pub(crate) fn left<B: Clone>(open: Vec<Open<B>>, answers: Vec<Answer<B>>) -> Option<Vec<Open<B>>> {
    let after = open.into_iter().zip(answers).map(|(open, answer)| open.after(answer));
    after.filter_map(Result::transpose).collect::<Result<_, _>>().ok()
}
