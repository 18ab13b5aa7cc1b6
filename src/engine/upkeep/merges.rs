//! Runs merges in the background: reads the other collection's documents in order of `seq`, and inserts each of them as
//! a client would. Each collection runs one merge at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::rounds::Rounds;
use crate::engine::lookup::stored_whole;
use crate::engine::write::{Insertion, MergePlace, Ticket, Writes, insert, note_refused};
use crate::store::{Record, StoreError};
use crate::types::{CollectionName, Job, Merge, Seq, TimestampMs, Verdict};
use crate::verdicts::{Attached, CollectionError, InsertOptions, Result};

/// The number of documents in a step. They are decided one after another, and become durable together.
const STEP_DOCUMENTS: usize = 128;
/// The maximum size of the texts or shingles of a step, in bytes. The last document of the step is not counted.
const STEP_BYTES: usize = 8 << 20;
/// The maximum size of an answer in bytes. The answer is used only for the report.
const ANSWER_BYTES: usize = 64 << 10;
/// The reported reason if a client stopped a merge.
const STOPPED: &str = "it was stopped with DELETE /v1/jobs/{job}";
/// The pause if there is nothing to do, or while a merge waits.
const IDLE: Duration = Duration::from_millis(200);
/// The shortest pause between two steps.
const REST_MIN: Duration = Duration::from_millis(1);

/// Starts the thread. `exists` tells whether there is a collection, open or not. Stop the thread before the collections
/// are closed, and join it after they are closed.
pub(super) fn start(
    open: impl Fn() -> Option<Vec<Arc<Merges>>> + Send + 'static,
    exists: impl Fn(&CollectionName) -> bool + Send + 'static,
) -> Rounds {
    // The runtime needs timers, because insertions wait with timeouts.
    let runtime = Builder::new_current_thread().enable_time().build().expect("the system can start a runtime");
    Rounds::start("hapax-merges", open, move |collections, stop| {
        let started = Instant::now();
        let mut busy = false;
        for collection in &collections {
            if stop.within(Duration::ZERO) {
                break;
            }
            busy |= runtime.block_on(collection.step(&collections, &exists));
        }
        if busy { started.elapsed().clamp(REST_MIN, IDLE) } else { IDLE }
    })
}

/// The outcome for one document of a merge.
enum Decided {
    Inserted(Box<Ticket<Verdict>>),
    Refused(Ticket<()>),
}

/// The merges into one collection.
pub(crate) struct Merges {
    name: CollectionName,
    created: TimestampMs,
    writes: Arc<Writes>,
    /// The time at which the collection was opened, and the last position in its commit order at that time.
    opened: (TimestampMs, Seq),
}

impl Merges {
    pub(crate) fn new(name: CollectionName, created: TimestampMs, writes: Arc<Writes>) -> Self {
        let opened = (TimestampMs::now(), writes.lookup().durable());
        Self { name, created, writes, opened }
    }

    /// Inserts the next documents of a merge. Returns whether the next step may follow at once.
    async fn step(&self, open: &[Arc<Self>], exists: &impl Fn(&CollectionName) -> bool) -> bool {
        // This number is read before the progress of the merge. If a decision is undone later, the number differs.
        let undone = self.writes.undone();
        let stopped = self.writes.jobs().stopped_merge();
        let Some(merge) = stopped.clone().or_else(|| self.writes.jobs().running_merge()) else { return false };
        if stopped.is_none() && self.writes.is_busy() {
            return false;
        }
        let number = merge.number;
        let stepped = match stopped {
            Some(merge) => self.end(Merge { aborted: Some(STOPPED.to_owned()), ..merge }).await.map(|()| true),
            None => self.try_step(merge, undone, open, exists).await,
        };
        match stepped {
            Ok(goes_on) => goes_on,
            Err(error) => {
                tracing::debug!(collection = %self.name, job = number.0, %error, "a merge waits");
                self.writes.jobs().waits(number, error.to_string());
                false
            }
        }
    }

    async fn try_step(
        &self,
        merge: Merge,
        undone: u64,
        open: &[Arc<Self>],
        exists: &impl Fn(&CollectionName) -> bool,
    ) -> Result<bool> {
        let from = &merge.source.name;
        let source = match open.iter().find(|collection| collection.name == *from) {
            Some(source) if source.created == merge.source.created => source,
            None if exists(from) => {
                let detail = format!("the collection `{from}` is not open");
                return Err(CollectionError::Overloaded { detail, retry_after: IDLE });
            }
            _ => {
                let aborted = Some(format!("the collection `{from}` was dropped"));
                return self.end(Merge { aborted, ..merge }).await.map(|()| true);
            }
        };
        let store = source.writes.lookup().records().store();
        let mut records = match store.whole_records(merge.after, STEP_DOCUMENTS, STEP_BYTES) {
            Ok(records) => records,
            // If this merge waited instead, the damage would block it and all later merges for ever.
            Err(error @ StoreError::Damaged { .. }) => {
                let aborted = Some(format!("`hapax verify --repair` repairs this damage: {error}"));
                return self.end(Merge { aborted, ..merge }).await.map(|()| true);
            }
            Err(error) => return Err(error.into()),
        };
        let through = source.through(&merge);
        records.retain(|record| record.seq <= through);
        if records.is_empty() {
            return self.end(merge).await.map(|()| true);
        }
        let (mut decided, mut failed) = (Vec::new(), Ok(()));
        for record in records {
            let labels = record.labels.clone();
            match self.insert(&merge, undone, source, record).await {
                Ok(one) => decided.push((one, labels)),
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
        for (one, labels) in decided {
            match one {
                Decided::Inserted(ticket) => {
                    let verdict = ticket.wait().await?;
                    // The length of the content that was once sent is not known here.
                    self.writes.statistics().count(labels.as_ref(), &verdict, 0);
                }
                Decided::Refused(ticket) => ticket.wait().await?,
            }
        }
        failed.map(|()| true)
    }

    /// Returns the last document of this collection that belongs to a merge into another collection. After a crash or a
    /// restore, this collection may have fewer documents than when the merge began. It then assigns the positions of
    /// the lost documents to other documents.
    fn through(&self, merge: &Merge) -> Seq {
        let (at, last) = self.opened;
        if merge.accepted < at { merge.source.through.min(last) } else { merge.source.through }
    }

    /// Decides on one document. After an error, the caller tries again later.
    async fn insert(&self, merge: &Merge, undone: u64, source: &Self, record: Record) -> Result<Decided> {
        let place = MergePlace { merge: merge.number, source: record.seq, undone };
        let (id, made) = (record.id.clone(), stored_whole(source.writes.lookup(), &source.name, &record)?);
        let insertion = Insertion {
            id: record.id,
            attached: Attached { metadata: record.metadata, labels: record.labels, capture: record.capture },
            made,
            room: None,
            shingles: record.shingles,
            options: InsertOptions {
                on_duplicate: merge.on_duplicate,
                on_existing: merge.on_existing,
                limit: 1,
                with_metadata: false,
                explain: false,
                patient: false,
            },
            bytes_max: ANSWER_BYTES,
            merge: Some(place),
        };
        match insert(&self.writes, Box::new(insertion)).await {
            Ok(ticket) => Ok(Decided::Inserted(Box::new(ticket))),
            Err(
                error @ (CollectionError::IdConflict { .. }
                | CollectionError::SourceFull { .. }
                | CollectionError::LabelsFull { .. }
                | CollectionError::LabelSetsFull { .. }
                | CollectionError::Invalid { .. }),
            ) => note_refused(&self.writes, place, &id, &error.to_string()).map(Decided::Refused),
            Err(error) => Err(error),
        }
    }

    async fn end(&self, merge: Merge) -> Result<()> {
        let ended = Merge { ended: Some(TimestampMs::now()), ..merge };
        let (from, documents, aborted) = (ended.source.name.clone(), ended.merged(), ended.aborted.clone());
        let written = self.writes.write_job(Job::Merge(ended))?;
        written.await.unwrap_or_else(|_| Err(CollectionError::closed()))?;
        tracing::info!(collection = %self.name, %from, documents, aborted, "a merge has ended");
        Ok(())
    }
}
