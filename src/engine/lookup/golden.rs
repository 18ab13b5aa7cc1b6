//! Evaluates a golden set under a collection's present settings.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::lookup::Lookup;
use crate::cpu::let_others_run;
use crate::engine::long_work::blocking;
use crate::types::GoldenPair;
use crate::verdicts::{GoldenReport, Result, evaluate};

/// Evaluates the stored golden set. Reads the disk.
pub(crate) fn stored(lookup: &Lookup) -> Result<GoldenReport> {
    given(lookup, &lookup.records().store().golden()?)
}

/// Evaluates these pairs.
pub(crate) fn given(lookup: &Lookup, pairs: &[GoldenPair]) -> Result<GoldenReport> {
    let settings = lookup.policy().settings.clone();
    evaluate(lookup.preparer(), &settings, pairs, let_others_run)
}

/// Evaluates the stored golden set on a thread of its own. The evaluation keeps its turn until it ends, even if the
/// client disconnects.
pub(crate) async fn stored_beside(lookup: &Arc<Lookup>, turn: OwnedMutexGuard<()>) -> Result<GoldenReport> {
    let lookup = Arc::clone(lookup);
    blocking(move || {
        let _turn = turn;
        stored(&lookup)
    })
    .await
}

/// Evaluates these pairs on a thread of its own, and returns the turn with the report.
pub(crate) async fn given_beside(
    lookup: &Arc<Lookup>,
    pairs: &Arc<Vec<GoldenPair>>,
    turn: OwnedMutexGuard<()>,
) -> Result<(GoldenReport, OwnedMutexGuard<()>)> {
    let (lookup, pairs) = (Arc::clone(lookup), Arc::clone(pairs));
    blocking(move || given(&lookup, &pairs).map(|report| (report, turn))).await
}
