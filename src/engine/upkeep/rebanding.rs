//! Changes the settings of a collection in use. A new banding is built from the signatures in memory while the old one
//! serves requests. A few documents are placed each time the decision lock is held, and every decision keeps both
//! bandings up to date. The new banding takes over once it is complete and its setting is on disk.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::cpu::let_others_run;
use crate::engine::long_work::{blocking, finished};
use crate::engine::lookup::Policy;
use crate::engine::write::Writes;
use crate::index::NextBanding;
use crate::types::TimestampMs;
use crate::verdicts::{Changes, CollectionError, Result, Settings};

/// The number of documents to place each time the decision lock is held. This takes well under a millisecond.
const STEP: u32 = 32;

/// Changes the settings of one collection.
pub(crate) struct Rebanding {
    writes: Arc<Writes>,
    /// The time at which the collection was created.
    created: TimestampMs,
    one_at_a_time: Mutex<()>,
}

impl Rebanding {
    /// Makes the part that changes the settings of a collection, which was created at `created`.
    pub(crate) fn new(writes: Arc<Writes>, created: TimestampMs) -> Self {
        Self { writes, created, one_at_a_time: Mutex::default() }
    }

    /// Changes settings and returns the new ones. Rebuilds the index if the banding changes. Once begun, the change is
    /// completed even if the caller is cancelled, because the file and the memory must agree.
    pub(crate) async fn update(self: &Arc<Self>, changes: Changes) -> Result<Settings> {
        let this = Arc::clone(self);
        finished(tokio::spawn(async move { this.update_whole(changes).await }).await)
    }

    async fn update_whole(self: Arc<Self>, changes: Changes) -> Result<Settings> {
        let _one_at_a_time = self.one_at_a_time.lock().await;
        let lookup = self.writes.lookup();
        let now = lookup.policy().settings.clone();
        let settings = changes.applied_to(now.clone()).checked()?;
        let next = if settings.banding == now.banding { None } else { self.build(&settings).await? };
        let written = self.writes.write_settings(settings.changeable())?;
        written.await.unwrap_or_else(|_| Err(CollectionError::closed()))?;
        self.writes.locked(|| {
            if let Some(mut unfinished) = next {
                lookup.index().take_over(unfinished.next.take().expect("it is taken over once"));
            }
            lookup.index().keep_last_seen(settings.ttl.map(|_| self.created));
            lookup.set_policy(Policy::of(settings.clone()));
        });
        Ok(settings)
    }

    /// Builds the new banding with every document in it. Stops early if the collection is closed or the process has no
    /// memory left. A closed collection also refuses the rest of the change.
    async fn build(&self, settings: &Settings) -> Result<Option<UnfinishedBanding>> {
        let (writes, banding) = (Arc::clone(&self.writes), settings.banding);
        blocking(move || {
            let index = writes.lookup().index();
            writes.admit_banding(banding)?;
            let next = writes.exclusively(|last| index.begin_banding(banding, last));
            let Some(next) = next else { return Ok(None) };
            let mut unfinished = UnfinishedBanding { writes: Arc::clone(&writes), next: Some(next) };
            let next = unfinished.next.as_mut().expect("it was just begun");
            while writes.exclusively(|_| index.fill(next, STEP)) == Some(false) {
                let_others_run();
                writes.may_grow()?;
            }
            Ok(Some(unfinished))
        })
        .await
    }
}

/// A banding under construction. Every decision keeps it up to date until it takes over or is dropped.
struct UnfinishedBanding {
    writes: Arc<Writes>,
    next: Option<NextBanding>,
}

impl Drop for UnfinishedBanding {
    fn drop(&mut self) {
        if let Some(next) = self.next.take() {
            self.writes.locked(|| self.writes.lookup().index().abandon(&next));
        }
    }
}
