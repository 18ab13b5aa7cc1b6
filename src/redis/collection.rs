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
use super::keys::{Keys, Posting};
use super::pages::page;
use super::protocol::{Answer, Checked, Inserted, Ref, Reply, Step, Updated, rest_of};
use super::record::{FirstVerdict, Judged, Stored};
use super::watch::Gate;
use super::wire::Wire;
use crate::cpu::WhenFull;
use crate::extract::Page;
use crate::telemetry::names::{self, label};
use crate::types::{
    CollectionName, Content, DocId, Document, Extract, Html, LookupTimes, Metadata, OnDuplicate, OnExisting, Outcome,
    Seq, TimestampMs, Verdict,
};
use crate::verdicts::{
    Attached, Changes, CheckOptions, Cited, CollectionError, Description, DocumentsPage, Findings, HotBucket,
    InsertOptions, Limits, Made, PrepareOptions, Prepared, Preparer, Purpose, Result, Settings, Terms, TextSigner,
    VerdictContext, check_threshold, empty_verdict, similarity,
};
use hapax_core::{ContentHash, IllFormed, tuning};

/// The number of documents of streams that a collection inserts or deletes at once, and of lookups of one stream.
pub const AT_ONCE: usize = 128;
/// How often an insertion begins again with another number before it is refused.
const ATTEMPTS: usize = 8;

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
                Some(id) => self.find(id).await,
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
        let mut driver = Driver::new(self.cluster.clone(), self.wire(&query, None));
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
        refuse(options.on_existing == OnExisting::Replace, "`on_existing=replace`")?;
        refuse(labels.is_some_and(|labels| !labels.is_empty()), "labels")?;
        refuse(!capture.is_empty(), "captures")?;
        refuse(options.explain, "explanations")?;
        let (made, shingles) = prepared.into_parts();
        // They hold to the end of the insertion.
        let settings = self.entry.settings();
        let threshold = settings.threshold;
        let Some(made) = made else {
            let verdict = empty_verdict(Some(id), Outcome::Skipped, threshold, None);
            self.count("insert", &verdict);
            return Ok(verdict);
        };
        let sends_metadata = metadata.is_some();
        let body = self.judged(&made, terms_of(&settings, None), Some((id.clone(), metadata, shingles, options.limit)));
        let asked = Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata, threshold };
        let this = Arc::clone(self);
        let mut verdict = to_its_end(async move { this.insert(reserved, id, body, asked, options).await }).await?;
        self.count("insert", &verdict);
        verdict.fit(bytes_max);
        Ok(verdict)
    }

    async fn insert(
        &self,
        reserved: Option<Reserved>,
        id: DocId,
        body: Judged,
        asked: Asked,
        options: InsertOptions,
    ) -> Result<Verdict> {
        let (mut number, postings) = reserved.map(|Reserved { number, postings }| (number, postings)).unzip();
        let postings = postings.unwrap_or_else(|| self.postings(&body.stored.signature, body.stored.content));
        let wire = Wire { postings, id: Some(self.keys.id(&id)), ..self.bare_wire(body.terms) };
        let mut driver = Driver::new(self.cluster.clone(), wire);
        let beside = options.on_duplicate == OnDuplicate::Store;
        let shingles = body.stored.shingles;
        self.may_write().await?;
        for _ in 0..ATTEMPTS {
            let at = match number.take() {
                Some(reserved) => reserved,
                None => self.counters.number().await?,
            };
            let inserted = driver.insert(at, body.clone(), beside).await.map_err(|failure| failure.told(true))?;
            let (found, met, outcome) = match inserted {
                Inserted::Again => continue,
                Inserted::Unknown => {
                    let detail =
                        "the document may have been stored, and deleted since; send it again to store it".into();
                    return Err(CollectionError::StoreUnavailable { detail, uncertain: true });
                }
                Inserted::Stored { beside, met } => (beside, met, Outcome::Inserted),
                Inserted::Duplicate { found, met } => (found, met, Outcome::Skipped),
                Inserted::Held { by, body: held } => {
                    match self.held(id.clone(), body.clone(), (by, &held), asked, options).await? {
                        Some(verdict) => return Ok(verdict),
                        None => continue,
                    }
                }
            };
            if outcome == Outcome::Inserted {
                self.counters.count(1);
            }
            let found = (Checked { found, met }, driver.unread());
            let verdict = asked.verdict((self.preparer.spec(), &body), found, Some(id), shingles, None);
            return Ok(Verdict { outcome, stored: outcome == Outcome::Inserted, ..verdict });
        }
        Err(CollectionError::StoreUnavailable {
            detail: "other servers have aborted this insertion several times; nothing was stored; send it again".into(),
            uncertain: false,
        })
    }

    /// Answers an insertion whose id is held by the document `by`. None: it was deleted meanwhile.
    async fn held(
        &self,
        id: DocId,
        body: Judged,
        (by, held): (Ref, &Judged),
        asked: Asked,
        options: InsertOptions,
    ) -> Result<Option<Verdict>> {
        let sent = &body.stored.metadata;
        if body.repeats(held) {
            if !asked.sends_metadata || *sent == held.stored.metadata || options.on_existing == OnExisting::Keep {
                return self.repeat(held, asked, Outcome::Unchanged).await.map(Some);
            }
            let change =
                |stored: &Judged| (stored.stored.metadata != *sent).then(|| stored.with_metadata(sent.clone()));
            let mut driver = Driver::new(self.cluster.clone(), self.wire(held, None));
            return match driver.update(by, &change).await.map_err(|failure| failure.told(true))? {
                Updated::Changed(held) => self.repeat(&held, asked, Outcome::Updated).await.map(Some),
                Updated::Unchanged(held) => self.repeat(&held, asked, Outcome::Unchanged).await.map(Some),
                Updated::Gone => Ok(None),
            };
        }
        if options.on_existing == OnExisting::Conflict {
            return Err(CollectionError::IdConflict { id });
        }
        let mut driver = Driver::new(self.cluster.clone(), self.wire(&body, None));
        let checked = driver.check(body.clone()).await.map_err(|failure| failure.told(false))?;
        let found = (checked, driver.unread());
        let spec = self.preparer.spec();
        let verdict = asked.verdict((spec, &body), found, Some(id), body.stored.shingles, Some(held));
        Ok(Some(Verdict { outcome: Outcome::Skipped, stored: false, ..verdict }))
    }

    /// Gives the first verdict of a document again, without the matches that are no longer stored.
    async fn repeat(&self, held: &Judged, asked: Asked, outcome: Outcome) -> Result<Verdict> {
        let first = held.stored.verdict.clone().unwrap_or_else(|| FirstVerdict::unique(asked.threshold));
        let mut driver = Driver::new(self.cluster.clone(), self.wire(held, None));
        let reads: Vec<_> = first.matches.iter().map(|found| Step::read(found.at)).collect();
        let answers = driver.send(&reads).await.map_err(|failure| failure.told(false))?;
        let still = first.matches.iter().zip(answers).filter_map(|(found, answer)| match answer.reply {
            Reply::Record(Some(record)) if record.head.state.is_stored() => Some((found, record.body?)),
            _ => None,
        });
        let cited: Vec<Cited> = still
            .take(asked.limit)
            .map(|(found, body)| asked.cited(&body, found.matching, found.same_content))
            .collect();
        let best = first.matches.first();
        let spec = self.preparer.spec();
        let similarity = best.map(|best| similarity(spec, best.matching, best.same_content, None).value);
        let findings = Findings::again(spec, (first.kind, first.duplicate_of, similarity), cited.into_iter());
        Ok(findings.verdict(VerdictContext {
            outcome,
            stored: true,
            id: Some(held.stored.id.clone()),
            representative: None,
            threshold: first.threshold,
            candidates: first.candidates,
            unread: 0,
            shingles: held.stored.shingles,
            previous: None,
            expected_recall: None,
            times: LookupTimes::default(),
            explanation: None,
        }))
    }

    /// Deletes an id. Returns whether it was stored. If the client leaves, the deletion goes on.
    pub async fn delete(self: &Arc<Self>, id: DocId) -> Result<bool> {
        let this = Arc::clone(self);
        to_its_end(async move { this.delete_now(id).await }).await
    }

    async fn delete_now(&self, id: DocId) -> Result<bool> {
        self.may_write().await?;
        let mut driver = Driver::new(self.cluster.clone(), self.wire_of_id(&id));
        let Some((at, head, body)) = driver.delete().await.map_err(|failure| failure.told(true))? else {
            return Ok(false);
        };
        self.counters.count(-1);
        let wire = self.wire(&body, Some(&id));
        let rest = rest_of(at, head, wire.bands());
        Driver::new(self.cluster.clone(), wire).tidy(rest);
        Ok(true)
    }

    /// Returns the document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        let found = self.find_at(id).await?;
        Ok(found.map(|(at, found)| Stored::clone(&found.stored).document(at)))
    }

    /// Returns a page of documents in the order of `seq`, after `after`.
    pub async fn documents_within(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<DocumentsPage> {
        let mut driver = Driver::new(self.cluster.clone(), self.wire_of_reads());
        page((&self.counters, &mut driver), after, limit, bytes_max).await
    }

    /// Returns the fullest buckets of some documents that are chosen at random.
    pub async fn buckets(&self, limit: usize) -> Result<Vec<HotBucket>> {
        let _one_at_a_time = self.sampling.lock().await;
        let driver = Driver::new(self.cluster.clone(), self.wire_of_reads());
        let how = (self.settings().banding, self.preparer.shape());
        Sampler::new(&self.cluster, &self.keys, &self.counters, driver, how).fullest(limit).await
    }

    async fn find(&self, id: &DocId) -> Result<Option<Judged>> {
        Ok(self.find_at(id).await?.map(|(_, found)| found))
    }

    async fn find_at(&self, id: &DocId) -> Result<Option<(Ref, Judged)>> {
        let mut driver = Driver::new(self.cluster.clone(), self.wire_of_id(id));
        let one = |answers: Vec<Answer<Judged>>| answers.into_iter().next().map(|answer| answer.reply);
        let holder = driver.send(&[Step::holder()]).await.map_err(|failure| failure.told(false))?;
        let Some(Reply::Holder(Some(at))) = one(holder) else { return Ok(None) };
        let record = driver.send(&[Step::read(at)]).await.map_err(|failure| failure.told(false))?;
        Ok(match one(record) {
            Some(Reply::Record(Some(found))) if found.head.state.is_stored() => {
                found.body.filter(|body| body.stored.id == *id).map(|body| (at, body))
            }
            _ => None,
        })
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
            verdict: None,
        };
        Judged { stored: Arc::new(stored), terms, shape: self.preparer.shape(), limit }
    }

    /// Returns an error if documents must not be changed now.
    async fn may_write(&self) -> Result<()> {
        self.gate.check()?;
        self.entry.confirm().await
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

    fn wire(&self, body: &Judged, id: Option<&DocId>) -> Wire {
        let postings = self.postings(&body.stored.signature, body.stored.content);
        Wire { postings, id: id.map(|id| self.keys.id(id)), ..self.bare_wire(body.terms) }
    }

    fn wire_of_id(&self, id: &DocId) -> Wire {
        Wire { id: Some(self.keys.id(id)), ..self.wire_of_reads() }
    }

    /// Returns a wire that can only read records.
    fn wire_of_reads(&self) -> Wire {
        self.bare_wire(terms_of(&self.entry.settings(), None))
    }

    fn bare_wire(&self, terms: Terms) -> Wire {
        Wire {
            keys: self.keys.clone(),
            postings: Vec::new(),
            id: None,
            terms,
            shape: self.preparer.shape(),
            postings_max: self.limits.bucket_read_max,
            candidates_max: self.limits.candidates_max,
            acks: self.cluster.acks(),
        }
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
