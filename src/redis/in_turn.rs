//! The documents of a request with several: many of them are inserted or deleted at once, and yet each sees those before
//! it, and has a higher number.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tokio_util::task::AbortOnDropHandle;

use super::collection::RedisCollection;
use super::insertion::Reserved;
use super::line_order::{LineOrder, Turn};
use crate::types::{DocId, OnExisting, Verdict};
use crate::verdicts::{Attached, CollectionError, InsertOptions, Prepared, Result};

/// Inserts the next document of a request with several. It waits for earlier documents of the request that share a
/// band or the id. If the future is dropped before its turn, nothing happens.
pub async fn insert_in_turn(
    collection: &Arc<RedisCollection>,
    order: &LineOrder,
    id: DocId,
    attached: Attached,
    prepared: Prepared,
    options: InsertOptions,
    bytes_max: usize,
) -> Result<BoxFuture<'static, Result<Verdict>>> {
    let reserved = match prepared.made() {
        Some(made) => {
            let number = collection.context().counters().number().await?;
            Some(Reserved { number, postings: collection.context().postings(&made.signature, made.content) })
        }
        None => None,
    };
    let postings = reserved.iter().flat_map(|reserved| &reserved.postings);
    let (key, score) = key_of_turn(collection, &id);
    // A document that replaces another one removes postings that are not known yet. So all of them wait for each other.
    let one_by_one = (options.on_existing == OnExisting::Replace).then_some((&b"one by one"[..], 0));
    let keys = postings.map(|posting| (&posting.key[..], posting.score)).chain([(&key[..], score)]).chain(one_by_one);
    let turn = order.take(keys);
    let this = Arc::clone(collection);
    let insert = async move { this.insert_as(reserved, id, attached, prepared, options, bytes_max).await };
    Ok(in_turn(collection, turn, insert))
}

/// Deletes the next id of a request with several; see [`insert_in_turn`].
pub fn delete_in_turn(
    collection: &Arc<RedisCollection>,
    order: &LineOrder,
    id: DocId,
) -> BoxFuture<'static, Result<bool>> {
    let turn = order.take([key_of_turn(collection, &id)].into_iter());
    let this = Arc::clone(collection);
    in_turn(collection, turn, async move { this.delete(id).await })
}

fn key_of_turn(collection: &RedisCollection, id: &DocId) -> (Vec<u8>, i32) {
    let (key, field) = collection.context().keys().id(id);
    ([&key[..], &field].concat(), 0)
}

fn in_turn<T: Send + 'static>(
    collection: &RedisCollection,
    turn: Turn,
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    let places = collection.places();
    // In a task of its own: a stream is not polled while its client reads nothing, and others may wait for its place.
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        turn.comes().await;
        let _place = places.acquire_owned().await;
        let done = operation.await;
        drop(turn);
        done
    }));
    task.map(|ended| ended.unwrap_or_else(|_| Err(CollectionError::closed()))).boxed()
}
