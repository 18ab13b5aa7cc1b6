//! Looks for an order of concurrent operations in which each of them could have had its result: whether a history is
//! linearizable (Herlihy and Wing, "Linearizability", 1990).
//!
//! The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993), as just-in-time
//! linearization (Lowe, "Testing for linearizability", 2017): it goes through the ends of the operations, and keeps each
//! configuration that is possible until then. A configuration is a state, with the open operations that have taken effect
//! already. At the end of an operation, others take effect only if it needs them.
//!
//! Three things keep the number of configurations small. None of them changes the result:
//!
//! - A read takes effect as soon as it can. It changes nothing, so this never prevents another order.
//! - Of operations without an end that would have the same effect, the one that began first takes effect first.
//! - A configuration is left out if another one has the same state and the same open writes, no read less, and needed no
//!   more of the operations without an end: whatever follows the one can follow the other.
//!
//! If it only matters whether there is an order, most histories need few of the configurations. So [`has_order`] first
//! looks for an order with few of them, those with the fewest steps, and then with more.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::{Debug, Write as _};
use std::hash::Hash;
use std::time::Duration;

/// More configurations at one operation take too long.
const ALL: Limits = Limits { kept: usize::MAX, tried: 300_000 };
/// The limits of [`has_order`], one after another.
const LIMITS: [Limits; 4] =
    [Limits { kept: 20, tried: 500 }, Limits { kept: 200, tried: 5_000 }, Limits { kept: 2_000, tried: 50_000 }, ALL];
/// Operations in the text of a history that has no order, before the operation that has no place.
const TOLD_MAX: usize = 200;

/// An object on which operations work.
pub trait Object {
    type State: Clone + Eq + Hash + Debug;
    /// An operation, with its result.
    type Event: Clone + PartialEq + Debug;

    /// Returns the state after an operation, if it can have this result in `state`.
    fn after(&self, state: &Self::State, event: &Self::Event) -> Option<Self::State>;

    /// Returns whether the operation never changes the state.
    fn is_read(&self, event: &Self::Event) -> bool;
}

/// An operation, with the times between which it takes effect.
#[derive(Clone, Debug)]
pub struct Operation<E> {
    pub event: E,
    pub begin: Duration,
    /// `None`: it may take effect at any time after its beginning, or never.
    pub end: Option<Duration>,
}

/// Why there is no order.
#[derive(Debug)]
pub struct Stuck<S> {
    /// The operation that has no place.
    pub at: usize,
    /// The states that are possible before it.
    pub states: HashSet<S>,
    /// Not all configurations were tried, so there may be an order.
    pub is_too_hard: bool,
}

/// How many configurations are kept after the end of an operation, and how many are tried for it.
#[derive(Clone, Copy)]
struct Limits {
    kept: usize,
    tried: usize,
}

/// Returns all states in which such an order may end if it starts in one of `states`.
pub fn states_after<O: Object>(
    object: &O,
    states: &HashSet<O::State>,
    operations: &[Operation<O::Event>],
) -> Result<HashSet<O::State>, Stuck<O::State>> {
    let mut search = Search::new(object, operations);
    let found = search.run(states, ALL)?;
    assert!(!search.is_cut, "the history has too many orders");
    Ok(found)
}

/// Returns whether there is such an order that starts in `state`.
pub fn has_order<O: Object>(
    object: &O,
    state: &O::State,
    operations: &[Operation<O::Event>],
) -> Result<(), Stuck<O::State>> {
    let states = HashSet::from([state.clone()]);
    let mut found = Ok(());
    for limits in LIMITS {
        found = Search::new(object, operations).run(&states, limits).map(drop);
        if found.as_ref().err().is_none_or(|stuck| !stuck.is_too_hard) {
            break;
        }
    }
    found
}

/// Returns the operations in the order in which they began, as a text. It ends with those that began before the end of the
/// operation `last`.
pub fn told<E: Debug>(operations: &[Operation<E>], last: usize) -> String {
    let until = operations[last].end.unwrap_or(Duration::MAX);
    let mut chosen: Vec<_> = operations.iter().enumerate().filter(|(_, operation)| operation.begin <= until).collect();
    chosen.sort_by_key(|(_, operation)| operation.begin);
    let skipped = chosen.len().saturating_sub(TOLD_MAX);
    chosen[skipped..].iter().fold(String::new(), |mut told, (at, Operation { event, begin, end })| {
        let mark = if *at == last { "  <-- no place" } else { "" };
        let end = end.map_or("     open".to_owned(), |end| format!("{:>9.3}", end.as_secs_f64() * 1e3));
        writeln!(told, "{:>9.3} to {end} ms: {event:?}{mark}", begin.as_secs_f64() * 1e3).unwrap();
        told
    })
}

/// Operations without an end that have the same effect.
struct Kind<E> {
    event: E,
    begins: Vec<Duration>,
    /// How many of them have begun.
    begun: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Configuration<S> {
    state: S,
    /// The open writes that have taken effect, in the order of their numbers.
    writes: Vec<usize>,
    /// The same for reads.
    reads: Vec<usize>,
    /// How many operations of each kind have taken effect.
    used: Vec<u16>,
}

impl<S> Configuration<S> {
    fn new(state: S, kinds: usize) -> Self {
        Self { state, writes: Vec::new(), reads: Vec::new(), used: vec![0; kinds] }
    }

    /// Forgets an operation that has ended. Returns whether it has taken effect.
    fn end(&mut self, at: usize) -> bool {
        [&mut self.writes, &mut self.reads].into_iter().any(|done| match done.binary_search(&at) {
            Ok(place) => {
                done.remove(place);
                true
            }
            Err(_) => false,
        })
    }
}

fn insert(done: &mut Vec<usize>, at: usize) {
    if let Err(place) = done.binary_search(&at) {
        done.insert(place, at);
    }
}

/// Configurations, none of which makes another one unnecessary.
struct Front<S> {
    all: HashMap<(S, Vec<usize>), Vec<Done>>,
    count: usize,
}

/// The open reads of a configuration that have taken effect, and how many operations of each kind it needed.
type Done = (Vec<usize>, Vec<u16>);

impl<S> Default for Front<S> {
    fn default() -> Self {
        Self { all: HashMap::new(), count: 0 }
    }
}

impl<S: Clone + Eq + Hash> Front<S> {
    /// Adds a configuration. Returns whether it was necessary.
    fn add(&mut self, configuration: Configuration<S>) -> bool {
        let Configuration { state, writes, reads, used } = configuration;
        let all = self.all.entry((state, writes)).or_default();
        let is_better = |one: &Done, other: &Done| {
            one.1.iter().zip(&other.1).all(|(one, other)| one <= other)
                && other.0.iter().all(|read| one.0.binary_search(read).is_ok())
        };
        let new = (reads, used);
        if all.iter().any(|old| is_better(old, &new)) {
            return false;
        }
        self.count -= all.len();
        all.retain(|old| !is_better(&new, old));
        all.push(new);
        self.count += all.len();
        true
    }

    fn states(&self) -> HashSet<S> {
        self.all.keys().map(|(state, _)| state.clone()).collect()
    }

    fn into_configurations(self) -> Vec<Configuration<S>> {
        let all = self.all.into_iter().flat_map(|((state, writes), all)| {
            all.into_iter().map(move |(reads, used)| Configuration {
                state: state.clone(),
                writes: writes.clone(),
                reads,
                used,
            })
        });
        all.collect()
    }
}

struct Search<'a, O: Object> {
    object: &'a O,
    operations: &'a [Operation<O::Event>],
    kinds: Vec<Kind<O::Event>>,
    /// The operations with an end that have not begun yet, the next one last.
    later: Vec<usize>,
    open: Vec<usize>,
    /// Some configurations were left out.
    is_cut: bool,
}

impl<'a, O: Object> Search<'a, O> {
    fn new(object: &'a O, operations: &'a [Operation<O::Event>]) -> Self {
        let mut kinds: Vec<Kind<O::Event>> = Vec::new();
        for operation in operations.iter().filter(|operation| operation.end.is_none()) {
            match kinds.iter_mut().find(|kind| kind.event == operation.event) {
                Some(kind) => kind.begins.push(operation.begin),
                None => kinds.push(Kind { event: operation.event.clone(), begins: vec![operation.begin], begun: 0 }),
            }
        }
        let mut later: Vec<usize> = (0..operations.len()).filter(|&at| operations[at].end.is_some()).collect();
        later.sort_by_key(|&at| std::cmp::Reverse(operations[at].begin));
        Self { object, operations, kinds, later, open: Vec::new(), is_cut: false }
    }

    /// Returns states in which an order may end: all of them, unless some configurations were left out.
    fn run(&mut self, states: &HashSet<O::State>, limits: Limits) -> Result<HashSet<O::State>, Stuck<O::State>> {
        let mut front = Front::default();
        for state in states {
            front.add(Configuration::new(state.clone(), self.kinds.len()));
        }
        let ends = self.operations.iter().enumerate().filter_map(|(at, operation)| Some((operation.end?, at)));
        let mut ends: Vec<(Duration, usize)> = ends.collect();
        ends.sort_unstable();
        for (now, at) in ends {
            self.begun(now);
            let before = front.states();
            front = self.end(front, at, limits);
            if front.all.is_empty() {
                return Err(Stuck { at, states: before, is_too_hard: self.is_cut });
            }
        }
        Ok(front.states())
    }

    /// Notes the operations that have begun until now.
    fn begun(&mut self, now: Duration) {
        for kind in &mut self.kinds {
            kind.begun = kind.begins.iter().filter(|&&begin| begin <= now).count() as u16;
        }
        while let Some(at) = self.later.pop_if(|at| self.operations[*at].begin <= now) {
            self.open.push(at);
        }
    }

    /// Ends an operation: it must have taken effect.
    fn end(&mut self, front: Front<O::State>, ended: usize, limits: Limits) -> Front<O::State> {
        let (mut next, mut seen, mut tried) = (Front::default(), Front::default(), 0);
        let mut open = VecDeque::from(front.into_configurations());
        while let Some(mut configuration) = open.pop_front() {
            self.read(&mut configuration);
            if configuration.end(ended) {
                next.add(configuration);
            } else if seen.add(configuration.clone()) {
                tried += 1;
                open.extend(self.writes(&configuration));
                open.extend(self.without_end(&configuration));
            }
            if next.count >= limits.kept || tried >= limits.tried {
                self.is_cut |= !open.is_empty();
                break;
            }
        }
        self.open.retain(|&at| at != ended);
        next
    }

    /// Lets each open read take effect that can.
    fn read(&self, configuration: &mut Configuration<O::State>) {
        for &at in &self.open {
            let event = &self.operations[at].event;
            if self.object.is_read(event) && self.object.after(&configuration.state, event).is_some() {
                insert(&mut configuration.reads, at);
            }
        }
    }

    /// Lets one open write take effect.
    fn writes<'s>(
        &'s self,
        configuration: &'s Configuration<O::State>,
    ) -> impl Iterator<Item = Configuration<O::State>> + 's {
        let left = self.open.iter().filter(|at| configuration.writes.binary_search(at).is_err());
        left.filter(|&&at| !self.object.is_read(&self.operations[at].event)).filter_map(|&at| {
            let state = self.object.after(&configuration.state, &self.operations[at].event)?;
            let mut next = Configuration { state, ..configuration.clone() };
            insert(&mut next.writes, at);
            Some(next)
        })
    }

    /// Lets one operation without an end take effect.
    fn without_end<'s>(
        &'s self,
        configuration: &'s Configuration<O::State>,
    ) -> impl Iterator<Item = Configuration<O::State>> + 's {
        let left = self.kinds.iter().enumerate().filter(|(at, kind)| configuration.used[*at] < kind.begun);
        left.filter_map(|(at, kind)| {
            let state = self.object.after(&configuration.state, &kind.event)?;
            let mut next = Configuration { state, ..configuration.clone() };
            next.used[at] += 1;
            Some(next)
        })
    }
}
