//! Checks at the start whether a cluster is fit for documents that must not be lost. Each error names the node, the
//! setting and the remedy.

use redis::{Cmd, Value};

use super::cluster::{Cluster, NodeAddress};

/// The oldest version of Redis whose scripts may run on a full node.
const OLDEST: [u32; 2] = [7, 0];

/// Returns an error if the cluster is not fit.
pub(super) async fn check_fitness(cluster: &Cluster, acks: usize) -> Result<(), String> {
    let mut info = redis::cmd("INFO");
    info.arg("everything");
    for (node, text) in ask(cluster, &info).await? {
        check_info(&node, &text, acks)?;
    }
    let mut state = redis::cmd("CLUSTER");
    state.arg("INFO");
    for (node, text) in ask(cluster, &state).await? {
        let assigned = field(&text, "cluster_slots_assigned").unwrap_or("0");
        if assigned != "16384" {
            return Err(format!(
                "the Redis node {node} knows nodes for only {assigned} of 16384 slots; assign all slots"
            ));
        }
    }
    Ok(())
}

async fn ask(cluster: &Cluster, command: &Cmd) -> Result<Vec<(NodeAddress, String)>, String> {
    let mut texts = Vec::new();
    for (node, answer) in cluster.on_primaries(command).await {
        match answer.map_err(|error| error.to_string())? {
            Value::BulkString(bytes) => texts.push((node, String::from_utf8_lossy(&bytes).into_owned())),
            Value::VerbatimString { text, .. } => texts.push((node, text)),
            other => return Err(format!("the Redis node {node} answered {other:?}; is it Redis or Valkey?")),
        }
    }
    Ok(texts)
}

fn check_info(node: &NodeAddress, info: &str, acks: usize) -> Result<(), String> {
    // Valkey names the version of Redis that it is compatible with.
    let version = field(info, "redis_version").unwrap_or("0");
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let found = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    if found < OLDEST {
        return Err(format!("the Redis node {node} is version {version}; hapax needs 7.0 or later, or Valkey"));
    }
    let policy = field(info, "maxmemory_policy").unwrap_or("");
    if policy != "noeviction" {
        return Err(format!(
            "the Redis node {node} has maxmemory-policy {policy}, which deletes documents when memory is short; set it \
             to noeviction"
        ));
    }
    if acks > 0 && field(info, "aof_enabled") != Some("1") {
        return Err(format!(
            "the Redis node {node} has appendonly no: after a quick restart it would come back without the last writes, \
             and its replica would follow it; set appendonly yes, or redis.acks = 0"
        ));
    }
    let replicas = field(info, "connected_slaves").and_then(|text| text.parse().ok()).unwrap_or(0);
    if replicas > acks {
        tracing::warn!(
            %node,
            replicas,
            acks,
            "a primary of the Redis cluster has more replicas than redis.acks, so a failover may choose one without an \
             acknowledged write; set redis.acks to the number of replicas"
        );
    }
    if replicas < acks {
        let ending = if replicas == 1 { "" } else { "s" };
        return Err(format!(
            "the Redis node {node} has {replicas} replica{ending}, and redis.acks is {acks}; add replicas, or set redis.acks \
             lower"
        ));
    }
    Ok(())
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
                        connected_slaves:1\r\n";

    #[test]
    fn what_a_node_lacks_is_named() {
        let node = NodeAddress::parse("127.0.0.1:7000").unwrap();
        assert_eq!(check_info(&node, GOOD, 1), Ok(()));
        for (from, to, said) in [
            ("7.0.15", "6.2.1", "version 6.2.1"),
            ("noeviction", "allkeys-lru", "maxmemory-policy allkeys-lru"),
            ("aof_enabled:1", "aof_enabled:0", "appendonly no"),
            ("connected_slaves:1", "connected_slaves:0", "has 0 replicas, and redis.acks is 1"),
        ] {
            let told = check_info(&node, &GOOD.replace(from, to), 1).unwrap_err();
            assert!(told.contains("127.0.0.1:7000") && told.contains(said), "{told}");
        }
        assert_eq!(check_info(&node, &GOOD.replace("aof_enabled:1", "aof_enabled:0"), 0), Ok(()));
    }
}
