//! Signature -> the documents that have it, links included.
//! Documents with equal signatures form a group. One of them leads it: it is in the table, and where any of the group can
//! be found by its bands, it alone has the postings, for they would be in the same buckets of every band. A lookup
//! compares the group once and lists its members, the first stored first, or first those of equal content.
//! The table is like that of ids: a document alone takes seven bytes or so.

use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::{RwLock, RwLockReadGuard};

use super::Arena;
use super::chunks::Chunks;
use super::place::Place;
use super::place_list::PlaceList;
use super::pool::Pool;
use super::seed::Seed;
use super::shard::Keys;
use super::sync::{AtomicU64, Ordering};
use super::table::Table;
use crate::types::Seq;

/// What there is to know of a place, a bit each.
#[derive(Clone, Copy)]
pub(super) enum Flag {
    /// It is in the index.
    Here,
    /// It can be found by its bands: itself, or through the leader of its group.
    Findable,
    /// It has postings.
    Posted,
    /// It leads a group of several.
    Leads,
}

const FLAGS: usize = 4;

/// All documents by their signatures.
pub(super) struct Equals {
    /// The leaders: one place for each signature.
    table: Table,
    seed: Seed,
    /// Groups of several, by their leader.
    groups: DashMap<Place, Arc<Group>>,
    /// The flags of 64 places in a row.
    flags: Chunks,
    group_count: AtomicU64,
    member_bytes: AtomicU64,
    /// Places that have been here: their flags take memory.
    places: AtomicU64,
}

/// Documents with equal signatures. A reader may keep it: it stays the same group when another leads it.
pub struct Group(RwLock<Members>);

/// The members of a group, while nothing changes them: each stays where it is.
pub struct Members {
    /// All of them, by content and `seq`.
    all: PlaceList,
    /// Those that can be found by their bands, by `seq`; absent if that is all of them in the same order.
    findable: Option<Box<PlaceList>>,
    /// The content of all, as long as `findable` is absent.
    content: u64,
}

/// The documents that have a signature.
#[derive(Clone)]
pub struct Twin {
    /// One of them, or the only one.
    pub(super) leader: Place,
    /// Whether the only one can be found by its bands.
    pub alone_findable: bool,
    /// The others, and itself.
    pub group: Option<Arc<Group>>,
}

impl Twin {
    /// The only document with this signature, or one of several.
    pub fn place(&self) -> Place {
        self.leader
    }
}

struct SignatureKeys<'a> {
    arena: &'a Arena,
    seed: Seed,
}

impl Keys for SignatureKeys<'_> {
    fn key(&self, place: Place) -> u64 {
        self.seed.key_of_all(self.arena.signature(place).iter().map(|cell| cell.load(Ordering::Relaxed)))
    }

    fn order(&self, place: Place) -> Seq {
        self.arena.seq(place)
    }

    fn prefetch(&self, place: Place) {
        self.arena.prefetch_row(place, self.arena.words());
    }
}

impl Equals {
    pub(super) fn new(seed: Seed) -> Self {
        Self {
            table: Table::new(0, 1),
            seed,
            groups: DashMap::new(),
            flags: Chunks::new(FLAGS),
            group_count: AtomicU64::new(0),
            member_bytes: AtomicU64::new(0),
            places: AtomicU64::new(0),
        }
    }

    /// Bytes of groups and flags; the table's are the pool's.
    pub(super) fn bytes(&self) -> u64 {
        // An entry of the map and its control byte, at two thirds of the places in use, and the group.
        const ENTRY_BYTES: usize = (size_of::<(Place, Arc<Group>)>() + 1) * 3 / 2 + 2 * size_of::<usize>();
        let groups = self.group_count.load(Ordering::Relaxed);
        let flags = self.places.load(Ordering::Relaxed) * FLAGS as u64 / u64::from(u8::BITS);
        flags + self.member_bytes.load(Ordering::Relaxed) + groups * (ENTRY_BYTES + size_of::<Group>()) as u64
    }

    #[inline]
    pub(super) fn has(&self, place: Place, flag: Flag) -> bool {
        let (row, bit) = row_and_bit(place);
        self.flags.row(row).is_some_and(|cells| cells[flag as usize].load(Ordering::Acquire) & bit != 0)
    }

    /// Whether there is any group.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.group_count.load(Ordering::Relaxed) > 0
    }

    pub(super) fn set(&self, place: Place, flag: Flag, on: bool) {
        let (row, bit) = row_and_bit(place);
        let cell = &self.flags.make(row)[flag as usize];
        if on {
            cell.fetch_or(bit, Ordering::Release);
        } else {
            cell.fetch_and(!bit, Ordering::Release);
        }
    }

    /// A place is in the index from here on.
    pub(super) fn enter(&self, place: Place, findable: bool) {
        self.places.fetch_max(u64::from(place.0) + 1, Ordering::Relaxed);
        self.set(place, Flag::Here, true);
        self.set(place, Flag::Findable, findable);
    }

    /// Forgets all about a place.
    pub(super) fn clear(&self, place: Place) {
        [Flag::Here, Flag::Findable, Flag::Posted, Flag::Leads]
            .into_iter()
            .for_each(|flag| self.set(place, flag, false));
    }

    /// The group that a place leads. Means something while the caller keeps the place from losing its postings, or its
    /// place in the table, as the lock of either does.
    #[inline]
    pub(super) fn led_by(&self, place: Place) -> Option<Arc<Group>> {
        if !self.has(place, Flag::Leads) {
            return None;
        }
        self.groups.get(&place).map(|group| Arc::clone(&group))
    }

    /// The documents that have a signature; `key` is what [`Self::prefetch`] returned.
    pub(super) fn twin(&self, arena: &Arena, words: &[u64], key: u64) -> Option<Twin> {
        let shard = self.table.read(key);
        let equal = |held: Place| {
            let cells = arena.signature(held).iter().zip(words);
            cells.into_iter().all(|(cell, &word)| cell.load(Ordering::Relaxed) == word)
        };
        let leader = shard.members(key, equal).iter().next()?;
        let (alone_findable, group) = (self.has(leader, Flag::Findable), self.led_by(leader));
        Some(Twin { leader, alone_findable, group })
    }

    /// The key of a signature for [`Self::twin`], and memory on its way.
    pub(super) fn prefetch(&self, words: &[u64]) -> u64 {
        let key = self.seed.key_of_all(words.iter().copied());
        self.table.prefetch(key);
        key
    }

    /// More memory on its way, once what [`Self::prefetch`] asked for is there.
    pub(super) fn prefetch_home(&self, key: u64) {
        self.table.read(key).prefetch_home(key);
    }

    /// The leader of the documents with the signature of a published place.
    pub(super) fn leader(&self, arena: &Arena, place: Place) -> Option<Place> {
        let key = self.keys(arena).key(place);
        let shard = self.table.read(key);
        shard.members(key, |held| equal(arena, held, place)).iter().next()
    }

    /// Adds a place whose signature no other has.
    pub(super) fn alone(&self, arena: &Arena, pool: &Pool, place: Place) {
        let keys = self.keys(arena);
        self.table.insert(pool, keys.key(place), place, |held| equal(arena, held, place), &keys);
    }

    /// Takes out a place whose signature no other has.
    pub(super) fn not_alone(&self, arena: &Arena, pool: &Pool, place: Place) {
        let keys = self.keys(arena);
        self.table.remove(pool, keys.key(place), place, |held| equal(arena, held, place), &keys);
    }

    /// Adds a place to those that another leads; returns how many of them are findable now.
    pub(super) fn join(&self, arena: &Arena, leader: Place, place: Place) -> usize {
        let findable = |place| self.has(place, Flag::Findable);
        match self.led_by(leader) {
            Some(group) => self.change(&group, |members| members.add(arena, place, findable(place))),
            None => {
                let members = Members::of(arena, vec![leader, place], findable);
                let count = members.findable().len();
                self.found(leader, members);
                count
            }
        }
    }

    /// Changes whether a member can be found; returns how many can be then.
    pub(super) fn set_findable(&self, arena: &Arena, group: &Group, place: Place, findable: bool) -> usize {
        self.change(group, |members| members.set_findable(arena, place, findable))
    }

    /// Takes a place out of a group; returns how many of it can be found. A group of one is none: if one is left, it
    /// leads itself only.
    pub(super) fn part(&self, arena: &Arena, leader: Place, group: &Group, place: Place) -> usize {
        let findable = self.change(group, |members| members.remove(arena, place));
        if group.0.read().all.len() == 1 {
            self.set(leader, Flag::Leads, false);
            self.groups.remove(&leader);
            self.group_count.fetch_sub(1, Ordering::Relaxed);
            self.member_bytes.fetch_sub(group.0.read().bytes(), Ordering::Relaxed);
        }
        findable
    }

    /// Another member leads a group from here on. The caller holds the locks of the postings, where these go with it.
    pub(super) fn hand_over(&self, arena: &Arena, pool: &Pool, from: Place, to: Place) {
        let keys = self.keys(arena);
        let key = keys.key(from);
        // Held until the group is found by its new leader: a lookup of the signature finds it by the one or the other.
        let mut shard = self.table.write(key);
        shard.replace(pool, key, (from, to), |held| equal(arena, held, from), |place| keys.order(place));
        if let Some((_, group)) = self.groups.remove(&from) {
            self.groups.insert(to, group);
            self.set(to, Flag::Leads, true);
            self.set(from, Flag::Leads, false);
        }
    }

    /// Adds many places to an empty index, given as [`Self::hashed`] and in that order; collects the leaders.
    pub(super) fn add_all(&self, arena: &Arena, hashed: &[u64], leaders: &mut Vec<Place>) {
        let findable = |place| self.has(place, Flag::Findable);
        for run in hashed.chunk_by(|a, b| a >> 32 == b >> 32) {
            let mut classes: Vec<Vec<Place>> = Vec::new();
            for place in run.iter().map(|&hashed| Place(hashed as u32)) {
                match classes.iter_mut().find(|class| equal(arena, class[0], place)) {
                    Some(class) => class.push(place),
                    None => classes.push(vec![place]),
                }
            }
            for class in classes {
                let leader = class.iter().copied().find(|&place| findable(place)).unwrap_or(class[0]);
                leaders.push(leader);
                if class.len() > 1 {
                    self.found(leader, Members::of(arena, class, findable));
                }
            }
        }
    }

    /// 32 bits of each signature, above the place.
    pub(super) fn hashed(&self, arena: &Arena, place: Place) -> u64 {
        self.keys(arena).key(place) >> 32 << 32 | u64::from(place.0)
    }

    /// Places leaders in an empty table.
    pub(super) fn place_all(&self, arena: &Arena, pool: &Pool, leaders: &[Place]) {
        self.table.fill(pool, leaders, |a, b| equal(arena, a, b), &self.keys(arena), |_| {}, |_| {});
    }

    /// How many can be found of each group, with its leader. Copied, so that no thread waits.
    pub(super) fn sizes(&self) -> Vec<(Place, usize)> {
        self.groups.iter().map(|group| (*group.key(), group.0.read().findable().len())).collect()
    }

    fn found(&self, leader: Place, members: Members) {
        self.member_bytes.fetch_add(members.bytes(), Ordering::Relaxed);
        self.group_count.fetch_add(1, Ordering::Relaxed);
        self.groups.insert(leader, Arc::new(Group(RwLock::new(members))));
        self.set(leader, Flag::Leads, true);
    }

    fn change(&self, group: &Group, change: impl FnOnce(&mut Members)) -> usize {
        let mut members = group.0.write();
        let from = members.bytes();
        change(&mut members);
        self.member_bytes.fetch_add(members.bytes().wrapping_sub(from), Ordering::Relaxed);
        members.findable().len()
    }

    fn keys<'a>(&self, arena: &'a Arena) -> SignatureKeys<'a> {
        SignatureKeys { arena, seed: self.seed }
    }
}

impl Group {
    /// Its members as they are now; changes wait meanwhile.
    pub fn members(&self) -> RwLockReadGuard<'_, Members> {
        self.0.read()
    }

    /// The member to lead in the place of one that goes: of those that can be found, if there is another. The last one,
    /// which expiry takes last.
    pub(super) fn heir(&self, of: Place) -> Option<Place> {
        let members = self.0.read();
        let other = |list: &PlaceList| list.iter().rev().find(|&place| place != of);
        other(members.findable()).or_else(|| other(&members.all))
    }
}

impl Members {
    fn of(arena: &Arena, mut places: Vec<Place>, findable: impl Fn(Place) -> bool) -> Self {
        places.sort_unstable_by_key(|&place| by_content(arena)(place));
        let content = arena.content(places[0]);
        let all = PlaceList::of(&places);
        let plain = places.iter().all(|&place| findable(place) && arena.content(place) == content);
        let findable = (!plain).then(|| {
            places.retain(|&place| findable(place));
            places.sort_unstable_by_key(|&place| by_seq(arena)(place));
            Box::new(PlaceList::of(&places))
        });
        Self { all, findable, content }
    }

    /// Those that can be found by their bands, the first stored first.
    pub fn found(&self) -> impl Iterator<Item = Place> {
        self.findable().iter()
    }

    /// Those of a content, links too, the first stored first. 0 is no content.
    pub fn of_content<'a>(&'a self, arena: &'a Arena, content: u64) -> impl Iterator<Item = Place> + 'a {
        self.from_content(arena, content).take_while(move |&place| content != 0 && arena.content(place) == content)
    }

    /// All from a content on, by content and `seq`.
    pub fn from_content<'a>(&'a self, arena: &'a Arena, content: u64) -> impl Iterator<Item = Place> + 'a {
        self.all.from((content, Seq(0)), by_content(arena))
    }

    pub(super) fn findable(&self) -> &PlaceList {
        self.findable.as_deref().unwrap_or(&self.all)
    }

    fn add(&mut self, arena: &Arena, place: Place, findable: bool) {
        if self.findable.is_none() && (!findable || arena.content(place) != self.content) {
            // Until here both are the same, in the same order: a copy of memory.
            self.findable = Some(Box::new(self.all.clone()));
        }
        self.all.insert(place, by_content(arena));
        if findable && let Some(list) = &mut self.findable {
            list.insert(place, by_seq(arena));
        }
    }

    fn set_findable(&mut self, arena: &Arena, place: Place, findable: bool) {
        let list = self.findable.get_or_insert_with(|| Box::new(self.all.clone()));
        if findable {
            list.insert(place, by_seq(arena));
        } else {
            list.remove(place, by_seq(arena));
        }
    }

    fn remove(&mut self, arena: &Arena, place: Place) {
        self.all.remove(place, by_content(arena));
        if let Some(list) = &mut self.findable {
            list.remove(place, by_seq(arena));
        }
    }

    fn bytes(&self) -> u64 {
        let findable = self.findable.as_ref().map_or(0, |list| list.bytes() + size_of::<PlaceList>());
        (self.all.bytes() + findable) as u64
    }
}

fn by_seq(arena: &Arena) -> impl Fn(Place) -> Seq {
    |place| arena.seq(place)
}

fn by_content(arena: &Arena) -> impl Fn(Place) -> (u64, Seq) {
    |place| (arena.content(place), arena.seq(place))
}

fn equal(arena: &Arena, a: Place, b: Place) -> bool {
    let cells = arena.signature(a).iter().zip(arena.signature(b));
    a == b || cells.into_iter().all(|(a, b)| a.load(Ordering::Relaxed) == b.load(Ordering::Relaxed))
}

fn row_and_bit(place: Place) -> (u32, u64) {
    (place.0 / u64::BITS, 1 << (place.0 % u64::BITS))
}
