//! `RedisCollection`: the operations of one collection in the cluster. Each server holds only its settings; the documents
//! are in the cluster, where other servers change them, too.

use std::sync::Arc;

use tokio::sync::{Mutex, Semaphore};

use super::asked::{Asked, refuse, to_its_end};
use super::buckets::Sampler;
use super::cluster::Cluster;
use super::counters::Counters;
use super::drive::Driver;
use super::entry::{Entry, terms_of};
use super::insertion::Insertion;
use super::keys::{Keys, Posting};
use super::pages::page;
use super::protocol::{Body, Deleted, Ref, Reply, Rest, Step, rest_of};
use super::reads::present;
use super::record::{Judged, Stored};
use super::watch::Gate;
use super::wire::Wire;
use crate::cpu::WhenFull;
use crate::extract::Page;
use crate::telemetry::names::{self, label};
use crate::types::{
    CollectionName, Content, DocId, Document, Extract, Html, Metadata, OnDuplicate, OnExisting, Outcome, Seq,
    TimestampMs, Verdict, expires_at,
};
use crate::verdicts::{
    Attached, Changes, CheckOptions, CollectionError, Description, DocumentsPage, HotBucket, InsertOptions, Limits,
    Made, PrepareOptions, Prepared, Preparer, Purpose, Result, Settings, Terms, TextSigner, check_threshold,
    empty_verdict,
};
use hapax_core::{ContentHash, IllFormed, Spec, tuning};

/// The number of documents of streams that a collection inserts or deletes at once, and of lookups of one stream.
pub const AT_ONCE: usize = 128;

/// How many holders of an id are looked at if it is replaced again and again.
const HOLDERS_MAX: usize = 16;

/// A collection in the cluster.
pub struct RedisCollection {
    entry: Entry,
    preparer: Preparer,
    cluster: Cluster,
    keys: Keys,
    limits: Limits,
    counters: Counters,
    /// Is held while buckets are counted, so that this is not done several times at once.
    sampling: Mutex<()>,
    gate: Arc<Gate>,
    /// The places for documents of streams.
    places: Arc<Semaphore>,
}

/// What a collection needs of its store.
pub(super) struct Parts {
    pub entry: Entry,
    pub preparer: Preparer,
    pub cluster: Cluster,
    pub keys: Keys,
    pub limits: Limits,
    pub gate: Arc<Gate>,
}

/// What a document of a request with several has before its turn comes.
pub(super) struct Reserved {
    pub number: Ref,
    pub postings: Vec<Posting>,
}

impl RedisCollection {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { entry, preparer, cluster, keys, limits, gate } = parts;
        let counters = Counters::new(cluster.clone(), keys.clone());
        let (sampling, places) = (Mutex::new(()), Arc::new(Semaphore::new(AT_ONCE)));
        Self { entry, preparer, cluster, keys, limits, counters, sampling, gate, places }
    }

    pub fn name(&self) -> &CollectionName {
        self.entry.name()
    }

    pub fn settings(&self) -> Settings {
        Settings::clone(&self.entry.settings())
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the settings and the number of documents, as the cluster counted them last.
    pub fn describe(&self) -> Description {
        let (name, documents) = (self.name().clone(), self.counters.documents());
        Description::new(name, self.settings(), self.entry.created(), documents, Some(0))
    }

    /// Changes settings. The other servers read them within two seconds.
    pub async fn update(&self, changes: Changes) -> Result<Description> {
        self.gate.check()?;
        self.entry.change(changes).await?;
        Ok(self.describe())
    }

    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        self.preparer.prepare(content, options, self.entry.settings().verify).await
    }

    pub async fn extract(&self, html: Html, extract: Option<Extract>, when_full: WhenFull) -> Result<Page> {
        self.preparer.extract(html, extract, when_full).await
    }

    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        self.preparer.text_signer(ill_formed, options, self.entry.settings().verify)
    }

    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        self.preparer.shingle_bytes(purpose, text_bytes, self.entry.settings().verify)
    }

    /// Looks a document up. If a match is not sealed yet, this confirms it with a write.
    pub async fn check_within(
        &self,
        id: Option<DocId>,
        prepared: Prepared,
        options: CheckOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        options.threshold.map(check_threshold).transpose()?;
        refuse(options.scope.is_some(), "checks with a scope")?;
        refuse(options.explain, "explanations")?;
        refuse(options.payload_digest.is_some(), "payload digests")?;
        let settings = self.entry.settings();
        let threshold = options.threshold.unwrap_or(settings.threshold);
        let (made, shingles) = prepared.into_parts();
        let holder = async {
            match &id {
                Some(id) => Ok(self.find_at(id).await?.map(|(_, found)| found)),
                None => Ok(None),
            }
        };
        let Some(made) = made else {
            let replaced = holder.await?.map(|held| held.stored.first_seen);
            let verdict = empty_verdict(id, Outcome::Checked, threshold, replaced);
            self.count("check", &verdict);
            return Ok(verdict);
        };
        let query = self.judged(&made, terms_of(&settings, options.threshold), None);
        let mut driver = self.driver(self.wire(&query, None));
        let lookup = async { driver.check(query.clone()).await.map_err(|failure| failure.told(false)) };
        let (held, checked) = tokio::try_join!(holder, lookup)?;
        let asked =
            Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata: false, threshold };
        let spec = self.preparer.spec();
        let mut verdict = asked.verdict((spec, &query), (checked, driver.unread()), id, shingles, held.as_ref());
        verdict.expected_recall = (threshold < settings.threshold)
            .then(|| tuning::candidate_probability(threshold, settings.banding, self.preparer.shape()));
        self.count("check", &verdict);
        verdict.fit(bytes_max);
        Ok(verdict)
    }

    /// Checks and inserts a document. The answer is durable when this returns. If the client leaves, the insertion goes
    /// on: others would have to wait for a document that is neither stored nor given up.
    pub async fn insert_within(
        self: &Arc<Self>,
        id: DocId,
        attached: Attached,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        self.insert_as(None, id, attached, prepared, options, bytes_max).await
    }

    /// Does the same as [`insert_within`](Self::insert_within) for a document that may have a number and postings already.
    pub(super) async fn insert_as(
        self: &Arc<Self>,
        reserved: Option<Reserved>,
        id: DocId,
        attached: Attached,
        prepared: Prepared,
        options: InsertOptions,
        bytes_max: usize,
    ) -> Result<Verdict> {
        let Attached { metadata, labels, capture } = attached;
        refuse(options.on_duplicate == OnDuplicate::Link, "`on_duplicate=link`")?;
        refuse(labels.is_some_and(|labels| !labels.is_empty()), "labels")?;
        refuse(!capture.is_empty(), "captures")?;
        refuse(options.explain, "explanations")?;
        let (made, shingles) = prepared.into_parts();
        // They hold to the end of the insertion.
        let settings = self.entry.settings();
        let threshold = settings.threshold;
        let this = Arc::clone(self);
        let mut verdict = match made {
            None => to_its_end(async move { this.insert_empty(id, options, threshold).await }).await?,
            Some(made) => {
                let sends_metadata = metadata.is_some();
                let own = (id.clone(), metadata, shingles, options.limit);
                let body = self.judged(&made, terms_of(&settings, None), Some(own));
                let asked =
                    Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata, threshold };
                let insertion = Insertion { id, body, asked, options, ttl: settings.ttl };
                to_its_end(async move { insertion.run(&this, reserved).await }).await?
            }
        };
        self.count("insert", &verdict);
        verdict.fit(bytes_max);
        Ok(verdict)
    }

    /// Answers the insertion of a document without a token. At most, it removes the content that the id holds.
    async fn insert_empty(&self, id: DocId, options: InsertOptions, threshold: f64) -> Result<Verdict> {
        let removed = match options.on_existing {
            OnExisting::Replace => self.delete_held(&id).await?,
            OnExisting::Conflict | OnExisting::Keep => None,
        };
        let outcome = if removed.is_some() { Outcome::Removed } else { Outcome::Skipped };
        Ok(empty_verdict(Some(id), outcome, threshold, removed.map(|held| held.stored.first_seen)))
    }

    /// Deletes an id. Returns whether it was stored. If the client leaves, the deletion goes on.
    pub async fn delete(self: &Arc<Self>, id: DocId) -> Result<bool> {
        let this = Arc::clone(self);
        to_its_end(async move { this.delete_held(&id).await }).await.map(|deleted| deleted.is_some())
    }

    /// Deletes the document that holds an id, and returns it.
    async fn delete_held(&self, id: &DocId) -> Result<Option<Judged>> {
        self.may_write().await?;
        let mut driver = self.driver(self.wire_of_id(id));
        let (at, head, body) = match driver.delete().await.map_err(|failure| failure.told(true))? {
            Deleted::This(at, head, body) => (at, head, body),
            Deleted::Nothing => return Ok(None),
            Deleted::Unknown => {
                let detail = "the document is deleted, perhaps by another request; send it again to be sure".into();
                return Err(CollectionError::StoreUnavailable { detail, uncertain: true });
            }
        };
        self.counters.count(-1);
        self.remove(id, &body, |bands| rest_of(at, head, body.replaces(), bands));
        Ok(Some(body))
    }

    /// Removes a document that is not stored any more, in the background.
    pub(super) fn remove(&self, id: &DocId, body: &Judged, rest: impl FnOnce(u16) -> Rest<Judged>) {
        let wire = self.wire(body, Some(id));
        let rest = rest(wire.bands());
        self.driver(wire).tidy(rest);
    }

    /// Returns the document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        let Some((at, found)) = self.find_at(id).await? else { return Ok(None) };
        let document = Stored::clone(&found.stored).document(at);
        let Some(ttl) = self.entry.settings().ttl else { return Ok(Some(document)) };
        let last_seen = found.stored.last_seen();
        let expires = Some(expires_at(last_seen, ttl));
        Ok(Some(Document { last_seen: Some(last_seen), expires, ..document }))
    }

    /// Returns a page of documents in the order of `seq`, after `after`.
    pub async fn documents_within(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<DocumentsPage> {
        let mut driver = self.driver(self.wire_of_reads());
        page((&self.counters, &mut driver), after, limit, bytes_max).await
    }

    /// Returns the fullest buckets of some documents that are chosen at random.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        let _one_at_a_time = self.sampling.lock().await;
        let driver = self.driver(self.wire_of_reads());
        let how = (self.settings().banding, self.preparer.shape());
        Sampler::new(&self.cluster, &self.keys, &self.counters, driver, how).fullest(limit).await
    }

    async fn find_at(&self, id: &DocId) -> Result<Option<(Ref, Judged)>> {
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

    fn judged(&self, made: &Made, terms: Terms, own: Option<(DocId, Option<Metadata>, Option<u64>, usize)>) -> Judged {
        let (id, metadata, shingles, limit) = own.unwrap_or_else(|| (DocId::new("-").expect("an id"), None, None, 0));
        let stored = Stored {
            id,
            signature: made.signature.clone(),
            content: made.content,
            shingles,
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

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn spec(&self) -> &Spec {
        self.preparer.spec()
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the places for documents of streams.
    pub(super) fn places(&self) -> Arc<Semaphore> {
        Arc::clone(&self.places)
    }

    pub(super) fn postings(&self, signature: &[u8], content: Option<ContentHash>) -> Vec<Posting> {
        self.keys.postings((self.entry.settings().banding, self.preparer.shape()), signature, content)
    }

    pub(super) fn wire(&self, body: &Judged, id: Option<&DocId>) -> Wire {
        let postings = self.postings(&body.stored.signature, body.stored.content);
        Wire { postings, id: id.map(|id| self.keys.id(id)), ..self.bare_wire(body.terms) }
    }

    fn wire_of_id(&self, id: &DocId) -> Wire {
        Wire { id: Some(self.keys.id(id)), ..self.wire_of_reads() }
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
            acks: self.cluster.acks(),
            ttl: self.entry.settings().ttl,
        }
    }

    /// Counts documents that were marked as deleted. `removed` of them were not expired.
    pub(super) fn count_expired(&self, ended: i64, removed: i64) {
        if ended == 0 {
            return;
        }
        self.counters.count(-ended);
        let expired = (ended - removed).max(0) as u64;
        metrics::counter!(names::EXPIRED_DOCUMENTS, label::COLLECTION => self.name().to_string()).increment(expired);
    }

    fn count(&self, op: &'static str, verdict: &Verdict) {
        metrics::counter!(
            names::VERDICTS,
            label::COLLECTION => self.name().to_string(),
            label::OP => op,
            label::VERDICT => verdict.kind.as_str()
        )
        .increment(1);
    }

    /// Sets the gauges of the collection.
    pub fn observe(&self) {
        self.counters.observe(self.name());
    }
}
