//! A lookup. It names only documents that no failover undoes, so it may write to a record that is not sealed yet.

use super::others::{Bounds, Met, Others};
use super::terms::{Answer, Body, Command, Next, Ref, Reply, Step};

/// A lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Check<B> {
    body: B,
    others: Others<B>,
    bands: u16,
    /// How many documents were known to be gone when the bands were read last.
    gone: usize,
    sent: Vec<Step<B>>,
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Checked<B> {
    /// The documents that are duplicates and are stored.
    pub found: Vec<(Ref, B)>,
    pub met: Met<B>,
}

impl<B: Body> Check<B> {
    /// Begins a lookup. Returns the machine and the first commands.
    pub(crate) fn begin(body: B, bounds: Bounds) -> (Self, Vec<Step<B>>) {
        let Bounds { bands, candidates_max } = bounds;
        let steps: Vec<_> = Step::probes(bands).collect();
        (Self { body, others: Others::new(candidates_max), bands, gone: 0, sent: steps.clone() }, steps)
    }

    /// Takes the answers to the commands that were sent, and returns what to do next.
    pub(crate) fn answered(&mut self, answers: Vec<Answer<B>>) -> Next<B, Checked<B>> {
        for (step, Answer { reply, replicated }) in std::mem::take(&mut self.sent).into_iter().zip(answers) {
            match (step.command, reply) {
                (_, Reply::Postings(found)) => found.into_iter().for_each(|at| self.others.meet(at)),
                (Command::Read { at }, Reply::Record(found)) => self.others.read(at, found),
                (Command::Swap { at, to, .. }, Reply::Swapped(written)) => {
                    self.others.wrote(at, to, written, replicated);
                }
                _ => unreachable!("a lookup only probes, reads and confirms"),
            }
        }
        let mut steps = self.others.reads_and_confirmations(&self.body);
        // A document that is gone may have been replaced, and its successor posted, after the bands were read.
        if self.others.gone() > self.gone {
            self.gone = self.others.gone();
            steps.extend(Step::probes(self.bands));
        }
        if steps.is_empty() {
            steps = self.others.reads_of_one_id(&self.body);
        }
        if steps.is_empty() {
            let owned = |(at, body): (Ref, &B)| (at, body.clone());
            let found = self.others.matches(&self.body).map(owned).collect();
            let outcome = Checked { found, met: self.others.stored_ones(&self.body) };
            return Next::Done { outcome, rest: vec![self.others.seals().collect()] };
        }
        self.sent.clone_from(&steps);
        Next::Send(steps)
    }
}
