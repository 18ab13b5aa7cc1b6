//! Counts the outcomes of the documents that clients sent for insertion, in total and for each label. The counts are in
//! memory, and are written to the disk every few seconds, so a crash may lose the latest counts.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::{Mutex, MutexGuard};

use crate::store::StoredStatistics;
use crate::types::{Label, Labels, Statistics, Verdict};

/// The statistics of one collection.
pub(crate) struct LabelStatistics {
    counted: Mutex<Counted>,
    /// The maximum number of labels that are counted.
    labels_max: usize,
    /// Held while rows are taken and sent to the disk, so that older rows are never written after newer ones.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Counted {
    all: Row,
    by_label: BTreeMap<String, Row>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    counts: Statistics,
    /// The number of the row on disk, starting at 1; 0 if the row was never written.
    place: i64,
    /// Whether the row has counts that are not on disk.
    dirty: bool,
}

/// The number of the row that counts all documents.
const PLACE_OF_ALL: i64 = 1;

impl LabelStatistics {
    /// Continues with the statistics of a file.
    pub(crate) fn of(stored: Vec<StoredStatistics>, labels_max: usize) -> Self {
        let mut counted = Counted::default();
        for StoredStatistics { place, label, counts } in stored {
            let row = Row { counts, place, dirty: false };
            match label {
                None => counted.all = row,
                Some(label) => drop(counted.by_label.insert(label, row)),
            }
        }
        counted.all.place = PLACE_OF_ALL;
        Self { counted: Mutex::new(counted), labels_max, writing: Mutex::default() }
    }

    /// Counts a document after its decision. The content of the document has `bytes` bytes. A new label is not counted
    /// if `labels_max` labels are counted already.
    pub(crate) fn count(&self, labels: Option<&Labels>, verdict: &Verdict, bytes: u64) {
        let counted = &mut *self.counted.lock();
        counted.all.count(verdict, bytes);
        for label in labels.iter().flat_map(|labels| labels.as_str().lines()) {
            if let Some(row) = counted.by_label.get_mut(label) {
                row.count(verdict, bytes);
            } else if counted.by_label.len() < self.labels_max {
                counted.by_label.entry(label.to_owned()).or_default().count(verdict, bytes);
            }
        }
    }

    /// Returns the counts of all documents.
    pub(crate) fn all(&self) -> Statistics {
        self.counted.lock().all.counts
    }

    /// Returns the first `limit` labels with their counts, in the order of their texts. With `name`, only labels with
    /// this name are listed; with `after`, only labels after that label.
    pub(crate) fn by_label(&self, name: Option<&str>, after: Option<&Label>, limit: usize) -> Vec<(Label, Statistics)> {
        let of_name = name.map(|name| format!("{name}:")).unwrap_or_default();
        let from = match after {
            Some(after) if after.as_str() >= of_name.as_str() => Bound::Excluded(after.as_str()),
            _ => Bound::Included(of_name.as_str()),
        };
        let counted = self.counted.lock();
        let found = counted.by_label.range::<str, _>((from, Bound::Unbounded));
        let found = found.take_while(|(label, _)| label.starts_with(&of_name));
        found.filter_map(|(label, row)| Some((Label::parse(label).ok()?, row.counts))).take(limit).collect()
    }

    /// Takes the lock that is held while rows are taken and sent to the disk.
    pub(crate) fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    /// Returns the rows whose present counts are not on disk, and marks them as written.
    pub(crate) fn take_unwritten(&self) -> Vec<StoredStatistics> {
        let counted = &mut *self.counted.lock();
        let mut last = counted.by_label.values().map(|row| row.place).max().unwrap_or_default().max(PLACE_OF_ALL);
        let mut unwritten = Vec::new();
        let all = [(None, &mut counted.all)].into_iter();
        for (label, row) in all.chain(counted.by_label.iter_mut().map(|(label, row)| (Some(label), row))) {
            if std::mem::take(&mut row.dirty) {
                if row.place == 0 {
                    last += 1;
                    row.place = last;
                }
                unwritten.push(StoredStatistics { place: row.place, label: label.cloned(), counts: row.counts });
            }
        }
        unwritten
    }

    /// Notes that rows could not be written.
    pub(crate) fn not_written(&self, rows: &[StoredStatistics]) {
        let counted = &mut *self.counted.lock();
        for row in rows {
            match &row.label {
                None => counted.all.dirty = true,
                Some(label) => counted.by_label.get_mut(label).into_iter().for_each(|row| row.dirty = true),
            }
        }
    }
}

impl Row {
    fn count(&mut self, verdict: &Verdict, bytes: u64) {
        self.counts = self.counts.with(verdict, bytes);
        self.dirty = true;
    }
}
