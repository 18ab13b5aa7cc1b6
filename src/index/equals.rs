//! Signature -> the documents that have it, links included. Documents with equal signatures form a group with a leader.
//! Only the leader is in the table. If any member can be found by its bands, the leader alone has the postings, because
//! all members would be in the same buckets of every band. A lookup compares the group once. It lists the members in
//! the order in which they were stored, or the members with the query's content first. The table works like the table
//! of ids: a document without a group takes about seven bytes.

use std::sync::Arc;

use dashmap::DashMap;

use super::arena::Arena;
use super::flags::{Flag, Flags};
use super::group::{Group, GroupMembers};
use super::place::Place;
use super::pool::Pool;
use super::seed::Seed;
use super::shard::Keys;
use super::sync::{AtomicU64, Ordering};
use super::table::Table;
use crate::types::Seq;

/// All documents by their signatures.
pub(super) struct Equals {
    /// The leaders: one place for each signature.
    table: Table,
    seed: Seed,
    /// Groups of two or more documents, by leader.
    groups: DashMap<Place, Arc<Group>>,
    flags: Flags,
    /// How often another document became the leader of a group.
    handed_over: AtomicU64,
    group_count: AtomicU64,
    member_bytes: AtomicU64,
}

/// The documents with the same signature as a query.
#[derive(Clone)]
pub(super) struct Twin {
    /// The leader of the group, or the only document.
    pub leader: Place,
    /// If there is only one document: whether it can be found by its bands.
    pub alone_findable: bool,
    /// If there are several documents: their group.
    pub group: Option<Arc<Group>>,
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
            flags: Flags::new(),
            handed_over: AtomicU64::new(0),
            group_count: AtomicU64::new(0),
            member_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the bytes of groups and flags. The pool counts the bytes of the table.
    pub(super) fn bytes(&self) -> u64 {
        // The bytes of an entry and its control byte in a map that is two thirds full, plus the reference counts of the
        // group.
        const ENTRY_BYTES: usize = (size_of::<(Place, Arc<Group>)>() + 1) * 3 / 2 + 2 * size_of::<usize>();
        let groups = self.group_count.load(Ordering::Relaxed);
        self.flags.bytes()
            + self.member_bytes.load(Ordering::Relaxed)
            + groups * (ENTRY_BYTES + size_of::<Group>()) as u64
    }

    /// Returns the flags of all places.
    #[inline]
    pub(super) fn flags(&self) -> &Flags {
        &self.flags
    }

    /// Returns whether there is any group.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.group_count.load(Ordering::Relaxed) > 0
    }

    /// Returns how often another document became a leader. If postings move to the new leader, the number increases
    /// while the shards of these postings are locked.
    pub(super) fn handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Acquire)
    }

    /// Returns whether a place leads a group.
    #[inline]
    pub(super) fn leads(&self, place: Place) -> bool {
        self.flags.has(place, Flag::Leads)
    }

    /// Returns the group that a place leads. The result is valid only while the place cannot lose its postings or its
    /// entry in the table. Hold the lock of a posting or of the entry to ensure this.
    #[inline]
    pub(super) fn led_by(&self, place: Place) -> Option<Arc<Group>> {
        if !self.leads(place) {
            return None;
        }
        self.groups.get(&place).map(|group| Arc::clone(&group))
    }

    /// Returns the documents with the same signature as a query. `key` is the value that [`Self::prefetch`] returned.
    pub(super) fn twin(&self, arena: &Arena, words: &[u64], key: u64) -> Option<Twin> {
        let shard = self.table.read(key);
        let equal = |held: Place| {
            let cells = arena.signature(held).iter().zip(words);
            cells.into_iter().all(|(cell, &word)| cell.load(Ordering::Relaxed) == word)
        };
        let leader = shard.members(key, equal).iter().next()?;
        let (alone_findable, group) = (self.flags.has(leader, Flag::Findable), self.led_by(leader));
        Some(Twin { leader, alone_findable, group })
    }

    /// Returns the key of a signature for [`Self::twin`], and starts to prefetch the data that `twin` reads.
    pub(super) fn prefetch(&self, words: &[u64]) -> u64 {
        let key = self.seed.key_of_all(words.iter().copied());
        self.table.prefetch(key);
        key
    }

    /// Prefetches the data of the next step. Call it after the memory that [`Self::prefetch`] requested has arrived.
    pub(super) fn prefetch_home(&self, key: u64) {
        self.table.read(key).prefetch_home(key);
    }

    /// Returns the leader of the documents with the signature of a published place.
    pub(super) fn leader(&self, arena: &Arena, place: Place) -> Option<Place> {
        let key = self.keys(arena).key(place);
        let shard = self.table.read(key);
        shard.members(key, |held| equal(arena, held, place)).iter().next()
    }

    /// Returns the key of the signature of a published place for [`Self::leader_or_add`], and prefetches the bucket of
    /// the key.
    pub(super) fn prefetch_of(&self, arena: &Arena, place: Place) -> u64 {
        let key = self.keys(arena).key(place);
        self.prefetch_home(key);
        key
    }

    /// Returns the leader of the documents with the signature of a published place. If no other document has this
    /// signature, adds the place.
    pub(super) fn leader_or_add(&self, arena: &Arena, pool: &Pool, key: u64, place: Place) -> Option<Place> {
        let keys = self.keys(arena);
        let same = |held| equal(arena, held, place);
        let mut shard = self.table.with_room(pool, key, &keys);
        let leader = shard.members(key, same).iter().next();
        if leader.is_none() {
            shard.insert(pool, key, place, same, |place| keys.order(place));
        }
        leader
    }

    /// Removes a place whose signature no other document has.
    pub(super) fn not_alone(&self, arena: &Arena, pool: &Pool, place: Place) {
        let keys = self.keys(arena);
        self.table.remove(pool, keys.key(place), place, |held| equal(arena, held, place), &keys);
    }

    /// Resizes one shard of the table, if a shard is due. Returns whether one was due.
    pub(super) fn resize_next(&self, arena: &Arena, pool: &Pool) -> bool {
        self.table.resize_next(pool, &self.keys(arena))
    }

    /// Adds a place to the documents that `leader` leads. Returns how many of them are findable now.
    pub(super) fn join(&self, arena: &Arena, leader: Place, place: Place) -> usize {
        let findable = |place| self.flags.has(place, Flag::Findable);
        match self.led_by(leader) {
            Some(group) => self.change(&group, |members| members.add(arena, place, findable(place))),
            None => {
                let members = GroupMembers::of(arena, vec![leader, place], findable);
                let count = members.findable().len();
                self.form(leader, members);
                count
            }
        }
    }

    /// Changes whether a member can be found. Returns how many members can be found now.
    pub(super) fn set_findable(&self, arena: &Arena, group: &Group, place: Place, findable: bool) -> usize {
        self.change(group, |members| members.set_findable(arena, place, findable))
    }

    /// Removes `place` from the group led by `leader`. Returns how many members can be found now. If one member is
    /// left, the group is dissolved.
    pub(super) fn part(&self, arena: &Arena, leader: Place, group: &Group, place: Place) -> usize {
        let findable = self.change(group, |members| members.remove(arena, place));
        let left = {
            let members = group.members();
            (members.len() == 1).then(|| members.bytes())
        };
        if let Some(bytes) = left {
            self.flags.set(leader, Flag::Leads, false);
            self.groups.remove(&leader);
            self.group_count.fetch_sub(1, Ordering::Relaxed);
            self.member_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        findable
    }

    /// Makes `to` the leader of the group that `from` leads. If the postings move too, the caller holds the locks of
    /// their shards.
    pub(super) fn hand_over(&self, arena: &Arena, pool: &Pool, from: Place, to: Place) {
        self.handed_over.fetch_add(1, Ordering::Release);
        let keys = self.keys(arena);
        let key = keys.key(from);
        // The lock is held until the group is stored under its new leader, so that a lookup of the signature finds the
        // group under the old leader or under the new one.
        let mut shard = self.table.write(key);
        shard.replace(pool, key, (from, to), |held| equal(arena, held, from), |place| keys.order(place));
        if let Some((_, group)) = self.groups.remove(&from) {
            self.groups.insert(to, group);
            self.flags.set(to, Flag::Leads, true);
            self.flags.set(from, Flag::Leads, false);
        }
    }

    /// Adds many places to an empty index. `hashed` contains the sorted results of [`Self::hashed`]. Collects the
    /// leaders.
    pub(super) fn add_all(&self, arena: &Arena, hashed: &[u64], leaders: &mut Vec<Place>) {
        let findable = |place| self.flags.has(place, Flag::Findable);
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
                    self.form(leader, GroupMembers::of(arena, class, findable));
                }
            }
        }
    }

    /// Returns 32 bits of the signature's hash in the upper half, and the place in the lower half.
    pub(super) fn hashed(&self, arena: &Arena, place: Place) -> u64 {
        self.keys(arena).key(place) >> 32 << 32 | u64::from(place.0)
    }

    /// Puts leaders into an empty table.
    pub(super) fn place_all(&self, arena: &Arena, pool: &Pool, leaders: &[Place]) {
        self.table.fill(pool, leaders, |a, b| equal(arena, a, b), &self.keys(arena), |_| {});
    }

    /// Returns the leader of each group, with the number of members that can be found. The result is a copy, so no
    /// thread waits for the caller.
    pub(super) fn sizes(&self) -> Vec<(Place, usize)> {
        self.groups.iter().map(|group| (*group.key(), group.members().findable().len())).collect()
    }

    fn form(&self, leader: Place, members: GroupMembers) {
        self.member_bytes.fetch_add(members.bytes(), Ordering::Relaxed);
        self.group_count.fetch_add(1, Ordering::Relaxed);
        self.groups.insert(leader, Arc::new(Group::new(members)));
        self.flags.set(leader, Flag::Leads, true);
    }

    fn change(&self, group: &Group, change: impl FnOnce(&mut GroupMembers)) -> usize {
        group.change(|members| {
            let from = members.bytes();
            change(members);
            self.member_bytes.fetch_add(members.bytes().wrapping_sub(from), Ordering::Relaxed);
            members.findable().len()
        })
    }

    fn keys<'a>(&self, arena: &'a Arena) -> SignatureKeys<'a> {
        SignatureKeys { arena, seed: self.seed }
    }
}

fn equal(arena: &Arena, a: Place, b: Place) -> bool {
    let cells = arena.signature(a).iter().zip(arena.signature(b));
    a == b || cells.into_iter().all(|(a, b)| a.load(Ordering::Relaxed) == b.load(Ordering::Relaxed))
}
