//! The writers: inserts with all options, updates, deletes, and clients that leave.

use std::sync::Arc;
use std::time::Duration;

use hapax::collections::{Attached, Collection, CollectionError, InsertOptions};
use hapax::types::{DocId, OnDuplicate, OnExisting, Outcome};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use super::scopes::{LOTS, labels, lot};
use super::world::{GROUPS, Of, VARIANTS, metadata, told};
use super::{Chaos, IDS, STAGED, Within};
use crate::support::documents::id;

/// Options that store every document.
pub(super) const STORE: InsertOptions = InsertOptions {
    on_duplicate: OnDuplicate::Store,
    on_existing: OnExisting::Replace,
    limit: 1000,
    with_metadata: true,
    explain: false,
    patient: false,
};

/// Returns a content. Often it is a content that many documents have.
pub(super) fn random_of(rng: &mut impl Rng) -> Of {
    let variant = if rng.random_bool(0.25) { 0 } else { rng.random_range(0..VARIANTS) };
    (rng.random_range(0..GROUPS), variant)
}

fn random_options(rng: &mut impl Rng) -> InsertOptions {
    InsertOptions {
        on_duplicate: OnDuplicate::ALL[rng.random_range(0..3)],
        on_existing: [OnExisting::Conflict, OnExisting::Replace, OnExisting::Replace, OnExisting::Keep]
            [rng.random_range(0..4)],
        explain: rng.random_bool(0.1),
        ..STORE
    }
}

/// One operation of a writer.
enum Write {
    DeleteLabelled(u64),
    Delete(DocId),
    Empty(DocId),
    /// Sends the content that the id already has, with other metadata and labels.
    Update(DocId),
    Insert(DocId, Of),
}

impl Write {
    fn random(writer: u64, rng: &mut impl Rng) -> Self {
        let name = match rng.random_bool(0.02) {
            true => id(format!("refused{writer}")),
            false => id(format!("id{}", rng.random_range(0..IDS))),
        };
        match rng.random_range(0..100) {
            0 => Self::DeleteLabelled(rng.random_range(0..LOTS)),
            1..12 => Self::Delete(name),
            12..24 => Self::Delete(id(format!("id{}", rng.random_range(0..STAGED)))),
            24..30 => Self::Empty(name),
            30..45 => Self::Update(name),
            _ => Self::Insert(name, random_of(rng)),
        }
    }
}

impl Chaos {
    /// Does one operation of a writer. Its client may leave before the answer.
    pub(super) async fn write(self: &Arc<Self>, writer: u64, rng: &mut ChaCha8Rng) {
        let (write, options) = (Write::random(writer, rng), random_options(rng));
        let beside = (rng.random_range(0..3), rng.random_range(0..LOTS));
        let chaos = Arc::clone(self);
        let work = tokio::spawn(async move { chaos.carry_out(write, beside, options).await });
        if rng.random_bool(0.15) {
            tokio::time::sleep(Duration::from_micros(rng.random_range(0..4000))).await;
            work.abort();
        }
        match work.await {
            Ok(Ok(())) => {}
            Ok(Err(CollectionError::WriteFailed { .. })) => self.tally.one("failed"),
            Ok(Err(CollectionError::IdConflict { .. } | CollectionError::Overloaded { .. })) => {}
            Ok(Err(other)) => panic!("seed {}: {other}", self.seed),
            Err(gone) if gone.is_cancelled() => self.tally.one("left"),
            Err(gone) => std::panic::resume_unwind(gone.into_panic()),
        }
    }

    async fn carry_out(
        &self,
        write: Write,
        (note, number): (u32, u64),
        options: InsertOptions,
    ) -> Result<(), CollectionError> {
        let collection = &self.collection;
        match write {
            Write::DeleteLabelled(number) => {
                let deletion = collection.delete_labelled(lot(number)).await?.wait().await?;
                self.tally.add("deleted by label", deletion.documents);
                Ok(())
            }
            Write::Delete(name) => {
                let deleted = collection.delete(name).await?.wait().await?;
                self.tally.add("deleted by id", u64::from(deleted));
                Ok(())
            }
            Write::Empty(name) => {
                let prepared = collection.prepare(self.world.empty()).await?;
                let ticket = collection.insert(name, None, prepared, options).await?;
                self.tally.one("decided");
                self.tally.one("decided without labels");
                let verdict = ticket.wait().await?;
                self.tally.one("empty");
                assert!(!verdict.stored && verdict.matches.is_empty(), "seed {}: {verdict:?}", self.seed);
                Ok(())
            }
            Write::Update(name) => {
                let Some(held) = collection.document(&name).await? else { return Ok(()) };
                let was = held.labels.as_ref().and_then(|labels| labels.get("lot").map(str::to_owned));
                let updated = self.tally_of_insert(name, told(held.metadata.as_ref()), (note, number), options).await?;
                let relabelled = updated == Outcome::Updated && was != Some(number.to_string());
                self.tally.add("relabelled", u64::from(relabelled));
                Ok(())
            }
            Write::Insert(name, of) => self.tally_of_insert(name, of, (note, number), options).await.map(drop),
        }
    }

    async fn tally_of_insert(
        &self,
        name: DocId,
        of: Of,
        beside: (u32, u64),
        options: InsertOptions,
    ) -> Result<Outcome, CollectionError> {
        let outcome = self.insert(&self.collection, name, of, beside, options).await?;
        self.tally.one(outcome.as_str());
        Ok(outcome)
    }

    pub(super) async fn insert(
        &self,
        into: &Collection,
        name: DocId,
        of: Of,
        (note, number): (u32, u64),
        options: InsertOptions,
    ) -> Result<Outcome, CollectionError> {
        let is_own = into.name() == self.collection.name();
        let prepared = into.prepare(self.world.content(of)).await?;
        self.sent.note(&name, of, number);
        let metadata = Some(metadata(of, note));
        let attached = Attached { metadata, labels: Some(labels(of, number)), ..Attached::default() };
        let ticket = into.insert(name, attached, prepared, options).await?;
        // Nothing may interrupt this function between the decision and its count.
        self.tally.add("decided", u64::from(is_own));
        let verdict = ticket.wait().await?;
        // These answers repeat the first verdict, and the documents that it names may have other content by now.
        if matches!(verdict.outcome, Outcome::Unchanged | Outcome::Updated) {
            return Ok(verdict.outcome);
        }
        let stores = !matches!(verdict.outcome, Outcome::Skipped | Outcome::Removed);
        assert_eq!(verdict.stored, stores, "seed {}: {verdict:?}", self.seed);
        self.is_true(of, &verdict, Within::ALL);
        Ok(verdict.outcome)
    }
}
