//! Reads of documents by their numbers. They are not confirmed: a failover may undo a document that was read.

use super::drive::Driver;
use super::failure::Failure;
use super::protocol::{Found, Ref, State};
use super::record::Judged;
use crate::verdicts::CollectionError;

/// How many successors of a document are followed, at most.
const FOLLOWED_MAX: usize = 16;

/// Returns the documents with these numbers that are stored.
pub(super) async fn stored(driver: &mut Driver, numbers: &[Ref]) -> Result<Vec<(Ref, Judged)>, CollectionError> {
    let records = driver.records(numbers).await.map_err(|failure| failure.told(false))?;
    let mut stored = Vec::new();
    for (&at, record) in numbers.iter().zip(records) {
        match record {
            Some(Found { head, body: Some(body), expired: false }) if head.state.is_stored() => {
                stored.push((at, body));
            }
            // It is stored until its successor is.
            Some(found) if found.head.state == State::Superseded => {
                let present = present(driver, at).await?;
                stored.extend(present.filter(|(present, _)| *present == at));
            }
            _ => {}
        }
    }
    Ok(stored)
}

/// Returns the document `at`, or the one that has replaced it, if it is stored.
pub(super) async fn present(driver: &mut Driver, at: Ref) -> Result<Option<(Ref, Judged)>, CollectionError> {
    follow(driver, at).await.map_err(|failure| failure.told(false))
}

async fn follow(driver: &mut Driver, mut at: Ref) -> Result<Option<(Ref, Judged)>, Failure> {
    // The document whose successor was absent when it was read last.
    let mut looked_twice = None;
    for _ in 0..FOLLOWED_MAX {
        let Some(Found { head, body: Some(body), expired }) = record(driver, at).await? else { return Ok(None) };
        let own = (!expired).then_some((at, body));
        let Some(by) = head.successor() else { return Ok(own.filter(|_| head.state.is_stored())) };
        match record(driver, by).await?.map(|found| found.head.state) {
            Some(State::Pending | State::Aborted) => return Ok(own),
            Some(State::Deleted) => return Ok(None),
            Some(State::Kept | State::Sealed | State::Superseded) => at = by,
            // The record of a stored successor goes only after this one.
            None if looked_twice == Some(at) => return Ok(own),
            None => looked_twice = Some(at),
        }
    }
    Ok(None)
}

async fn record(driver: &mut Driver, at: Ref) -> Result<Option<Found<Judged>>, Failure> {
    Ok(driver.records(&[at]).await?.pop().flatten())
}
