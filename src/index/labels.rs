//! The labels of documents: each different set of labels has a number, which is stored for each document with this set.
//! Scopes are checked by these numbers, without a lock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::OnceLock;

use parking_lot::Mutex;
use slab::Slab;
use smallvec::SmallVec;

use super::chunks::Chunks;
use super::place::Place;
use super::sync::{AtomicU64, Ordering};
use crate::types::{InvalidLabel, LABELS_MAX, Label, LabelLimits, Labels, SCOPE_TERMS_MAX, SOURCE, Scope};

/// The number of cells of a set. The first cell contains the count of sets made so far, and the others contain the
/// numbers of the labels.
const CELLS: usize = 1 + LABELS_MAX;

/// The maximum number of sets of labels, divided by the maximum number of labels.
pub const SETS_PER_LABEL: usize = 16;

/// A set of labels. The lower half is the row of its cells. The upper half is the count of sets made so far, which
/// distinguishes this set from an earlier one in the same row. 0 means no labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LabelSet(u64);

/// Why the index has no room for labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelsFull {
    /// There are too many labels.
    Labels,
    /// There are too many sets of labels.
    Sets,
    /// The source has too many documents.
    Source,
}

/// The labels of all documents.
pub(super) struct AllLabels {
    /// The set of the document at each place. Absent until a document has labels.
    of_places: OnceLock<Chunks>,
    /// The labels of each set.
    of_sets: Chunks,
    held: Mutex<Held>,
}

/// The sets and labels that some document has, or will have if its write succeeds.
#[derive(Default)]
struct Held {
    numbers: HashMap<Labels, u32>,
    /// The sets. The number of a set is its key in this slab plus 1.
    sets: Slab<HeldSet>,
    keys: BTreeMap<Label, usize>,
    labels: Slab<HeldLabel>,
    /// How many sets have been made.
    sets_before: u32,
    /// How many labels have been made. A label that is released and later held again gets a new number, because a
    /// reader may still use the former number.
    labels_before: u64,
    bytes: u64,
}

struct HeldSet {
    labels: Labels,
    keys: SmallVec<[usize; LABELS_MAX]>,
    /// The value that documents with this set store.
    set: LabelSet,
    holders: u64,
}

struct HeldLabel {
    /// The number of the label. Numbers start at 1.
    number: u64,
    /// The number of sets that contain the label.
    sets: u32,
    /// The number of documents that have the label, according to all decisions so far.
    documents: u64,
}

/// The sets of labels that a scope includes.
pub struct InScope<'a> {
    all: &'a AllLabels,
    /// For each term: the number of the label, and whether documents must lack the label.
    terms: [(u64, bool); SCOPE_TERMS_MAX],
    count: usize,
    /// Whether the scope requires a label that no document has.
    is_empty: bool,
}

impl LabelSet {
    /// The set of a document without labels.
    pub const NONE: Self = Self(0);

    fn new(number: u32, before: u32) -> Self {
        Self(u64::from(before) << 32 | u64::from(number))
    }

    fn number(self) -> u32 {
        self.0 as u32
    }

    /// The key in the slab.
    fn key(self) -> usize {
        self.number() as usize - 1
    }

    fn before(self) -> u64 {
        self.0 >> 32
    }
}

impl AllLabels {
    pub(super) fn new() -> Self {
        Self { of_places: OnceLock::new(), of_sets: Chunks::new(CELLS), held: Mutex::default() }
    }

    /// Returns a set of labels for a document that has the labels `had` so far. The set gets one more holder. Fails if
    /// its new labels would exceed `labels_max`, if there are too many sets, or if the source would have too many
    /// documents.
    pub(super) fn hold(
        &self,
        labels: &Labels,
        had: Option<&Labels>,
        limits: LabelLimits,
    ) -> Result<LabelSet, LabelsFull> {
        if labels.is_empty() {
            return Ok(LabelSet::NONE);
        }
        let LabelLimits { labels_max, source_documents_max } = limits;
        let held = &mut *self.held.lock();
        if let (Some(max), Some(source)) = (source_documents_max, labels.get(SOURCE)) {
            let is_new = had.and_then(|had| had.get(SOURCE)) != Some(source);
            if is_new && held.documents(&format!("{SOURCE}:{source}")) >= max {
                return Err(LabelsFull::Source);
            }
        }
        if let Some(&number) = held.numbers.get(labels) {
            return Ok(held.hold_again(number));
        }
        let parts: SmallVec<[Label; LABELS_MAX]> =
            labels.iter().filter_map(|(name, value)| Label::new(name, value).ok()).collect();
        let new = parts.iter().filter(|&label| !held.keys.contains_key(label)).count();
        if new > 0 && held.labels.len() + new > labels_max {
            return Err(LabelsFull::Labels);
        }
        if held.sets.len() >= labels_max.saturating_mul(SETS_PER_LABEL) {
            return Err(LabelsFull::Sets);
        }
        Ok(self.make(held, labels, parts))
    }

    /// Makes a set with one holder.
    fn make(&self, held: &mut Held, labels: &Labels, parts: SmallVec<[Label; LABELS_MAX]>) -> LabelSet {
        held.sets_before = held.sets_before.wrapping_add(1);
        let entry = held.sets.vacant_key();
        let set = LabelSet::new(entry as u32 + 1, held.sets_before);
        let keys: SmallVec<_> = parts.into_iter().map(|label| held.take_label(label)).collect();
        let cells = self.of_sets.make(set.number());
        // A reader that sees any of the labels below also sees this count.
        cells[0].store(set.before(), Ordering::Release);
        let numbers = keys.iter().map(|&key| held.labels[key].number).chain(std::iter::repeat(0));
        for (cell, number) in cells[1..].iter().zip(numbers) {
            cell.store(number, Ordering::Release);
        }
        held.bytes += set_bytes(labels);
        held.numbers.insert(labels.clone(), set.number());
        held.sets.insert(HeldSet { labels: labels.clone(), keys, set, holders: 1 });
        set
    }

    /// Removes one holder of a set. The place of this holder must not use the set any longer.
    pub(super) fn release(&self, set: LabelSet) {
        if set == LabelSet::NONE {
            return;
        }
        let held = &mut *self.held.lock();
        held.sets[set.key()].holders -= 1;
        if held.sets[set.key()].holders == 0 {
            let HeldSet { labels, keys, .. } = held.sets.remove(set.key());
            held.numbers.remove(&labels);
            held.bytes -= set_bytes(&labels);
            keys.into_iter().zip(labels.as_str().lines()).for_each(|(key, label)| held.give_label(key, label));
        }
    }

    /// Returns the set of labels with this text. The set gets one more holder. Fails if the text does not consist of
    /// labels.
    pub(super) fn load(&self, text: &str) -> Result<LabelSet, InvalidLabel> {
        let known = {
            let held = &mut *self.held.lock();
            held.numbers.get(text).copied().map(|number| held.hold_again(number))
        };
        match known {
            Some(set) => Ok(set),
            None => Ok(self.hold(&Labels::parse(text)?, None, LabelLimits::NONE).expect("there is no limit")),
        }
    }

    /// Sets the labels of the document at a place.
    pub(super) fn set(&self, place: Place, set: LabelSet) {
        if set != LabelSet::NONE {
            self.of_places.get_or_init(|| Chunks::new(1)).make(place.0)[0].store(set.0, Ordering::Release);
        } else if let Some(cells) = self.of_places.get().and_then(|places| places.row(place.0)) {
            cells[0].store(0, Ordering::Release);
        }
    }

    /// Returns the labels of the document at a place.
    #[inline]
    pub(super) fn of(&self, place: Place) -> LabelSet {
        let cells = self.of_places.get().and_then(|places| places.row(place.0));
        LabelSet(cells.map_or(0, |cells| cells[0].load(Ordering::Acquire)))
    }

    /// Adds one decided document to the count of each label in the set, or subtracts one.
    pub(super) fn count(&self, set: LabelSet, is_new: bool) {
        if set == LabelSet::NONE {
            return;
        }
        let Held { sets, labels, .. } = &mut *self.held.lock();
        for &key in &sets[set.key()].keys {
            let documents = &mut labels[key].documents;
            *documents = if is_new { *documents + 1 } else { documents.saturating_sub(1) };
        }
    }

    /// Returns the set of these labels; [`LabelSet::NONE`] if no document has it.
    pub(super) fn known(&self, labels: &Labels) -> LabelSet {
        let held = self.held.lock();
        held.numbers.get(labels).map_or(LabelSet::NONE, |&number| held.sets[number as usize - 1].set)
    }

    /// Returns the first `limit` labels that documents have, in the order of their texts, and how many documents have
    /// each label. With `name`, only labels with this name are listed; with `after`, only labels after that label.
    pub(super) fn counts(&self, name: Option<&str>, after: Option<&Label>, limit: usize) -> Vec<(Label, u64)> {
        let of_name = name.map(|name| format!("{name}:"));
        let of_name = of_name.as_deref().unwrap_or_default();
        let from = match after {
            Some(after) if after.as_str() >= of_name => Bound::Excluded(after.as_str()),
            _ => Bound::Included(of_name),
        };
        let held = self.held.lock();
        let found = held.keys.range::<str, _>((from, Bound::Unbounded));
        let found = found.take_while(|(label, _)| label.as_str().starts_with(of_name));
        let counted = found.map(|(label, &key)| (label, held.labels[key].documents));
        let counted = counted.filter(|&(_, documents)| documents > 0);
        counted.take(limit).map(|(label, documents)| (label.clone(), documents)).collect()
    }

    /// Returns the sets that have a label.
    pub(super) fn sets_with(&self, label: &Label) -> HashSet<LabelSet> {
        let held = self.held.lock();
        let Some(key) = held.keys.get(label) else { return HashSet::new() };
        let with = held.sets.iter().filter(|(_, held)| held.keys.contains(key));
        with.map(|(_, held)| held.set).collect()
    }

    /// Returns how many labels are held.
    pub(super) fn used(&self) -> u64 {
        self.held.lock().labels.len() as u64
    }

    /// Returns the sets of labels that a scope includes.
    pub(super) fn scope(&self, scope: &Scope) -> InScope<'_> {
        let held = self.held.lock();
        let mut scoped = InScope { all: self, terms: [(0, false); SCOPE_TERMS_MAX], count: 0, is_empty: false };
        for term in scope.terms() {
            match held.keys.get(&term.label) {
                Some(&key) => {
                    scoped.terms[scoped.count] = (held.labels[key].number, term.lacks);
                    scoped.count += 1;
                }
                None => scoped.is_empty |= !term.lacks,
            }
        }
        scoped
    }

    /// Returns the bytes that labels take, except the bytes for each place.
    pub(super) fn bytes(&self) -> u64 {
        self.held.lock().bytes
    }

    /// Returns the bytes that the labels of one place take.
    pub(super) fn bytes_of_place(&self) -> u64 {
        if self.of_places.get().is_some() { size_of::<AtomicU64>() as u64 } else { 0 }
    }

    /// Returns the numbers of the labels that the document at a place has.
    #[inline]
    fn labels_at(&self, place: Place) -> [u64; LABELS_MAX] {
        loop {
            let set = self.of(place);
            let Some(cells) = self.of_sets.row(set.number()).filter(|_| set != LabelSet::NONE) else {
                return [0; LABELS_MAX];
            };
            let labels = std::array::from_fn(|at| cells[1 + at].load(Ordering::Acquire));
            if cells[0].load(Ordering::Acquire) == set.before() {
                return labels;
            }
            // Another set uses the row by now, so the place has other labels.
            std::hint::spin_loop();
        }
    }
}

impl Held {
    /// Returns how many documents have a label, according to all decisions so far.
    fn documents(&self, label: &str) -> u64 {
        self.keys.get(label).map_or(0, |&key| self.labels[key].documents)
    }

    fn hold_again(&mut self, number: u32) -> LabelSet {
        let known = &mut self.sets[number as usize - 1];
        known.holders += 1;
        known.set
    }

    /// Returns the key of a label, and counts one more set that has the label.
    fn take_label(&mut self, label: Label) -> usize {
        if let Some(&key) = self.keys.get(&label) {
            self.labels[key].sets += 1;
            return key;
        }
        self.labels_before += 1;
        self.bytes += label_bytes(label.as_str());
        let key = self.labels.insert(HeldLabel { number: self.labels_before, sets: 1, documents: 0 });
        self.keys.insert(label, key);
        key
    }

    /// Subtracts one from the number of sets that contain a label.
    fn give_label(&mut self, key: usize, label: &str) {
        self.labels[key].sets -= 1;
        if self.labels[key].sets == 0 {
            self.labels.remove(key);
            self.keys.remove(label);
            self.bytes -= label_bytes(label);
        }
    }
}

fn set_bytes(labels: &Labels) -> u64 {
    let entries = size_of::<(Labels, u32)>() + size_of::<HeldSet>() + CELLS * size_of::<u64>();
    (labels.as_str().len() + entries) as u64
}

fn label_bytes(label: &str) -> u64 {
    (label.len() + size_of::<(Label, usize)>() + size_of::<HeldLabel>()) as u64
}

impl InScope<'_> {
    /// Returns whether the document at a place is in the scope.
    #[inline]
    pub fn takes_place(&self, place: Place) -> bool {
        let labels = self.all.labels_at(place);
        !self.is_empty && self.terms[..self.count].iter().all(|&(label, lacks)| labels.contains(&label) != lacks)
    }
}
