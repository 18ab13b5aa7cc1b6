//! A single command on one key, for lists and counters.

use std::sync::LazyLock;

use redis::{Cmd, Value};

use super::cluster::{Call, Cluster, Request, Script};
use super::failure::Failure;
use crate::verdicts::Result;

/// Adds to a counter. Works on a full node, because deletes are counted.
static ADD: LazyLock<Script> =
    LazyLock::new(|| Script::new("#!lua flags=allow-oom\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])"));

/// Adds to a counter. Does not wait for replicas.
pub(super) async fn add(cluster: &Cluster, key: &[u8], change: i64) -> Result<()> {
    let call = Call::script_on(&ADD, key, &[change.to_string().as_bytes()]);
    send(cluster, key, call, false).await.map(drop)
}

/// Runs a command on one key. Does not wait for replicas.
pub(super) async fn call(cluster: &Cluster, key: &[u8], command: Cmd) -> Result<Value> {
    send(cluster, key, Call::plain(command), false).await
}

/// Runs a write on one key. Fails if too few replicas have it.
pub(super) async fn write(cluster: &Cluster, key: &[u8], command: Cmd) -> Result<Value> {
    send(cluster, key, Call::plain(command), true).await
}

/// Runs a script on one key. Fails if too few replicas have its writes.
pub(super) async fn call_script(
    cluster: &Cluster,
    key: &[u8],
    script: &'static Script,
    args: &[&str],
) -> Result<Value> {
    let args: Vec<_> = args.iter().map(|text| text.as_bytes()).collect();
    send(cluster, key, Call::script_on(script, key, &args), true).await
}

async fn send(cluster: &Cluster, key: &[u8], call: Call, waits: bool) -> Result<Value> {
    let acks = cluster.acks();
    let waits = waits && acks > 0;
    let request = Request { slot: Cluster::slot_of(key), calls: vec![call], waits };
    let answers = cluster.run(vec![request]).await;
    let response = answers
        .into_iter()
        .next()
        .expect("an answer for each request")
        .map_err(|error| Failure::from(error).told(waits))?;
    if waits && response.acknowledged.unwrap_or(0) < acks {
        return Err(Failure::TooFewReplicas { acks }.told(true));
    }
    Ok(response.values.into_iter().next_back().unwrap_or(Value::Nil))
}
