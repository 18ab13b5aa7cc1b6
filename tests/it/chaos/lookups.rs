//! Checks: of all documents, of those with and without labels, and of two collections at once.

use std::collections::BTreeSet;

use hapax::collections::{AskedCollections, CheckOptions, Collection, CollectionError, PrepareOptions, Purpose};
use hapax::types::{DocId, Match, Verdict};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::scopes::Within;
use super::world::{Of, told};
use super::writers::random_of;
use super::{Chaos, IDS};
use crate::support::documents::{id, look};

const ANSWER_BYTES: usize = 64 << 20;

impl Chaos {
    /// Does one check while all other work continues.
    pub(super) async fn look(&self, rng: &mut ChaCha8Rng) {
        let (of, within) = (random_of(rng), if rng.random_bool(0.5) { Within::ALL } else { Within::random(rng) });
        let asked = rng.random_bool(0.5).then(|| id(format!("id{}", rng.random_range(0..IDS))));
        if rng.random_bool(0.2) {
            let verdict = self.check_both(of, within).await;
            let (own, others) = verdict.matches.into_iter().partition(|found| self.is_own(found));
            let halves: [Vec<Match>; 2] = [own, others];
            halves.into_iter().for_each(|matches| self.are_true(of, &matches, within));
            self.tally.one("checks of several collections");
            return;
        }
        let verdict = self.check(&self.collection, of, asked, within).await;
        self.is_true(of, &verdict, within);
        self.tally.one("checks");
        for (_, lacks) in within.lot.into_iter().chain(within.half) {
            let found = verdict.matches.len() as u64;
            self.tally.add(if lacks { "checks of what has no label" } else { "checks of what has a label" }, found);
        }
    }

    /// Returns whether a match from a check of both collections is in the first collection.
    pub(super) fn is_own(&self, found: &Match) -> bool {
        found.collection.as_ref() == Some(self.collection.name())
    }

    pub(super) async fn check(&self, collection: &Collection, of: Of, asked: Option<DocId>, within: Within) -> Verdict {
        let look = CheckOptions { with_metadata: true, scope: within.scope(), ..look(1000) };
        loop {
            let prepared = collection.prepare(self.world.content(of)).await.unwrap();
            match collection.check(asked.clone(), prepared, look.clone()).await {
                Ok(verdict) => return verdict,
                Err(CollectionError::Overloaded { .. }) => {}
                Err(other) => panic!("seed {}: {other}", self.seed),
            }
        }
    }

    /// Asks both collections.
    pub(super) async fn check_both(&self, of: Of, within: Within) -> Verdict {
        let both = AskedCollections::new(self.collection.clone(), vec![self.staging.clone()]);
        let look = CheckOptions { with_metadata: true, scope: within.scope(), ..look(1000) };
        let options = PrepareOptions { purpose: Purpose::Check, ..PrepareOptions::default() };
        loop {
            let prepared = both.prepare(self.world.content(of), options).await.unwrap();
            match both.check(None, prepared, look.clone(), ANSWER_BYTES, |_, _, _| ()).await {
                Ok(verdict) => return verdict.verdict().clone(),
                Err(CollectionError::Overloaded { .. }) => {}
                Err(other) => panic!("seed {}: {other}", self.seed),
            }
        }
    }

    /// Checks that a verdict names only similar documents in the scope, with the right similarity.
    pub(super) fn is_true(&self, of: Of, verdict: &Verdict, within: Within) {
        let seed = self.seed;
        assert!(!verdict.kind.is_duplicate() || !verdict.matches.is_empty(), "seed {seed}: a duplicate of nothing");
        for found in &verdict.matches {
            assert_ne!(Some(&found.id), verdict.id.as_ref(), "seed {seed}: its own match");
        }
        self.are_true(of, &verdict.matches, within);
    }

    fn are_true(&self, of: Of, matches: &[Match], within: Within) {
        let seed = self.seed;
        let ids: BTreeSet<&DocId> = matches.iter().map(|found| &found.id).collect();
        assert_eq!(ids.len(), matches.len(), "seed {seed}: one id twice in {matches:?}");
        for found in matches {
            let staged = found.collection.is_some() && !self.is_own(found);
            assert!(staged || !found.id.as_str().starts_with("refused"), "seed {seed}: {} was never on disk", found.id);
            let other = told(found.metadata.as_ref());
            let Some(truth) = self.truth.of(of, other) else { panic!("seed {seed}: another group: {found:?}") };
            let (said, similarity) = (found.similarity.value, truth.similarity);
            assert!((said - similarity).abs() < 1e-9, "seed {seed}: {of:?} and {other:?}: {similarity}, not {found:?}");
            assert!(truth.alike, "seed {seed}: {of:?} and {other:?} are not alike: {found:?}");
            assert_eq!(found.same_content, truth.same, "seed {seed}: {of:?} and {other:?}: {found:?}");
            // The metadata of a match is read last. It may be from a later update with equal content.
            let is_equal = |sent| self.truth.of(sent, other).is_some_and(|pair| pair.similarity == 1.0);
            let in_scope = self.sent.may_be_in(&found.id, is_equal, within);
            assert!(in_scope, "seed {seed}: {other:?} was never in {within:?}: {found:?}");
            self.tally.add("copies", u64::from(truth.similarity == 1.0));
        }
    }
}
