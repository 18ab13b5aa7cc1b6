//! Runs the machines of the protocol: sends their commands, gives them the answers, waits for other servers, and removes
//! in the background what nobody needs any more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::failure::Failure;
use super::protocol::{
    Answer, Band, Check, Checked, Command, Delete, Deleted, Found, Head, How, Insert, Inserted, Next, Open, Ref, Reply,
    Rest, State, Step, Sweep, Swept, Token, Update, Updated, left,
};
use super::record::Judged;
use super::wire::{self, Wire};
use crate::telemetry::names::{self, label, value};
use crate::types::DocId;

/// A server that has not finished an insertion for so long has probably ended.
pub(super) const LEASE: Duration = Duration::from_secs(2);
/// How long too few replicas may have the writes of an operation.
const SHORT: Duration = Duration::from_secs(1);
/// The time between two looks at a document that another server is inserting.
const LOOK: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// How many commands a change of a document takes, at most.
const CHANGE_STEPS: usize = 32;
/// How many commands a look at a record takes, at most.
const SWEEP_STEPS: usize = 32;

/// How often a document is aborted again that others wound at the same time.
const TIDY_ATTEMPTS: usize = 16;

/// A machine, with the cluster and the keys of its document.
pub(super) struct Driver {
    cluster: Cluster,
    wire: Wire,
    /// The bands in which other postings were found.
    shared: BTreeSet<Band>,
    /// The number of postings of each band that were not read.
    unread: BTreeMap<Band, u64>,
    /// The documents whose shingles were read, how many bytes they had, and those whose shingles were not read because
    /// there were too many.
    whole: (BTreeSet<Ref>, u64),
    undecided: BTreeSet<Ref>,
    /// Documents that other servers were inserting when this one last read them, and since when their heads are known.
    pending: BTreeMap<Ref, (Head, Instant)>,
    awaited: Option<Ref>,
    pause: Duration,
    /// How many documents this operation has marked as deleted.
    ended: i64,
    /// Since when too few replicas have the writes that were sent last.
    short: Option<Instant>,
}

impl Driver {
    pub(super) fn new(cluster: Cluster, wire: Wire) -> Self {
        Self {
            cluster,
            wire,
            shared: BTreeSet::new(),
            unread: BTreeMap::new(),
            whole: Default::default(),
            undecided: BTreeSet::new(),
            pending: BTreeMap::new(),
            awaited: None,
            pause: LOOK[0],
            ended: 0,
            short: None,
        }
    }

    /// Inserts a document under the number `at`.
    pub(super) async fn insert(&mut self, at: Ref, body: Judged, how: How) -> Result<Inserted<Judged>, Failure> {
        let (mut machine, steps) = Insert::begin(at, token(None), body, self.wire.bounds(), how);
        let mut next = Next::Send(steps);
        loop {
            next = match next {
                Next::Send(steps) => match self.send(&steps).await {
                    Ok(answers) => machine.answered(answers, &mut token),
                    Err(failure) => {
                        self.tidy(machine.give_up());
                        return Err(failure);
                    }
                },
                Next::Wait { at, head } => {
                    let expired = self.wait((at, head)).await;
                    machine.waited((at, head), expired, &mut token)
                }
                Next::Done { outcome, rest } => {
                    self.tidy(rest);
                    return Ok(outcome);
                }
            };
        }
    }

    /// Looks a document up.
    pub(super) async fn check(&mut self, body: Judged) -> Result<Checked<Judged>, Failure> {
        let (mut machine, mut steps) = Check::begin(body, self.wire.bounds());
        loop {
            match machine.answered(self.send(&steps).await?) {
                Next::Send(more) => steps = more,
                Next::Wait { .. } => unreachable!("a lookup never waits for another server"),
                Next::Done { outcome, rest } => {
                    self.tidy(rest);
                    return Ok(outcome);
                }
            }
        }
    }

    /// Deletes the document that holds the id.
    pub(super) async fn delete(&mut self, id: DocId) -> Result<Deleted<Judged>, Failure> {
        let (mut machine, steps) = Delete::begin(id);
        let mut next = Next::Send(steps);
        loop {
            next = match next {
                Next::Send(steps) => machine.answered(self.send(&steps).await?, &mut token),
                Next::Wait { at, head } => {
                    let expired = self.wait((at, head)).await;
                    machine.waited((at, head), expired, &mut token)
                }
                Next::Done { outcome, .. } => return Ok(outcome),
            };
        }
    }

    /// Changes the document `at`, which was stored, see [`Update`]. If other servers change it again and again, it
    /// counts as gone, so that its insertion begins again.
    pub(super) async fn update(
        &mut self,
        at: Ref,
        change: &(dyn Fn(&Judged) -> Option<Judged> + Sync),
    ) -> Result<Updated<Judged>, Failure> {
        let (mut machine, mut steps) = Update::begin(at);
        for _ in 0..CHANGE_STEPS {
            match machine.answered(self.send(&steps).await?, &mut token, change) {
                Next::Send(more) => steps = more,
                Next::Wait { .. } => unreachable!("a change never waits for another server"),
                Next::Done { outcome, rest } => {
                    self.tidy(rest);
                    return Ok(outcome);
                }
            }
        }
        Ok(Updated::Gone)
    }

    /// Looks at the record `at`, which has had this head for longer than the lease. Returns the commands that remain. None: it
    /// is not settled.
    pub(super) async fn sweep(&mut self, at: Ref, seen: Head) -> Result<Option<Rest<Judged>>, Failure> {
        let (mut machine, steps) = Sweep::begin(at, self.wire.bands());
        let mut next = Next::Send(steps);
        for _ in 0..SWEEP_STEPS {
            next = match next {
                Next::Send(steps) => machine.answered(self.send(&steps).await?, &mut token),
                Next::Wait { at: awaited, head } if (awaited, head) == (at, seen) => {
                    machine.waited((at, head), true, &mut token)
                }
                // Its server goes on, or it is another one's turn.
                Next::Wait { .. } => break,
                Next::Done { outcome: Swept::Settled, rest } => return Ok(Some(rest)),
                Next::Done { outcome: Swept::Nothing, .. } => break,
            };
        }
        Ok(None)
    }

    /// Reads the records of these documents.
    pub(super) async fn records(&mut self, numbers: &[Ref]) -> Result<Vec<Option<Found<Judged>>>, Failure> {
        let reads: Vec<_> = numbers.iter().map(|&at| Step::read(at)).collect();
        let record = |reply| if let Reply::Record(record) = reply { record } else { None };
        Ok(self.send(&reads).await?.into_iter().map(|answer| record(answer.reply)).collect())
    }

    /// Returns which of these documents are over or have no record, with their heads. A failover may undo this.
    pub(super) async fn which_seem_over(&mut self, numbers: &[Ref]) -> Result<Vec<(Ref, Option<Head>)>, Failure> {
        let seem_over = numbers.iter().zip(self.records(numbers).await?).filter_map(|(&at, record)| {
            let head = record.map(|found| found.head);
            head.is_none_or(|head| head.state.is_over()).then_some((at, head))
        });
        Ok(seem_over.collect())
    }

    /// Writes that these documents are over, and returns for which of them this is certain. Those without a record get
    /// one, which says so: their servers cannot store them any more.
    pub(super) async fn make_over(&mut self, documents: &[(Ref, Option<Head>)]) -> Result<Vec<Ref>, Failure> {
        let write = |&(at, from): &(Ref, Option<Head>)| {
            let to = from.unwrap_or_else(|| Head::new(State::Aborted, token(None)));
            Step::waiting(Command::Swap { at, from, to })
        };
        let writes: Vec<_> = documents.iter().map(write).collect();
        let answers = self.send(&writes).await?;
        let over = documents.iter().zip(answers).filter(|(_, answer)| answer.replicated);
        Ok(over.map(|((at, _), _)| *at).collect())
    }

    /// Sends commands, all at once.
    pub(super) async fn send(&mut self, steps: &[Step<Judged>]) -> Result<Vec<Answer<Judged>>, Failure> {
        let requests = steps.iter().map(|step| self.wire.request(step, &self.shared)).collect();
        let responses = self.cluster.run(requests).await;
        let (mut answers, mut open) = (Vec::with_capacity(steps.len()), Vec::new());
        for (step, response) in steps.iter().zip(responses) {
            let (answer, rest) = self.wire.answer(step, response?)?;
            open.extend(rest.map(|rest| (answers.len(), rest)));
            answers.push(answer);
        }
        open.sort_by_key(|(_, rest)| Reverse(rest.matching()));
        open.retain(|(_, rest)| self.may_follow(*rest));
        let mut unread = BTreeMap::new();
        while !open.is_empty() {
            open = self.finish(open, &mut answers, &mut unread).await?;
        }
        count_conflicts(steps, &answers);
        self.ended += ended(steps, &answers);
        self.refuse_to_go_on_without_replicas(steps, &answers)?;
        for (step, answer) in steps.iter().zip(&mut answers) {
            if let (Command::Probe { band } | Command::Post { band, .. }, Reply::Postings(found)) =
                (&step.command, &mut answer.reply)
                && !found.is_empty()
            {
                self.shared.insert(*band);
                let unread = unread.get(band).unwrap_or(&0) + self.wire.bound(found);
                self.unread.insert(*band, unread);
            }
            if let (Command::Read { at }, Reply::Record(Some(found))) = (&step.command, &answer.reply) {
                if found.head.state == State::Pending {
                    self.since(*at, found.head);
                }
                if self.wire.is_undecided(found) {
                    self.undecided.insert(*at);
                }
            }
        }
        Ok(answers)
    }

    /// Returns whether the rest of a step is sent. If the shingles of very many documents would have to be compared, they
    /// are not read.
    fn may_follow(&mut self, rest: wire::Rest) -> bool {
        let wire::Rest::Whole { at, bytes, .. } = rest else { return true };
        let (read, bytes_read) = &mut self.whole;
        if read.contains(&at) {
            return true;
        }
        let has_room = read.len() < self.wire.exact_reads_max && *bytes_read < self.wire.exact_bytes_max;
        if has_room {
            read.insert(at);
            *bytes_read += bytes as u64;
        } else {
            self.undecided.insert(at);
        }
        has_room
    }

    /// Sends the next requests of steps that need several. Returns those that follow. `unread` gets the number of postings
    /// that are not read.
    async fn finish(
        &self,
        open: Vec<(usize, wire::Rest)>,
        answers: &mut [Answer<Judged>],
        unread: &mut BTreeMap<Band, u64>,
    ) -> Result<Vec<(usize, wire::Rest)>, Failure> {
        let requests = open.iter().map(|(_, rest)| self.wire.request_of_rest(*rest)).collect();
        let responses = self.cluster.run(requests).await;
        let mut left = Vec::new();
        for ((number, rest), response) in open.into_iter().zip(responses) {
            let (next, left_out) = self.wire.add_rest(rest, response?, &mut answers[number])?;
            left.extend(next.map(|next| (number, next)));
            if let wire::Rest::More { band, .. } = rest {
                unread.insert(band, left_out);
            }
        }
        Ok(left)
    }

    /// A machine sends a write again if too few replicas have it. Returns an error if this lasts.
    fn refuse_to_go_on_without_replicas(
        &mut self,
        steps: &[Step<Judged>],
        answers: &[Answer<Judged>],
    ) -> Result<(), Failure> {
        let is_short = |(step, answer): (&Step<Judged>, &Answer<Judged>)| step.waits && answer.is_short();
        if !steps.iter().zip(answers).any(is_short) {
            self.short = None;
            return Ok(());
        }
        metrics::counter!(names::REDIS_SHORT_ACKNOWLEDGEMENTS).increment(1);
        let since = *self.short.get_or_insert_with(Instant::now);
        if since.elapsed() < SHORT { Ok(()) } else { Err(Failure::TooFewReplicas { acks: self.wire.acks }) }
    }

    /// Returns how many postings, and how many sets of shingles, were left unread because there are too many.
    pub(super) fn unread(&self) -> u64 {
        self.unread.values().sum::<u64>() + self.undecided.len() as u64
    }

    /// Returns how many documents this operation has marked as deleted: expired ones, and those that are deleted instead of
    /// replaced.
    pub(super) fn ended(&self) -> i64 {
        self.ended
    }

    /// Waits a little for another server. Returns whether the record has had the same head for longer than the lease,
    /// by the clock of this machine.
    async fn wait(&mut self, (at, head): (Ref, Head)) -> bool {
        if self.since(at, head).elapsed() >= LEASE {
            self.pending.remove(&at);
            return true;
        }
        if self.awaited.replace(at) != Some(at) {
            self.pause = LOOK[0];
            metrics::counter!(names::REDIS_CONFLICTS, label::KIND => value::CONFLICT_WAIT).increment(1);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LOOK[1]);
        false
    }

    /// Returns since when this head of a pending document is known. A machine waits for one document after another. If a
    /// lease began only then, it would wait for each document of a dead server as long as for the first one.
    fn since(&mut self, at: Ref, head: Head) -> Instant {
        match self.pending.get(&at) {
            Some((known, since)) if *known == head => *since,
            _ => {
                let now = Instant::now();
                self.pending.insert(at, (head, now));
                now
            }
        }
    }

    /// Sends, in the background, the commands whose answers nobody needs. If they fail, what they would have removed
    /// stays, and is never a match.
    pub(super) fn tidy(&self, mut rest: Rest<Judged>) {
        rest.retain(|steps| !steps.is_empty());
        if rest.is_empty() {
            return;
        }
        let mut driver = Self::new(self.cluster.clone(), self.wire.clone());
        tokio::spawn(async move { driver.finish_rest(rest).await });
    }

    /// Sends these commands. Returns whether all of them were done.
    pub(super) async fn finish_rest(&mut self, rest: Rest<Judged>) -> bool {
        for steps in rest {
            let (mut open, mut attempts) = (steps.into_iter().map(Open::new).collect::<Vec<_>>(), 0);
            while !open.is_empty() {
                attempts += 1;
                let steps: Vec<_> = open.iter().map(|open| open.sent.clone()).collect();
                let Ok(answers) = self.send(&steps).await else { return false };
                match left(open, answers) {
                    Some(left) if attempts < TIDY_ATTEMPTS => open = left,
                    _ => return false,
                }
            }
        }
        true
    }
}

/// Returns how many documents these steps have marked as deleted.
fn ended(steps: &[Step<Judged>], answers: &[Answer<Judged>]) -> i64 {
    let is_end = |(step, answer): &(&Step<Judged>, &Answer<Judged>)| {
        let Command::Swap { from: Some(from), to, .. } = &step.command else { return false };
        from.state != to.state && to.state == State::Deleted && matches!(answer.reply, Reply::Swapped(Ok(())))
    };
    steps.iter().zip(answers).filter(is_end).count() as i64
}

/// Counts the documents of others that were wounded or aborted. Only their heads are waited for: an insertion that gives
/// up aborts its own document without.
fn count_conflicts(steps: &[Step<Judged>], answers: &[Answer<Judged>]) {
    for (step, answer) in steps.iter().zip(answers) {
        let Command::Swap { from: Some(from), to, .. } = &step.command else { continue };
        let is_done = step.waits && matches!(answer.reply, Reply::Swapped(Ok(())));
        let kind = match (from.state, to.state) {
            (State::Pending, State::Pending) if is_done && from != to => value::CONFLICT_WOUND,
            (State::Pending, State::Aborted) if is_done => value::CONFLICT_ABORT,
            _ => continue,
        };
        metrics::counter!(names::REDIS_CONFLICTS, label::KIND => kind).increment(1);
    }
}

fn token(_: Option<Head>) -> Token {
    Token(getrandom::u64().expect("the system has random numbers"))
}
