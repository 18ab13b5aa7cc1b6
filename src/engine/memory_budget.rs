//! The memory budget limits the index memory of all open collections together to `limits.memory_max_bytes`. While the
//! process has reached `memory.max_bytes`, no index may grow. In: the memory that each collection's index claims. Out:
//! permission to add a document, or a refusal before anything grows.
//!
//! The claim covers only the documents that a collection has now, so a delete makes room for one more document. Other
//! collections may use that room too, although the process keeps the memory until the collection is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hapax_core::Banding;

use super::lookup::Lookup;
use crate::telemetry::memory::{Bound, Refused, available};
use crate::telemetry::names;
use crate::verdicts::{CollectionError, Result};

/// A warning is logged if the index uses more than this share of the budget. A second message is logged when the share
/// falls below [`CALM_PERCENT`].
const WARN_PERCENT: u64 = 80;
const CALM_PERCENT: u64 = 75;

/// The budget of all collections of a process.
pub(crate) struct MemoryBudget {
    /// The limit in bytes. `None`: no limit.
    max: Option<u64>,
    /// The value of `hapax_memory_budget_bytes`.
    granted: Option<u64>,
    used: AtomicU64,
    warned: AtomicBool,
    /// The bound of the whole process.
    process: Arc<Bound>,
}

impl MemoryBudget {
    pub(crate) fn new(max: Option<u64>, process: Arc<Bound>) -> Self {
        let granted = max.or_else(|| available().map(|available| available.bytes));
        if let Some(granted) = granted {
            metrics::gauge!(names::MEMORY_BUDGET).set(granted as f64);
        }
        Self { max, granted, used: AtomicU64::new(0), warned: AtomicBool::new(false), process }
    }

    /// Returns an error if there is no room for documents whose index takes this many bytes.
    pub(crate) fn admit_many(&self, bytes: u64) -> Result<()> {
        if let Some(max) = self.max.filter(|&max| self.used().saturating_add(bytes) > max) {
            return Err(CollectionError::NoRoomForLoad { needed: bytes, max });
        }
        match self.process.max() {
            Some(max) if self.process.is_short() => Err(CollectionError::MemoryShort { max }),
            _ => Ok(()),
        }
    }

    pub(crate) fn observe(&self) {
        let used = self.used() as f64;
        metrics::gauge!(names::MEMORY_USED).set(used);
        metrics::gauge!(names::MEMORY_USED_RATIO).set(self.granted.map_or(0.0, |granted| used / granted as f64));
    }

    /// Logs a warning when the budget becomes scarce, and a message when it is no longer scarce. Must not be called
    /// under a decision lock.
    pub(crate) fn watch(&self) {
        let Some(max) = self.max else { return };
        let used = self.used();
        // `swap` comes last, so if several threads see the same value, only one of them logs it.
        if passes(used, max, WARN_PERCENT) && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                used_bytes = used,
                max_bytes = max,
                "the index uses more than {WARN_PERCENT} % of limits.memory_max_bytes; insertions are refused at 100 %"
            );
        } else if !passes(used, max, CALM_PERCENT) && self.warned.swap(false, Ordering::Relaxed) {
            tracing::info!(
                used_bytes = used,
                max_bytes = max,
                "the index uses less than {CALM_PERCENT} % of limits.memory_max_bytes again"
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

/// One collection's share of the budget. It is returned on drop, and guarded by the collection's decision lock.
pub(crate) struct BudgetShare {
    budget: Arc<MemoryBudget>,
    /// The bytes that the budget counts for this collection.
    told: u64,
    /// The highest number of documents that the index has held. A document that takes the place of a deleted one needs
    /// no additional memory.
    most: u64,
}

impl BudgetShare {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, told: 0, most: 0 }
    }

    /// Updates the budget with the index's current claim. Returns the budget; call [`MemoryBudget::watch`] on it after
    /// the decision lock is released.
    pub(crate) fn account(&mut self, lookup: &Lookup) -> Arc<MemoryBudget> {
        self.note(lookup);
        Arc::clone(&self.budget)
    }

    /// Returns an error if the budget has no room for another document. Also returns an error if the process has no
    /// memory left and the document cannot take the place of a deleted one.
    pub(crate) fn admit(&mut self, lookup: &Lookup) -> Result<()> {
        let (max, short) = (self.budget.max, self.budget.process.is_short());
        if max.is_none() && !short {
            return Ok(());
        }
        self.note(lookup);
        let (used, one) = (self.budget.used(), lookup.index().claim_of_one());
        if let Some(max) = max.filter(|&max| used + one > max) {
            return Err(CollectionError::MemoryBudget { max });
        }
        if short && lookup.index().documents() + 1 > self.most {
            self.budget.process.refused(Refused::Document);
            return self.may_grow();
        }
        Ok(())
    }

    /// Returns an error if the budget has no room for another banding besides the present one.
    pub(crate) fn admit_banding(&mut self, lookup: &Lookup, banding: Banding) -> Result<()> {
        self.note(lookup);
        let needed = self.budget.used() + lookup.index().claim_of_banding(banding);
        match self.budget.max.filter(|&max| needed > max) {
            Some(max) => Err(CollectionError::NoRoomForBanding { needed, max }),
            None => self.may_grow(),
        }
    }

    /// Returns an error if the process has no memory left.
    pub(crate) fn may_grow(&self) -> Result<()> {
        let process = &self.budget.process;
        match process.max().filter(|_| process.is_short()) {
            Some(max) => Err(CollectionError::MemoryShort { max }),
            None => Ok(()),
        }
    }

    fn note(&mut self, lookup: &Lookup) {
        self.most = self.most.max(lookup.index().documents());
        self.tell(lookup.claim());
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
