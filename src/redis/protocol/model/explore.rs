//! Goes through every order of events, and checks each state.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use super::pool::Quick;
use super::state::{Packed, Parts, Search, State};

/// The seen states are in this many tables, so that the growth of one takes little memory.
const TABLES: usize = 256;

/// A walk by chance forgets the parts of states when it has so many.
const PARTS_MAX: usize = 500_000;
/// The most steps of one way: servers may look at each other again and again.
const WALK_MAX: usize = 400;

/// The events that led to a state, the last one first. Each is the place of the next state in [`State::after`].
struct Trace(u32, Option<Rc<Trace>>);

/// What the search has seen.
#[derive(Debug, Default)]
pub(super) struct Explored {
    pub states: usize,
    pub ends: usize,
}

struct Seen(Vec<HashSet<Packed, BuildHasherDefault<Quick>>>);

impl Seen {
    fn insert(&mut self, packed: Packed) -> bool {
        let mixed = (packed ^ packed >> 61).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.0[(mixed >> 120) as usize % TABLES].insert(packed)
    }
}

/// Goes through all states. The error is the events that lead to a state that must not be.
pub(super) fn explore(search: Search, most: usize) -> Result<Explored, String> {
    let (mut parts, first) = Parts::begin(search);
    let (mut seen, mut explored) = (Seen((0..TABLES).map(|_| HashSet::default()).collect()), Explored::default());
    let mut open = vec![(parts.pack(&first), None::<Rc<Trace>>)];
    while let Some((packed, trace)) = open.pop() {
        let state = parts.unpack(packed);
        explored.states += 1;
        assert!(explored.states <= most, "more than {most} states");
        let after = state.after(&mut parts);
        explored.ends += usize::from(state.is_end());
        if let Err(flaw) = state.check(&parts, &after) {
            return Err(told(&mut parts, first, &flaw, places(trace.as_ref())));
        }
        for (place, (_, next)) in after.into_iter().enumerate() {
            let packed = parts.pack(&next);
            if !next.is_pruned() && seen.insert(packed) {
                open.push((packed, Some(Rc::new(Trace(place as u32, trace.clone())))));
            }
        }
    }
    Ok(explored)
}

/// Goes `steps` steps: from the first state to an end, again and again, each time another way. The ways depend on nothing
/// but the search. Returns how many ends it has seen.
pub(super) fn walk(search: Search, steps: usize) -> Result<Explored, String> {
    let (mut random, mut explored) = (1u64, Explored::default());
    while explored.states < steps {
        // The parts of all states that were ever seen would take too much memory.
        let (mut parts, first) = Parts::begin(search);
        while explored.states < steps && parts.len() < PARTS_MAX {
            let (mut state, mut places) = (first.clone(), Vec::new());
            loop {
                explored.states += 1;
                let mut after = state.after(&mut parts);
                if let Err(flaw) = state.check(&parts, &after) {
                    return Err(told(&mut parts, first, &flaw, places));
                }
                after.retain(|(_, next)| !next.is_pruned());
                if after.is_empty() || places.len() == WALK_MAX {
                    explored.ends += usize::from(state.is_end());
                    break;
                }
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                let place = (random >> 33) as usize % after.len();
                places.push(place);
                state = after.swap_remove(place).1;
            }
        }
    }
    Ok(explored)
}

fn places(mut trace: Option<&Rc<Trace>>) -> Vec<usize> {
    let mut places = Vec::new();
    while let Some(step) = trace {
        places.push(step.0 as usize);
        trace = step.1.as_ref();
    }
    places.reverse();
    places
}

/// Says which events lead to a flaw.
fn told(parts: &mut Parts, first: State, flaw: &str, places: Vec<usize>) -> String {
    let (mut state, mut told) = (first, format!("{flaw}\nafter:"));
    for place in places {
        // A way by chance counts only the states that are not pruned.
        let (event, next) = state.after(parts).swap_remove(place);
        told += "\n";
        told += &state.told(event);
        state = next;
    }
    told
}
