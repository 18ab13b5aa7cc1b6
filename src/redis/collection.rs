//! `RedisCollection`: the operations of one collection in the cluster. Each server holds only its settings; the documents
//! are in the cluster, where other servers change them, too.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::asked::{Asked, refuse, to_its_end};
use super::call::call;
use super::cluster::Cluster;
use super::drive::Driver;
use super::keys::{Keys, Posting};
use super::protocol::{Checked, Inserted, Ref, Reply, Step, rest_of};
use super::record::{FirstVerdict, Judged, Stored, candidates, ranked};
use super::size::Size;
use super::watch::Gate;
use super::wire::Wire;
use crate::cpu::WhenFull;
use crate::extract::Page;
use crate::telemetry::names::{self, label};
use crate::telemetry::recorder;
use crate::types::{
    CollectionName, Content, DocId, Document, Extract, Html, LookupTimes, OnDuplicate, OnExisting, Outcome, Previous,
    Seq, TimestampMs, Verdict, VerdictKind,
};
use crate::verdicts::{
    Attached, CheckOptions, Cited, CollectionError, Description, Findings, InsertOptions, Limits, Made, PrepareOptions,
    Prepared, Preparer, Purpose, Result, Settings, Terms, TextSigner, VerdictContext, check_threshold, empty_verdict,
    similarity,
};
use hapax_core::{IllFormed, tuning};

/// The number of documents of streams that a collection inserts or deletes at once, and of lookups of one stream.
pub const AT_ONCE: usize = 128;
/// How often an insertion begins again with another number before it is refused.
const ATTEMPTS: usize = 8;
/// The number of document numbers that a server reserves at a time.
const BLOCK: u64 = 256;
/// The first number. Postings of one band are in the order of their numbers as texts, so numbers have equally many digits.
const FIRST: u64 = 1_000_000_000;

/// A collection in the cluster.
pub struct RedisCollection {
    name: CollectionName,
    created: TimestampMs,
    settings: Settings,
    terms: Terms,
    preparer: Preparer,
    cluster: Cluster,
    keys: Keys,
    limits: Limits,
    gate: Arc<Gate>,
    /// The numbers that this server has reserved and not used.
    numbers: Mutex<VecDeque<u64>>,
    size: Size,
    /// The places for documents of streams.
    places: Arc<Semaphore>,
}

/// What a collection needs of its store.
pub(super) struct Parts {
    pub name: CollectionName,
    pub created: TimestampMs,
    pub settings: Settings,
    pub preparer: Preparer,
    pub cluster: Cluster,
    pub keys: Keys,
    pub limits: Limits,
    pub gate: Arc<Gate>,
}

impl RedisCollection {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { name, created, settings, preparer, cluster, keys, limits, gate } = parts;
        recorder::admit(label::COLLECTION, name.as_str());
        let terms = Terms::new(settings.verify, settings.threshold, &settings.spec);
        let (numbers, size) = (Mutex::default(), Size::new(keys.groups()));
        let places = Arc::new(Semaphore::new(AT_ONCE));
        Self { name, created, settings, terms, preparer, cluster, keys, limits, gate, numbers, size, places }
    }

    pub fn name(&self) -> &CollectionName {
        &self.name
    }

    pub fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Returns the settings and the number of documents, as the cluster counted them last.
    pub fn describe(&self) -> Description {
        Description::new(self.name.clone(), self.settings(), self.created, self.size.documents(), Some(0))
    }

    pub async fn prepare_with(&self, content: Content, options: PrepareOptions) -> Result<Prepared> {
        self.preparer.prepare(content, options, self.settings.verify).await
    }

    pub async fn extract(&self, html: Html, extract: Option<Extract>, when_full: WhenFull) -> Result<Page> {
        self.preparer.extract(html, extract, when_full).await
    }

    pub fn text_signer(&self, ill_formed: IllFormed, options: PrepareOptions) -> Result<TextSigner> {
        self.preparer.text_signer(ill_formed, options, self.settings.verify)
    }

    pub fn shingle_bytes(&self, purpose: Purpose, text_bytes: usize) -> usize {
        self.preparer.shingle_bytes(purpose, text_bytes, self.settings.verify)
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
        let threshold = options.threshold.unwrap_or(self.settings.threshold);
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
        let query = Judged {
            terms: Terms::new(self.settings.verify, threshold, &self.settings.spec),
            ..self.judged(&made, None)
        };
        let mut driver = Driver::new(self.cluster.clone(), self.wire(&query, None));
        let lookup = async { driver.check(query.clone()).await.map_err(|failure| failure.told(false)) };
        let (held, checked) = tokio::try_join!(holder, lookup)?;
        let asked =
            Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata: false, threshold };
        let mut verdict = self.verdict(&query, (checked, driver.unread()), id, asked, shingles, held.as_ref());
        verdict.expected_recall = (threshold < self.settings.threshold)
            .then(|| tuning::candidate_probability(threshold, self.settings.banding, self.preparer.shape()));
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
        let Attached { metadata, labels, capture } = attached;
        refuse(options.on_duplicate == OnDuplicate::Link, "`on_duplicate=link`")?;
        refuse(options.on_existing == OnExisting::Replace, "`on_existing=replace`")?;
        refuse(labels.is_some_and(|labels| !labels.is_empty()), "labels")?;
        refuse(!capture.is_empty(), "captures")?;
        refuse(options.explain, "explanations")?;
        let (made, shingles) = prepared.into_parts();
        let threshold = self.settings.threshold;
        let Some(made) = made else {
            let verdict = empty_verdict(Some(id), Outcome::Skipped, threshold, None);
            self.count("insert", &verdict);
            return Ok(verdict);
        };
        let sends_metadata = metadata.is_some();
        let body = self.judged(&made, Some((id.clone(), metadata, shingles, options.limit)));
        let asked = Asked { limit: options.limit, with_metadata: options.with_metadata, sends_metadata, threshold };
        let this = Arc::clone(self);
        let mut verdict = to_its_end(async move { this.insert(id, body, asked, options).await }).await?;
        self.count("insert", &verdict);
        verdict.fit(bytes_max);
        Ok(verdict)
    }

    async fn insert(&self, id: DocId, body: Judged, asked: Asked, options: InsertOptions) -> Result<Verdict> {
        let mut driver = Driver::new(self.cluster.clone(), self.wire(&body, Some(&id)));
        let beside = options.on_duplicate == OnDuplicate::Store;
        let shingles = body.stored.shingles;
        self.gate.check()?;
        for _ in 0..ATTEMPTS {
            let at = self.number().await?;
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
                Inserted::Held { body: held, .. } => return self.held(id, body, &held, asked, options).await,
            };
            if outcome == Outcome::Inserted {
                self.count_documents(1);
            }
            let found = (Checked { found, met }, driver.unread());
            let verdict = self.verdict(&body, found, Some(id), asked, shingles, None);
            return Ok(Verdict { outcome, stored: outcome == Outcome::Inserted, ..verdict });
        }
        Err(CollectionError::StoreUnavailable {
            detail: "other servers have aborted this insertion several times; nothing was stored; send it again".into(),
            uncertain: false,
        })
    }

    /// Answers an insertion whose id is held.
    async fn held(
        &self,
        id: DocId,
        body: Judged,
        held: &Judged,
        asked: Asked,
        options: InsertOptions,
    ) -> Result<Verdict> {
        if body.repeats(held) {
            let sent = &body.stored.metadata;
            let differs = asked.sends_metadata && *sent != held.stored.metadata;
            let changes = differs && options.on_existing != OnExisting::Keep;
            refuse(changes, "changes of the metadata of a stored document")?;
            return self.repeat(held, asked).await;
        }
        if options.on_existing == OnExisting::Conflict {
            return Err(CollectionError::IdConflict { id });
        }
        let mut driver = Driver::new(self.cluster.clone(), self.wire(&body, None));
        let checked = driver.check(body.clone()).await.map_err(|failure| failure.told(false))?;
        let found = (checked, driver.unread());
        let verdict = self.verdict(&body, found, Some(id), asked, body.stored.shingles, Some(held));
        Ok(Verdict { outcome: Outcome::Skipped, stored: false, ..verdict })
    }

    /// Gives the first verdict of a document again, without the matches that are no longer stored.
    async fn repeat(&self, held: &Judged, asked: Asked) -> Result<Verdict> {
        let none = FirstVerdict { kind: VerdictKind::Unique, duplicate_of: None, candidates: 0, matches: Vec::new() };
        let first = held.stored.verdict.clone().unwrap_or(none);
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
            outcome: Outcome::Unchanged,
            stored: true,
            id: Some(held.stored.id.clone()),
            representative: None,
            threshold: asked.threshold,
            candidates: first.candidates,
            unread: 0,
            shingles: held.stored.shingles,
            previous: None,
            expected_recall: None,
            times: LookupTimes::default(),
            explanation: None,
        }))
    }

    /// Makes a verdict of a lookup. The document `held`, which holds the id, is no match of its own.
    fn verdict(
        &self,
        query: &Judged,
        (Checked { found, met }, unread): (Checked<Judged>, u64),
        id: Option<DocId>,
        asked: Asked,
        shingles: Option<u64>,
        held: Option<&Judged>,
    ) -> Verdict {
        let spec = self.preparer.spec();
        let is_other = |other: &Judged| held.is_none_or(|held| held.stored.id != other.stored.id);
        let others = found.iter().filter(|(_, other)| is_other(other)).map(|(at, other)| (*at, other));
        let ranked = ranked(query, others);
        let cited = ranked.iter().map(|(_, other)| asked.cited(other, query.matching(other), query.is_same(other)));
        let findings = Findings::of(spec, cited, asked.limit);
        let same = held.is_some_and(|held| query.repeats(held));
        let previous = held.filter(|_| !same).map(|held| Previous {
            similarity: similarity(spec, query.matching(held), false, None),
            first_seen: held.stored.first_seen,
        });
        findings.verdict(VerdictContext {
            outcome: Outcome::Checked,
            stored: same,
            id,
            representative: None,
            threshold: asked.threshold,
            candidates: candidates(met.stored.iter().map(|(_, other)| other).filter(|other| is_other(other))),
            unread: unread + met.left_out,
            shingles,
            previous,
            expected_recall: None,
            times: LookupTimes::default(),
            explanation: None,
        })
    }

    /// Deletes an id. Returns whether it was stored. If the client leaves, the deletion goes on.
    pub async fn delete(self: &Arc<Self>, id: DocId) -> Result<bool> {
        let this = Arc::clone(self);
        to_its_end(async move { this.delete_now(id).await }).await
    }

    async fn delete_now(&self, id: DocId) -> Result<bool> {
        self.gate.check()?;
        let mut driver = Driver::new(self.cluster.clone(), self.wire_of_id(&id));
        let Some((at, head, body)) = driver.delete().await.map_err(|failure| failure.told(true))? else {
            return Ok(false);
        };
        self.count_documents(-1);
        let wire = self.wire(&body, Some(&id));
        let rest = rest_of(at, head, wire.bands());
        Driver::new(self.cluster.clone(), wire).tidy(rest);
        Ok(true)
    }

    /// Returns the document of an id.
    pub async fn document(&self, id: &DocId) -> Result<Option<Document>> {
        let found = self.find_at(id).await?;
        Ok(found.map(|(at, found)| {
            let Stored { id, metadata, first_seen, shingles, verdict, .. } = (*found.stored).clone();
            Document {
                id,
                seq: Seq(at.0),
                metadata,
                labels: None,
                capture: crate::types::Capture::default(),
                first_seen,
                id_first_seen: first_seen,
                last_seen: None,
                expires: None,
                shingles,
                verdict: verdict.as_ref().map_or(VerdictKind::Unique, |verdict| verdict.kind),
                duplicate_of: verdict.and_then(|verdict| verdict.duplicate_of),
                representative: None,
                linked: false,
            }
        }))
    }

    async fn find(&self, id: &DocId) -> Result<Option<Judged>> {
        Ok(self.find_at(id).await?.map(|(_, found)| found))
    }

    async fn find_at(&self, id: &DocId) -> Result<Option<(Ref, Judged)>> {
        let mut driver = Driver::new(self.cluster.clone(), self.wire_of_id(id));
        let one = |answers: Vec<super::protocol::Answer<Judged>>| answers.into_iter().next().map(|answer| answer.reply);
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

    fn judged(&self, made: &Made, own: Option<(DocId, Option<crate::types::Metadata>, Option<u64>, usize)>) -> Judged {
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
        Judged { stored: Arc::new(stored), terms: self.terms, shape: self.preparer.shape(), limit }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the places for documents of streams.
    pub(super) fn places(&self) -> Arc<Semaphore> {
        Arc::clone(&self.places)
    }

    pub(super) fn postings(&self, made: &Made) -> Vec<Posting> {
        self.keys.postings((self.settings.banding, self.preparer.shape()), &made.signature, made.content)
    }

    fn wire(&self, body: &Judged, id: Option<&DocId>) -> Wire {
        let how = (self.settings.banding, self.preparer.shape());
        let postings = self.keys.postings(how, &body.stored.signature, body.stored.content);
        let (id, body_bytes) = (id.map(|id| self.keys.id(id)), body.stored.bytes());
        Wire { postings, body_bytes, id, terms: body.terms, ..self.bare_wire() }
    }

    fn wire_of_id(&self, id: &DocId) -> Wire {
        Wire { id: Some(self.keys.id(id)), ..self.bare_wire() }
    }

    fn bare_wire(&self) -> Wire {
        Wire {
            keys: self.keys.clone(),
            postings: Vec::new(),
            body_bytes: 0,
            id: None,
            terms: self.terms,
            shape: self.preparer.shape(),
            postings_max: self.limits.bucket_read_max,
            candidates_max: self.limits.candidates_max,
            acks: self.cluster.acks(),
        }
    }

    /// Returns a document number that no server has used.
    async fn number(&self) -> Result<Ref> {
        if let Some(number) = self.numbers.lock().pop_front() {
            return Ok(Ref(number));
        }
        let key = self.keys.counter();
        let add = redis::cmd("INCRBY").arg(&key).arg(BLOCK).to_owned();
        let redis::Value::Int(last) = call(&self.cluster, &key, add, Some(self.cluster.acks())).await? else {
            return Err(CollectionError::Store("the counter of documents in the cluster is not a number".into()));
        };
        let Some(last) = u64::try_from(last).ok().filter(|last| (BLOCK..u64::MAX >> 1).contains(last)) else {
            return Err(CollectionError::Store("the counter of documents in the cluster was changed".into()));
        };
        let mut numbers = self.numbers.lock();
        numbers.extend((last + 1 - BLOCK..=last).map(|number| FIRST + number));
        Ok(Ref(numbers.pop_front().expect("a block was added")))
    }

    /// Counts a document in the cluster, in the background. A server that is killed meanwhile leaves it uncounted.
    fn count_documents(&self, change: i64) {
        let (cluster, key) = (self.cluster.clone(), self.keys.documents());
        tokio::spawn(async move {
            let add = redis::cmd("INCRBY").arg(&key).arg(change).to_owned();
            let _ = call(&cluster, &key, add, None).await;
        });
    }

    /// Reads how many documents the cluster has counted.
    pub(super) async fn refresh(&self) {
        let key = self.keys.documents();
        let get = redis::cmd("GET").arg(&key).to_owned();
        let counted = call(&self.cluster, &key, get, None).await.ok();
        if let Some(Ok(counted)) = counted.map(redis::from_redis_value::<Option<i64>>) {
            self.size.set(counted.unwrap_or(0).max(0) as u64, &self.name);
        }
    }

    fn count(&self, op: &'static str, verdict: &Verdict) {
        metrics::counter!(
            names::VERDICTS,
            label::COLLECTION => self.name.to_string(),
            label::OP => op,
            label::VERDICT => verdict.kind.as_str()
        )
        .increment(1);
    }

    /// Sets the gauges of the collection.
    pub fn observe(&self) {
        self.size.observe(&self.name);
    }
}
