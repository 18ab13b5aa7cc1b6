//! `RedisCollection`: the operations of one collection in the cluster. Each server holds only its settings; the documents
//! are in the cluster, where other servers change them, too.

use std::sync::Arc;

use tokio::sync::{Mutex, Semaphore};

use super::asked::{Asked, refuse, to_its_end};
use super::buckets::Sampler;
use super::context::Context;
use super::entry::terms_of;
use super::insertion::{Insertion, Reserved};
use super::pages::page;
use super::protocol::{Body, Deleted, rest_of};
use super::record::{Judged, Stored};
use crate::cpu::WhenFull;
use crate::extract::Page;
use crate::telemetry::names::{self, label};
use crate::types::{
    CollectionName, Content, DocId, Document, Extract, Html, OnDuplicate, OnExisting, Outcome, Seq, Verdict, expires_at,
};
use crate::verdicts::{
    Attached, Changes, CheckOptions, CollectionError, Description, DocumentsPage, HotBucket, InsertOptions,
    PrepareOptions, Prepared, Purpose, Result, Settings, TextSigner, check_threshold, empty_verdict,
};
use hapax_core::{IllFormed, tuning};

/// The number of documents of streams that a collection inserts or deletes at once, and of lookups of one stream.
pub const AT_ONCE: usize = 128;

/// A collection in the cluster.
pub struct RedisCollection {
    context: Context,
    /// Is held while buckets are counted, so that this is not done several times at once.
    sampling: Mutex<()>,
    /// The places for documents of streams.
    places: Arc<Semaphore>,
}

impl RedisCollection {
    pub(super) fn new(context: Context) -> Self {
        Self { context, sampling: Mutex::new(()), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Returns what the operations use.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub fn name(&self) -> &CollectionName {
        self.context.entry().name()
    }

    pub fn settings(&self) -> Settings {
        Settings::clone(&self.context.entry().settings())
    }

    /// Returns the settings and the number of documents, as the cluster counted them last.
    pub fn describe(&self) -> Description {
        let (name, documents) = (self.name().clone(), self.context.counters().documents());
        Description::new(name, self.settings(), self.context.entry().created(), documents, Some(0))
    }

    /// Changes settings. The other servers read them within two seconds.
    pub async fn update(&self, changes: Changes) -> Result<Description> {
        self.context.gate().check()?;
        self.context.entry().change(changes).await?;
        Ok(self.describe())
    }

    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        self.context.preparer().prepare(content, options, self.context.entry().settings().verify).await
    }

    pub async fn extract(&self, html: Html, extract: Option<Extract>, when_full: WhenFull) -> Result<Page> {
        self.context.preparer().extract(html, extract, when_full).await
    }

    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        self.context.preparer().text_signer(ill_formed, options, self.context.entry().settings().verify)
    }

    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        self.context.preparer().shingle_bytes(purpose, text_bytes, self.context.entry().settings().verify)
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
        let settings = self.context.entry().settings();
        let threshold = options.threshold.unwrap_or(settings.threshold);
        let (made, shingles) = prepared.into_parts();
        let holder = async {
            match &id {
                Some(id) => Ok(self.context.find_at(id).await?.map(|(_, found)| found)),
                None => Ok(None),
            }
        };
        let Some(made) = made else {
            let replaced = holder.await?.map(|held| held.stored.first_seen);
            let verdict = empty_verdict(id, Outcome::Checked, threshold, replaced);
            self.count("check", &verdict);
            return Ok(verdict);
        };
        let query = self.context.judged(&made, terms_of(&settings, options.threshold), None);
        let mut driver = self.context.driver(self.context.wire(&query, None));
        let lookup = async { driver.check(query.clone()).await.map_err(|failure| failure.told(false)) };
        let (held, checked) = tokio::try_join!(holder, lookup)?;
        let asked =
            Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata: false, threshold };
        let spec = self.context.preparer().spec();
        let mut verdict = asked.verdict((spec, &query), (checked, driver.unread()), id, shingles, held.as_ref());
        verdict.expected_recall = (threshold < settings.threshold)
            .then(|| tuning::candidate_probability(threshold, settings.banding, self.context.preparer().shape()));
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
        let settings = self.context.entry().settings();
        let threshold = settings.threshold;
        let this = Arc::clone(self);
        let mut verdict = match made {
            None => to_its_end(async move { this.insert_empty(id, options, threshold).await }).await?,
            Some(made) => {
                let sends_metadata = metadata.is_some();
                let own = (id.clone(), metadata, shingles, options.limit);
                let body = self.context.judged(&made, terms_of(&settings, None), Some(own));
                let asked =
                    Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata, threshold };
                let insertion = Insertion { id, body, asked, options, ttl: settings.ttl };
                to_its_end(async move { insertion.run(&this.context, reserved).await }).await?
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
        self.context.may_write().await?;
        let mut driver = self.context.driver(self.context.wire_of_id(id));
        let (at, head, body) = match driver.delete(id.clone()).await.map_err(|failure| failure.told(true))? {
            Deleted::This(at, head, body) => (at, head, body),
            Deleted::Nothing => return Ok(None),
            Deleted::Unknown => {
                let detail = "the document is deleted, perhaps by another request; send it again to be sure".into();
                return Err(CollectionError::StoreUnavailable { detail, uncertain: true });
            }
        };
        self.context.counters().count(-1);
        self.context.remove(id, &body, |bands| rest_of(at, head, body.replaces(), bands));
        Ok(Some(body))
    }

    /// Returns the document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        let Some((at, found)) = self.context.find_at(id).await? else { return Ok(None) };
        let document = Stored::clone(&found.stored).document(at);
        let Some(ttl) = self.context.entry().settings().ttl else { return Ok(Some(document)) };
        let last_seen = found.stored.last_seen();
        let expires = Some(expires_at(last_seen, ttl));
        Ok(Some(Document { last_seen: Some(last_seen), expires, ..document }))
    }

    /// Returns a page of documents in the order of `seq`, after `after`.
    pub async fn documents_within(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<DocumentsPage> {
        let mut driver = self.context.driver(self.context.wire_of_reads());
        page((self.context.counters(), &mut driver), after, limit, bytes_max).await
    }

    /// Returns the fullest buckets of some documents that are chosen at random.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        let _one_at_a_time = self.sampling.lock().await;
        let driver = self.context.driver(self.context.wire_of_reads());
        let how = (self.settings().banding, self.context.preparer().shape());
        Sampler::new(self.context.cluster(), self.context.keys(), self.context.counters(), driver, how)
            .fullest(limit)
            .await
    }

    /// Returns the places for documents of streams.
    pub(super) fn places(&self) -> Arc<Semaphore> {
        Arc::clone(&self.places)
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
        self.context.counters().observe(self.name());
    }
}
