//! The labels of documents: each different set of labels has a number, which lies beside the row of each document that
//! has it. Scopes are decided by these numbers, without a lock.

use std::collections::HashMap;
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::chunks::Chunks;
use super::place::Place;
use super::sync::{AtomicU64, Ordering};
use crate::types::{InvalidLabel, LABELS_MAX, Label, Labels, SCOPE_TERMS_MAX, Scope};

/// The cells of a set: the numbers of its labels, two in each.
const CELLS: usize = LABELS_MAX / 2;

/// The most sets of labels for each label that documents may have. Sets that no document has any more count too, until
/// the index is loaded again.
const SETS_PER_LABEL: usize = 16;

/// The number of a set of labels; 0 for no labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelSet(u32);

impl LabelSet {
    /// The set of a document without labels.
    pub const NONE: Self = Self(0);
}

/// The index has no room for another label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelsFull;

/// The labels of all documents.
pub(super) struct AllLabels {
    /// The set of the document at each place. Absent until a document has labels.
    of_places: OnceLock<Chunks>,
    /// The labels of each set.
    of_sets: Chunks,
    numbers: Mutex<Numbers>,
}

/// The numbers that have been given, from 1. None is given twice, because a reader may still have it.
#[derive(Default)]
struct Numbers {
    sets: HashMap<Labels, u32>,
    labels: HashMap<Label, u32>,
    /// The number of documents that have each label, at the place before its number.
    documents: Vec<u64>,
    /// How many labels some document has.
    used: usize,
    bytes: u64,
}

/// The sets of labels that a scope takes.
pub struct InScope<'a> {
    all: &'a AllLabels,
    /// The numbers of labels, and whether documents must lack them.
    terms: [(u32, bool); SCOPE_TERMS_MAX],
    count: usize,
    /// No document has a label that the scope requires.
    is_empty: bool,
}

impl AllLabels {
    pub(super) fn new() -> Self {
        Self { of_places: OnceLock::new(), of_sets: Chunks::new(CELLS), numbers: Mutex::default() }
    }

    /// Returns the number of a set of labels. Fails if documents have `labels_max` labels already and the set has another
    /// one, or if there are too many sets.
    pub(super) fn number(&self, labels: &Labels, labels_max: usize) -> Result<LabelSet, LabelsFull> {
        if labels.is_empty() {
            return Ok(LabelSet::NONE);
        }
        let mut numbers = self.numbers.lock();
        let parts: Vec<Label> = labels.iter().filter_map(|(name, value)| Label::new(name, value).ok()).collect();
        let unused = parts.iter().filter(|&label| numbers.documents_of(label) == 0).count();
        if unused > 0 && numbers.used + unused > labels_max {
            return Err(LabelsFull);
        }
        if let Some(&number) = numbers.sets.get(labels) {
            return Ok(LabelSet(number));
        }
        if numbers.sets.len() >= labels_max.saturating_mul(SETS_PER_LABEL) {
            return Err(LabelsFull);
        }
        let number = numbers.sets.len() as u32 + 1;
        let mut own = [0; LABELS_MAX];
        for (own, label) in own.iter_mut().zip(parts) {
            *own = numbers.number(label);
        }
        for (cell, pair) in self.of_sets.make(number).iter().zip(own.chunks(2)) {
            cell.store(u64::from(pair[0]) | u64::from(pair[1]) << 32, Ordering::Relaxed);
        }
        numbers.bytes += (labels.as_str().len() + size_of::<(Labels, u32)>() + CELLS * size_of::<u64>()) as u64;
        numbers.sets.insert(labels.clone(), number);
        Ok(LabelSet(number))
    }

    /// Returns the number of the set of labels with this text, and counts a document that has it. Fails if the text is
    /// not that of labels.
    pub(super) fn load(&self, text: &str) -> Result<LabelSet, InvalidLabel> {
        let known = self.numbers.lock().sets.get(text).copied();
        let set = match known {
            Some(number) => LabelSet(number),
            None => self.number(&Labels::parse(text)?, usize::MAX).expect("there is no limit"),
        };
        self.count(set, true);
        Ok(set)
    }

    /// Sets the labels of the document at a place.
    pub(super) fn set(&self, place: Place, set: LabelSet) {
        if set != LabelSet::NONE {
            self.of_places.get_or_init(|| Chunks::new(1)).make(place.0)[0].store(set.0.into(), Ordering::Release);
        } else if let Some(cells) = self.of_places.get().and_then(|places| places.row(place.0)) {
            cells[0].store(0, Ordering::Release);
        }
    }

    /// Returns the labels of the document at a place.
    #[inline]
    pub(super) fn of(&self, place: Place) -> LabelSet {
        let cells = self.of_places.get().and_then(|places| places.row(place.0));
        LabelSet(cells.map_or(0, |cells| cells[0].load(Ordering::Acquire) as u32))
    }

    /// Counts a document that has a set of labels from now on, or no longer.
    pub(super) fn count(&self, set: LabelSet, is_new: bool) {
        if set == LabelSet::NONE {
            return;
        }
        let numbers = &mut *self.numbers.lock();
        for label in self.labels_of(set).into_iter().filter(|&label| label != 0) {
            let documents = &mut numbers.documents[label as usize - 1];
            let before = *documents;
            *documents = if is_new { before + 1 } else { before.saturating_sub(1) };
            match (before, *documents) {
                (0, 1) => numbers.used += 1,
                (1, 0) => numbers.used -= 1,
                _ => {}
            }
        }
    }

    /// Returns each label that documents have, and how many have it.
    pub(super) fn counts(&self) -> Vec<(Label, u64)> {
        let numbers = self.numbers.lock();
        let counted = numbers.labels.iter().map(|(label, &number)| (label, numbers.documents[number as usize - 1]));
        counted.filter(|&(_, documents)| documents > 0).map(|(label, documents)| (label.clone(), documents)).collect()
    }

    /// Returns how many labels documents have.
    pub(super) fn used(&self) -> u64 {
        self.numbers.lock().used as u64
    }

    /// Returns the sets of labels that a scope takes.
    pub(super) fn scope(&self, scope: &Scope) -> InScope<'_> {
        let numbers = self.numbers.lock();
        let mut scoped = InScope { all: self, terms: [(0, false); SCOPE_TERMS_MAX], count: 0, is_empty: false };
        for term in scope.terms() {
            match numbers.labels.get(&term.label) {
                Some(&number) => {
                    scoped.terms[scoped.count] = (number, term.lacks);
                    scoped.count += 1;
                }
                None => scoped.is_empty |= !term.lacks,
            }
        }
        scoped
    }

    /// Returns the bytes that labels take, if `places` places are in use.
    pub(super) fn bytes(&self, places: u64) -> u64 {
        self.numbers.lock().bytes + places * self.bytes_of_place()
    }

    /// Returns the bytes that the labels of one more place take.
    pub(super) fn bytes_of_place(&self) -> u64 {
        if self.of_places.get().is_some() { size_of::<AtomicU64>() as u64 } else { 0 }
    }

    fn labels_of(&self, set: LabelSet) -> [u32; LABELS_MAX] {
        let mut labels = [0; LABELS_MAX];
        if let Some(cells) = self.of_sets.row(set.0) {
            for (pair, cell) in labels.chunks_mut(2).zip(cells) {
                let both = cell.load(Ordering::Relaxed);
                (pair[0], pair[1]) = (both as u32, (both >> 32) as u32);
            }
        }
        labels
    }
}

impl Numbers {
    fn documents_of(&self, label: &Label) -> u64 {
        self.labels.get(label).map_or(0, |&number| self.documents[number as usize - 1])
    }

    fn number(&mut self, label: Label) -> u32 {
        let (bytes, next) = (label.as_str().len() + size_of::<(Label, u32, u64)>(), self.documents.len() as u32 + 1);
        match self.labels.entry(label) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(new) => {
                self.documents.push(0);
                self.bytes += bytes as u64;
                *new.insert(next)
            }
        }
    }
}

impl InScope<'_> {
    /// Returns whether a set of labels is in the scope.
    #[inline]
    pub(super) fn takes(&self, set: LabelSet) -> bool {
        let labels = self.all.labels_of(set);
        !self.is_empty && self.terms[..self.count].iter().all(|&(label, lacks)| labels.contains(&label) != lacks)
    }

    /// Returns whether the document at a place is in the scope.
    #[inline]
    pub fn takes_place(&self, place: Place) -> bool {
        self.takes(self.all.of(place))
    }
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use super::*;
    use crate::types::ScopeTerm;

    fn labels(text: &str) -> Labels {
        Labels::parse(text).unwrap()
    }

    fn scope(terms: &[&str]) -> Scope {
        Scope::new(terms.iter().map(|term| ScopeTerm::parse(term).unwrap()).collect()).unwrap()
    }

    #[test]
    fn a_scope_takes_the_sets_that_meet_all_its_terms() {
        let all = AllLabels::new();
        let number = |text: &str| all.number(&labels(text), 100).unwrap();
        let (one, two, none) = (number("crawl:1\nsite:a"), number("crawl:2\nsite:a"), number(""));
        assert_eq!(number("site:a\ncrawl:1"), one, "the order does not matter");
        assert_eq!(none, LabelSet::NONE);
        let taken = |terms: &[&str]| {
            let in_scope = all.scope(&scope(terms));
            [one, two, none].map(|set| in_scope.takes(set))
        };
        assert_eq!(taken(&["site:a"]), [true, true, false]);
        assert_eq!(taken(&["site:a", "!crawl:2"]), [true, false, false]);
        assert_eq!(taken(&["!site:a"]), [false, false, true]);
        assert_eq!(taken(&["crawl:1", "crawl:2"]), [false; 3]);
        assert_eq!(taken(&["crawl:3"]), [false; 3]);
        assert_eq!(taken(&["!crawl:3"]), [true; 3]);
    }

    #[test]
    fn labels_that_documents_have_are_counted_and_bounded() {
        let all = AllLabels::new();
        let one = all.number(&labels("crawl:1\nsite:a"), 2).unwrap();
        all.count(one, true);
        all.count(one, true);
        assert_eq!(all.number(&labels("crawl:2"), 2), Err(LabelsFull));
        assert_eq!(all.number(&labels("site:a"), 2).map(|set| all.count(set, true)), Ok(()));
        let mut counts = all.counts();
        counts.sort();
        assert_eq!(
            counts.iter().map(|(label, count)| (label.as_str(), *count)).collect::<Vec<_>>(),
            [("crawl:1", 2), ("site:a", 3)]
        );
        // A label that no document has any more makes room.
        all.count(one, false);
        all.count(one, false);
        assert_eq!((all.used(), all.counts().len()), (1, 1));
        assert!(all.number(&labels("crawl:2"), 2).is_ok());
    }

    #[test]
    fn places_without_labels_take_no_memory() {
        let all = AllLabels::new();
        all.set(Place(7), LabelSet::NONE);
        assert_eq!(all.bytes(1000), 0);
        let set = all.number(&labels("a:b"), 9).unwrap();
        all.set(Place(7), set);
        assert_eq!((all.of(Place(7)), all.of(Place(8))), (set, LabelSet::NONE));
        all.set(Place(7), LabelSet::NONE);
        assert_eq!(all.of(Place(7)), LabelSet::NONE);
        assert!(all.bytes(1000) > 8000);
    }
}
