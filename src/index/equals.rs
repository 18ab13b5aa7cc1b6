//! Documents with equal signatures: they would be in the same buckets of every band, so one of them has the postings,
//! and a list behind it has the others.
//! Most slots have no list, which a bit tells.

use dashmap::DashMap;
use dashmap::mapref::one::Ref;

use super::chunks::Chunks;
use super::sync::{AtomicU64, Ordering};
use crate::types::Slot;

/// Lists of slots.
pub(super) struct Equals {
    /// The slot that has the postings -> the others.
    others: DashMap<Slot, Vec<Slot>>,
    /// A bit for each slot that has others, 64 to a row.
    holders: Chunks,
    lists: AtomicU64,
    list_bytes: AtomicU64,
}

impl Default for Equals {
    fn default() -> Self {
        Self {
            others: DashMap::new(),
            holders: Chunks::new(1),
            lists: AtomicU64::new(0),
            list_bytes: AtomicU64::new(0),
        }
    }
}

impl Equals {
    /// The others of a slot; `None` where there are none.
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> Option<Ref<'_, Slot, Vec<Slot>>> {
        let (row, bit) = place(slot);
        let held = self.holders.row(row).is_some_and(|cells| cells[0].load(Ordering::Acquire) & bit != 0);
        if held { self.others.get(&slot) } else { None }
    }

    /// How many slots have others.
    pub(super) fn len(&self) -> u64 {
        self.lists.load(Ordering::Relaxed)
    }

    /// Each slot that has others, and how many. Copied, so that nobody waits.
    pub(super) fn sizes(&self) -> Vec<(Slot, usize)> {
        self.others.iter().map(|list| (*list.key(), list.len())).collect()
    }

    /// Bytes of all lists.
    pub(super) fn bytes(&self) -> u64 {
        // An entry of the map and its control byte, at two thirds of the places in use.
        const ENTRY_BYTES: u64 = (size_of::<(Slot, Vec<Slot>)>() + 1) as u64 * 3 / 2;
        self.list_bytes.load(Ordering::Relaxed) + self.len() * ENTRY_BYTES
    }

    /// Adds a slot to the others of another, and returns how many they were.
    pub(super) fn push(&self, holder: Slot, slot: Slot) -> usize {
        let mut others = self.others.entry(holder).or_default();
        let (before, from) = (others.len(), bytes_of(&others));
        if before == others.capacity() {
            others.reserve_exact((before / 4).max(2));
        }
        others.push(slot);
        self.changed(from, bytes_of(&others));
        drop(others);
        if before == 0 {
            self.holds(holder);
        }
        before
    }

    /// Takes a slot out of the others of another, and returns how many they were; `None` if it is not one of them.
    pub(super) fn remove(&self, holder: Slot, slot: Slot) -> Option<usize> {
        let mut others = self.others.get_mut(&holder)?;
        let at = others.iter().position(|&held| held == slot)?;
        let (before, from) = (others.len(), bytes_of(&others));
        others.remove(at);
        if others.capacity() > 2 * others.len() {
            let kept = others.len() + others.len() / 4;
            others.shrink_to(kept);
        }
        self.changed(from, bytes_of(&others));
        drop(others);
        if before == 1 {
            self.holds_no_more(holder);
        }
        Some(before)
    }

    /// The first of a slot's others takes its place, and has the rest behind it. Returns it, and how many they were;
    /// `None` where there are none.
    pub(super) fn hand_over(&self, holder: Slot) -> Option<(Slot, usize)> {
        let mut others = self.holds_no_more(holder)?;
        let before = others.len();
        let heir = others.remove(0);
        if !others.is_empty() {
            self.changed(0, bytes_of(&others));
            self.others.insert(heir, others);
            self.holds(heir);
        }
        Some((heir, before))
    }

    fn holds(&self, holder: Slot) {
        let (row, bit) = place(holder);
        self.holders.make(row)[0].fetch_or(bit, Ordering::Release);
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    fn holds_no_more(&self, holder: Slot) -> Option<Vec<Slot>> {
        let (_, others) = self.others.remove(&holder)?;
        let (row, bit) = place(holder);
        self.holders.make(row)[0].fetch_and(!bit, Ordering::Relaxed);
        self.changed(bytes_of(&others), 0);
        self.lists.fetch_sub(1, Ordering::Relaxed);
        Some(others)
    }

    fn changed(&self, from: u64, to: u64) {
        self.list_bytes.fetch_add(to.wrapping_sub(from), Ordering::Relaxed);
    }
}

fn place(slot: Slot) -> (u32, u64) {
    (slot.0 / u64::BITS, 1 << (slot.0 % u64::BITS))
}

fn bytes_of(list: &Vec<Slot>) -> u64 {
    (list.capacity() * size_of::<Slot>()) as u64
}
