//! A check: prepared content -> verdict. Reads only durable data, writes nothing, and reads no disk if all the data
//! that it needs is in memory.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use hapax_core::{tuning, verify};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::existing::{Existing, representative_of};
use super::findings::{explanation, findings, revisit};
use super::judgement::Judgement;
use super::lookup::Lookup;
use super::query::{query, shingle_query};
use super::records::{Mention, Mentions};
use super::retry::{ATTEMPTS, changing, wait_for_commit};
use super::survivors::{IN_PASSING, Survivors};
use crate::cpu;
use crate::engine::long_work::beside;
use crate::engine::meters::{Bound, Op};
use crate::index::{NeedsDisk, Place, Query, View};
use crate::store::{Record, id_fingerprint};
use crate::types::{DocId, Outcome, Previous, Revisit, Seq, Verdict, Verify, retry_after};
use crate::verdicts::{
    CheckOptions, CollectionError, Made, Result, ShingleQuery, Terms, VerdictContext, empty_verdict,
};

/// The turns for checks in crowded buckets. The number of turns is half the number of processors, so that half of the
/// processors stay free.
static CROWDED: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new((cpu::cores() / 2).max(1))));
/// The maximum number of checks that wait for a turn of [`CROWDED`]. If more checks waited, they would occupy the
/// places that other requests need.
static CROWDED_WAITING: Semaphore = Semaphore::const_new(256);

/// The maximum number of matches with one signature that an internal lookup lists.
const UNCOUNTED_LIMIT: usize = 1024;

/// A lookup to perform.
pub(crate) struct Check {
    /// The id of the document, if it has one. A stored document with this id is not reported as a match.
    pub id: Option<DocId>,
    pub made: Made,
    /// The number of shingles of the document, if it was given as a text or a set.
    pub shingles: Option<u64>,
    pub options: CheckOptions,
    /// The maximum size of the answer, in bytes.
    pub bytes_max: usize,
}

/// The result of a lookup in memory.
struct Glance<'a> {
    judgement: Judgement,
    threshold: f64,
    expected_recall: Option<f64>,
    /// Present if the survivors must still be compared by their shingles.
    query: Option<ShingleQuery<'a>>,
}

/// Facts from records about the check's id and the best match.
#[derive(Default)]
struct Recorded {
    /// Whether the id already holds exactly this content.
    same: bool,
    /// The revisit that refers to the id's own capture, if the id holds this content and that capture has the
    /// `payload_digest` of this check.
    revisit: Option<Revisit>,
    /// Present if the id holds other content: the similarity of that content to the checked content.
    previous: Option<Previous>,
    /// The representative of the best match, if the best match is a link.
    representative: Option<DocId>,
}

/// The reason for repeating a check.
enum LookAgain {
    /// Something on disk is needed.
    NeedsDisk,
    /// Data changed while it was read.
    Changed,
}

/// Answers a check of a document without tokens.
pub(crate) async fn check_empty(lookup: &Arc<Lookup>, id: Option<DocId>, threshold: Option<f64>) -> Result<Verdict> {
    let holds = match id.clone().filter(|id| !lookup.index().held_by(id_fingerprint(id)).is_empty()) {
        Some(id) => {
            let find = move |lookup: &Lookup| {
                let (_reading, view) = lookup.read();
                held_or_in_doubt(lookup, &id, view)
            };
            beside(lookup, find).await?.map(|existing| existing.record.first_seen)
        }
        None => None,
    };
    let threshold = threshold.unwrap_or(lookup.policy().settings.threshold);
    let verdict = empty_verdict(id, Outcome::Checked, threshold, holds);
    lookup.meters().verdict(Op::Check, &verdict);
    Ok(verdict)
}

/// Returns the document that holds an id. `None` if no document holds it, or if the document is in doubt.
fn held_or_in_doubt(lookup: &Lookup, id: &DocId, view: View) -> Result<Option<Existing>> {
    match Existing::find(lookup, id, view) {
        Err(CollectionError::Doubtful { .. }) => Ok(None),
        found => found,
    }
}

/// Looks a document up.
pub(crate) async fn check(lookup: &Arc<Lookup>, check: Check) -> Result<Verdict> {
    let bytes_max = check.bytes_max;
    let mut verdict = match in_memory(lookup, &check) {
        Some(verdict) => verdict,
        None => {
            let turn = if is_crowded(lookup, &check) { Some(crowded_turn().await?) } else { None };
            // The turn ends with the work, which continues even if the client disconnects.
            let work = move |lookup: &Lookup| {
                let _turn = turn;
                with_disk(lookup, &check)
            };
            Box::pin(beside(lookup, work)).await?
        }
    };
    verdict.fit(bytes_max);
    Ok(verdict)
}

async fn crowded_turn() -> Result<OwnedSemaphorePermit> {
    let _waiting = CROWDED_WAITING.try_acquire().map_err(|_| CollectionError::Overloaded {
        detail: "too many checks with a scope wait to read large buckets; try again later".to_owned(),
        retry_after: retry_after::SOON,
    })?;
    Ok(Arc::clone(&CROWDED).acquire_owned().await.expect("the semaphore is never closed"))
}

/// Returns whether the check has a scope and must read large buckets completely. Such a check takes many milliseconds.
fn is_crowded(lookup: &Lookup, check: &Check) -> bool {
    if check.options.scope.is_none() {
        return false;
    }
    let (_reading, view) = lookup.read();
    let glance = glance(lookup, check, None, view, &Survivors::default(), lookup.limits().bucket_read_max);
    glance.is_ok_and(|glance| glance.judgement.unread() > 0)
}

/// Returns the verdict if all data that it depends on is in memory.
fn in_memory(lookup: &Lookup, check: &Check) -> Option<Verdict> {
    // The view is taken first, because this check must not see documents that become durable after it has looked for
    // its id.
    let (_reading, view) = lookup.read();
    let id_may_be_held = check.id.as_ref().is_some_and(|id| !lookup.index().held_by(id_fingerprint(id)).is_empty());
    if id_may_be_held {
        return None;
    }
    let mut survivors = Survivors::default();
    let mut glance = glance(lookup, check, None, view, &survivors, lookup.limits().bucket_read_max).ok()?;
    if check.options.scope.is_some() && glance.judgement.unread() > 0 {
        // A check with a scope reads large buckets completely. This takes too long for an async thread, so the caller
        // does it on another thread.
        return None;
    }
    if let Some(query) = &glance.query
        && !survivors
            .settle(query, &mut glance.judgement, lookup.records(), lookup.read_bounds(), IN_PASSING)
            .is_empty()
    {
        return None;
    }
    let mut mentions = Mentions::default();
    let missing = lookup.records().recall(
        &mut mentions,
        glance.judgement.named(check.options.limit),
        check.options.needs_ids_alone(),
    );
    let limit = check.options.limit;
    if !missing.is_empty()
        || !glance.judgement.mistakes(limit, &mentions, check.made.content).is_empty()
        || glance.judgement.best_link().is_some()
    {
        return None;
    }
    Some(conclude(lookup, check, glance, &mentions, &survivors, Recorded::default()))
}

fn with_disk(lookup: &Lookup, check: &Check) -> Result<Verdict> {
    let mut survivors = Survivors::default();
    for attempt in 0..ATTEMPTS {
        match attempt_with_disk(lookup, check, &mut survivors)? {
            Ok(verdict) => return Ok(verdict),
            Err(LookAgain::NeedsDisk) => {}
            Err(LookAgain::Changed) => wait_for_commit(attempt),
        }
    }
    Err(changing())
}

fn attempt_with_disk(
    lookup: &Lookup,
    check: &Check,
    survivors: &mut Survivors,
) -> Result<std::result::Result<Verdict, LookAgain>> {
    let Check { made, options, .. } = check;
    let (_reading, view) = lookup.read();
    // If the document that holds the id is in doubt, the verdict says that it is incomplete.
    let existing = check.id.as_ref().map(|id| held_or_in_doubt(lookup, id, view)).transpose()?.flatten();
    let limits = lookup.limits();
    let reads_max = if options.scope.is_some() { limits.scoped_reads_max } else { limits.bucket_read_max };
    let mut glance = match glance(lookup, check, existing.as_ref(), view, survivors, reads_max) {
        Ok(glance) => glance,
        Err(needs) => {
            lookup.index().fetch(needs);
            return Ok(Err(LookAgain::NeedsDisk));
        }
    };
    if !compare_survivors(lookup, &mut glance, survivors)? {
        return Ok(Err(LookAgain::Changed));
    }
    let mut mentions = Mentions::default();
    let missing =
        lookup.records().recall(&mut mentions, glance.judgement.named(options.limit), options.needs_ids_alone());
    let metadata_bytes = options.with_metadata.then_some(check.bytes_max);
    lookup.records().load(&mut mentions, &missing, metadata_bytes, options.payload_digest.is_some())?;
    let mistakes = glance.judgement.mistakes(options.limit, &mentions, made.content);
    if !mistakes.is_empty() {
        survivors.mistook(mistakes);
        return Ok(Err(LookAgain::NeedsDisk));
    }
    let Some(recorded) = recorded(lookup, check, existing.as_ref(), &mut glance.judgement)? else {
        return Ok(Err(LookAgain::Changed));
    };
    Ok(Ok(conclude(lookup, check, glance, &mentions, survivors, recorded)))
}

/// Looks a document up as a check without an id does, and returns whether the stored document `wanted` is among the
/// matches. Counts in no metric. `None` if documents changed too often meanwhile.
pub(super) fn finds(lookup: &Lookup, made: Made, wanted: &Record) -> Result<Option<bool>> {
    let matching = verify::matching_slots(&made.signature, &wanted.signature, lookup.preparer().shape());
    let options = CheckOptions {
        threshold: None,
        limit: UNCOUNTED_LIMIT,
        with_metadata: false,
        explain: false,
        payload_digest: None,
        scope: None,
    };
    let check = Check { id: None, made, shingles: None, options, bytes_max: 0 };
    let mut survivors = Survivors::default();
    for _ in 0..ATTEMPTS {
        let (_reading, view) = lookup.read();
        let mut glance = match glance(lookup, &check, None, view, &survivors, lookup.limits().bucket_read_max) {
            Ok(glance) => glance,
            Err(needs) => {
                lookup.index().fetch(needs);
                continue;
            }
        };
        if compare_survivors(lookup, &mut glance, &mut survivors)? {
            let mut alike = glance.judgement.ranked().iter().filter(|ranked| ranked.found.matching == matching);
            // Documents with the same signature are listed up to a limit. If the limit is reached, `wanted` counts as
            // found.
            let full = alike.clone().count() >= UNCOUNTED_LIMIT;
            return Ok(Some(full || alike.any(|ranked| ranked.found.seq == wanted.seq)));
        }
    }
    Ok(None)
}

/// Returns the number of equal slots of each document that a check without an id compares, the highest first. Documents
/// with the same signature count as one.
pub(super) fn candidates(lookup: &Lookup, made: &Made) -> Option<Vec<u32>> {
    let mistaken = HashSet::new();
    let query = query(made, None, 0, 1, None, &mistaken);
    for _ in 0..ATTEMPTS {
        let (_reading, view) = lookup.read();
        match lookup.search(view, &query) {
            Ok(search) => return Some(search.found.iter().map(|found| found.matching).collect()),
            Err(needs) => lookup.index().fetch(needs),
        }
    }
    None
}

/// Compares all survivors if shingles decide. Returns false if one of them was deleted or replaced meanwhile.
fn compare_survivors(lookup: &Lookup, glance: &mut Glance<'_>, survivors: &mut Survivors) -> Result<bool> {
    let Some(query) = &glance.query else { return Ok(true) };
    let (records, bounds) = (lookup.records(), lookup.read_bounds());
    let left = survivors.settle(query, &mut glance.judgement, records, bounds, u64::MAX);
    if left.is_empty() {
        return Ok(true);
    }
    survivors.compare(query, &left, records, lookup.preparer(), bounds)?;
    // This view still shows the deleted or replaced document. The check is therefore repeated with a later view.
    if survivors.take_gone(&left) {
        return Ok(false);
    }
    survivors.settle(query, &mut glance.judgement, records, bounds, 0);
    Ok(true)
}

/// Collects the facts that only records contain. Returns `None` if the best match is a link in this view, but an
/// ordinary document according to its record, because the link was promoted meanwhile.
fn recorded(
    lookup: &Lookup,
    check: &Check,
    existing: Option<&Existing>,
    judgement: &mut Judgement,
) -> Result<Option<Recorded>> {
    let same = existing.is_some_and(|existing| existing.holds(&check.made));
    let own = existing.filter(|_| same).zip(check.options.payload_digest.as_ref());
    let revisit = own.and_then(|(existing, digest)| existing.revisit(digest));
    let changed = existing.filter(|_| !same);
    let previous = changed.map(|existing| existing.previous(lookup, &check.made)).transpose()?;
    let link = judgement.best_link().map(|link| link.seq);
    let record = link.map(|link| lookup.records().record(link)).transpose()?.flatten();
    if record.as_ref().is_some_and(|record| !record.linked) {
        return Ok(None);
    }
    let representative = match record.map(|record| representative_of(lookup, &record)) {
        None => None,
        Some(Err(CollectionError::Doubtful { .. })) => {
            judgement.hides(Bound::Doubt, 1);
            None
        }
        Some(found) => found?,
    };
    Ok(Some(Recorded { same, revisit, previous, representative }))
}

fn glance<'a>(
    lookup: &Lookup,
    check: &'a Check,
    existing: Option<&Existing>,
    view: View,
    survivors: &Survivors,
    reads_max: usize,
) -> std::result::Result<Glance<'a>, NeedsDisk> {
    let policy = lookup.policy();
    let settings = &policy.settings;
    let threshold = check.options.threshold.unwrap_or(settings.threshold);
    let compares = settings.verify.compares_shingles() && check.made.kept.is_some();
    let verify = if compares { settings.verify } else { Verify::Estimate };
    let terms = match check.options.threshold {
        None if verify == settings.verify => policy.terms,
        _ => Terms::new(verify, threshold, &settings.spec),
    };
    let shingles = shingle_query(&check.made, terms);
    let contents_max = shingles.as_ref().map(|_| lookup.limits().exact_reads_max);
    let own = existing.map(|existing| existing.place);
    let lower = threshold < settings.threshold;
    drop(policy);
    let query = query(&check.made, own, terms.matching_min, check.options.limit, contents_max, survivors.mistaken());
    let scope = check.options.scope.as_ref().map(|scope| lookup.index().scope(scope));
    let in_scope = scope.as_ref().map(|scope| |place| scope.takes_place(place));
    let scope = in_scope.as_ref().map(|in_scope| in_scope as &dyn Fn(Place) -> bool);
    let query = Query { explain: check.options.explain, scope, ..query };
    let mut judgement = Judgement::of(lookup.search_reading(view, &query, reads_max)?);
    judgement.hides(Bound::Doubt, lookup.doubts().hidden_from(lookup.index(), &query, check.id.as_ref()));
    let shape = lookup.preparer().shape();
    let expected_recall = lower.then(|| tuning::candidate_probability(threshold, lookup.index().banding(), shape));
    Ok(Glance { judgement, threshold, expected_recall, query: shingles })
}

fn conclude(
    lookup: &Lookup,
    check: &Check,
    glance: Glance<'_>,
    mentions: &Mentions,
    survivors: &Survivors,
    recorded: Recorded,
) -> Verdict {
    let Check { id, made, shingles, options, .. } = check;
    let metadata = |_: Seq, mention: &Mention| mention.metadata.clone().filter(|_| options.with_metadata);
    let findings = findings(lookup, &glance.judgement, mentions, made.content, options.limit, metadata);
    let of_matches = options
        .payload_digest
        .as_ref()
        .and_then(|digest| revisit(&glance.judgement, mentions, options.limit, |_, mention| mention.revisit(digest)));
    let revisit = Revisit::best([recorded.revisit, of_matches].into_iter().flatten());
    let verdict = findings.with_revisit(revisit).verdict(VerdictContext {
        outcome: Outcome::Checked,
        stored: recorded.same,
        id: id.clone(),
        representative: recorded.representative,
        threshold: glance.threshold,
        candidates: glance.judgement.candidates(),
        unread: glance.judgement.unread(),
        shingles: *shingles,
        previous: recorded.previous,
        expected_recall: glance.expected_recall,
        times: glance.judgement.cost().times(),
        explanation: explanation(lookup, &glance.judgement, mentions),
    });
    lookup.meter(&glance.judgement, survivors, mentions);
    lookup.meters().verdict(Op::Check, &verdict);
    verdict
}
