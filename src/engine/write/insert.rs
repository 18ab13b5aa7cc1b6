//! Check-and-insert: gathers the facts for a decision, asks `rules` for the plan, and carries out the plan. There is no
//! I/O under the decision lock: data from the disk is fetched before the lock is taken. If the decision turns out to
//! need more data, it releases the lock first.

use std::sync::Arc;

use super::effects::{NewDocument, held, remove, store, stored_verdict, touch};
use super::holder::Holder;
use super::id_turn::WriteTurn;
use super::insertion::Insertion;
use super::order::{Order, Step};
use super::repeat::repeat;
use super::rules::{self, BestMatch, Duplicates, Effect, Held, Named, Plan, Refusal};
use super::ticket::Ticket;
use super::writes::Writes;
use crate::engine::long_work::beside;
use crate::engine::lookup::{
    ATTEMPTS, IN_PASSING, Judgement, Lookup, Mentions, Policy, Survivors, changing, explanation, findings, query,
    revisit, shingle_query,
};
use crate::engine::meters::Op;
use crate::index::{LabelSet, NeedsDisk, Place, Query, Search, View};
use crate::store::{Change, id_fingerprint};
use crate::types::{DocId, OnDuplicate, Previous, Revisit, Seq, Verdict};
use crate::verdicts::{CollectionError, Findings, InsertOptions, Result, VerdictContext};

/// The maximum number of ids that share a fingerprint. By chance, even two ids hardly ever share one.
const FINGERPRINT_SHARED_MAX: usize = 64;

/// Whether a decision may read the disk on the current thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    Now,
    Later,
}

/// A decision, or everything needed to make it on a thread that may read the disk.
enum Decided {
    Now(Ticket<Verdict>),
    Later(Box<Insertion>, WriteTurn),
}

/// Decides an insertion. The decision is made when this returns and is durable once the ticket resolves.
pub(crate) async fn insert(writes: &Arc<Writes>, mut insertion: Box<Insertion>) -> Result<Ticket<Verdict>> {
    let bytes_max = insertion.bytes_max;
    let bytes = insertion.waiting_bytes();
    if bytes > 0 {
        insertion.room = Some(writes.payload_room().take(bytes).await?);
    }
    let turn = writes.turns().take(&insertion.id).await?;
    let mut ticket = match decide(writes, insertion, turn, Disk::Later)? {
        Decided::Now(ticket) => ticket,
        Decided::Later(insertion, turn) => {
            match beside(writes, move |writes| decide(writes, insertion, turn, Disk::Now)).await? {
                Decided::Now(ticket) => ticket,
                Decided::Later(..) => unreachable!("this attempt may read the disk"),
            }
        }
    };
    // The answer is shortened here, and not in the decision, because a lock is held during the decision.
    ticket.value_mut().fit(bytes_max);
    writes.lookup().meters().verdict(Op::Insert, ticket.value());
    Ok(ticket)
}

fn decide(writes: &Writes, insertion: Box<Insertion>, turn: WriteTurn, disk: Disk) -> Result<Decided> {
    let lookup = writes.lookup();
    let waits = || writes.is_held_long() || !lookup.index().held_by(id_fingerprint(&insertion.id)).is_empty();
    if disk == Disk::Later && waits() {
        return Ok(Decided::Later(insertion, turn));
    }
    let mut turn = Some(turn);
    loop {
        match decide_once(writes, &insertion, &mut turn, disk)? {
            Round::Decided(ticket) => return Ok(Decided::Now(ticket)),
            Round::NeedsDisk => {
                return Ok(Decided::Later(insertion, turn.take().expect("only a ticket uses it up")));
            }
            Round::HolderChanged => {}
        }
    }
}

/// The end of one round of a decision.
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each insert")]
enum Round {
    Decided(Ticket<Verdict>),
    NeedsDisk,
    /// The document that holds the id has changed meanwhile. Only a deletion by label can change it.
    HolderChanged,
}

fn decide_once(writes: &Writes, insertion: &Insertion, turn: &mut Option<WriteTurn>, disk: Disk) -> Result<Round> {
    let holder = Holder::find(writes, &insertion.id)?;
    if disk == Disk::Now && holder.existing.is_none() {
        refuse_crowd(writes, &insertion.id)?;
    }
    if let Some(existing) = &holder.existing {
        if existing.holds(&insertion.made) {
            return Ok(
                repeat(writes, (&holder, existing), insertion, turn)?.map_or(Round::HolderChanged, Round::Decided)
            );
        }
        let other = Held::Other { heir_is_link: false };
        if let Some(Plan { result: Err(refusal), .. }) = rules::before_lookup(insertion.terms(false), other) {
            return Err(refused(refusal, &insertion.id));
        }
    }
    let mut deciding = Deciding::new(writes, insertion, holder)?;
    for attempt in 0..ATTEMPTS {
        match deciding.attempt(attempt, turn)? {
            Ok(ticket) => return Ok(Round::Decided(ticket)),
            Err(Missing::Nothing) => {}
            Err(Missing::Existing) => return Ok(Round::HolderChanged),
            Err(_) if disk == Disk::Later => return Ok(Round::NeedsDisk),
            Err(missing) => deciding.fetch(missing)?,
        }
    }
    Err(changing())
}

/// Refuses a new id if many others have the same fingerprint: each request for one of these ids reads the records of
/// all of them.
fn refuse_crowd(writes: &Writes, id: &DocId) -> Result<()> {
    let others = writes.lookup().index().held_by(id_fingerprint(id)).len();
    if others < FINGERPRINT_SHARED_MAX {
        return Ok(());
    }
    let detail = format!("has the same hash as {others} stored ids, the most that are allowed; choose another id");
    Err(CollectionError::Invalid { field: "id", detail })
}

/// The data that a decision lacks.
enum Missing {
    /// Parts of the index.
    Index(NeedsDisk),
    /// The shingles of these documents.
    Shingles(Vec<Seq>),
    /// The facts about these documents, for the answer.
    Mentions(Vec<Seq>),
    /// Nothing. The decision only has to be tried again.
    Nothing,
    /// The document that holds the id. It is no longer the one that was found.
    Existing,
}

/// A decision in progress, with the data fetched so far.
struct Deciding<'a> {
    writes: &'a Writes,
    insertion: &'a Insertion,
    holder: Holder,
    previous: Option<Previous>,
    mentions: Mentions,
    /// The number of updates that had reached the disk when `mentions` were loaded.
    updates: u64,
    survivors: Survivors,
}

/// The representatives of the matches.
struct Representatives {
    /// The representative of the best match, if the best match is a link.
    of_link: Option<(Seq, Place)>,
    /// The representative of the cluster to join: `of_link` if present, otherwise the best match that is a
    /// representative.
    to_join: Option<(Seq, Place)>,
}

impl<'a> Deciding<'a> {
    fn new(writes: &'a Writes, insertion: &'a Insertion, holder: Holder) -> Result<Self> {
        let lookup = writes.lookup();
        // The caller holds the id's latch, so the id's content cannot change.
        let previous = holder.existing.as_ref().map(|held| held.previous(lookup, &insertion.made)).transpose()?;
        let updates = lookup.records().updates_total();
        let (mentions, survivors) = Default::default();
        Ok(Self { writes, insertion, holder, previous, mentions, updates, survivors })
    }

    fn lookup(&self) -> &'a Lookup {
        self.writes.lookup()
    }

    /// Returns the document that leaves if the new one is stored.
    fn leaving(&self) -> Option<Seq> {
        self.holder.existing.as_ref().map(|existing| existing.record.seq)
    }

    /// Decides, or returns what is missing.
    fn attempt(
        &mut self,
        attempt: u32,
        turn: &mut Option<WriteTurn>,
    ) -> Result<std::result::Result<Ticket<Verdict>, Missing>> {
        let mut order = self.writes.open_order_of(self.insertion.merge)?;
        if !self.holder.is_current(self.writes) {
            return Ok(Err(Missing::Existing));
        }
        let policy = self.lookup().policy();
        let found = self.judge(&order, &policy, attempt).and_then(|judgement| {
            let representatives = self.representatives(&order, &judgement);
            self.recall(&judgement, &representatives, attempt)?;
            Ok((judgement, representatives))
        });
        let (judgement, representatives) = match found {
            Ok(found) => found,
            Err(missing) => return Ok(Err(missing)),
        };
        let turn = turn.take().expect("a decision is made once");
        self.conclude(&mut order, &policy, &judgement, &representatives, turn).map(Ok)
    }

    /// Finds similar documents.
    fn judge(&mut self, order: &Order, policy: &Policy, attempt: u32) -> std::result::Result<Judgement, Missing> {
        let (lookup, made) = (self.lookup(), &self.insertion.made);
        let limits = lookup.limits();
        let exact = policy.terms.compares_shingles().then_some(limits.exact_reads_max);
        let own = self.holder.existing.as_ref().map(|existing| existing.place);
        let limit = self.insertion.options.limit;
        let query = query(made, own, policy.terms.matching_min, limit, exact, self.survivors.mistaken());
        let query = Query { explain: self.insertion.options.explain, ..query };
        let mut search = lookup.search(View::Decided, &query).map_err(Missing::Index)?;
        with_representatives(lookup, order, &mut search, &query, self.leaving());
        let mut judgement = Judgement::of(search);
        if let Some(shingles) = shingle_query(made, policy.terms) {
            // While documents are compared, new ones may arrive as fast. The shingles of new documents are in memory,
            // so later attempts compare them here, whatever their length.
            let in_passing = if attempt < ATTEMPTS / 2 { IN_PASSING } else { u64::MAX };
            let (records, bounds) = (lookup.records(), lookup.read_bounds());
            let left = self.survivors.settle(&shingles, &mut judgement, records, bounds, in_passing);
            if !left.is_empty() {
                return Err(Missing::Shingles(left));
            }
        }
        Ok(judgement)
    }

    fn representatives(&self, order: &Order, judgement: &Judgement) -> Representatives {
        let leaving = self.leaving();
        let of_link = judgement.best_link().and_then(|link| order.clusters().representative_of(link.seq, leaving));
        let to_join = match self.insertion.options.on_duplicate {
            OnDuplicate::Skip => None,
            OnDuplicate::Link | OnDuplicate::Store => {
                of_link.or_else(|| order.clusters().choose(judgement.ranked(), leaving))
            }
        };
        Representatives { of_link, to_join }
    }

    /// Finds the ids of all documents that the answer names.
    fn recall(
        &mut self,
        judgement: &Judgement,
        representatives: &Representatives,
        attempt: u32,
    ) -> std::result::Result<(), Missing> {
        let records = self.lookup().records();
        let limit = self.insertion.options.limit;
        let needs_ids_alone = self.insertion.needs_ids_alone();
        if !needs_ids_alone && records.updates_total() != self.updates && attempt < ATTEMPTS / 2 {
            self.mentions = Mentions::default();
        }
        let representative = representatives.of_link.or(representatives.to_join).map(|(seq, _)| seq);
        let named = judgement.named(limit).chain(representative);
        let missing = records.recall(&mut self.mentions, named, needs_ids_alone);
        if !missing.is_empty() {
            return Err(Missing::Mentions(missing));
        }
        let mistakes = judgement.mistakes(limit, &self.mentions, self.insertion.content());
        if mistakes.is_empty() {
            return Ok(());
        }
        self.survivors.mistook(mistakes);
        Err(Missing::Nothing)
    }

    /// Fetches the missing data. Must not run under a lock.
    fn fetch(&mut self, missing: Missing) -> Result<()> {
        let (lookup, insertion) = (self.lookup(), self.insertion);
        match missing {
            Missing::Nothing | Missing::Existing => {}
            Missing::Index(needs) => lookup.index().fetch(needs),
            Missing::Shingles(seqs) => {
                // This compares with the threshold for which the shingles were requested, even if the setting has
                // changed since.
                if let Some(query) = self.survivors.query_again(&insertion.made) {
                    let (records, preparer) = (lookup.records(), lookup.preparer());
                    self.survivors.compare(&query, &seqs, records, preparer, lookup.read_bounds())?;
                }
            }
            Missing::Mentions(seqs) => {
                self.updates = lookup.records().updates_total();
                let with_captures = insertion.payload_digest().is_some();
                lookup.records().load(&mut self.mentions, &seqs, insertion.metadata_bytes(), with_captures)?;
            }
        }
        Ok(())
    }

    /// Makes the decision from the findings, and carries it out.
    fn conclude(
        &self,
        order: &mut Order,
        policy: &Policy,
        judgement: &Judgement,
        representatives: &Representatives,
        turn: WriteTurn,
    ) -> Result<Ticket<Verdict>> {
        let (lookup, insertion) = (self.lookup(), self.insertion);
        let InsertOptions { limit, with_metadata, .. } = insertion.options;
        let findings = findings(lookup, judgement, &self.mentions, insertion.content(), limit, |seq, mention| {
            if with_metadata { lookup.records().decided_metadata(seq, mention) } else { None }
        });
        let (mut plan, mut full) = (self.plan(order, policy, judgement, representatives), None);
        let mut labels = LabelSet::NONE;
        if plan.effect.stores() {
            full = order.memory_mut().admit(lookup).err();
            lookup.meters().memory_refused.increment(u64::from(full.is_some()));
            full = full.or_else(|| self.writes.disk().admit().err());
            if full.is_none() {
                let replaced = self.holder.existing.as_ref().and_then(|existing| existing.record.labels.as_ref());
                match lookup.hold_labels(insertion.attached.labels.as_ref(), replaced) {
                    Ok(held) => labels = held,
                    Err(error) => full = Some(error),
                }
            }
            plan = if full.is_some() { plan.without_room() } else { plan };
        }
        self.see(plan, judgement, representatives);
        let outcome = match plan.result {
            Ok(outcome) => outcome,
            Err(refusal) => return Err(full.unwrap_or_else(|| refused(refusal, &insertion.id))),
        };
        let effect = self.apply(order, policy, (plan, labels), &findings, judgement, representatives)?;
        let verdict = findings.with_revisit(self.revisit(judgement)).verdict(VerdictContext {
            outcome,
            stored: plan.stored(),
            id: Some(insertion.id.clone()),
            representative: self.named(plan, representatives),
            threshold: policy.settings.threshold,
            candidates: judgement.candidates(),
            unread: judgement.unread(),
            shingles: insertion.shingles,
            previous: self.previous,
            expected_recall: None,
            times: judgement.cost().times(),
            explanation: explanation(lookup, judgement, &self.mentions),
        });
        lookup.meter(judgement, &self.survivors, &self.mentions);
        let merged = insertion.merged(&verdict);
        Ok(self.writes.enqueue_noted(order, verdict, effect, (merged, insertion.options.patient), turn))
    }

    /// Returns the best of the revisits for the matches, if the insertion has the digest of its payload.
    fn revisit(&self, judgement: &Judgement) -> Option<Revisit> {
        let digest = self.insertion.payload_digest()?;
        revisit(judgement, &self.mentions, self.insertion.options.limit, |seq, mention| {
            self.lookup().records().decided_revisit(seq, mention, digest)
        })
    }

    /// Asks the rules for the plan.
    fn plan(&self, order: &Order, policy: &Policy, judgement: &Judgement, representatives: &Representatives) -> Plan {
        let duplicates = match judgement.ranked().first() {
            None => Duplicates::None,
            Some(best) => Duplicates::Found {
                best: match representatives.of_link {
                    Some((seq, _)) if seq == best.found.seq => BestMatch::Heir,
                    Some(_) => BestMatch::Link,
                    None => BestMatch::Document,
                },
                representative: representatives.to_join.is_some(),
            },
        };
        let held = held(self.lookup(), order, self.holder.existing.as_ref());
        rules::after_lookup(self.insertion.terms(policy.settings.touch), held, duplicates)
    }

    /// Notes the documents that count as seen again.
    fn see(&self, plan: Plan, judgement: &Judgement, representatives: &Representatives) {
        let best = judgement.ranked().first().map(|best| best.found.place).filter(|_| plan.seen_again.best);
        let representative = representatives.of_link.map(|(_, place)| place).filter(|_| plan.seen_again.representative);
        best.into_iter().chain(representative).for_each(|place| touch(self.lookup(), place));
    }

    /// Carries out the plan.
    fn apply(
        &self,
        order: &mut Order,
        policy: &Policy,
        (plan, labels): (Plan, LabelSet),
        findings: &Findings,
        judgement: &Judgement,
        representatives: &Representatives,
    ) -> Result<(Option<Change>, Step)> {
        let lookup = self.lookup();
        let (arrival, replaces) = match (plan.effect, &self.holder.existing) {
            (Effect::Nothing | Effect::Update, _) => return Ok((None, Step::None)),
            (Effect::Remove(departure), Some(existing)) => {
                let (change, step) = remove(lookup, order, existing, departure);
                return Ok((Some(change), step));
            }
            (Effect::Insert(arrival), _) => (arrival, None),
            (Effect::Replace(departure, arrival), Some(existing)) => (arrival, Some((existing, departure))),
            (Effect::Remove(_) | Effect::Replace(..), None) => unreachable!("only what is held leaves"),
        };
        let counts = (judgement.candidates(), judgement.unread());
        let cited = judgement.cited(self.insertion.options.limit);
        let verdict = stored_verdict(findings, policy.settings.threshold, counts, cited);
        let joins = representatives.to_join.filter(|_| arrival.joins);
        let new = NewDocument { insertion: self.insertion, replaces, verdict, linked: arrival.linked, labels, joins };
        let (change, step) = store(lookup, order, new)?;
        Ok((Some(change), step))
    }

    /// Returns the id of the representative that the answer names.
    fn named(&self, plan: Plan, representatives: &Representatives) -> Option<DocId> {
        let named = match plan.named {
            Named::Joined => representatives.to_join,
            Named::OfBestMatch => representatives.of_link,
            Named::Nothing | Named::OfHeld => None,
        };
        named.and_then(|(seq, _)| self.mentions.get(seq)).map(|mention| mention.identity.id.clone())
    }
}

/// If the search found a document of a cluster but not its representative, adds the representative. A limit of the
/// lookup may have hidden the representative, or the bands may not have proposed it. Without the representative, the
/// new document would start another cluster. Adds at most as many documents as there are matches.
fn with_representatives(lookup: &Lookup, order: &Order, search: &mut Search, query: &Query<'_>, leaving: Option<Seq>) {
    let index = lookup.index();
    let mut unfound = order.clusters().unfound(&search.found, leaving);
    // Lookups do not find links. A link that this decision may promote is not promoted yet, so it is not added either.
    unfound.retain(|&(_, place)| !index.is_link(place));
    if !unfound.is_empty() {
        index.consider(search, query, &unfound);
    }
}

fn refused(refusal: Refusal, id: &DocId) -> CollectionError {
    match refusal {
        Refusal::Conflict => CollectionError::IdConflict { id: id.clone() },
        Refusal::NoRoom => unreachable!("the budget says why it has no room"),
    }
}
