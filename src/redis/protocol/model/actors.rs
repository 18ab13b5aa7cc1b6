//! The servers of the model: each runs one machine of the protocol, and its commands are under way.

use std::rc::Rc;

use super::super::faults::{Fault, has};
use super::super::terms::{Answer, Body, Command, Head, Next, Ref, Step, Token};
use super::super::{Bounds, Check, Delete, Deleted, Insert, Open, Rest, Sweep, Update, Updated, left, rest_of};
use super::flights::{Flight, Way, flights, is_read};
use super::given::{Given, Outcome, Same, Task};
use super::outcomes::{ended, expire, refs};
use super::pool::{TOKENS, TOKENS_EACH};
use super::world::{Doc, Key, Node, World};

/// The numbers of an actor's documents: the actor's own number plus a multiple of this.
const NUMBERS: u64 = 10;
/// How often an insertion may begin again.
const RESTARTS_MAX: u8 = 2;
/// The document that is changed, or looked at.
const CHANGED: Ref = Ref(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Machine {
    Insert(Insert<Doc>),
    Delete(Delete<Doc>),
    Check(Check<Doc>),
    Update(Update<Doc>),
    Sweep(Sweep<Doc>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Doing {
    NotBegun,
    Flying(Machine, Vec<Flight>),
    Waiting(Machine, Ref, Head),
    /// The client has its answer.
    Ended {
        outcome: Outcome,
        flights: Vec<Flight>,
        /// The commands that `flights` are to do.
        open: Vec<Open<Doc>>,
        rest: Rest<Doc>,
    },
    Killed,
    /// The insertion has begun again too often for this model.
    Pruned,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    number: u8,
    given: Same<Given>,
    doing: Doing,
    restarts: u8,
    /// Commands whose answers are lost. A node may still execute them at any time, or never.
    orphans: Vec<Command<Doc>>,
    /// All writes that were sent, if one of them may be executed a second time.
    sent: Vec<Command<Doc>>,
}

/// What a step depends on besides the actor and the world.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// The tokens that are somewhere in the state, one bit each.
    pub tokens: u64,
    /// Whether a command may be executed a second time.
    pub copies: bool,
    /// Whether an attempt that begins again is removed. Otherwise the commands that remove it are never executed.
    pub removals: bool,
    /// Whether a primary that was replaced may answer.
    pub olds: bool,
}

impl Around {
    /// Returns a token that is nowhere in the state. As tokens are only compared, it is as good as one that never was.
    fn token(&mut self, number: u8, head: Option<Head>) -> Token {
        if has(Fault::CountsTokens) {
            return Token(head.map_or(1, |head| head.token.0 + 1));
        }
        let first = u64::from(number) * TOKENS_EACH;
        let count = (0..TOKENS_EACH).find(|count| self.tokens & 1 << (first + count) == 0).expect("a token is free");
        self.tokens |= 1 << (first + count);
        Token(TOKENS * u64::from(number + 1) + count)
    }
}

/// A command that goes one step on: one of the flights, or one of the orphans, or a copy of one that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sent {
    Flight(usize, Node),
    Orphan(usize, Node),
    Copy(usize, Node),
}

impl Actor {
    pub(super) fn new(number: usize, given: Given) -> Self {
        Self {
            number: number as u8,
            given: Same(Rc::new(given)),
            doing: Doing::NotBegun,
            restarts: 0,
            orphans: Vec::new(),
            sent: Vec::new(),
        }
    }

    pub(super) fn given(&self) -> &Given {
        &self.given.0
    }

    pub(super) fn outcome(&self) -> Option<&Outcome> {
        match &self.doing {
            Doing::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Ended { .. } | Doing::Killed | Doing::Pruned)
    }

    pub(super) fn is_pruned(&self) -> bool {
        self.doing == Doing::Pruned
    }

    pub(super) fn may_begin(&self) -> bool {
        self.doing == Doing::NotBegun
    }

    /// Returns whether this actor inserts the document `at`, and goes on with it.
    pub(super) fn works_on(&self, at: Ref) -> bool {
        !self.is_over() && self.own() == at
    }

    /// Returns whether `token` was made by this actor.
    pub(super) fn has_made(&self, token: Token) -> bool {
        token.0 / TOKENS == u64::from(self.number) + 1
    }

    /// Returns whether a document is one of this actor's, perhaps of an earlier attempt.
    pub(super) fn owns(&self, at: Ref) -> bool {
        at.0 % NUMBERS == u64::from(self.number) + 1
    }

    /// Returns the document that this actor waits for.
    pub(super) fn waits_for(&self) -> Option<(Ref, Head)> {
        match self.doing {
            Doing::Waiting(_, at, head) => Some((at, head)),
            _ => None,
        }
    }

    fn own(&self) -> Ref {
        Ref(u64::from(self.number) + 1 + NUMBERS * u64::from(self.restarts))
    }

    pub(super) fn key(&self, command: &Command<Doc>) -> Key {
        match command {
            Command::Create { at, .. } | Command::Swap { at, .. } | Command::Read { at } => Key::Record(*at),
            Command::Keep { at, .. } | Command::Rewrite { at, .. } => Key::Record(*at),
            Command::Remove { at, .. } | Command::Strip { at, .. } => Key::Record(*at),
            Command::Claim { .. } | Command::Holder => Key::Id(self.given().id),
            Command::Probe { band } | Command::Post { band, .. } | Command::Unpost { band, .. } => {
                Key::Band(self.given().bands[usize::from(band.0)])
            }
        }
    }

    pub(super) fn flights(&self) -> &[Flight] {
        match &self.doing {
            Doing::Flying(_, flights) | Doing::Ended { flights, .. } => flights,
            _ => &[],
        }
    }

    pub(super) fn begin(&mut self, around: &mut Around) {
        let (number, given) = (self.number, self.given.clone().0);
        let bounds = Bounds { bands: given.bands.len() as u16, candidates_max: 100 };
        let (machine, steps) = match given.task {
            Task::Insert(how) => {
                let token = around.token(number, None);
                let (insert, steps) = Insert::begin(self.own(), token, given.doc, bounds, how);
                (Machine::Insert(insert), steps)
            }
            Task::Delete => {
                let (delete, steps) = Delete::begin(given.id);
                (Machine::Delete(delete), steps)
            }
            Task::Check => {
                let (check, steps) = Check::begin(given.doc, bounds);
                (Machine::Check(check), steps)
            }
            Task::Sweep => {
                let (sweep, steps) = Sweep::begin(CHANGED, given.bands.len() as u16);
                (Machine::Sweep(sweep), steps)
            }
            Task::Update => {
                let (update, steps) = Update::begin(CHANGED);
                (Machine::Update(update), steps)
            }
        };
        self.doing = Doing::Flying(machine, self.flying(steps, *around));
    }

    /// Sends commands.
    fn flying(&mut self, steps: Vec<Step<Doc>>, around: Around) -> Vec<Flight> {
        if around.copies {
            for Step { command, .. } in &steps {
                if !is_read(command) && !self.sent.contains(command) {
                    self.sent.push(command.clone());
                }
            }
        }
        flights(steps)
    }

    /// Its server is killed. The commands that it has sent may still be run.
    pub(super) fn kill(&mut self) {
        self.abandon();
        (self.doing, self.restarts) = (Doing::Killed, 0);
    }

    /// Returns whether a request of this actor may fail.
    pub(super) fn may_fail(&self) -> bool {
        matches!(self.doing, Doing::Flying(..))
    }

    /// A node has not answered in time. The commands that were sent may still be run.
    pub(super) fn fail(&mut self, around: Around) {
        let rest = match &self.doing {
            Doing::Flying(Machine::Insert(insert), _) => insert.give_up(),
            _ => Vec::new(),
        };
        self.abandon();
        self.end(Outcome::Unknown, rest, around);
    }

    fn abandon(&mut self) {
        let waits = |flight: &&Flight| flight.way == Way::Sent && !is_read(&flight.step.command);
        let left: Vec<_> = self.flights().iter().filter(waits).map(|flight| flight.step.command.clone()).collect();
        self.orphans.extend(left);
    }

    fn end(&mut self, outcome: Outcome, mut rest: Rest<Doc>, around: Around) {
        let first = if rest.is_empty() { Vec::new() } else { rest.remove(0) };
        self.go_on(outcome, first.into_iter().map(Open::new).collect(), rest, around);
    }

    fn go_on(&mut self, outcome: Outcome, open: Vec<Open<Doc>>, rest: Rest<Doc>, around: Around) {
        let flights = self.flying(open.iter().map(|open| open.sent.clone()).collect(), around);
        (self.doing, self.restarts) = (Doing::Ended { outcome, flights, open, rest }, 0);
    }

    /// Drops the commands that can have no effect any more: the document that they remove is not there, and none of the
    /// commands under way writes it there.
    pub(super) fn drop_orphans(&self, world: &World) -> Option<Self> {
        let writes = |at: Ref, key: Key| {
            let is_it = |command: &&Command<Doc>| match command {
                Command::Post { at: posted, .. } => *posted == at && self.key(command) == key,
                Command::Claim { to, .. } => *to == Some(at) && self.key(command) == key,
                _ => false,
            };
            self.left().find(is_it).is_some() || self.flights().iter().any(|flight| is_it(&&flight.step.command))
        };
        let is_vain = |command: &Command<Doc>| {
            let at = match command {
                Command::Unpost { at, .. } | Command::Claim { from: Some(at), to: None } => *at,
                _ => return false,
            };
            let key = self.key(command);
            !writes(at, key) && !world.keys_that_name(at).any(|other| other == key)
        };
        let is_any = self.orphans.iter().any(is_vain);
        is_any.then(|| {
            let orphans = self.orphans.iter().filter(|command| !is_vain(command)).cloned().collect();
            Self { orphans, ..self.clone() }
        })
    }

    /// Forgets which commands were sent, because none of them is executed again.
    pub(super) fn forget_sent(&self) -> Option<Self> {
        (!self.sent.is_empty()).then(|| Self { sent: Vec::new(), ..self.clone() })
    }

    /// Goes on after it has waited.
    pub(super) fn waited(&mut self, expired: bool, around: &mut Around) {
        let Doing::Waiting(mut machine, at, head) = std::mem::replace(&mut self.doing, Doing::Pruned) else {
            unreachable!("it does not wait")
        };
        let number = self.number;
        let mut token = |head: Option<Head>| around.token(number, head);
        let steps = match &mut machine {
            Machine::Insert(insert) => sent(insert.waited((at, head), expired, &mut token)),
            Machine::Delete(delete) => sent(delete.waited((at, head), expired, &mut token)),
            Machine::Sweep(sweep) => sent(sweep.waited((at, head), expired, &mut token)),
            Machine::Check(_) | Machine::Update(_) => unreachable!("it never waits"),
        };
        self.doing = Doing::Flying(machine, self.flying(steps, *around));
    }

    /// Returns every command that can go one step on.
    pub(super) fn commands(&self, world: &World, around: Around) -> Vec<Sent> {
        let mut commands = Vec::new();
        let nodes = |command: &Command<Doc>| world.nodes(self.key(command));
        for (at, flight) in self.flights().iter().enumerate() {
            let nodes = flight.nodes(world, self.key(&flight.step.command));
            let may_ask = |&node: &Node| around.olds || !is_old(flight, node, nodes.len());
            commands.extend(nodes.iter().copied().filter(may_ask).map(|node| Sent::Flight(at, node)));
        }
        for (at, command) in self.orphans.iter().enumerate() {
            commands.extend(nodes(command).iter().map(|&node| Sent::Orphan(at, node)));
        }
        if around.copies {
            for (at, command) in self.sent.iter().enumerate() {
                commands.extend(nodes(command).iter().map(|&node| Sent::Copy(at, node)));
            }
        }
        commands
    }

    /// Returns whether a primary that was replaced runs the command, and its answer is used.
    pub(super) fn asks_old(&self, sent: Sent, world: &World) -> bool {
        let Sent::Flight(at, node) = sent else { return false };
        let flight = &self.flights()[at];
        is_old(flight, node, world.nodes(self.key(&flight.step.command)).len())
    }

    /// Lets a command go one step on. Returns the world after it if it differs; `None` if nothing has happened.
    pub(super) fn advance(&mut self, sent: Sent, world: &World, around: &mut Around) -> Option<Option<World>> {
        match sent {
            Sent::Flight(at, node) => {
                let key = self.key(&self.flights()[at].step.command);
                let (Doing::Flying(_, flights) | Doing::Ended { flights, .. }) = &mut self.doing else {
                    unreachable!("it has flights")
                };
                let after = flights[at].advance(world, key, node);
                self.take_answers(around);
                Some(after)
            }
            Sent::Orphan(at, node) => {
                let command = self.orphans.remove(at);
                Some(world.run(&command, self.key(&command), node).1)
            }
            Sent::Copy(at, node) => {
                let command = &self.sent[at];
                let after = world.run(command, self.key(command), node).1?;
                Some(Some(after))
            }
        }
    }

    /// Says which command goes one step on.
    pub(super) fn told(&self, sent: Sent) -> String {
        let (command, how, node) = match sent {
            Sent::Flight(at, node) => (&self.flights()[at].step.command, format!("{:?}", self.flights()[at].way), node),
            Sent::Orphan(at, node) => (&self.orphans[at], "late".to_owned(), node),
            Sent::Copy(at, node) => (&self.sent[at], "once more".to_owned(), node),
        };
        format!("{} {command:?} {how} at {node:?} {:?}", self.number, self.key(command))
    }

    /// If all commands are answered, gives the answers to the machine.
    fn take_answers(&mut self, around: &mut Around) {
        if !self.flights().iter().all(Flight::is_answered) {
            return;
        }
        match std::mem::replace(&mut self.doing, Doing::Pruned) {
            Doing::Ended { outcome, flights, open, rest } => {
                let answers = flights.into_iter().filter_map(Flight::ended).map(|(_, answer)| answer).collect();
                match left(open, answers) {
                    Some(open) if open.is_empty() => self.end(outcome, rest, *around),
                    Some(open) => self.go_on(outcome, open, rest, *around),
                    None => self.end(outcome, Vec::new(), *around),
                }
            }
            Doing::Flying(machine, flights) => {
                let mut answers: Vec<_> =
                    flights.into_iter().filter_map(Flight::ended).map(|(_, answer)| answer).collect();
                if self.given().is_ahead {
                    answers.iter_mut().for_each(expire);
                }
                self.step(machine, answers, around);
            }
            doing => self.doing = doing,
        }
    }

    fn step(&mut self, mut machine: Machine, answers: Vec<Answer<Doc>>, around: &mut Around) {
        let number = self.number;
        let mut token = |head: Option<Head>| around.token(number, head);
        let next = match &mut machine {
            Machine::Insert(insert) => {
                let (own, bands) = (self.own(), self.given().bands.len() as u16);
                map(insert.answered(answers, &mut token), |inserted, rest| ended(inserted, own, bands, rest))
            }
            Machine::Delete(delete) => map(delete.answered(answers, &mut token), |deleted, _| match deleted {
                Deleted::This(at, head, doc) => {
                    let bands = self.given().bands.len() as u16;
                    (Some(Outcome::Deleted(Some(at))), rest_of(at, head, doc.replaces(), bands))
                }
                Deleted::Nothing => (Some(Outcome::Deleted(None)), Vec::new()),
                Deleted::Unknown => (Some(Outcome::Unknown), Vec::new()),
            }),
            Machine::Check(check) => {
                map(check.answered(answers), |checked, rest| (Some(Outcome::Found(refs(checked.found))), rest))
            }
            Machine::Sweep(sweep) => map(sweep.answered(answers, &mut token), |_, rest| (Some(Outcome::Swept), rest)),
            Machine::Update(update) => {
                let change = |doc: &Doc| (!doc.changed).then_some(Doc { changed: true, ..*doc });
                map(update.answered(answers, &mut token, &change), |updated, rest| match updated {
                    Updated::Changed(_) => (Some(Outcome::Changed(CHANGED)), rest),
                    Updated::Unchanged(_) | Updated::Gone => (Some(Outcome::NotChanged), rest),
                })
            }
        };
        match next {
            Next::Send(steps) => self.doing = Doing::Flying(machine, self.flying(steps, *around)),
            Next::Wait { at, head } => self.doing = Doing::Waiting(machine, at, head),
            Next::Done { outcome: Some(outcome), rest } => self.end(outcome, rest, *around),
            Next::Done { outcome: None, rest } if self.restarts < RESTARTS_MAX => {
                if around.removals {
                    let rest: Vec<_> = self.flying(rest.concat(), *around);
                    self.orphans.extend(rest.into_iter().map(|flight| flight.step.command));
                }
                self.restarts += 1;
                self.begin(around);
            }
            Next::Done { outcome: None, .. } => self.doing = Doing::Pruned,
        }
    }

    /// Returns whether commands of this actor may be sent or executed.
    pub(super) fn is_at_work(&self) -> bool {
        !self.is_over() || !self.flights().is_empty() || !self.orphans.is_empty()
    }

    /// Returns whether this actor may get answers of a primary that was replaced.
    pub(super) fn may_ask_old(&self, olds: bool) -> bool {
        let is_run = |flight: &Flight| matches!(flight.way, Way::Run { node: Node::First, .. });
        self.flights().iter().any(is_run) || olds && self.is_at_work()
    }

    /// Returns whether this actor may use a key later. `knows`: it may get to know whose record it is.
    pub(super) fn may_use(&self, key: Key, knows: bool) -> bool {
        if !self.is_over() {
            return match key {
                Key::Band(band) => self.given().bands.contains(&band),
                Key::Id(id) => self.given().id == id,
                Key::Record(_) => knows,
            };
        }
        let is_it = |command: &Command<Doc>| self.key(command) == key;
        let rest = match &self.doing {
            Doing::Ended { rest, .. } => &rest[..],
            _ => &[],
        };
        let mut rest = rest.iter().flatten().map(|step| &step.command);
        rest.any(is_it) || self.flights().iter().any(|flight| is_it(&flight.step.command)) || self.leaves(key)
    }

    /// Returns the commands that may be executed late, or a second time.
    pub(super) fn left(&self) -> impl Iterator<Item = &Command<Doc>> {
        self.orphans.iter().chain(&self.sent)
    }

    /// Returns whether commands to a key may be executed late, or a second time.
    pub(super) fn leaves(&self, key: Key) -> bool {
        self.left().any(|command| self.key(command) == key)
    }
}

fn is_old(flight: &Flight, node: Node, nodes: usize) -> bool {
    flight.way == Way::Sent && nodes > 1 && node == Node::First
}

fn sent<O>(next: Next<Doc, O>) -> Vec<Step<Doc>> {
    match next {
        Next::Send(steps) => steps,
        _ => unreachable!("after a wait, a machine reads or aborts"),
    }
}

fn map<O, P>(next: Next<Doc, O>, of: impl FnOnce(O, Vec<Vec<Step<Doc>>>) -> (P, Vec<Vec<Step<Doc>>>)) -> Next<Doc, P> {
    match next {
        Next::Send(steps) => Next::Send(steps),
        Next::Wait { at, head } => Next::Wait { at, head },
        Next::Done { outcome, rest } => {
            let (outcome, rest) = of(outcome, rest);
            Next::Done { outcome, rest }
        }
    }
}
