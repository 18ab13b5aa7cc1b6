//! A state of the model, what may happen next, and what must be true.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use super::super::How;
use super::super::terms::{Command, Ref, State as RecordState};
use super::actors::{Actor, Around, Sent};
use super::given::{Given, Outcome, Task};
use super::pool::{Part, Pool};
use super::world::{Doc, Failover, Key, Layout, World};

/// What may go wrong in a run, each at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Troubles {
    /// A server is killed.
    pub crash: bool,
    /// A request fails because a node does not answer in time.
    pub failure: bool,
    /// A server is thought to have ended although it has not.
    pub early_lease: bool,
    /// A command is executed a second time: before its answer is known, because the connection broke, or long after.
    pub copy: bool,
    /// The commands that remove an attempt that begins again are executed late.
    pub removals: bool,
    /// How many commands a primary that was replaced may answer, before its servers know that it was replaced.
    pub olds: u8,
}

/// What a search goes through.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub given: &'a [Given],
    pub layout: Layout,
    pub failover: Failover,
    pub troubles: Troubles,
}

/// A state: the numbers of its parts, in one number.
pub(super) type Packed = u128;

const WORLD_BITS: u32 = 32;
const ACTOR_BITS: u32 = 24;

#[derive(Clone)]
pub(super) struct State {
    world: Rc<Part<World>>,
    actors: Vec<Rc<Part<Actor>>>,
    left: Troubles,
}

#[derive(Clone, Copy)]
pub(super) enum Event {
    Begins(usize),
    Command(usize, Sent),
    LooksAgain(usize),
    LeaseEnds(usize),
    Killed(usize),
    Fails(usize),
    FailsOver(usize),
}

/// Whatever states of a search are made of.
pub(super) struct Parts {
    worlds: Pool<World>,
    actors: Vec<Pool<Actor>>,
    troubles: Troubles,
    /// Whether a primary that was replaced may answer.
    olds: bool,
}

impl Parts {
    /// Returns the first state.
    pub(super) fn begin(Search { given, layout, failover, troubles }: Search) -> (Self, State) {
        let actors = given.iter().map(|_| Pool::new()).collect();
        let olds = failover != Failover::None;
        let mut parts = Self { worlds: Pool::new(), actors, troubles, olds };
        let actors = given.iter().enumerate();
        let actors = actors.map(|(at, given)| parts.actors[at].part(Actor::new(at, given.clone()))).collect();
        let world = parts.worlds.part(World::new(layout, failover));
        (parts, State { world, actors, left: troubles })
    }

    pub(super) fn pack(&self, state: &State) -> Packed {
        let Troubles { crash, failure, early_lease, copy, olds, .. } = state.left;
        let flags = [crash, failure, early_lease, copy].into_iter();
        let flags = flags.fold(u128::from(olds), |flags, is| flags << 1 | u128::from(is));
        state.actors.iter().fold(flags << WORLD_BITS | u128::from(state.world.number), |packed, actor| {
            assert!(actor.number < 1 << ACTOR_BITS, "too many states of one server");
            packed << ACTOR_BITS | u128::from(actor.number)
        })
    }

    pub(super) fn unpack(&self, mut packed: Packed) -> State {
        let mut take = |bits: u32| {
            let number = packed & ((1 << bits) - 1);
            packed >>= bits;
            number as u32
        };
        let mut actors: Vec<_> = self.actors.iter().rev().map(|pool| pool.get(take(ACTOR_BITS)).clone()).collect();
        actors.reverse();
        let world = self.worlds.get(take(WORLD_BITS)).clone();
        let [copy, early_lease, failure, crash] = [(); 4].map(|()| take(1) == 1);
        State {
            world,
            actors,
            left: Troubles { crash, failure, early_lease, copy, olds: take(2) as u8, ..self.troubles },
        }
    }

    /// Returns how many different parts there are.
    pub(super) fn len(&self) -> usize {
        self.worlds.len() + self.actors.iter().map(Pool::len).sum::<usize>()
    }

    /// Makes a state of a changed one. It loses what can have no effect any more: then more states are equal.
    fn state(&mut self, before: &State, at: usize, actor: Actor, world: Option<World>, left: Troubles) -> State {
        let mut next = State { left, ..before.clone() };
        let was_at_work = before.actors[at].value.is_at_work();
        next.actors[at] = self.actors[at].part(actor);
        if before.left.copy && !left.copy {
            for (actor, pool) in next.actors.iter_mut().zip(&mut self.actors) {
                if let Some(changed) = actor.value.forget_sent() {
                    *actor = pool.part(changed);
                }
            }
        }
        for (at, pool) in self.actors.iter_mut().enumerate() {
            let world = world.as_ref().unwrap_or(&next.world.value);
            if let Some(changed) = next.actors[at].value.drop_orphans(world) {
                next.actors[at] = pool.part(changed);
            }
        }
        let is_done = was_at_work && !next.actors[at].value.is_at_work();
        let forgets_old =
            next.world.value.has_old() && !next.actors.iter().any(|actor| actor.value.may_ask_old(next.left.olds > 0));
        if world.is_some() || is_done || forgets_old {
            let mut world = world.unwrap_or_else(|| next.world.value.clone());
            if is_done || forgets_old {
                world.forget(|key| next.actors.iter().any(|actor| actor.value.may_use(key, true)));
            }
            if world.has_old() && !next.actors.iter().any(|actor| actor.value.may_ask_old(next.left.olds > 0)) {
                world.forget_old();
                next.left.olds = 0;
            }
            next.world = self.worlds.part(world);
        }
        next
    }
}

impl fmt::Display for Troubles {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.crash, "crash"),
            (self.failure, "failure"),
            (self.early_lease, "early lease"),
            (self.copy, "command executed twice"),
            (self.removals, "late removals"),
            (self.olds > 0, "answers of old primaries"),
        ];
        let names: Vec<_> = all.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        to.write_str(&names.join(" + "))
    }
}

impl State {
    fn around(&self) -> Around {
        let tokens = self.actors.iter().fold(self.world.tokens, |tokens, actor| tokens | actor.tokens);
        Around { tokens, copies: self.left.copy, removals: self.left.removals, olds: self.left.olds > 0 }
    }

    pub(super) fn is_end(&self) -> bool {
        self.actors.iter().all(|actor| actor.value.is_over())
    }

    pub(super) fn is_pruned(&self) -> bool {
        self.actors.iter().any(|actor| actor.value.is_pruned())
    }

    /// Returns what may happen next, and the states after it.
    pub(super) fn after(&self, parts: &mut Parts) -> Vec<(Event, Self)> {
        for (at, actor) in self.actors.iter().enumerate() {
            let is_turn = actor.value.given().after.is_none_or(|first| self.actors[first].value.is_over());
            if actor.value.may_begin() && is_turn {
                let mut next = actor.value.clone();
                next.begin(&mut self.around());
                // Beginning changes nothing that another actor sees.
                return vec![(Event::Begins(at), parts.state(self, at, next, None, self.left))];
            }
        }
        let mut after = Vec::new();
        if let Some((at, flight)) = self.unnoticed() {
            let commands = self.actors[at].value.commands(&self.world.value, self.around());
            let commands =
                commands.into_iter().filter(|sent| matches!(sent, Sent::Flight(place, _) if *place == flight));
            commands.for_each(|sent| self.command(parts, (at, sent), &mut after));
            self.crashes(parts, at, &mut after);
            return after;
        }
        for (at, actor) in self.actors.iter().enumerate() {
            for sent in actor.value.commands(&self.world.value, self.around()) {
                self.command(parts, (at, sent), &mut after);
            }
            self.waits(parts, at, &mut after);
            self.crashes(parts, at, &mut after);
        }
        for (kept, world) in self.world.value.after_failover() {
            let next = parts.state(self, 0, self.actors[0].value.clone(), Some(world), self.left);
            after.push((Event::FailsOver(kept), next));
        }
        after
    }

    fn command(&self, parts: &mut Parts, (at, sent): (usize, Sent), after: &mut Vec<(Event, Self)>) {
        let mut next = self.actors[at].value.clone();
        let asks_old = next.asks_old(sent, &self.world.value);
        let copy = self.left.copy && !matches!(sent, Sent::Copy(..));
        let mut around = self.around();
        if let Some(world) = next.advance(sent, &self.world.value, &mut around) {
            let left = Troubles { copy, olds: self.left.olds - u8::from(asks_old), ..self.left };
            after.push((Event::Command(at, sent), parts.state(self, at, next, world, left)));
        }
    }

    /// Adds what may happen if a server waits for another one.
    fn waits(&self, parts: &mut Parts, at: usize, after: &mut Vec<(Event, Self)>) {
        let actor = &self.actors[at].value;
        let Some((awaited, head)) = actor.waits_for() else { return };
        let waited = |expired: bool| {
            let mut next = actor.clone();
            next.waited(expired, &mut self.around());
            next
        };
        let looks = waited(false);
        let mut commands = looks.flights().iter().map(|flight| &flight.step.command);
        let looks_at_id = commands.any(|command| matches!(command, Command::Claim { .. }));
        let world = &self.world.value;
        if world.differs(awaited, head) || looks_at_id && world.has_other_holder(actor.given().id, awaited) {
            after.push((Event::LooksAgain(at), parts.state(self, at, looks, None, self.left)));
        }
        let is_alive = self.actors.iter().any(|other| other.value.works_on(awaited));
        if !is_alive || self.left.early_lease {
            let left = Troubles { early_lease: self.left.early_lease && !is_alive, ..self.left };
            after.push((Event::LeaseEnds(at), parts.state(self, at, waited(true), None, left)));
        }
    }

    /// Adds the end of a server, and the end of its request.
    fn crashes(&self, parts: &mut Parts, at: usize, after: &mut Vec<(Event, Self)>) {
        let actor = &self.actors[at].value;
        if self.left.crash && !actor.is_over() && !actor.may_begin() {
            let mut next = actor.clone();
            next.kill();
            let left = Troubles { crash: false, ..self.left };
            after.push((Event::Killed(at), parts.state(self, at, next, None, left)));
        }
        if self.left.failure && actor.may_fail() {
            let mut next = actor.clone();
            next.fail(self.around());
            let left = Troubles { failure: false, ..self.left };
            after.push((Event::Fails(at), parts.state(self, at, next, None, left)));
        }
    }

    /// Returns a command under way that commutes with everything that may happen before it, except the end of its own
    /// server or request. So every order is equal to one in which it comes first, and the others need not be tried.
    ///
    /// No other server uses its key until it is answered, and the shard of its key does not fail over any more. It does
    /// not change whether a document is stored. So a rule that a left-out state breaks is also broken by a state that is
    /// tried.
    fn unnoticed(&self) -> Option<(usize, usize)> {
        for (at, actor) in self.actors.iter().enumerate() {
            let flights = actor.value.flights();
            for (place, flight) in flights.iter().enumerate().filter(|(_, flight)| !flight.is_answered()) {
                let command = &flight.step.command;
                let key = actor.value.key(command);
                let others_on_key = flights.iter().enumerate().any(|(other, flight)| {
                    other != place && !flight.is_answered() && actor.value.key(&flight.step.command) == key
                });
                if !is_seen(command)
                    && !others_on_key
                    && !self.world.value.may_fail_over(key)
                    && self.is_private(at, key)
                {
                    return Some((at, place));
                }
            }
        }
        None
    }

    /// Returns whether no other server may use a key before the commands under way of the actor `at` are answered.
    fn is_private(&self, at: usize, key: Key) -> bool {
        let own = &self.actors[at].value;
        let mut others = self.actors.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        let knows = |other: &Part<Actor>| {
            let Key::Record(record) = key else { return true };
            let names = |command: &Command<_>| match command {
                Command::Post { .. } => true,
                Command::Swap { to, .. } => to.successor() == Some(record),
                Command::Claim { .. } => other.value.may_use(own.key(command), true),
                _ => false,
            };
            let finds = || self.world.value.keys_that_name(record).any(|key| other.value.may_use(key, true));
            let under_way = own.flights().iter().map(|flight| &flight.step.command).chain(own.left());
            !own.owns(record) || other.refs & 1 << record.0 != 0 || under_way.into_iter().any(names) || finds()
        };
        !own.leaves(key) && !others.any(|other| other.value.leaves(key) || other.value.may_use(key, knows(other)))
    }

    /// Checks what must be true at any time. `after`: what may happen next.
    pub(super) fn check(&self, parts: &Parts, after: &[(Event, Self)]) -> Result<(), String> {
        if after.is_empty() && !self.is_end() {
            return Err("nothing can happen any more".to_owned());
        }
        self.check_stored()?;
        self.check_ids(parts)?;
        let has_deletion = self.actors.iter().any(|actor| actor.value.given().removes() && !actor.value.may_begin());
        let has_copy = parts.troubles.copy && !self.left.copy;
        for (number, actor) in self.actors.iter().enumerate() {
            let named = self.named(parts, number)?;
            if !matches!(actor.value.outcome(), Some(Outcome::Stored(_) | Outcome::Replaced { .. }))
                && named.iter().any(|&at| actor.value.owns(at))
            {
                return Err(format!("{number} was told that its document is a duplicate of itself"));
            }
            for at in named {
                if !self.world.value.was_stored(at, has_deletion, has_copy) {
                    return Err(format!("{number} was told that {at:?} is stored"));
                }
            }
        }
        Ok(())
    }

    /// Returns the documents of which the server `number` has told its client that they are stored.
    fn named(&self, parts: &Parts, number: usize) -> Result<Vec<Ref>, String> {
        let (actor, world) = (&self.actors[number].value, &self.world.value);
        Ok(match actor.outcome() {
            None | Some(Outcome::Unknown | Outcome::NotChanged | Outcome::Swept) => Vec::new(),
            Some(Outcome::Changed(at)) => {
                let found = world.record(*at).filter(|found| world.is_stored(found.head));
                if found.and_then(|found| found.body).is_some_and(|doc| !doc.changed) {
                    return Err(format!("{at:?} is as it was before {number} changed it"));
                }
                vec![*at]
            }
            Some(Outcome::Stored(at)) => vec![*at],
            Some(Outcome::Held(at)) => vec![*at],
            Some(Outcome::DuplicateOf(found) | Outcome::Found(found)) => {
                // A primary that was replaced may have answered.
                if !parts.olds {
                    self.check_ids_of(found)?;
                }
                found.clone()
            }
            Some(Outcome::Replaced { old, by }) => {
                self.check_ended(number, *old)?;
                vec![*by]
            }
            Some(Outcome::Removed { old, found }) => {
                self.check_other_ids(number, found)?;
                self.check_ended(number, *old)?;
                found.clone()
            }
            Some(Outcome::Deleted(Some(at))) => {
                self.check_ended(number, *at)?;
                Vec::new()
            }
            Some(Outcome::Deleted(None)) => {
                let is_own = |found: &super::super::terms::Head| {
                    found.state == RecordState::Deleted && actor.has_made(found.token)
                };
                if world.heads().any(|head| is_own(&head)) {
                    return Err(format!("{number} has deleted a document, and was told that there was none"));
                }
                Vec::new()
            }
        })
    }

    /// Checks that documents which are named as duplicates have other ids than that of the server `number`.
    fn check_other_ids(&self, number: usize, found: &[Ref]) -> Result<(), String> {
        let id = self.actors[number].value.given().id;
        match found.iter().find(|&&at| self.id_of(at) == Some(id)) {
            Some(at) => Err(format!("{number} was told that its document is a duplicate of {at:?}, which has its id")),
            None => Ok(()),
        }
    }

    /// Returns the id of a document.
    fn id_of(&self, at: Ref) -> Option<u8> {
        self.actors.iter().find(|actor| actor.value.owns(at)).map(|actor| actor.value.given().id)
    }

    /// Checks that no two of the documents that a lookup has found have one id.
    fn check_ids_of(&self, found: &[Ref]) -> Result<(), String> {
        let ids: BTreeSet<_> = found.iter().map(|&at| self.id_of(at)).collect();
        if ids.len() == found.len() { Ok(()) } else { Err(format!("{found:?} have one id")) }
    }

    /// Checks that a document was ended for good by the server `number`.
    fn check_ended(&self, number: usize, at: Ref) -> Result<(), String> {
        let world = &self.world.value;
        match world.record(at) {
            Some(found) if world.is_stored(found.head) => {
                Err(format!("{at:?} is stored again after {number} has ended it"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that one document or another is stored under an id at any moment after the first one was stored, if it may
    /// only be replaced, and that lookups and deletions find it.
    fn check_ids(&self, parts: &Parts) -> Result<(), String> {
        let givens = || self.actors.iter().map(|actor| actor.value.given());
        let is_stored = matches!(self.actors[0].value.outcome(), Some(Outcome::Stored(_)));
        let first = self.actors[0].value.given();
        if !is_stored || givens().any(|given| given.may_empty(first)) {
            return Ok(());
        }
        let deletions = givens().filter(|given| given.task == Task::Delete && given.id == first.id).count();
        let stored = self.world.value.stored();
        let has_id = |doc: &Doc| givens().any(|given| given.doc.number == doc.number && given.id == first.id);
        if deletions == 0 && !stored.iter().any(|(_, doc)| has_id(doc)) {
            return Err("no document is stored under the id".to_owned());
        }
        // A lookup that finds nothing may have asked a primary that was replaced.
        if parts.olds {
            return Ok(());
        }
        for actor in &self.actors[1..] {
            let (given, outcome) = (actor.value.given(), actor.value.outcome());
            let is_after = given.after == Some(0);
            let mut of_id = givens().filter(|other| other.id == first.id && other.task != Task::Delete);
            let finds_all = of_id.all(|other| given.doc.alike & 1 << other.doc.number != 0);
            match outcome {
                Some(Outcome::Found(found)) if found.is_empty() && is_after && deletions == 0 && finds_all => {
                    return Err("a lookup has found neither the old document nor the new one".to_owned());
                }
                Some(Outcome::Deleted(None)) if is_after && deletions == 1 => {
                    return Err("a deletion has found neither the old document nor the new one".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_stored(&self) -> Result<(), String> {
        let stored = self.world.value.stored();
        let given = |doc: u8| {
            let mut all = self.actors.iter().map(|actor| actor.value.given());
            all.find(|given| given.doc.number == doc).expect("an actor has the document")
        };
        for (n, (at, doc)) in stored.iter().enumerate() {
            for (other_at, other) in &stored[n + 1..] {
                let (one, two) = (given(doc.number), given(other.number));
                if one.id == two.id {
                    return Err(format!("{at:?} and {other_at:?} have the same id"));
                }
                let is_alike = doc.number == other.number || doc.alike & 1 << other.number != 0;
                let is_beside = |given: &Given| matches!(given.task, Task::Insert(How { beside: true, .. }));
                if is_alike && !is_beside(one) && !is_beside(two) {
                    return Err(format!("{at:?} and {other_at:?} are both stored"));
                }
            }
        }
        Ok(())
    }

    /// Says what happens.
    pub(super) fn told(&self, event: Event) -> String {
        match event {
            Event::Command(actor, sent) => self.actors[actor].value.told(sent),
            Event::Begins(actor) => format!("{actor} begins"),
            Event::LooksAgain(actor) => format!("{actor} looks again"),
            Event::LeaseEnds(actor) => format!("{actor} sees the lease end"),
            Event::Killed(actor) => format!("{actor} is killed"),
            Event::Fails(actor) => format!("{actor} gets no answer in time"),
            Event::FailsOver(kept) => format!("the shard fails over and keeps {kept} writes"),
        }
    }
}

/// Returns whether a command may change whether a document is stored.
fn is_seen(command: &Command<Doc>) -> bool {
    match command {
        Command::Keep { .. } => true,
        Command::Swap { to, .. } => matches!(to.state, RecordState::Kept | RecordState::Deleted),
        _ => false,
    }
}
