//! After all work has ended, every possible answer of a collection is compared with brute force over its listed
//! documents.

use std::collections::{BTreeMap, BTreeSet};

use hapax::collections::Collection;
use hapax::types::{DocId, Document, Match, Verdict, VerdictKind};

use super::scopes::{LOTS, Within};
use super::world::{GROUPS, Of, Pair, VARIANTS, World, told};
use super::{Chaos, clusters};

/// The answers, by the question.
pub(super) type Answers = BTreeMap<String, String>;

/// A quiet collection, with its documents in order of `seq`.
pub(super) struct Quiet<'a> {
    pub chaos: &'a Chaos,
    pub collection: &'a Collection,
    pub documents: BTreeMap<DocId, (Of, Document)>,
}

fn contents() -> impl Iterator<Item = Of> {
    (0..GROUPS).flat_map(|group| (0..VARIANTS).map(move |variant| (group, variant)))
}

fn ids(matches: &[Match]) -> Vec<&DocId> {
    matches.iter().map(|found| &found.id).collect()
}

impl Chaos {
    /// Asks every possible question, and returns the answers.
    pub(super) async fn answers(&self) -> Answers {
        let mut all = Answers::new();
        let mut plain = Vec::new();
        for collection in [&self.collection, &self.staging] {
            let quiet = Quiet::new(self, collection).await;
            let (answers, verdicts) = quiet.answers().await;
            all.extend(answers.into_iter().map(|(what, answer)| (format!("{}: {what}", collection.name()), answer)));
            plain.push(verdicts);
        }
        for of in contents() {
            let both = self.check_both(of, Within::ALL).await;
            let (own, others): (Vec<Match>, Vec<Match>) =
                both.matches.into_iter().partition(|found| self.is_own(found));
            for (matches, verdicts) in [own, others].iter().zip(&plain) {
                assert_eq!(ids(matches), ids(&verdicts[&of].matches), "seed {}: {of:?} in both", self.seed);
            }
        }
        all
    }
}

impl<'a> Quiet<'a> {
    async fn new(chaos: &'a Chaos, collection: &'a Collection) -> Self {
        let listed = collection.documents(None, 100_000).await.unwrap().documents;
        assert!(listed.is_sorted_by(|a, b| a.seq < b.seq), "seed {}: not in order", chaos.seed);
        let documents = listed
            .into_iter()
            .map(|document| (document.id.clone(), (told(document.metadata.as_ref()), document)))
            .collect();
        Self { chaos, collection, documents }
    }

    async fn answers(&self) -> (Answers, BTreeMap<Of, Verdict>) {
        let mut all = self.counts();
        self.each_document(&mut all).await;
        let (mut plain, mut expected, mut missed) = (BTreeMap::new(), 0, 0);
        for of in contents() {
            let verdict = self.chaos.check(self.collection, of, None, Within::ALL).await;
            let (due, absent) = self.is_right(of, &verdict);
            expected += due;
            missed += absent;
            self.scoped(of, &verdict).await;
            all.insert(format!("check {of:?}"), format!("{:?} {:?}", verdict.kind, verdict.matches));
            plain.insert(of, verdict);
        }
        // The candidates of a set are found by its sketch, which misses about one match in a thousand.
        let missed_max = if self.chaos.world == World::Signatures { 0 } else { expected / 200 };
        assert!(missed <= missed_max, "seed {}: {missed} of {expected} matches are not found", self.chaos.seed);
        self.as_themselves(&plain).await;
        all.insert("clusters".to_owned(), clusters::consistent(self).await);
        (all, plain)
    }

    fn counts(&self) -> Answers {
        let (seed, described) = (self.chaos.seed, self.collection.describe());
        let linked = self.documents.values().filter(|(_, document)| document.linked).count() as u64;
        let counted = (described.documents, described.linked);
        assert_eq!(counted, (self.documents.len() as u64, Some(linked)), "seed {seed}: the counts drifted");
        let mut by_label = BTreeMap::<String, u64>::new();
        for label in self.documents.values().flat_map(|(_, document)| document.labels.iter().flat_map(|all| all.iter()))
        {
            *by_label.entry(format!("{}:{}", label.0, label.1)).or_default() += 1;
        }
        let labels = self.collection.labels(None, None, 1000).unwrap().into_iter();
        let labels: BTreeMap<_, _> = labels.map(|(label, count)| (label.as_str().to_owned(), count)).collect();
        assert_eq!(labels, by_label, "seed {seed}: the counts of labels drifted");
        let statistics = self.collection.statistics().unwrap();
        let verdicts = statistics.unique + statistics.near_duplicates + statistics.exact_duplicates + statistics.empty;
        assert_eq!(verdicts + statistics.unchanged, statistics.documents, "seed {seed}: {statistics:?}");
        let by_label = self.collection.label_statistics(None, None, 1000).unwrap();
        Answers::from([("statistics".to_owned(), format!("{statistics:?} {by_label:?}"))])
    }

    async fn each_document(&self, all: &mut Answers) {
        let seed = self.chaos.seed;
        let is_own = self.collection.name() == self.chaos.collection.name();
        for (id, (_, document)) in &self.documents {
            assert!(!is_own || !id.as_str().starts_with("refused"), "seed {seed}: {id}");
            let one = self.collection.document(id).await.unwrap();
            assert_eq!(one.as_ref(), Some(document), "seed {seed}: listed and found");
            all.insert(format!("document {id}"), format!("{document:?}"));
        }
    }

    /// Returns whether a plain check finds a document. `pair` compares the document with the checked content. Links are
    /// found only by their own content.
    fn is_findable(document: &Document, pair: Pair) -> bool {
        if document.linked { pair.same } else { pair.alike }
    }

    /// Compares a plain check with brute force. Returns how many matches there are, and how many are not found.
    fn is_right(&self, of: Of, verdict: &Verdict) -> (u64, u64) {
        let (seed, truth) = (self.chaos.seed, &self.chaos.truth);
        assert_eq!((verdict.unread, verdict.stored), (0, false), "seed {seed}: {verdict:?}");
        let compared = self.documents.values().filter_map(|(other, document)| {
            let pair = truth.of(of, *other).filter(|pair| Self::is_findable(document, *pair))?;
            Some((pair, document))
        });
        let mut due: Vec<(Pair, &Document)> = compared.collect();
        due.sort_by(|(a, one), (b, other)| {
            let by_similarity = b.similarity.total_cmp(&a.similarity);
            b.same.cmp(&a.same).then(by_similarity).then(one.seq.cmp(&other.seq))
        });
        let found: BTreeSet<&DocId> = verdict.matches.iter().map(|found| &found.id).collect();
        let unfound = |(pair, document): &&(Pair, &Document)| {
            let is_found = found.contains(&document.id);
            assert!(is_found || !pair.same, "seed {seed}: a check of {of:?} does not find its copy {}", document.id);
            !is_found
        };
        let missed = due.iter().filter(unfound).count();
        let named: Vec<&DocId> = due.iter().map(|(_, document)| &document.id).filter(|id| found.contains(id)).collect();
        assert_eq!(ids(&verdict.matches), named, "seed {seed}: the matches of {of:?}, and their order");
        self.has_the_right_head(verdict, due.first().is_some_and(|(pair, _)| pair.same));
        (due.len() as u64, missed as u64)
    }

    fn has_the_right_head(&self, verdict: &Verdict, is_copy: bool) {
        let seed = self.chaos.seed;
        let best = verdict.matches.first();
        let kind = match best {
            None => VerdictKind::Unique,
            Some(_) if is_copy => VerdictKind::ExactDuplicate,
            Some(_) => VerdictKind::NearDuplicate,
        };
        assert_eq!(verdict.kind, kind, "seed {seed}: {verdict:?}");
        assert_eq!(verdict.duplicate_of.as_ref(), best.map(|best| &best.id), "seed {seed}");
        let link = best.map(|best| &self.documents[&best.id].1).filter(|document| document.linked);
        let representative = link.and_then(|link| link.representative.as_ref());
        assert_eq!(verdict.representative.as_ref(), representative, "seed {seed}: {verdict:?}");
    }

    /// Checks that checks with scopes find exactly the matches that are in the scope.
    async fn scoped(&self, of: Of, plain: &Verdict) {
        let (lot, half) = ((of.0 + of.1) % LOTS, of.1 / 2 % 2);
        let scopes = [
            Within { lot: Some((lot, false)), half: None },
            Within { lot: Some((lot, true)), half: None },
            Within { lot: None, half: Some((half, false)) },
            Within { lot: Some((lot, true)), half: Some((half, true)) },
        ];
        for within in scopes {
            let verdict = self.chaos.check(self.collection, of, None, within).await;
            let takes = |id: &&DocId| within.takes(self.documents[*id].1.labels.as_ref());
            let due: Vec<&DocId> = ids(&plain.matches).into_iter().filter(takes).collect();
            assert_eq!(ids(&verdict.matches), due, "seed {}: {of:?} in {within:?}", self.chaos.seed);
            assert_eq!(verdict.unread, 0, "seed {}: {of:?} in {within:?}", self.chaos.seed);
        }
    }

    /// Checks each document under its own id: the check finds the other documents, and says that this one is stored.
    async fn as_themselves(&self, plain: &BTreeMap<Of, Verdict>) {
        for (id, (of, _)) in self.documents.iter().filter(|(_, (of, _))| of.0 < GROUPS) {
            let verdict = self.chaos.check(self.collection, *of, Some(id.clone()), Within::ALL).await;
            assert!(verdict.stored, "seed {}: {id} is stored: {verdict:?}", self.chaos.seed);
            let mut others = ids(&plain[of].matches);
            others.retain(|other| *other != id);
            assert_eq!(ids(&verdict.matches), others, "seed {}: {id}", self.chaos.seed);
        }
    }
}
