//! What the operations on one collection use: its settings, its keys and counters, and the cluster.

use std::sync::Arc;

use hapax_core::ContentHash;

use super::cluster::Cluster;
use super::counters::Counters;
use super::drive::Driver;
use super::entry::{Entry, terms_of};
use super::keys::{Keys, Posting};
use super::protocol::{Ref, Reply, Rest, Step};
use super::reads::present;
use super::record::{Judged, Set, Stored};
use super::watch::Gate;
use super::wire::{Sets, Wire};
use crate::telemetry::names::{self, label};
use crate::types::{DocId, Keep, Metadata, TimestampMs, Verify};
use crate::verdicts::{Limits, Made, Preparer, Result, Terms};

/// How many holders of an id are looked at if it is replaced again and again.
const HOLDERS_MAX: usize = 16;

/// What the operations on one collection use.
pub(super) struct Context {
    entry: Entry,
    preparer: Preparer,
    cluster: Cluster,
    keys: Keys,
    limits: Limits,
    counters: Counters,
    gate: Arc<Gate>,
}

/// What a collection needs of its store.
pub(super) struct Parts {
    pub entry: Entry,
    pub preparer: Preparer,
    pub cluster: Cluster,
    pub keys: Keys,
    pub limits: Limits,
    /// Whether writes are accepted.
    pub gate: Arc<Gate>,
}

impl Context {
    pub(super) fn new(Parts { entry, preparer, cluster, keys, limits, gate }: Parts) -> Self {
        let counters = Counters::new(cluster.clone(), keys.clone());
        Self { entry, preparer, cluster, keys, limits, counters, gate }
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    pub(super) fn preparer(&self) -> &Preparer {
        &self.preparer
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the largest number of postings that are read for a band.
    pub(super) fn postings_max(&self) -> usize {
        self.limits.bucket_read_max
    }

    /// Returns the largest number of documents that are compared with one.
    pub(super) fn candidates_max(&self) -> usize {
        self.limits.candidates_max
    }

    /// Removes a document that is not stored any more, in the background.
    pub(super) fn remove(&self, id: &DocId, body: &Judged, rest: impl FnOnce(u16) -> Rest<Judged>) {
        let wire = self.wire(body, Some(id));
        let rest = rest(wire.bands());
        self.driver(wire).tidy(rest);
    }

    /// Returns the document that holds an id.
    pub(super) async fn find_at(&self, id: &DocId) -> Result<Option<(Ref, Judged)>> {
        let mut driver = self.driver(self.wire_of_id(id));
        let mut before = None;
        for _ in 0..HOLDERS_MAX {
            let holder = driver.send(&[Step::holder()]).await.map_err(|failure| failure.told(false))?;
            let Some(Reply::Holder(Some(at))) = holder.into_iter().next().map(|answer| answer.reply) else {
                return Ok(None);
            };
            let found = present(&mut driver, at).await?.filter(|(_, body)| body.stored.id == *id);
            // It may have been replaced and removed since its number was read. Then another document holds the id.
            if found.is_some() || before.replace(at) == Some(at) {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns a document as it is compared. `own`: its id, metadata, number of shingles and largest number of matches, if it
    /// is to be stored.
    pub(super) fn judged(
        &self,
        made: &Made,
        terms: Terms,
        own: Option<(DocId, Option<Metadata>, Option<u64>, usize)>,
    ) -> Judged {
        // `verify` may have changed since the document was prepared. Without shingles, only the estimate can decide.
        let terms = if terms.compares_shingles() && made.kept.is_none() {
            Terms::new(Verify::Estimate, terms.threshold, self.preparer.spec())
        } else {
            terms
        };
        let (id, metadata, shingles, limit) = own.unwrap_or_else(|| (DocId::new("-").expect("an id"), None, None, 0));
        let stored = Stored {
            id,
            signature: made.signature.clone(),
            content: made.content,
            shingles,
            set: match &made.kept {
                Some(kept) if self.keeps_sets() => Set::Read(Arc::clone(&kept.set)),
                _ => Set::None,
            },
            metadata: metadata.filter(|metadata| !metadata.is_empty()),
            first_seen: TimestampMs::now(),
            seen: None,
            verdict: None,
        };
        Judged { stored: Arc::new(stored), terms, shape: self.preparer.shape(), limit }
    }

    /// Returns an error if documents must not be changed now.
    pub(super) async fn may_write(&self) -> Result<()> {
        self.gate.check()?;
        self.entry.confirm().await
    }

    pub(super) fn driver(&self, wire: Wire) -> Driver {
        Driver::new(self.cluster.clone(), wire)
    }

    pub(super) fn postings(&self, signature: &[u8], content: Option<ContentHash>) -> Vec<Posting> {
        self.keys.postings((self.entry.settings().banding, self.preparer.shape()), signature, content)
    }

    pub(super) fn wire(&self, body: &Judged, id: Option<&DocId>) -> Wire {
        let postings = self.postings(&body.stored.signature, body.stored.content);
        Wire { postings, id: id.map(|id| self.keys.id(id)), ..self.wire_to_compare(body) }
    }

    /// Returns a wire that reads the shingles of documents, if they decide whether a document is a duplicate of `body`.
    pub(super) fn wire_to_compare(&self, body: &Judged) -> Wire {
        let wire = self.bare_wire(body.terms);
        let sets = match wire.sets {
            Sets::None if body.terms.compares_shingles() => Sets::OfDoubtful(Box::new(body.clone())),
            sets => sets,
        };
        Wire { sets, ..wire }
    }

    /// Returns a wire that reads whole records.
    pub(super) fn wire_of_whole_reads(&self) -> Wire {
        Wire { sets: Sets::All, ..self.wire_of_reads() }
    }

    pub(super) fn wire_of_id(&self, id: &DocId) -> Wire {
        Wire { id: Some(self.keys.id(id)), ..self.wire_of_whole_reads() }
    }

    fn keeps_sets(&self) -> bool {
        self.preparer.keep() != Keep::Signature
    }

    /// Returns a wire that can only read records.
    pub(super) fn wire_of_reads(&self) -> Wire {
        self.bare_wire(terms_of(&self.entry.settings(), None))
    }

    pub(super) fn bare_wire(&self, terms: Terms) -> Wire {
        Wire {
            keys: self.keys.clone(),
            postings: Vec::new(),
            id: None,
            terms,
            shape: self.preparer.shape(),
            postings_max: self.limits.bucket_read_max,
            candidates_max: self.limits.candidates_max,
            exact_reads_max: self.limits.exact_reads_max,
            exact_bytes_max: self.limits.exact_bytes_max,
            acks: self.cluster.acks(),
            ttl: self.entry.settings().ttl,
            sets: if self.keeps_sets() { Sets::None } else { Sets::All },
        }
    }

    /// Counts documents that were marked as deleted. `removed` of them were not expired.
    pub(super) fn count_expired(&self, ended: i64, removed: i64) {
        if ended == 0 {
            return;
        }
        self.counters.count(-ended);
        let expired = (ended - removed).max(0) as u64;
        metrics::counter!(names::EXPIRED_DOCUMENTS, label::COLLECTION => self.entry.name().to_string())
            .increment(expired);
    }
}
