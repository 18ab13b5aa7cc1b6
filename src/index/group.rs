//! Documents with equal signatures, in the orders in which lookups list them.

use std::borrow::Cow;

use parking_lot::{RwLock, RwLockReadGuard};

use super::arena::Arena;
use super::place::Place;
use super::place_list::PlaceList;
use crate::types::Seq;

/// Documents with equal signatures. A reader may keep the group: it stays the same object when another member becomes
/// its leader.
pub(super) struct Group(RwLock<GroupMembers>);

/// The members of a group. Each keeps its place while the group is locked.
pub(super) struct GroupMembers {
    /// All members, by content and `seq`.
    all: PlaceList,
    /// The members that can be found by their bands, by `seq`. Absent if the list would be equal to `all`.
    findable: Option<Box<PlaceList>>,
    /// The content that all members have, as long as `findable` is absent.
    content: u64,
}

impl Group {
    pub(super) fn new(members: GroupMembers) -> Self {
        Self(RwLock::new(members))
    }

    /// Changes the members. Lookups in the group wait until that is done.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut GroupMembers) -> T) -> T {
        change(&mut self.0.write())
    }

    /// Locks the members for reading. Changes wait until the guard is dropped.
    pub(super) fn members(&self) -> RwLockReadGuard<'_, GroupMembers> {
        self.0.read()
    }

    /// Returns the member that will lead the group instead of `of`. This is the last other member that can be found
    /// by its bands, because expiry reaches the last member last. If there is no such member, it is the last of all
    /// other members.
    pub(super) fn heir(&self, of: Place) -> Option<Place> {
        let members = self.0.read();
        let other = |list: &PlaceList| list.iter().rev().find(|&place| place != of);
        other(members.findable()).or_else(|| other(&members.all))
    }
}

impl GroupMembers {
    /// Makes a group of places whose signatures are equal.
    pub(super) fn of(arena: &Arena, mut places: Vec<Place>, findable: impl Fn(Place) -> bool) -> Self {
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

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the members that can be found by their bands, in the order in which they were stored.
    pub(super) fn found(&self) -> impl Iterator<Item = Place> {
        self.findable().iter()
    }

    /// Returns the members with this content, links included, in the order in which they were stored. Returns none if
    /// `content` is 0.
    pub(super) fn of_content<'a>(&'a self, arena: &'a Arena, content: u64) -> impl Iterator<Item = Place> + 'a {
        self.since_content(arena, content).take_while(move |&place| content != 0 && arena.content(place) == content)
    }

    /// Returns all members in the order of content and `seq`, starting with this content.
    pub(super) fn since_content<'a>(&'a self, arena: &'a Arena, content: u64) -> impl Iterator<Item = Place> + 'a {
        self.all.from((content, Seq(0)), by_content(arena))
    }

    /// Returns all members in the order of content and `seq`. If fewer than a quarter of the members can be found by
    /// their bands, returns only those. Otherwise a lookup might read a million links that have the same content.
    pub(super) fn findable_by_content(&self, arena: &Arena) -> Cow<'_, PlaceList> {
        match &self.findable {
            Some(findable) if findable.len() < self.all.len() / 4 => {
                let mut places: Vec<Place> = findable.iter().collect();
                places.sort_unstable_by_key(|&place| by_content(arena)(place));
                Cow::Owned(PlaceList::of(&places))
            }
            _ => Cow::Borrowed(&self.all),
        }
    }

    pub(super) fn findable(&self) -> &PlaceList {
        self.findable.as_deref().unwrap_or(&self.all)
    }

    pub(super) fn add(&mut self, arena: &Arena, place: Place, findable: bool) {
        if self.findable.is_none() && (!findable || arena.content(place) != self.content) {
            // Until now, both lists would be the same, so the new list begins as a copy.
            self.findable = Some(Box::new(self.all.clone()));
        }
        self.all.insert(place, by_content(arena));
        if findable && let Some(list) = &mut self.findable {
            list.insert(place, by_seq(arena));
        }
    }

    pub(super) fn set_findable(&mut self, arena: &Arena, place: Place, findable: bool) {
        let list = self.findable.get_or_insert_with(|| Box::new(self.all.clone()));
        if findable {
            list.insert(place, by_seq(arena));
        } else {
            list.remove(place, by_seq(arena));
        }
    }

    pub(super) fn remove(&mut self, arena: &Arena, place: Place) {
        self.all.remove(place, by_content(arena));
        if let Some(list) = &mut self.findable {
            list.remove(place, by_seq(arena));
        }
    }

    pub(super) fn bytes(&self) -> u64 {
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
