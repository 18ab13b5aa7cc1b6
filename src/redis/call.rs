//! A single command on one key, for lists and counters.

use redis::{Cmd, Value};

use super::cluster::{Call, Cluster, Request};
use super::failure::Failure;
use super::wire::CLAIM;
use crate::verdicts::Result;

/// Returns whether a field of a hash still has a value, and enough replicas have it.
pub(super) async fn confirm(cluster: &Cluster, key: &[u8], field: &str, value: &str, acks: usize) -> Result<bool> {
    let same = Call::script_on(&CLAIM, key, &[field, value, value].map(str::as_bytes));
    Ok(matches!(send(cluster, key, same, Some(acks)).await?, Value::Int(_)))
}

/// Runs a command on one key. With `acks`, fails if fewer replicas have the write.
pub(super) async fn call(cluster: &Cluster, key: &[u8], command: Cmd, acks: Option<usize>) -> Result<Value> {
    send(cluster, key, Call::plain(command), acks).await
}

async fn send(cluster: &Cluster, key: &[u8], call: Call, acks: Option<usize>) -> Result<Value> {
    let waits = acks.is_some_and(|acks| acks > 0);
    let request = Request { slot: Cluster::slot_of(key), calls: vec![call], waits };
    let answers = cluster.run(vec![request]).await;
    let response = answers
        .into_iter()
        .next()
        .expect("an answer for each request")
        .map_err(|error| Failure::from(error).told(waits))?;
    if waits && response.acknowledged.unwrap_or(0) < acks.unwrap_or(0) {
        return Err(Failure::TooFewReplicas { acks: acks.unwrap_or(0) }.told(true));
    }
    Ok(response.values.into_iter().next_back().unwrap_or(Value::Nil))
}
