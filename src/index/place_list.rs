//! A list of places, in an order that the caller defines: by the `seq` of their documents, or by content and `seq`.
//! A list is cut into chunks, so that adding and removing a place costs the same in a list of any length. With one
//! vector for all places, removing the first of 300,000 moved a megabyte.

use smallvec::SmallVec;

use super::place::Place;

/// The maximum number of places in a chunk.
const CHUNK_MAX: usize = 1024;
/// Two neighbouring chunks with this many places together, or fewer, are joined.
const CHUNKS_JOIN: usize = CHUNK_MAX / 2;

/// Places in ascending order of their keys, which are distinct.
#[derive(Clone)]
pub(super) enum PlaceList {
    Few(SmallVec<[Place; 4]>),
    Many(Box<Many>),
}

/// A list of several chunks. No chunk is empty.
#[derive(Clone)]
pub(super) struct Many {
    chunks: Vec<Vec<Place>>,
    len: usize,
    /// The bytes of all chunks.
    bytes: usize,
}

impl Default for PlaceList {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl PlaceList {
    /// Makes a list of places that are already in order.
    pub(super) fn of(places: &[Place]) -> Self {
        if places.len() <= CHUNK_MAX {
            return Self::Few(SmallVec::from_slice(places));
        }
        // Chunks are not filled up, because chunks in the middle will get more places.
        let chunks: Vec<Vec<Place>> = places.chunks(CHUNK_MAX * 3 / 4).map(<[Place]>::to_vec).collect();
        let bytes = chunks.iter().map(bytes_of).sum();
        Self::Many(Box::new(Many { chunks, len: places.len(), bytes }))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(places) => places.len(),
            Self::Many(many) => many.len,
        }
    }

    /// Returns the bytes that the list has allocated.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Few(places) if places.spilled() => places.capacity() * size_of::<Place>(),
            Self::Few(_) => 0,
            Self::Many(many) => many.bytes + many.chunks.capacity() * size_of::<Vec<Place>>() + size_of::<Many>(),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Place> {
        let (few, many) = self.parts();
        few.iter().chain(many.iter().flatten()).copied()
    }

    /// Returns the places whose keys are at least `least`.
    pub(super) fn from<K: Ord>(&self, least: K, key: impl Fn(Place) -> K) -> impl Iterator<Item = Place> {
        let (few, many) = self.parts();
        let few = &few[few.partition_point(|&place| key(place) < least)..];
        let at = many.partition_point(|chunk| chunk.last().is_some_and(|&last| key(last) < least));
        let (first, rest) = many[at..].split_first().map_or((&[][..], &[][..]), |(first, rest)| (&first[..], rest));
        let first = &first[first.partition_point(|&place| key(place) < least)..];
        few.iter().chain(first).chain(rest.iter().flatten()).copied()
    }

    pub(super) fn first(&self) -> Option<Place> {
        let (few, many) = self.parts();
        few.first().or_else(|| many.first()?.first()).copied()
    }

    /// Looks at up to `max` places, spread evenly over the list, and adds those that are `wanted` to `places`. Each
    /// `part` of `parts` looks at different places. Returns the number of places that it did not look at.
    pub(super) fn spread(
        &self,
        max: usize,
        (part, parts): (usize, usize),
        wanted: impl Fn(Place) -> bool,
        places: &mut Vec<Place>,
    ) -> u64 {
        let len = self.len();
        if len <= max {
            places.extend(self.iter().filter(|&place| wanted(place)));
            return 0;
        }
        let (few, many) = self.parts();
        let mut before = 0;
        let shift = part * len / (max.max(1) * parts);
        let mut positions = (0..max).map(|at| at * len / max + shift).peekable();
        for chunk in [few].into_iter().chain(many.iter().map(Vec::as_slice)) {
            while let Some(at) = positions.next_if(|&at| at < before + chunk.len()) {
                places.extend(Some(chunk[at - before]).filter(|&place| wanted(place)));
            }
            before += chunk.len();
        }
        (len - max) as u64
    }

    /// Adds a place whose key is not in the list.
    pub(super) fn insert<K: Ord>(&mut self, place: Place, key: impl Fn(Place) -> K) {
        if let Self::Few(places) = self {
            if places.len() < CHUNK_MAX {
                if places.len() == places.capacity() {
                    places.reserve_exact((places.len() / 4).max(2));
                }
                places.insert(position(places, place, &key), place);
                return;
            }
            let chunk = places.to_vec();
            let (len, bytes) = (chunk.len(), bytes_of(&chunk));
            *self = Self::Many(Box::new(Many { chunks: vec![chunk], len, bytes }));
        }
        if let Self::Many(many) = self {
            many.insert(place, key);
        }
    }

    /// Removes a place. Returns false if it is not in the list.
    pub(super) fn remove<K: Ord>(&mut self, place: Place, key: impl Fn(Place) -> K) -> bool {
        let removed = match self {
            Self::Few(places) => {
                let at = position(places, place, &key);
                let here = places.get(at) == Some(&place);
                if here {
                    places.remove(at);
                    if places.spilled() && places.capacity() > 2 * places.len() {
                        places.shrink_to_fit();
                    }
                }
                here
            }
            Self::Many(many) => many.remove(place, key),
        };
        if let Self::Many(many) = self
            && let [chunk] = &many.chunks[..]
            && chunk.len() <= CHUNKS_JOIN
        {
            *self = Self::Few(SmallVec::from_slice(chunk));
        }
        removed
    }

    fn parts(&self) -> (&[Place], &[Vec<Place>]) {
        match self {
            Self::Few(places) => (places, &[]),
            Self::Many(many) => (&[], &many.chunks),
        }
    }
}

impl Many {
    fn insert<K: Ord>(&mut self, place: Place, key: impl Fn(Place) -> K) {
        let mut at = self.chunk(place, &key);
        if self.chunks[at].len() >= CHUNK_MAX {
            // If the new place comes last, more places are likely to follow it.
            let is_last =
                at + 1 == self.chunks.len() && self.chunks[at].last().is_some_and(|&last| key(last) < key(place));
            let cut = if is_last { CHUNK_MAX } else { CHUNK_MAX / 2 };
            let mut rest = self.chunks[at].split_off(cut);
            self.bytes += bytes_of(&rest);
            rest.reserve_exact(CHUNK_MAX / 4);
            self.bytes += CHUNK_MAX / 4 * size_of::<Place>();
            self.chunks.insert(at + 1, rest);
            at += usize::from(is_last || self.chunks[at + 1].first().is_some_and(|&first| key(first) < key(place)));
        }
        let chunk = &mut self.chunks[at];
        let from = bytes_of(chunk);
        if chunk.len() == chunk.capacity() {
            chunk.reserve_exact((chunk.len() / 4).max(2));
        }
        chunk.insert(position(chunk, place, &key), place);
        self.bytes = self.bytes + bytes_of(chunk) - from;
        self.len += 1;
    }

    fn remove<K: Ord>(&mut self, place: Place, key: impl Fn(Place) -> K) -> bool {
        let number = self.chunk(place, &key);
        let chunk = &mut self.chunks[number];
        let at = position(chunk, place, &key);
        if chunk.get(at) != Some(&place) {
            return false;
        }
        chunk.remove(at);
        self.len -= 1;
        let len = chunk.len();
        if len == 0 {
            self.bytes -= bytes_of(&self.chunks.remove(number));
            return true;
        }
        let neighbour = [number.checked_sub(1), Some(number + 1)]
            .into_iter()
            .flatten()
            .find(|&other| self.chunks.get(other).is_some_and(|other| other.len() + len <= CHUNKS_JOIN));
        if let Some(other) = neighbour {
            let (left, right) = (number.min(other), number.max(other));
            let right = self.chunks.remove(right);
            self.bytes -= bytes_of(&right) + bytes_of(&self.chunks[left]);
            self.chunks[left].extend_from_slice(&right);
            self.bytes += bytes_of(&self.chunks[left]);
        } else if self.chunks[number].capacity() > 2 * len {
            self.bytes -= bytes_of(&self.chunks[number]);
            self.chunks[number].shrink_to(len + len / 4);
            self.bytes += bytes_of(&self.chunks[number]);
        }
        true
    }

    /// Returns the chunk that holds a place, or should hold it.
    fn chunk<K: Ord>(&self, place: Place, key: impl Fn(Place) -> K) -> usize {
        let wanted = key(place);
        self.chunks.partition_point(|chunk| chunk.first().is_some_and(|&first| key(first) <= wanted)).saturating_sub(1)
    }
}

/// Returns the position of a place in a chunk, or the position at which to insert the place. Usually that is the end.
fn position<K: Ord>(chunk: &[Place], place: Place, key: impl Fn(Place) -> K) -> usize {
    let wanted = key(place);
    match chunk.last() {
        Some(&last) if key(last) >= wanted => chunk.partition_point(|&held| key(held) < wanted),
        _ => chunk.len(),
    }
}

fn bytes_of(chunk: &Vec<Place>) -> usize {
    chunk.capacity() * size_of::<Place>()
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use std::collections::BTreeMap;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Gives places an order that differs from their numbers.
    fn key(place: Place) -> u32 {
        place.0.wrapping_mul(2_654_435_761)
    }

    fn check(list: &PlaceList, model: &BTreeMap<u32, Place>) {
        assert_eq!(list.len(), model.len());
        assert!(list.iter().eq(model.values().copied()));
        assert!(list.iter().rev().eq(model.values().rev().copied()));
        if let PlaceList::Many(many) = list {
            assert!(many.chunks.iter().all(|chunk| (1..=CHUNK_MAX).contains(&chunk.len())));
            assert_eq!(many.bytes, many.chunks.iter().map(bytes_of).sum::<usize>());
        }
    }

    #[test]
    fn a_list_holds_what_a_map_holds_in_the_same_order() {
        for (seed, most) in [(1, 3), (2, 40), (3, 6000)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (mut list, mut model) = (PlaceList::default(), BTreeMap::new());
            let mut grows = true;
            for step in 0..most * 6 {
                grows = if model.len() >= most { false } else { grows || model.is_empty() };
                let place = match model.iter().nth(rng.random_range(0..=model.len())) {
                    Some((_, &place)) if rng.random_bool(if grows { 0.2 } else { 0.9 }) => place,
                    _ => Place(rng.random_range(0..100_000)),
                };
                if model.remove(&key(place)).is_some() {
                    assert!(list.remove(place, key));
                } else if grows {
                    list.insert(place, key);
                    model.insert(key(place), place);
                } else {
                    assert!(!list.remove(place, key));
                }
                if step % (most / 3 + 1) == 0 {
                    check(&list, &model);
                    let least = rng.random();
                    assert!(list.from(least, key).eq(model.range(least..).map(|(_, &place)| place)), "seed {seed}");
                }
            }
            check(&list, &model);
            let in_order: Vec<Place> = model.values().copied().collect();
            check(&PlaceList::of(&in_order), &model);
        }
    }

    #[test]
    fn a_spread_is_even_and_counts_the_rest() {
        for len in [0, 1, 5, 1000, 5000] {
            let all: Vec<Place> = (0..len).map(Place).collect();
            for max in [1, 7, 999, 6000] {
                let mut spread = Vec::new();
                let left_out = PlaceList::of(&all).spread(max, (0, 1), |_| true, &mut spread);
                assert_eq!(left_out as usize + spread.len(), all.len());
                let mut other = Vec::new();
                PlaceList::of(&all).spread(max, (5, 6), |_| true, &mut other);
                assert!(other.len() == spread.len() && other.iter().zip(&spread).all(|(other, one)| other >= one));
                assert!(spread.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(spread.len() == all.len().min(max) && spread.first() == all.first());
            }
        }
    }

    /// Places that are added and removed in order, as in expiry, leave few bytes behind.
    #[test]
    fn a_list_gives_memory_back() {
        let mut list = PlaceList::default();
        (0..100_000).for_each(|place| list.insert(Place(place), |place| place));
        assert!(list.bytes() < 600_000, "{}", list.bytes());
        (0..100_000)
            .filter(|place| place % 50 != 0)
            .for_each(|place| assert!(list.remove(Place(place), |place| place)));
        assert_eq!(list.len(), 2000);
        assert!(list.bytes() < 20_000, "{}", list.bytes());
    }
}
