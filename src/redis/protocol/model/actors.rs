//! The servers of the model: each runs one machine of the protocol, and its commands are under way.

use super::super::faults::{Fault, has};
use super::super::terms::{Answer, Command, Head, Next, Ref, Reply, Step, Token};
use super::super::{Bounds, Check, Delete, Insert, Inserted, rest_of};
use super::world::{Doc, Key, Node, World};

/// The numbers of an actor's documents: the actor's own number plus a multiple of this.
const NUMBERS: u64 = 10;
/// How often an insertion may begin again.
const RESTARTS_MAX: u8 = 2;
/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Insert { beside: bool },
    Delete,
    Check,
}

/// The document of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Given {
    pub task: Task,
    pub doc: Doc,
    pub id: u8,
    pub bands: Vec<u8>,
    /// The server begins when this other one has ended.
    pub after: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Machine {
    Insert(Insert<Doc>),
    Delete(Delete<Doc>),
    Check(Check<Doc>),
}

/// What a server answered its client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    Stored(Ref),
    DuplicateOf(Vec<Ref>),
    Held(Ref),
    Unknown,
    Deleted(Option<Ref>),
    Found(Vec<Ref>),
}

/// The way of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Way {
    Sent,
    /// The node has run it, or its first part.
    Run {
        node: Node,
        changed: bool,
        reply: Option<Reply<Doc>>,
    },
    Answered(Answer<Doc>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    step: Step<Doc>,
    way: Way,
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
        rest: Vec<Vec<Step<Doc>>>,
    },
    /// The server was killed. The commands that it had sent may still be run.
    Killed(Vec<Flight>),
    /// The insertion has begun again too often for this model.
    Pruned,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    number: u8,
    given: Given,
    doing: Doing,
    tokens: u8,
    restarts: u8,
    olds: u8,
}

impl Actor {
    pub(super) fn new(number: usize, given: Given) -> Self {
        Self { number: number as u8, given, doing: Doing::NotBegun, tokens: 0, restarts: 0, olds: 0 }
    }

    pub(super) fn given(&self) -> &Given {
        &self.given
    }

    pub(super) fn number(&self) -> u8 {
        self.number
    }

    pub(super) fn outcome(&self) -> Option<&Outcome> {
        match &self.doing {
            Doing::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Ended { .. } | Doing::Killed(_) | Doing::Pruned)
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

    fn key(&self, command: &Command<Doc>) -> Key {
        match command {
            Command::Create { at, .. } | Command::Swap { at, .. } | Command::Read { at } => Key::Record(*at),
            Command::Keep { at, .. } | Command::Remove { at, .. } => Key::Record(*at),
            Command::Claim { .. } | Command::Holder => Key::Id(self.given.id),
            Command::Probe { band } | Command::Post { band, .. } | Command::Unpost { band, .. } => {
                Key::Band(self.given.bands[usize::from(band.0)])
            }
        }
    }

    pub(super) fn begin(&mut self) {
        let number = self.number;
        let bounds = Bounds { bands: self.given.bands.len() as u16, candidates_max: 100 };
        let (machine, steps) = match self.given.task {
            Task::Insert { beside } => {
                self.tokens += 1;
                let token = token_of(number, self.tokens);
                let (insert, steps) = Insert::begin(self.own(), token, self.given.doc, bounds, beside);
                (Machine::Insert(insert), steps)
            }
            Task::Delete => {
                let (delete, steps) = Delete::begin();
                (Machine::Delete(delete), steps)
            }
            Task::Check => {
                let (check, steps) = Check::begin(self.given.doc, bounds);
                (Machine::Check(check), steps)
            }
        };
        self.doing = Doing::Flying(machine, flights(steps));
    }

    pub(super) fn kill(&mut self) {
        let flights = match std::mem::replace(&mut self.doing, Doing::Pruned) {
            Doing::Flying(_, flights) => flights,
            _ => Vec::new(),
        };
        self.doing = Doing::Killed(flights);
    }

    /// Goes on after it has waited.
    pub(super) fn waited(&mut self, expired: bool) {
        let Doing::Waiting(mut machine, at, head) = std::mem::replace(&mut self.doing, Doing::Pruned) else {
            unreachable!("it does not wait")
        };
        let (number, tokens) = (self.number, &mut self.tokens);
        let mut token = |head: Option<Head>| next_token(number, tokens, head);
        let sent = match &mut machine {
            Machine::Insert(insert) => sent(insert.waited((at, head), expired, &mut token)),
            Machine::Delete(delete) => sent(delete.waited((at, head), expired, &mut token)),
            Machine::Check(_) => unreachable!("a lookup never waits"),
        };
        self.doing = Doing::Flying(machine, flights(sent));
    }

    fn flights_mut(&mut self) -> Option<&mut Vec<Flight>> {
        match &mut self.doing {
            Doing::Flying(_, flights) | Doing::Ended { flights, .. } | Doing::Killed(flights) => Some(flights),
            _ => None,
        }
    }

    /// Returns every state that follows if one of the commands under way goes one step on.
    pub(super) fn after_a_command(&self, world: &World, olds_max: u8) -> Vec<(Sent, Self, World)> {
        let mut after = Vec::new();
        let flights = match &self.doing {
            Doing::Flying(_, flights) | Doing::Ended { flights, .. } | Doing::Killed(flights) => flights,
            _ => return after,
        };
        // What an ended server leaves behind is removed in order.
        let most = if self.outcome().is_some() { 1 } else { flights.len() };
        for (at, flight) in flights.iter().enumerate().take(most) {
            let key = self.key(&flight.step.command);
            let nodes = match flight.way {
                Way::Sent => world.nodes(key),
                Way::Run { node: Node::First, .. } => &[Node::First],
                Way::Run { node: Node::Promoted, .. } => &[Node::Promoted],
                Way::Answered(_) => continue,
            };
            for &node in nodes {
                let is_old = matches!(flight.way, Way::Sent) && nodes.len() > 1 && node == Node::First;
                if is_old && self.olds == olds_max {
                    continue;
                }
                let (mut actor, mut world) = (self.clone(), world.clone());
                actor.olds += u8::from(is_old);
                let flights = actor.flights_mut().expect("it has flights");
                flights[at].advance(&mut world, key, node);
                // If the shard cannot fail over any more, nothing can happen between a write and its `WAIT`.
                if !world.may_fail_over(key) && flights[at].only_waits() {
                    flights[at].advance(&mut world, key, node);
                }
                actor.take_answers();
                after.push((Sent { flight: at as u8, node }, actor, world));
            }
        }
        after
    }

    /// Returns a command under way that no other server can notice, and that no failover can undo. It commutes with
    /// everything else, so it is enough to run it at once.
    pub(super) fn unnoticed(&self, world: &World, has_id_alone: bool) -> Option<usize> {
        let (Doing::Flying(_, flights) | Doing::Killed(flights)) = &self.doing else { return None };
        let posts = flights.iter().any(|flight| matches!(flight.step.command, Command::Post { .. }));
        flights.iter().position(|flight| {
            let key = self.key(&flight.step.command);
            let is_private = match key {
                Key::Id(_) => has_id_alone,
                Key::Record(at) => {
                    let is_own = at.0 % NUMBERS == u64::from(self.number) + 1;
                    is_own && has_id_alone && !posts && !world.has_posting(at)
                }
                Key::Band(_) => false,
            };
            is_private
                && !world.may_fail_over(key)
                && world.nodes(key).len() == 1
                && !matches!(flight.way, Way::Answered(_))
        })
    }

    /// Says which command goes one step on.
    pub(super) fn told(&self, sent: Sent) -> String {
        let flights = match &self.doing {
            Doing::Flying(_, flights) | Doing::Ended { flights, .. } | Doing::Killed(flights) => flights,
            _ => unreachable!("it has flights"),
        };
        let flight = &flights[usize::from(sent.flight)];
        let key = self.key(&flight.step.command);
        format!("{} {:?} {:?} at {:?} {key:?}", self.number, flight.step.command, flight.way, sent.node)
    }

    /// If all commands are answered, gives the answers to the machine.
    fn take_answers(&mut self) {
        let is_answered = |flight: &Flight| matches!(flight.way, Way::Answered(_));
        match &mut self.doing {
            Doing::Flying(_, flights) if flights.iter().all(is_answered) => {}
            Doing::Ended { flights, rest, .. } if flights.iter().all(is_answered) && !rest.is_empty() => {
                *flights = self::flights(rest.remove(0));
                return;
            }
            Doing::Ended { flights, .. } | Doing::Killed(flights) => {
                flights.retain(|flight| !is_answered(flight));
                return;
            }
            _ => return,
        }
        let Doing::Flying(machine, flights) = std::mem::replace(&mut self.doing, Doing::Pruned) else { return };
        let answer = |flight: Flight| if let Way::Answered(answer) = flight.way { Some(answer) } else { None };
        let answers: Vec<_> = flights.into_iter().filter_map(answer).collect();
        self.step(machine, answers);
    }

    fn step(&mut self, mut machine: Machine, answers: Vec<Answer<Doc>>) {
        let (number, tokens) = (self.number, &mut self.tokens);
        let mut token = |head: Option<Head>| next_token(number, tokens, head);
        let refs = |found: Vec<(Ref, Doc)>| found.into_iter().map(|(at, _)| at).collect();
        let next: Next<Doc, Option<Outcome>> = match &mut machine {
            Machine::Insert(insert) => {
                let own = Ref(u64::from(number) + 1 + NUMBERS * u64::from(self.restarts));
                map(insert.answered(answers, &mut token), |inserted, rest| {
                    let outcome = match inserted {
                        Inserted::Stored { .. } => Some(Outcome::Stored(own)),
                        Inserted::Duplicate { found, .. } => Some(Outcome::DuplicateOf(refs(found))),
                        Inserted::Held { by, .. } => Some(Outcome::Held(by)),
                        Inserted::Unknown => Some(Outcome::Unknown),
                        Inserted::Again => None,
                    };
                    (outcome, rest)
                })
            }
            Machine::Delete(delete) => map(delete.answered(answers, &mut token), |deleted, _| match deleted {
                Some((at, head, _)) => {
                    (Some(Outcome::Deleted(Some(at))), rest_of(at, head, self.given.bands.len() as u16))
                }
                None => (Some(Outcome::Deleted(None)), Vec::new()),
            }),
            Machine::Check(check) => {
                map(check.answered(answers), |checked, rest| (Some(Outcome::Found(refs(checked.found))), rest))
            }
        };
        match next {
            Next::Send(steps) => self.doing = Doing::Flying(machine, flights(steps)),
            Next::Wait { at, head } => self.doing = Doing::Waiting(machine, at, head),
            Next::Done { outcome: Some(outcome), mut rest } => {
                let first = if rest.is_empty() { Vec::new() } else { rest.remove(0) };
                self.doing = Doing::Ended { outcome, flights: flights(first), rest };
            }
            Next::Done { outcome: None, .. } if self.restarts < RESTARTS_MAX => {
                self.restarts += 1;
                self.begin();
            }
            Next::Done { outcome: None, .. } => self.doing = Doing::Pruned,
        }
    }
}

/// A command that goes one step on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub flight: u8,
    pub node: Node,
}

impl Flight {
    /// Returns whether only the `WAIT` is left.
    fn only_waits(&self) -> bool {
        matches!(self.way, Way::Run { reply: Some(_), .. }) && !has(Fault::ReadsFirst)
    }

    fn advance(&mut self, world: &mut World, key: Key, node: Node) {
        let is_post = matches!(self.step.command, Command::Post { .. });
        self.way = match std::mem::replace(&mut self.way, Way::Sent) {
            Way::Sent if is_post && has(Fault::ReadsFirst) => {
                Way::Run { node, changed: true, reply: Some(Reply::Postings(world.postings(key, node))) }
            }
            Way::Sent => {
                let (reply, changed) = world.run(&self.step.command, key, node);
                match reply {
                    Some(reply) if !self.step.waits => Way::Answered(Answer { reply, replicated: false }),
                    // A `WAIT` behind a command that changes nothing proves nothing, so its answer is not used.
                    Some(reply) if !changed => Way::Answered(Answer { reply, replicated: false }),
                    reply => Way::Run { node, changed, reply },
                }
            }
            Way::Run { reply: None, changed, .. } => {
                Way::Run { node, changed, reply: Some(Reply::Postings(world.postings(key, node))) }
            }
            Way::Run { reply: Some(reply), changed, .. } => {
                if is_post && has(Fault::ReadsFirst) {
                    world.run(&self.step.command, key, node);
                }
                let replicated = if changed { world.wait(key, node) } else { has(Fault::TrustsNoOp) };
                Way::Answered(Answer { reply, replicated })
            }
            answered @ Way::Answered(_) => answered,
        };
    }
}

fn flights(steps: Vec<Step<Doc>>) -> Vec<Flight> {
    steps.into_iter().map(|step| Flight { step, way: Way::Sent }).collect()
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

fn token_of(number: u8, count: u8) -> Token {
    Token(if has(Fault::CountsTokens) { 1 } else { 100 * u64::from(number + 1) + u64::from(count) })
}

fn next_token(number: u8, count: &mut u8, head: Option<Head>) -> Token {
    if has(Fault::CountsTokens) {
        return Token(head.map_or(1, |head| head.token.0 + 1));
    }
    *count += 1;
    token_of(number, *count)
}
