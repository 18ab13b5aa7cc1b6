//! The insertion of a document: what its answer says, and what happens if its id holds a document already.

use std::time::{Duration, Instant};

use super::asked::Asked;
use super::context::Context;
use super::first_verdict::FirstVerdict;
use super::keys::Posting;
use super::protocol::{Body, Checked, How, Inserted, Met, Ref, Updated, rest_of, rest_of_replaced};
use super::reads::stored;
use super::record::Judged;
use super::wire::Wire;
use crate::types::{DocId, LookupTimes, OnDuplicate, OnExisting, Outcome, TimestampMs, Verdict, expires_at};
use crate::verdicts::{Cited, CollectionError, Findings, InsertOptions, Result, VerdictContext, similarity};

/// An insertion that others disturb begins again with another number. It is refused after so many attempts, if they have
/// taken so long.
const ATTEMPTS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(2);
/// The time at which a document was last seen is written only if it changes by this part of the `ttl`.
const SEEN_PART: u32 = 64;

/// What a document of a request with several has before its turn comes.
pub(super) struct Reserved {
    pub number: Ref,
    pub postings: Vec<Posting>,
}

/// An insertion.
pub(super) struct Insertion {
    pub id: DocId,
    pub body: Judged,
    pub asked: Asked,
    pub options: InsertOptions,
    pub ttl: Option<Duration>,
}

impl Insertion {
    pub(super) async fn run(self, context: &Context, reserved: Option<Reserved>) -> Result<Verdict> {
        let (mut number, postings) = reserved.map(|Reserved { number, postings }| (number, postings)).unzip();
        let stored = &self.body.stored;
        let postings = postings.unwrap_or_else(|| context.postings(&stored.signature, stored.content));
        let id = Some(context.keys().id(&self.id));
        let mut driver = context.driver(Wire { postings, id, ..context.wire_to_compare(&self.body) });
        let how = How {
            beside: self.options.on_duplicate == OnDuplicate::Store,
            replaces: self.options.on_existing == OnExisting::Replace,
        };
        context.may_write().await?;
        let (begun, mut attempts, mut counted) = (Instant::now(), 0, 0);
        loop {
            attempts += 1;
            let at = match number.take() {
                Some(reserved) => reserved,
                None => context.counters().number().await?,
            };
            let inserted = driver.insert(at, self.body.clone(), how).await.map_err(|failure| failure.told(true));
            let is_removed = matches!(inserted, Ok(Inserted::Duplicate { removed: Some(_), .. }));
            context.count_expired(driver.ended() - counted, i64::from(is_removed));
            counted = driver.ended();
            match inserted? {
                Inserted::Again => {}
                Inserted::Unknown => return Err(unknown()),
                Inserted::Held { by, body: held } => {
                    if let Some(verdict) = self.held(context, (by, &held)).await? {
                        return Ok(verdict);
                    }
                }
                Inserted::Stored { beside, met, replaced } => {
                    return Ok(self.stored(context, (at, replaced), (beside, met), driver.unread()));
                }
                Inserted::Duplicate { found, met, removed } => {
                    let old = removed.map(|(old, head, body)| {
                        context.remove(&self.id, &body, |bands| rest_of(old, head, body.replaces(), bands));
                        body
                    });
                    let outcome = if old.is_some() { Outcome::Removed } else { Outcome::Skipped };
                    let checked = (Checked { found, met }, driver.unread());
                    return Ok(self.verdict(context, outcome, checked, old.as_ref()));
                }
            }
            if attempts >= ATTEMPTS && begun.elapsed() > PATIENCE {
                return Err(disturbed());
            }
        }
    }

    /// Returns the verdict on a document that was stored, perhaps in the place of another one.
    fn stored(
        &self,
        context: &Context,
        (at, replaced): (Ref, Option<(Ref, Judged)>),
        (found, met): (Vec<(Ref, Judged)>, Met<Judged>),
        unread: u64,
    ) -> Verdict {
        let outcome = match &replaced {
            None => {
                context.counters().count(1);
                Outcome::Inserted
            }
            Some((old, body)) => {
                context.remove(&self.id, body, |bands| rest_of_replaced(*old, at, body.replaces(), bands));
                Outcome::Replaced
            }
        };
        let old = replaced.as_ref().map(|(_, body)| body);
        let verdict = self.verdict(context, outcome, (Checked { found, met }, unread), old);
        Verdict { stored: true, ..verdict }
    }

    /// Returns the verdict of a lookup. `held`: the other content that the id holds, or held.
    fn verdict(
        &self,
        context: &Context,
        outcome: Outcome,
        checked: (Checked<Judged>, u64),
        held: Option<&Judged>,
    ) -> Verdict {
        let (id, shingles) = (Some(self.id.clone()), self.body.stored.shingles);
        let verdict = self.asked.verdict((context.preparer().spec(), &self.body), checked, id, shingles, held);
        Verdict { outcome, stored: false, ..verdict }
    }

    /// Answers an insertion whose id is held by the document `by`, which is not to be replaced. None: it was deleted
    /// meanwhile.
    async fn held(&self, context: &Context, (by, held): (Ref, &Judged)) -> Result<Option<Verdict>> {
        if self.body.repeats(held) {
            return self.repeats(context, (by, held)).await;
        }
        if self.options.on_existing == OnExisting::Conflict {
            return Err(CollectionError::IdConflict { id: self.id.clone() });
        }
        let mut driver = context.driver(context.wire(&self.body, None));
        let checked = driver.check(self.body.clone()).await.map_err(|failure| failure.told(false))?;
        let checked = (checked, driver.unread());
        Ok(Some(self.verdict(context, Outcome::Skipped, checked, Some(held))))
    }

    /// Answers an insertion of the content that the id holds already.
    async fn repeats(&self, context: &Context, (by, held): (Ref, &Judged)) -> Result<Option<Verdict>> {
        let (sent, now) = (&self.body.stored.metadata, TimestampMs::now());
        let is_other = |stored: &Judged| {
            self.asked.sends_metadata && *sent != stored.stored.metadata && self.options.on_existing != OnExisting::Keep
        };
        let is_late =
            |stored: &Judged| self.ttl.is_some_and(|ttl| expires_at(stored.stored.last_seen(), ttl / SEEN_PART) < now);
        let change = |stored: &Judged| {
            let metadata = if is_other(stored) { sent.clone() } else { stored.stored.metadata.clone() };
            let seen = if is_late(stored) { Some(now) } else { stored.stored.seen };
            (is_other(stored) || is_late(stored)).then(|| stored.with(metadata, seen))
        };
        if change(held).is_none() {
            return self.repeat(context, held, Outcome::Unchanged).await.map(Some);
        }
        let mut driver = context.driver(context.wire_of_whole_reads());
        let outcome = if is_other(held) { Outcome::Updated } else { Outcome::Unchanged };
        match driver.update(by, &change).await.map_err(|failure| failure.told(true))? {
            Updated::Changed(held) => self.repeat(context, &held, outcome).await.map(Some),
            Updated::Unchanged(held) => self.repeat(context, &held, Outcome::Unchanged).await.map(Some),
            Updated::Gone => Ok(None),
        }
    }

    /// Gives the first verdict of a document again, without the matches that are no longer stored.
    async fn repeat(&self, context: &Context, held: &Judged, outcome: Outcome) -> Result<Verdict> {
        let first = held.stored.verdict.clone().unwrap_or_else(|| FirstVerdict::unique(self.asked.threshold));
        let mut driver = context.driver(context.wire_of_reads());
        let numbers: Vec<_> = first.matches.iter().map(|found| found.at).collect();
        let still = stored(&mut driver, &numbers).await?;
        let matched = |at: Ref| first.matches.iter().find(|found| found.at == at);
        let cited: Vec<Cited> = still
            .iter()
            .filter_map(|(at, body)| Some((matched(*at)?, body)))
            .take(self.asked.limit)
            .map(|(found, body)| self.asked.cited(body, found.matching, found.same_content, found.overlap))
            .collect();
        let spec = context.preparer().spec();
        let similarity =
            first.matches.first().map(|best| similarity(spec, best.matching, best.same_content, best.overlap).value);
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
}

fn disturbed() -> CollectionError {
    let detail = "other requests kept deleting the document under this id, or other servers kept aborting this insertion; \
                  nothing was stored; send it again";
    CollectionError::StoreUnavailable { detail: detail.into(), uncertain: false }
}

fn unknown() -> CollectionError {
    let detail = "the document may have been stored, and deleted since; send it again to store it".into();
    CollectionError::StoreUnavailable { detail, uncertain: true }
}
