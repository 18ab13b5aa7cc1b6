//! Looks documents up: by content, by id, page by page. Never writes. Never waits for a write, except for some
//! milliseconds if a document that it needs is being replaced or deleted (`retry.rs`).
//!
//! `judgement` turns the index's findings into the facts that a verdict rests on. `survivors` compares shingles if they
//! decide about a match. `records` finds the ids, and `id_cache` keeps them in memory. `findings` combines the results
//! for the verdict. `check` calls these modules in this order.

mod buckets;
pub(crate) mod canary;
mod check;
mod clusters;
mod compare;
mod counts;
mod documents;
mod doubts;
mod existing;
mod findings;
pub(crate) mod golden;
mod id_cache;
mod items;
mod judgement;
#[expect(clippy::module_inception, reason = "what lookups read is the module's main item")]
mod lookup;
mod merging;
mod overlaps;
mod pairs;
mod payloads;
mod query;
mod records;
mod retry;
mod survivors;

pub(crate) use buckets::buckets;
pub(crate) use check::{Check, check, check_empty};
pub(crate) use clusters::{cluster, clusters, compared_page, largest};
pub(crate) use compare::{compare, stored_bytes};
pub(crate) use counts::DocumentCounts;
pub(crate) use documents::{document, document_with_text, documents_within, scoped_documents_within};
pub(crate) use existing::{Existing, representative_of};
pub(crate) use findings::{cited_again, explanation, findings, revisit};
pub(crate) use id_cache::IdCache;
pub(crate) use items::Items;
pub(crate) use judgement::{Judgement, Ranked};
pub(crate) use lookup::{Lookup, Policy};
pub(crate) use merging::{merge_reports, stored_whole};
pub(crate) use overlaps::overlaps;
pub(crate) use pairs::Pairs;
pub(crate) use query::{query, shingle_query};
pub(crate) use records::{Mentions, Records, Room};
pub(crate) use retry::{ATTEMPTS, changing};
pub(crate) use survivors::{IN_PASSING, Survivors};
