//! Reconciles a collection with its documents after the cluster has lost writes that it had acknowledged. It adds the
//! postings and ids that stored documents have lost, removes those that lead to no document, and finds documents of which
//! only one should be stored. Servers insert and delete meanwhile: whatever is added here is what the server of a document
//! would have written itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use roaring::RoaringTreemap;

use super::context::Context;
use super::dangling::{Entry, entries, remove};
use super::drive::{Driver, LEASE};
use super::entry::terms_of;
use super::failure::Failure;
use super::keys::FIRST;
use super::protocol::{Answer, Band, Body, Command, Ref, Reply, Step};
use super::reads::{present, stored};
use super::record::Judged;
use super::wire::{Sets, Wire};
use crate::types::{Seq, VerdictKind};
use crate::verdicts::{CollectionError, KeptTwice, Reconciled, Told, similarity};

type Result<T, E = CollectionError> = std::result::Result<T, E>;

/// How many records are read at a time, and how many documents are looked at at once.
const BATCH: u64 = 256;
const AT_ONCE: usize = 32;
/// How many groups are read at a time, and the pause after them.
const GROUPS: usize = 1024;
const PAUSE: Duration = Duration::from_millis(10);
/// Higher numbers are none of documents.
const NUMBERS_MAX: u64 = 1 << 40;

/// Reconciles a collection. Reads no more than `rate` records a second.
pub(super) async fn reconcile(
    context: &Context,
    rate: u64,
    mut tell: impl FnMut(Told<'_>) + Send,
) -> Result<Reconciled> {
    let pace = Pace { begun: Instant::now(), rate };
    let mentioned = mentioned(context).await?;
    // The counter may be lost, too. Numbers that are used must not be used again.
    if let Some(last) = mentioned.max() {
        context.counters().reserve_up_to(Ref(last)).await?;
    }
    let all = context.counters().reserved().await?;
    let (mut done, mut kept, mut told) = (Reconciled::default(), RoaringTreemap::new(), BTreeSet::new());
    let mut after = 0;
    while after < all {
        let next = all.min(after + BATCH);
        let numbers: Vec<_> = (after + 1..=next).map(|number| Ref(FIRST + number)).collect();
        let mut driver = context.driver(context.wire_of_whole_reads());
        let documents = stored(&mut driver, &numbers).await?;
        done.documents += documents.len() as u64;
        kept.extend(documents.iter().map(|(at, _)| at.0));
        let looks = documents.into_iter().map(|(at, body)| Look::new(context, at, body).run());
        let looks: Vec<_> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        for Mended { postings, ids, twice } in looks {
            done.postings += postings;
            done.ids += ids;
            for found in twice {
                let pair = (found.seq.min(found.other_seq), found.seq.max(found.other_seq));
                if told.insert(pair) {
                    tell(Told::Found(&found));
                }
            }
        }
        after = next;
        tell(Told::Progress { done: after, all });
        pace.wait(after).await;
    }
    let over = over(context, mentioned - kept, &pace, all).await?;
    done.dangling = remove_entries(context, &over).await?;
    Ok(done)
}

/// Keeps to a rate.
struct Pace {
    begun: Instant,
    rate: u64,
}

impl Pace {
    /// Waits until so many records may have been read.
    async fn wait(&self, read: u64) {
        let due = Duration::from_secs_f64(read as f64 / self.rate as f64);
        tokio::time::sleep(due.saturating_sub(self.begun.elapsed())).await;
    }
}

/// Returns the numbers of all documents that postings and ids lead to.
async fn mentioned(context: &Context) -> Result<RoaringTreemap> {
    let mut mentioned = RoaringTreemap::new();
    each_group(context, async |entries| {
        let numbers = entries.keys().map(|at| at.0);
        mentioned.extend(numbers.filter(|number| (FIRST..FIRST + NUMBERS_MAX).contains(number)));
        Ok(())
    })
    .await?;
    Ok(mentioned)
}

/// Returns which of these documents are not stored and never will be. They were not stored when the walk through the
/// records met them. Those that are absent are looked at again after a while: a server may be about to store them.
async fn over(context: &Context, doubtful: RoaringTreemap, pace: &Pace, read: u64) -> Result<RoaringTreemap> {
    let mut over = RoaringTreemap::new();
    if doubtful.is_empty() {
        return Ok(over);
    }
    tokio::time::sleep(LEASE).await;
    let mut driver = context.driver(context.wire_of_reads());
    let (numbers, mut read): (Vec<_>, _) = (doubtful.iter().map(Ref).collect(), read);
    for numbers in numbers.chunks(BATCH as usize) {
        let seem_over = driver.which_seem_over(numbers).await.map_err(|failure| failure.told(false))?;
        let certain = driver.make_over(&seem_over).await.map_err(|failure| failure.told(false))?;
        over.extend(certain.into_iter().map(|at| at.0));
        read += numbers.len() as u64;
        pace.wait(read).await;
    }
    Ok(over)
}

/// Removes the postings and ids that lead to these documents.
async fn remove_entries(context: &Context, over: &RoaringTreemap) -> Result<u64> {
    let mut count = 0;
    if over.is_empty() {
        return Ok(count);
    }
    each_group(context, async |entries| {
        let entries: Vec<_> =
            entries.into_iter().filter(|(at, _)| over.contains(at.0)).flat_map(|(_, entries)| entries).collect();
        count += entries.len() as u64;
        remove(context, entries).await
    })
    .await?;
    Ok(count)
}

/// Reads all groups, and calls `each` with the entries of some at a time.
async fn each_group(
    context: &Context,
    mut each: impl AsyncFnMut(BTreeMap<Ref, BTreeSet<Entry>>) -> Result<(), Failure>,
) -> Result<()> {
    let (bands, mut place) = (context.entry().settings().banding.bands(), 0);
    loop {
        let groups = context.keys().groups_from(bands, place, GROUPS);
        if groups.is_empty() {
            return Ok(());
        }
        let read = entries(context, &groups).await;
        let done = match read {
            Ok(entries) => each(entries).await,
            Err(failure) => Err(failure),
        };
        done.map_err(|failure| failure.told(false))?;
        place += groups.len();
        tokio::time::sleep(PAUSE).await;
    }
}

/// What was done for one document.
#[derive(Default)]
struct Mended {
    postings: u64,
    ids: u64,
    twice: Vec<KeptTwice>,
}

/// A look at one document that was stored when it was read.
struct Look<'a> {
    context: &'a Context,
    at: Ref,
    body: Judged,
    driver: Driver,
    /// The documents that share a band.
    met: BTreeSet<Ref>,
    mended: Mended,
}

impl<'a> Look<'a> {
    fn new(context: &'a Context, at: Ref, body: Judged) -> Self {
        let wire = Wire { sets: Sets::All, ..context.wire(&body, Some(&body.stored.id)) };
        let driver = context.driver(wire);
        Self { context, at, body, driver, met: BTreeSet::new(), mended: Mended::default() }
    }

    async fn run(mut self) -> Result<Mended> {
        let lost = self.lost_postings().await.map_err(|failure| failure.told(false))?;
        let has_claimed = self.holds_its_id().await?;
        if (!lost.is_empty() || has_claimed) && !self.is_stored().await? {
            // It was deleted or replaced meanwhile.
            let mut undo: Vec<_> = lost.into_iter().map(|band| Command::Unpost { band, at: self.at }).collect();
            undo.extend(has_claimed.then_some(Command::Claim { from: Some(self.at), to: None }));
            self.driver.finish_rest(vec![undo.into_iter().map(Step::now).collect()]).await;
            return Ok(Mended::default());
        }
        self.compare().await?;
        Ok(self.mended)
    }

    async fn is_stored(&mut self) -> Result<bool> {
        Ok(!stored(&mut self.driver, &[self.at]).await?.is_empty())
    }

    /// Adds the postings that are lost. Returns their bands.
    async fn lost_postings(&mut self) -> Result<Vec<Band>, Failure> {
        let bands = self.context.postings(&self.body.stored.signature, self.body.stored.content).len();
        let probes: Vec<_> = Step::probes(bands as u16).collect();
        let mut lost = Vec::new();
        for (step, answer) in probes.iter().zip(self.driver.send(&probes).await?) {
            let (Command::Probe { band }, Reply::Postings(found)) = (&step.command, answer.reply) else { continue };
            if !found.contains(&self.at) {
                // A band may have more postings than are read. Then this one is written again in any case.
                self.mended.postings += u64::from(found.len() < self.context.postings_max());
                lost.push(*band);
            }
            self.met.extend(found);
        }
        let post = |&band| Step::waiting(Command::Post { band, at: self.at, again: true });
        let posts: Vec<_> = lost.iter().map(post).collect();
        for answer in self.sure(&posts).await? {
            if let Reply::Postings(found) = answer.reply {
                self.met.extend(found);
            }
        }
        self.met.remove(&self.at);
        Ok(lost)
    }

    /// Claims the id, if no stored document holds it. Returns whether it did.
    async fn holds_its_id(&mut self) -> Result<bool> {
        let failed = |failure: Failure| failure.told(false);
        let answer = self.driver.send(&[Step::holder()]).await.map_err(failed)?.pop();
        let Some(Answer { reply: Reply::Holder(holder), .. }) = answer else { return Ok(false) };
        if holder == Some(self.at) {
            return Ok(false);
        }
        if let Some(holder) = holder {
            match present(&mut self.driver, holder).await? {
                // It replaces this document, or is replaced by it.
                Some((present, _)) if present == self.at => return Ok(false),
                Some((present, body)) if body.stored.id == self.body.stored.id => {
                    self.tell_of_id(present, &body).await?;
                    return Ok(false);
                }
                _ => {}
            }
        }
        let claim = Step::waiting(Command::Claim { from: holder, to: Some(self.at) });
        let claimed = self.sure(&[claim]).await.map_err(failed)?.pop();
        let has_claimed = matches!(claimed, Some(Answer { reply: Reply::Claimed(Ok(())), .. }));
        self.mended.ids += u64::from(has_claimed);
        Ok(has_claimed)
    }

    /// Notes that another document has the same id, if both are stored.
    async fn tell_of_id(&mut self, other: Ref, body: &Judged) -> Result<()> {
        if stored(&mut self.driver, &[self.at, other]).await?.len() == 2 {
            self.mended.twice.push(self.twice(other, body, None));
        }
        Ok(())
    }

    /// Finds documents that are similar to this one, if neither of them was stored as a duplicate.
    async fn compare(&mut self) -> Result<()> {
        if !is_unique(&self.body) {
            return Ok(());
        }
        let numbers: Vec<_> = self.met.iter().copied().collect();
        let others = stored(&mut self.driver, &numbers).await?;
        let alike = others.into_iter().filter(|(_, other)| is_unique(other) && other.stored.id != self.body.stored.id);
        let alike = alike.map(|(at, other)| (at, self.judged(&other), other));
        let alike: Vec<_> = alike.filter(|(_, judged, other)| judged.is_alike(other)).collect();
        // One of them may have been replaced by the other one, after it was read.
        let both: Vec<_> = alike.iter().map(|(at, ..)| *at).chain([self.at]).collect();
        let still = stored(&mut self.driver, &both).await?;
        if still.iter().any(|(at, _)| *at == self.at) {
            for (at, judged, other) in alike.iter().filter(|(at, ..)| still.iter().any(|(still, _)| still == at)) {
                let (matching, same, overlap) = (judged.matching(other), judged.is_same(other), judged.overlap(other));
                let similarity = similarity(self.context.preparer().spec(), matching, same, overlap).value;
                self.mended.twice.push(self.twice(*at, other, Some(similarity)));
            }
        }
        Ok(())
    }

    /// Returns the document beside the higher one of the thresholds with which both were inserted.
    fn judged(&self, other: &Judged) -> Judged {
        let threshold = |body: &Judged| body.stored.verdict.as_ref().map_or(0.0, |verdict| verdict.threshold);
        let threshold = threshold(&self.body).max(threshold(other));
        let terms = terms_of(&self.context.entry().settings(), Some(threshold));
        Judged { terms, ..self.body.clone() }
    }

    fn twice(&self, other: Ref, body: &Judged, similarity: Option<f64>) -> KeptTwice {
        KeptTwice {
            id: self.body.stored.id.clone(),
            seq: Seq(self.at.0),
            other: body.stored.id.clone(),
            other_seq: Seq(other.0),
            similarity,
        }
    }

    /// Sends writes until enough replicas have them.
    async fn sure(&mut self, steps: &[Step<Judged>]) -> Result<Vec<Answer<Judged>>, Failure> {
        loop {
            let answers = self.driver.send(steps).await?;
            if !answers.iter().any(Answer::is_short) {
                return Ok(answers);
            }
        }
    }
}

/// Returns whether a document was stored because it resembled nothing.
fn is_unique(body: &Judged) -> bool {
    body.stored.verdict.as_ref().is_none_or(|verdict| verdict.kind == VerdictKind::Unique)
}
