//! The memory budget: what the documents of all open collections take in the index, against `limits.memory_max_bytes`.
//! In: what each collection's index claims. Out: room for a document more, or a refusal before anything grows.
//!
//! The index says what the documents of a collection hold of it, so a delete makes just the room for another document.
//! That room counts as free for other collections too, though the memory stays with the collection until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::index::Index;
use crate::telemetry::{memory, names};
use crate::verdicts::{CollectionError, Result};

/// The log says so when this share is passed, and again once it is well below.
const WARN_PERCENT: u64 = 80;
const CALM_PERCENT: u64 = 75;

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
pub(crate) struct BudgetShare {
    budget: Arc<MemoryBudget>,
    /// What the budget knows of it.
    told: u64,
}

impl BudgetShare {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, told: 0 }
    }

    /// Brings the budget up to date; watch it when no decision lock is held.
    pub(crate) fn account(&mut self, index: &Index) -> Arc<MemoryBudget> {
        self.tell(index.claim());
        Arc::clone(&self.budget)
    }

    /// Refuses a document for which the budget has no room.
    pub(crate) fn admit(&mut self, index: &Index) -> Result<()> {
        let Some(max) = self.budget.max else { return Ok(()) };
        self.tell(index.claim());
        let used = self.budget.used();
        if used + index.claim_of_one() <= max {
            return Ok(());
        }
        Err(CollectionError::MemoryBudget { used, max })
    }

    fn tell(&mut self, used: u64) {
        self.budget.used.fetch_add(used.wrapping_sub(self.told), Ordering::Relaxed);
        self.told = used;
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.tell(0);
    }
}
