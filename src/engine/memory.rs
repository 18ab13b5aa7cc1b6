//! The memory budget: what the documents of all open collections take in the index, against `limits.memory_max_bytes`.
//! In: each collection's count of slots and bytes. Out: room for a document more, or a refusal before anything grows.
//!
//! What the index has taken from the system it keeps for documents to come, so a delete makes no process smaller. What
//! counts here is what documents hold of it, so that a delete makes just the room for another: slots in use, and for
//! each posting and id its part of a table as it stands after growing. So nothing has to grow past the budget later, and
//! where nothing was deleted the index is at most that large, but for a page of 4 KiB a table and collection. Room that one collection has been left with counts as free
//! for others too; only a drop gives it back indeed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::expiry::SeenTimes;
use super::order::Order;
use super::{Collection, CollectionError, Live, Result};
use crate::telemetry::{memory, names, names::value};

/// The log says so when this share is passed, and again once it is well below.
const WARN_PERCENT: u64 = 80;
const CALM_PERCENT: u64 = 75;
/// Tenths of a byte that a posting or an id takes in tables that have just grown, to 59 % on average: 64 bytes hold twelve
/// at most. That is on the safe side: on the whole they stand at three quarters.
const ENTRY_BYTES_TENTHS: u64 = 91;
/// Percent to which a table may grow at once, from 93 % full to 52 %, rounded up.
const GROWN_PERCENT: u64 = 179;

/// The budget of all collections of a process.
pub(crate) struct MemoryBudget {
    /// `None`: as much as there is.
    max: Option<u64>,
    /// What `hapax_memory_budget_bytes` shows.
    granted: Option<u64>,
    used: AtomicU64,
    warned: AtomicBool,
}

impl MemoryBudget {
    pub(crate) fn new(max: Option<u64>) -> Self {
        let granted = max.or_else(memory::budget_bytes);
        if let Some(granted) = granted {
            metrics::gauge!(names::MEMORY_BUDGET).set(granted as f64);
        }
        Self { max, granted, used: AtomicU64::new(0), warned: AtomicBool::new(false) }
    }

    /// Sets the gauges.
    pub(crate) fn observe(&self) {
        let used = self.used() as f64;
        metrics::gauge!(names::MEMORY_USED).set(used);
        metrics::gauge!(names::MEMORY_USED_RATIO).set(self.granted.map_or(0.0, |granted| used / granted as f64));
    }

    /// Tells the log where the budget becomes scarce, and where it no longer is. Not under a decision lock.
    pub(crate) fn watch(&self) {
        let Some(max) = self.max else { return };
        let used = self.used();
        // In this order: of several that see the same only one tells.
        if passes(used, max, WARN_PERCENT) && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                used_bytes = used,
                max_bytes = max,
                "the index has passed {WARN_PERCENT} % of limits.memory_max_bytes; where that is reached, insertions are refused"
            );
        } else if !passes(used, max, CALM_PERCENT) && self.warned.swap(false, Ordering::Relaxed) {
            tracing::info!(
                used_bytes = used,
                max_bytes = max,
                "the index is below {CALM_PERCENT} % of limits.memory_max_bytes"
            );
        }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

fn passes(used: u64, max: u64, percent: u64) -> bool {
    u128::from(used) * 100 >= u128::from(max) * u128::from(percent)
}

/// One collection's share of the budget, given back when dropped. Under its decision lock.
pub(crate) struct Share {
    budget: Arc<MemoryBudget>,
    /// What the budget knows of it.
    told: u64,
    /// Documents that are gone, on disk too, and keep their slots for readers that came before.
    pub leaving: u64,
}

impl Share {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, told: 0, leaving: 0 }
    }

    fn tell(&mut self, used: u64) {
        self.budget.used.fetch_add(used.wrapping_sub(self.told), Ordering::Relaxed);
        self.told = used;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.tell(0);
    }
}

impl Collection {
    /// Bytes of the index by part.
    pub(crate) fn index_bytes(&self, live: &Live, slots: u32) -> [(&'static str, u64); 4] {
        let slots = u64::from(slots);
        let [postings, ids] = self.tables(live);
        [
            (value::PART_SIGNATURES, self.arena.bytes_for(slots)),
            postings,
            ids,
            (value::PART_SEEN_TIMES, live.seen_times.as_ref().map_or(0, |_| SeenTimes::bytes_for(slots))),
        ]
    }

    /// Refuses a document for which the budget has no room.
    pub(crate) fn admit(&self, live: &Live, order: &mut Order) -> Result<()> {
        let Some(max) = order.memory.budget.max else { return Ok(()) };
        self.account(live, order);
        let used = order.memory.budget.used();
        if used + self.slot_bytes(live, 1) + grown_bytes(live, 1) <= max {
            return Ok(());
        }
        self.meters.memory_refused.increment(1);
        Err(CollectionError::MemoryBudget { used, max })
    }

    /// Brings the budget up to date, and tells the log where that is news.
    pub(crate) fn account_now(&self) {
        let mut order = self.order.lock();
        self.account(&self.live.read(), &mut order);
        let budget = Arc::clone(&order.memory.budget);
        drop(order);
        budget.watch();
    }

    fn account(&self, live: &Live, order: &mut Order) {
        // Some stand without a document, or with one that is gone but for its earlier readers.
        let empty = order.free.len() as u64 + order.memory.leaving;
        let documents = u64::from(order.slots).saturating_sub(empty);
        let held: u64 = self.tables(live).iter().map(|(_, bytes)| bytes).sum();
        // Links have no postings, and documents with equal signatures share theirs.
        let tables = grown_bytes(live, documents).min(held * GROWN_PERCENT / 100);
        // They take whole pages, which tells where entries are few.
        let tables = if empty == 0 { tables.max(held) } else { tables };
        order.memory.tell(self.slot_bytes(live, documents) + tables);
    }

    /// What so many slots take.
    fn slot_bytes(&self, live: &Live, slots: u64) -> u64 {
        self.arena.bytes_for(slots) + live.seen_times.as_ref().map_or(0, |_| SeenTimes::bytes_for(slots))
    }

    fn tables(&self, live: &Live) -> [(&'static str, u64); 2] {
        let next = live.next.as_ref().map_or(0, |next| next.bytes());
        [(value::PART_POSTINGS, live.bands.bytes() + next), (value::PART_IDS, self.ids.bytes())]
    }
}

/// What the postings and ids of so many documents take in tables that have just grown.
fn grown_bytes(live: &Live, documents: u64) -> u64 {
    // A posting a band, and one in the table of signatures.
    let entries_of = |bands: u32| u64::from(bands) + 1;
    let next = live.next.as_ref().map_or(0, |next| entries_of(next.banding().bands()));
    let ids = 1;
    let entries = entries_of(live.settings.banding.bands()) + next + ids;
    documents * entries * ENTRY_BYTES_TENTHS / 10
}
