//! The jobs of one collection: deletions by label that must still remove documents from the disk, merges of other
//! collections into this one, and the jobs that ended most recently.
//!
//! A job is decided like a write (`write/label_deletion.rs`, `write/merge.rs`). Once it is durable, threads in the
//! background do the work (`upkeep/removals.rs`, `upkeep/merges.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::index::Place;
use crate::store::{DoomedPart, StoredJobs};
use crate::types::{Job, LabelDeletion, Merge, MergeSource, Merged, Seq, retry_after};
use crate::verdicts::{CollectionError, ListedJob, Result};

/// The maximum number of jobs of a collection that run at a time. The number is small because each request that lists
/// documents checks all running deletions.
const RUNNING_MAX: usize = 64;
/// The maximum number of jobs that have ended and are still kept.
const ENDED_MAX: usize = 100;
/// The number of jobs at which no other job may begin. Jobs that have ended and wait to be forgotten are included.
const UNFORGOTTEN_MAX: usize = 1000;

/// The jobs of one collection.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<BTreeMap<Seq, Known>>);

struct Known {
    job: Job,
    /// For a deletion: the parts that are still on disk.
    parts: VecDeque<Arc<Part>>,
    /// Whether the job itself is on disk.
    durable: bool,
    /// The reason why the job is waiting, if it is waiting.
    waits: Option<String>,
    /// Whether a client has asked to stop the job.
    stopped: bool,
}

impl Known {
    fn new(job: Job, parts: VecDeque<Arc<Part>>, durable: bool) -> Self {
        Self { job, parts, durable, waits: None, stopped: false }
    }
}

/// Documents to remove from the disk in one transaction.
pub(crate) struct Part {
    pub doomed: DoomedPart,
    /// The places that these documents had in memory, in the order of `doomed`. Empty if the deletion is older than the
    /// process, because then the documents were never in memory.
    pub places: Vec<Place>,
}

impl Jobs {
    /// Takes the jobs of a file that has just been opened.
    pub(crate) fn of(stored: StoredJobs) -> Self {
        let known = |job: Job| (job.number(), Known::new(job, VecDeque::new(), true));
        let mut all: BTreeMap<Seq, Known> = stored.jobs.into_iter().map(known).collect();
        for doomed in stored.doomed {
            let known = all.get_mut(&doomed.deletion).expect("the store has compared the two");
            known.parts.push_back(Arc::new(Part { doomed, places: Vec::new() }));
        }
        Self(Mutex::new(all))
    }

    /// Returns an error if no other job may begin.
    pub(crate) fn admit(&self) -> Result<()> {
        let (running, all) = {
            let known = self.0.lock();
            (known.values().filter(|known| known.job.is_running()).count(), known.len())
        };
        let detail = if running >= RUNNING_MAX {
            format!("{running} jobs are running in this collection, the most at a time; try again later")
        } else if all >= UNFORGOTTEN_MAX {
            format!("this collection has {all} running or ended jobs, the most that are allowed; try again later")
        } else {
            return Ok(());
        };
        Err(CollectionError::Overloaded { detail, retry_after: retry_after::JOBS })
    }

    /// Adds a job that has been decided.
    pub(crate) fn decided(&self, job: Job, parts: VecDeque<Arc<Part>>) {
        self.0.lock().insert(job.number(), Known::new(job, parts, false));
    }

    /// Notes that a job is on disk.
    pub(crate) fn is_durable(&self, number: Seq) {
        self.change(number, |known| known.durable = true);
    }

    /// Drops a job that was undone.
    pub(crate) fn undone(&self, number: Seq) {
        self.0.lock().remove(&number);
    }

    /// Returns the next documents to remove.
    pub(crate) fn next_part(&self) -> Option<Arc<Part>> {
        let known = self.0.lock();
        known.values().filter(|known| known.durable).find_map(|known| known.parts.front().cloned())
    }

    /// Notes that a part is removed from the disk. `deletion` is the new state of the deletion.
    pub(crate) fn removed(&self, deletion: LabelDeletion) {
        self.change(deletion.number, |known| {
            known.parts.pop_front();
            known.job = Job::DeleteLabel(deletion);
        });
    }

    /// Returns the merge to continue.
    pub(crate) fn running_merge(&self) -> Option<Merge> {
        let known = self.0.lock();
        known.values().filter(|known| known.durable && known.job.is_running()).find_map(merge_of).cloned()
    }

    /// Asks a running merge to end.
    pub(crate) fn stop(&self, merge: Seq) {
        self.change(merge, |known| known.stopped = true);
    }

    /// Returns a running merge that a client wants to stop.
    pub(crate) fn stopped_merge(&self) -> Option<Merge> {
        let known = self.0.lock();
        let stopped = |known: &&Known| known.stopped && known.durable && known.job.is_running();
        known.values().filter(stopped).find_map(merge_of).cloned()
    }

    pub(crate) fn is_running(&self, number: Seq) -> bool {
        self.0.lock().get(&number).is_some_and(|known| known.job.is_running())
    }

    /// Returns the running merge of a collection, if there is one.
    pub(crate) fn merge_from(&self, source: &MergeSource) -> Option<Merge> {
        let known = self.0.lock();
        let mut running = known.values().filter(|known| known.job.is_running()).filter_map(merge_of);
        let same = |merge: &&Merge| (&merge.source.name, merge.source.created) == (&source.name, source.created);
        running.find(same).cloned()
    }

    /// Notes that the decision on a document of a merge is on disk.
    pub(crate) fn merged(&self, merged: &Merged) {
        self.change(merged.merge, |known| {
            if let Job::Merge(merge) = &known.job {
                known.job = Job::Merge(merge.clone().with(merged));
            }
            known.waits = None;
        });
    }

    /// Notes why a job is waiting.
    pub(crate) fn waits(&self, number: Seq, why: String) {
        self.change(number, |known| known.waits = Some(why));
    }

    /// Notes the new state of a job, which is on disk.
    pub(crate) fn set(&self, job: Job) {
        self.change(job.number(), |known| (known.job, known.waits) = (job, None));
    }

    /// If too many jobs have ended, returns the job to forget. Jobs without documents are forgotten before jobs with
    /// documents. Within each of these groups, the job that ended first is forgotten first.
    pub(crate) fn surplus(&self) -> Option<Seq> {
        let known = self.0.lock();
        let ended =
            known.values().filter(|known| known.durable).filter_map(|known| Some((&known.job, known.job.ended()?)));
        if ended.clone().count() <= ENDED_MAX {
            return None;
        }
        let first = ended.min_by_key(|(job, ended)| (job.documents() > 0, *ended, job.number()));
        first.map(|(job, _)| job.number())
    }

    /// Removes a job that has been removed from the disk.
    pub(crate) fn forgotten(&self, number: Seq) {
        self.0.lock().remove(&number);
    }

    /// Returns the jobs that are on disk, the newest first.
    pub(crate) fn list(&self) -> Vec<ListedJob> {
        let known = self.0.lock();
        let durable = known.values().rev().filter(|known| known.durable);
        durable.map(|known| ListedJob { job: known.job.clone(), waits: known.waits.clone() }).collect()
    }

    /// Returns the number of documents that must still be removed from the disk.
    pub(crate) fn left(&self) -> u64 {
        let known = self.0.lock();
        let left = |known: &Known| match &known.job {
            Job::DeleteLabel(deletion) => deletion.left(),
            Job::Merge(_) => 0,
        };
        known.values().map(left).sum()
    }

    fn change(&self, number: Seq, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.0.lock().get_mut(&number) {
            change(known);
        }
    }
}

fn merge_of(known: &Known) -> Option<&Merge> {
    match &known.job {
        Job::Merge(merge) => Some(merge),
        Job::DeleteLabel(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Label, TimestampMs};

    /// In an earlier version, jobs were forgotten in the order in which they began, so a long job was forgotten as soon
    /// as it ended.
    #[test]
    fn the_job_that_ended_first_is_forgotten_first() {
        let jobs = Jobs::default();
        let add = |number, documents, ended| {
            let label = Label::parse("crawl:1").unwrap();
            let accepted = TimestampMs(number);
            let number = Seq(number as u64);
            let ended = Some(TimestampMs(ended));
            let deletion = LabelDeletion { number, label, accepted, ended, documents, removed: documents };
            jobs.decided(Job::DeleteLabel(deletion), VecDeque::new());
            jobs.is_durable(number);
        };
        add(1, 7, 5000);
        (2..=ENDED_MAX as i64).for_each(|number| add(number, 7, 1000 + number));
        assert_eq!(jobs.surplus(), None);
        add(101, 7, 6000);
        assert_eq!(jobs.surplus(), Some(Seq(2)), "the first one began first, and ended later");
        add(102, 0, 7000);
        assert_eq!(jobs.surplus(), Some(Seq(102)), "it did nothing");
    }
}
