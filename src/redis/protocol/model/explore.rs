//! Goes through every order of events, and checks each state.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use xxhash_rust::xxh3::Xxh3Default;

use super::actors::{Actor, Given, Outcome, Sent, Task};
use super::world::{Failover, Layout, World};

/// What may go wrong in a run, each at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Troubles {
    pub crash: bool,
    /// A server is thought to have ended although it has not.
    pub early_lease: bool,
    /// How often each server may be answered by a primary that was replaced.
    pub olds: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    world: World,
    actors: Vec<Actor>,
    may_crash: bool,
    may_expire: bool,
}

#[derive(Clone, Copy)]
enum Event {
    Begins(usize),
    Command(usize, Sent),
    LooksAgain(usize),
    LeaseEnds(usize),
    Killed(usize),
    FailsOver(usize),
}

/// The events that led to a state, the last one first. Each is the place of the next state in [`State::after`].
struct Trace(u32, Option<Rc<Trace>>);

/// What the search has seen.
#[derive(Debug, Default)]
pub(super) struct Explored {
    pub states: usize,
    pub ends: usize,
}

/// Goes through all states. The error is the events that lead to a state that must not be.
pub(super) fn explore(
    given: &[Given],
    layout: Layout,
    failover: Failover,
    troubles: Troubles,
    most: usize,
) -> Result<Explored, String> {
    let actors = given.iter().enumerate().map(|(number, given)| Actor::new(number, given.clone())).collect();
    let world = World::new(layout, failover);
    let first = State { world, actors, may_crash: troubles.crash, may_expire: troubles.early_lease };
    let (mut seen, mut explored) = (HashSet::new(), Explored::default());
    let mut open = vec![(first.clone(), None::<Rc<Trace>>)];
    while let Some((state, trace)) = open.pop() {
        explored.states += 1;
        assert!(explored.states <= most, "more than {most} states");
        let after = state.after(troubles.olds);
        let is_end = state.actors.iter().all(Actor::is_over);
        explored.ends += usize::from(is_end);
        let is_stuck = after.is_empty() && !is_end;
        let stuck = || format!("nothing can happen any more: {:#?}", state.actors);
        if let Err(flaw) = state.check().and(if is_stuck { Err(stuck()) } else { Ok(()) }) {
            return Err(first.told(&flaw, trace.as_ref(), troubles.olds));
        }
        for (place, (_, next)) in after.into_iter().enumerate() {
            if !next.actors.iter().any(Actor::is_pruned) && seen.insert(digest(&next)) {
                open.push((next, Some(Rc::new(Trace(place as u32, trace.clone())))));
            }
        }
    }
    Ok(explored)
}

fn digest(state: &State) -> u128 {
    struct Both(Xxh3Default);
    impl Hasher for Both {
        fn finish(&self) -> u64 {
            self.0.digest()
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut both = Both(Xxh3Default::new());
    state.hash(&mut both);
    both.0.digest128()
}

impl State {
    /// Says which events lead from this state to a flaw.
    fn told(&self, flaw: &str, mut trace: Option<&Rc<Trace>>, olds: u8) -> String {
        let mut places = Vec::new();
        while let Some(step) = trace {
            places.push(step.0 as usize);
            trace = step.1.as_ref();
        }
        let (mut state, mut told) = (self.clone(), format!("{flaw}\nafter:"));
        for place in places.into_iter().rev() {
            let (event, next) = state.after(olds).swap_remove(place);
            told += "\n";
            told += &match event {
                Event::Command(actor, sent) => state.actors[actor].told(sent),
                Event::Begins(actor) => format!("{actor} begins"),
                Event::LooksAgain(actor) => format!("{actor} looks again"),
                Event::LeaseEnds(actor) => format!("{actor} sees the lease end"),
                Event::Killed(actor) => format!("{actor} is killed"),
                Event::FailsOver(kept) => format!("the shard fails over and keeps {kept} writes"),
            };
            state = next;
        }
        told
    }

    fn after(&self, olds: u8) -> Vec<(Event, Self)> {
        let mut after = Vec::new();
        for (at, actor) in self.actors.iter().enumerate() {
            let with = |actor: Actor| {
                let mut next = self.clone();
                next.actors[at] = actor;
                next
            };
            let is_turn = actor.given().after.is_none_or(|first| self.actors[first].is_over());
            if actor.may_begin() && is_turn {
                let mut next = actor.clone();
                next.begin();
                // Beginning changes nothing that another actor sees.
                return vec![(Event::Begins(at), with(next))];
            }
            let has_id_alone = !self.actors.iter().any(|other| other.shares_id(actor));
            if let Some(flight) = actor.unnoticed(&self.world, has_id_alone) {
                let mut commands = actor.after_a_command(&self.world, olds);
                commands.retain(|(sent, ..)| usize::from(sent.flight) == flight);
                let (sent, actor, world) = commands.remove(0);
                return vec![(Event::Command(at, sent), Self { world, ..with(actor) })];
            }
            for (sent, actor, world) in actor.after_a_command(&self.world, olds) {
                after.push((Event::Command(at, sent), Self { world, ..with(actor) }));
            }
            if let Some((awaited, head)) = actor.waits_for() {
                let is_alive = self.actors.iter().any(|other| other.works_on(awaited));
                let waited = |expired| {
                    let mut next = actor.clone();
                    next.waited(expired);
                    with(next)
                };
                if self.world.differs(awaited, head) {
                    after.push((Event::LooksAgain(at), waited(false)));
                }
                if !is_alive || self.may_expire {
                    let next = Self { may_expire: self.may_expire && !is_alive, ..waited(true) };
                    after.push((Event::LeaseEnds(at), next));
                }
            }
            if self.may_crash && !actor.is_over() && !actor.may_begin() {
                let mut next = actor.clone();
                next.kill();
                after.push((Event::Killed(at), Self { may_crash: false, ..with(next) }));
            }
        }
        for (kept, world) in self.world.after_failover() {
            after.push((Event::FailsOver(kept), Self { world, ..self.clone() }));
        }
        after
    }

    /// Checks what must be true at any time.
    fn check(&self) -> Result<(), String> {
        let stored = self.world.stored();
        let beside = |doc: u8| {
            let is_it = |actor: &&Actor| actor.given().doc.number == doc;
            self.actors.iter().find(is_it).is_some_and(|actor| actor.given().is_beside())
        };
        let id = |doc: u8| self.actors.iter().find(|actor| actor.given().doc.number == doc).map(|one| one.given().id);
        for (n, (at, doc)) in stored.iter().enumerate() {
            for (other_at, other) in &stored[n + 1..] {
                if id(doc.number) == id(other.number) {
                    return Err(format!("{at:?} and {other_at:?} have the same id"));
                }
                let is_alike = doc.number == other.number || doc.alike & 1 << other.number != 0;
                if is_alike && !beside(doc.number) && !beside(other.number) {
                    return Err(format!("{at:?} and {other_at:?} are both stored"));
                }
            }
        }
        let has_deletion = self.actors.iter().any(|actor| actor.given().task == Task::Delete && !actor.may_begin());
        for (number, actor) in self.actors.iter().enumerate() {
            let named = match actor.outcome() {
                None | Some(Outcome::Unknown) => continue,
                Some(Outcome::Stored(at) | Outcome::Held(at)) => vec![*at],
                Some(Outcome::DuplicateOf(found) | Outcome::Found(found)) => found.clone(),
                Some(Outcome::Deleted(at)) => {
                    if at.is_some_and(|at| stored.iter().any(|(other, _)| *other == at)) {
                        return Err(format!("{at:?} is stored again after {number} has deleted it"));
                    }
                    continue;
                }
            };
            for at in named {
                if !self.world.was_stored(at, has_deletion) {
                    return Err(format!("{number} was told that {at:?} is stored"));
                }
            }
        }
        Ok(())
    }
}

impl Actor {
    fn shares_id(&self, other: &Self) -> bool {
        self.number() != other.number() && self.given().id == other.given().id
    }
}

impl Given {
    fn is_beside(&self) -> bool {
        self.task == Task::Insert { beside: true }
    }
}
