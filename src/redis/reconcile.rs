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
use super::patience::patiently;
use super::protocol::{Answer, Band, Body, Command, Ref, Reply, Step};
use super::reads::{present, stored};
use super::record::Judged;
use crate::types::{Seq, VerdictKind};
use crate::verdicts::{CollectionError, KeptTwice, Reconciled, Told, similarity};

type Result<T, E = CollectionError> = std::result::Result<T, E>;

/// How many records are read at a time, and how many documents are looked at at once.
const BATCH: u64 = 256;
const AT_ONCE: usize = 32;
/// How often an id is claimed if too few replicas have it.
const CLAIMS: usize = 4;
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
    let mentioned = mentioned(context).await?;
    // The counter may be lost, too. Numbers that are used must not be used again.
    if let Some(last) = mentioned.max() {
        context.counters().reserve_up_to(Ref(last)).await?;
    }
    let all = context.counters().reserved().await?;
    let (mut done, mut kept, mut told) = (Reconciled::default(), RoaringTreemap::new(), BTreeSet::new());
    let (mut after, mut pace) = (0, Pace { since: Instant::now(), rate });
    while after < all {
        // The postings of a dropped collection would never be removed again.
        patiently(async || context.entry().look().await).await?;
        let next = all.min(after + BATCH);
        let numbers: Vec<_> = (after + 1..=next).map(|number| Ref(FIRST + number)).collect();
        let read = async || stored(&mut context.driver(context.wire_of_whole_reads()), &numbers).await;
        let documents = patiently(read).await?;
        let mut reads = next - after;
        done.documents += documents.len() as u64;
        kept.extend(documents.iter().map(|(at, _)| at.0));
        let looks = documents.into_iter().map(|(at, body)| look(context, at, body));
        let looks: Vec<_> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        for Mended { postings, ids, twice, read, left_out } in looks {
            done.postings += postings;
            done.ids += ids;
            done.left_out += left_out;
            reads += read;
            for found in twice {
                let pair = (found.seq.min(found.other_seq), found.seq.max(found.other_seq));
                if told.insert(pair) {
                    tell(Told::Found(&found));
                }
            }
        }
        after = next;
        tell(Told::Progress { done: after, all });
        pace.wait(reads).await;
    }
    let over = over(context, mentioned - kept, &mut pace).await?;
    done.dangling = remove_entries(context, &over).await?;
    Ok(done)
}

/// Keeps to a rate.
struct Pace {
    since: Instant,
    rate: u64,
}

impl Pace {
    /// Waits until so many more records may have been read.
    async fn wait(&mut self, read: u64) {
        let due = Duration::from_secs_f64(read as f64 / self.rate as f64);
        tokio::time::sleep(due.saturating_sub(self.since.elapsed())).await;
        self.since = Instant::now();
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
async fn over(context: &Context, doubtful: RoaringTreemap, pace: &mut Pace) -> Result<RoaringTreemap> {
    let mut over = RoaringTreemap::new();
    if doubtful.is_empty() {
        return Ok(over);
    }
    tokio::time::sleep(LEASE).await;
    let numbers: Vec<_> = doubtful.iter().map(Ref).collect();
    for numbers in numbers.chunks(BATCH as usize) {
        let made_over = async || {
            let mut driver = context.driver(context.wire_of_reads());
            let seem_over = driver.which_seem_over(numbers).await.map_err(failed)?;
            driver.make_over(&seem_over).await.map_err(failed)
        };
        over.extend(patiently(made_over).await?.into_iter().map(|at| at.0));
        pace.wait(numbers.len() as u64).await;
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
        let found = patiently(async || entries(context, &groups).await.map_err(failed)).await?;
        each(found).await.map_err(failed)?;
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
    /// The records that were read to compare them, and those that were not, because there are too many.
    read: u64,
    left_out: u64,
}

/// Looks at one document that was stored when it was read.
async fn look(context: &Context, at: Ref, body: Judged) -> Result<Mended> {
    // What was done before a node did not answer is not counted.
    patiently(async || Look::new(context, at, body.clone()).run().await).await
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
        let driver = context.driver(context.wire(&body, Some(&body.stored.id)));
        Self { context, at, body, driver, met: BTreeSet::new(), mended: Mended::default() }
    }

    async fn run(mut self) -> Result<Mended> {
        let lost = self.lost_postings().await.map_err(failed)?;
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

    /// Claims the id, if no other document holds it. Returns whether it did.
    async fn holds_its_id(&mut self) -> Result<bool> {
        let answer = self.driver.send(&[Step::holder()]).await.map_err(failed)?.pop();
        let Some(Answer { reply: Reply::Holder(holder), .. }) = answer else { return Ok(false) };
        if holder == Some(self.at) {
            return Ok(false);
        }
        if let Some(holder) = holder
            && !self.may_take_from(holder).await?
        {
            return Ok(false);
        }
        let mut from = holder;
        for _ in 0..CLAIMS {
            let claim = Step::waiting(Command::Claim { from, to: Some(self.at) });
            match self.sure(&[claim]).await.map_err(failed)?.pop().map(|answer| answer.reply) {
                Some(Reply::Claimed(Ok(()))) => {
                    self.mended.ids += 1;
                    return Ok(true);
                }
                // An earlier command has done it, but too few replicas had it.
                Some(Reply::Claimed(Err(Some(by)))) if by == self.at => from = Some(by),
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Returns whether the id may be taken from this document. Then it is not stored, and never will be, or it has another
    /// id. Notes if both are stored.
    async fn may_take_from(&mut self, holder: Ref) -> Result<bool> {
        let found = self.driver.records(&[holder]).await.map_err(failed)?.pop().flatten();
        let head = found.as_ref().map(|found| found.head);
        match found.and_then(|found| found.body) {
            Some(body) if body.stored.id != self.body.stored.id => return Ok(true),
            _ if head.is_none_or(|head| head.state.is_over()) => {
                let over = self.driver.make_over(&[(holder, head)]).await.map_err(failed)?;
                return Ok(over == [holder]);
            }
            _ => {}
        }
        // It replaces this document, or is replaced by it. Or its server is inserting it.
        if let Some((present, body)) = present(&mut self.driver, holder).await?
            && present != self.at
        {
            self.tell_of_id(present, &body).await?;
        }
        Ok(false)
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
        let numbers: Vec<_> = self.met.iter().copied().take(self.context.candidates_max()).collect();
        self.mended.left_out = (self.met.len() - numbers.len()) as u64;
        self.mended.read = numbers.len() as u64;
        let mut others = Vec::new();
        for numbers in numbers.chunks(BATCH as usize) {
            others.extend(stored(&mut self.driver, numbers).await?);
        }
        let alike = others.into_iter().filter(|(_, other)| is_unique(other) && other.stored.id != self.body.stored.id);
        let alike = alike.map(|(at, other)| (at, self.judged(at, &other), other));
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

    /// Returns the document beside the threshold with which the later one of the two was inserted.
    fn judged(&self, at: Ref, other: &Judged) -> Judged {
        let later = if at > self.at { other } else { &self.body };
        let threshold = later.stored.verdict.as_ref().map(|verdict| verdict.threshold);
        let terms = terms_of(&self.context.entry().settings(), threshold);
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

fn failed(failure: Failure) -> CollectionError {
    failure.told(false)
}

/// Returns whether a document was stored because it resembled nothing.
fn is_unique(body: &Judged) -> bool {
    body.stored.verdict.as_ref().is_none_or(|verdict| verdict.kind == VerdictKind::Unique)
}
