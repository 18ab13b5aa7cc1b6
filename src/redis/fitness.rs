//! Looks whether a cluster is fit for documents that must not be lost. Each problem names the node, the setting and the
//! remedy.

use redis::Value;

use super::cluster::{Cluster, ClusterError, NodeAddress};
use super::permissions::{forbidden, trials};
use crate::verdicts::RedisSettings;

/// The oldest version of Redis whose scripts may run on a full node.
const OLDEST: [u32; 2] = [7, 0];
/// How many replicas must have a write if the settings do not say it, at least.
pub(super) const ACKS_MIN: usize = 1;
/// Where a cut-off node answers reads.
const READS_WHEN_DOWN: &str = "cluster-allow-reads-when-down";

/// What a look at some nodes has found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The reasons why the cluster is not fit.
    problems: Vec<String>,
    /// The answers to `INFO`.
    infos: Vec<(NodeAddress, String)>,
    silent: Option<ClusterError>,
    /// How many primaries have failed and have no slots. When they come back, they are replicas of others.
    failed: usize,
    /// How many replicas each primary has.
    replicas: Vec<(NodeAddress, usize)>,
    /// The nodes that do not tell their settings.
    settings_hidden: Vec<NodeAddress>,
}

impl Look {
    /// Looks at these nodes.
    pub(super) async fn at(nodes: Vec<NodeAddress>, cluster: &Cluster, settings: &RedisSettings) -> Self {
        let looks = [
            redis::cmd("INFO"),
            redis::cmd("CLUSTER").arg("INFO").take(),
            redis::cmd("CLUSTER").arg("NODES").take(),
            redis::cmd("CONFIG").arg("GET").arg(READS_WHEN_DOWN).take(),
        ];
        let commands: Vec<_> = looks.into_iter().chain(trials(&settings.prefix)).collect();
        let mut look = Self::default();
        for (node, answers) in cluster.on_nodes(nodes, &commands).await {
            match answers {
                Ok(answers) => look.judge(&node, &answers, settings),
                Err(error) => look.silent = Some(error),
            }
        }
        look
    }

    /// Returns the answers of the nodes to `INFO`.
    pub(super) fn infos(&self) -> &[(NodeAddress, String)] {
        &self.infos
    }

    /// Returns how many replicas must have a write if the settings do not say it: as many as each primary has. Then no
    /// failover can choose one that does not have the write. A primary that has failed counts for one of the others.
    pub(super) fn acks(&self) -> usize {
        let most = self.replicas.iter().map(|(_, own)| own + self.failed).max().unwrap_or(0);
        let missing = |acks: usize| self.replicas.iter().map(|(_, own)| acks.saturating_sub(*own)).sum::<usize>();
        (ACKS_MIN..=most).rev().find(|&acks| missing(acks) <= self.failed).unwrap_or(ACKS_MIN)
    }

    /// Returns a reason why the cluster is not fit.
    pub(super) fn problem(&self) -> Option<&String> {
        self.problems.first()
    }

    /// Returns the error of a node that did not answer as a primary, so that something is not known about the cluster.
    pub(super) fn silent(&self) -> Option<&ClusterError> {
        self.silent.as_ref()
    }

    fn judge(&mut self, node: &NodeAddress, answers: &[Result<Value, ClusterError>], settings: &RedisSettings) {
        let [info, state, nodes, reads_when_down, tried @ ..] = answers else {
            unreachable!("an answer for each command")
        };
        self.infos.extend(text(info).ok().map(|info| (node.clone(), info)));
        let forbidden = forbidden(tried);
        if !forbidden.is_empty() {
            return self.problems.push(not_permitted(node, &forbidden, settings));
        }
        match (text(info), text(state), text(nodes)) {
            (Ok(info), ..) if field(&info, "role") == Some("slave") => {
                // Another node has its slots, and was not looked at.
                let reason = "it has become a replica".to_owned();
                self.silent = Some(ClusterError::NotReady { node: node.clone(), reason });
            }
            (Ok(info), Ok(state), Ok(nodes)) => {
                let (replicas, acks) = (Replicas::of(&nodes), settings.acks.unwrap_or(ACKS_MIN));
                let problems =
                    [check_info(node, &info, acks), check_slots(node, &state), check_replicas(node, replicas, acks)];
                self.problems.extend(problems.into_iter().filter_map(Result::err));
                self.failed = self.failed.max(replicas.failed);
                self.replicas.push((node.clone(), replicas.own));
            }
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => self.silent = Some(error),
        }
        let named: Option<Vec<_>> =
            reads_when_down.as_ref().ok().and_then(|value| redis::from_redis_value_ref(value).ok());
        match named {
            Some(pairs) => self.problems.extend(check_reads(node, &pairs).err()),
            None => self.settings_hidden.push(node.clone()),
        }
    }

    /// Logs what an operator should know at the start.
    pub(super) fn warn(self, acks: usize) {
        for (node, replicas) in self.replicas.into_iter().filter(|(_, replicas)| *replicas > acks) {
            tracing::warn!(
                %node,
                replicas,
                acks,
                "a primary of the Redis cluster has more replicas than redis.acks, so a failover may choose one \
                 without an acknowledged write; set redis.acks to the number of replicas"
            );
        }
        for node in self.settings_hidden {
            tracing::warn!(
                %node,
                "the Redis node does not tell whether cluster-allow-reads-when-down is yes, because it does not \
                 permit CONFIG GET; make sure that the setting is no"
            );
        }
    }
}

/// How many replicas a primary has, as the cluster lists them. Dead ones count: they come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replicas {
    own: usize,
    /// Other primaries without slots. After a failover, the old primary is one until it comes back as a replica.
    idle: usize,
    /// Those of them that have failed.
    failed: usize,
}

impl Replicas {
    /// Reads the answer of a primary to `CLUSTER NODES`. A line is
    /// `id address flags primary ping pong epoch link slots...`.
    fn of(nodes: &str) -> Self {
        let lines: Vec<Vec<_>> = nodes.lines().map(|line| line.split(' ').collect()).collect();
        let has = |line: &[&str], flag| line.get(2).is_some_and(|flags| flags.split(',').any(|found| found == flag));
        let own = lines.iter().find(|line| has(line, "myself")).and_then(|line| line.first().copied());
        let is_own = |line: &&Vec<&str>| has(line, "slave") && line.get(3).copied() == own;
        let is_idle = |line: &&Vec<&str>| has(line, "master") && !has(line, "myself") && line.len() <= 8;
        let (own, idle) = (lines.iter().filter(is_own).count(), lines.iter().filter(is_idle));
        let failed = idle.clone().filter(|line| has(line, "fail")).count();
        Self { own, idle: idle.count(), failed }
    }
}

fn text(answer: &Result<Value, ClusterError>) -> Result<String, ClusterError> {
    match answer {
        Ok(Value::VerbatimString { text, .. }) => Ok(text.clone()),
        Ok(Value::BulkString(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Ok(_) => Ok(String::new()),
        Err(error) => Err(error.clone()),
    }
}

fn not_permitted(node: &NodeAddress, forbidden: &[&str], settings: &RedisSettings) -> String {
    let names: Vec<_> = forbidden.iter().map(|name| name.replace('|', " ").to_uppercase()).collect();
    let (names, rules, prefix) = (names.join(", "), forbidden.join(" +"), &settings.prefix);
    let user = settings.username.as_deref().unwrap_or("default");
    format!(
        "the Redis node {node} does not permit the user {user} (redis.username) to use these commands on keys that begin \
         with {prefix}: {names}; permit them on every node with ACL SETUSER {user} ~{prefix}:* +{rules}"
    )
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
    Ok(())
}

fn check_slots(node: &NodeAddress, state: &str) -> Result<(), String> {
    let assigned = field(state, "cluster_slots_assigned").unwrap_or("0");
    if assigned == "16384" {
        return Ok(());
    }
    Err(format!("the Redis node {node} knows nodes for only {assigned} of 16384 slots; assign all slots"))
}

fn check_replicas(node: &NodeAddress, replicas: Replicas, acks: usize) -> Result<(), String> {
    let Replicas { own, idle, .. } = replicas;
    if own + idle >= acks {
        return Ok(());
    }
    let ending = if own == 1 { "" } else { "s" };
    Err(format!(
        "the Redis node {node} has {own} replica{ending}, dead ones included, and redis.acks is {acks}; add replicas, or \
         set redis.acks lower"
    ))
}

fn check_reads(node: &NodeAddress, settings: &[(String, String)]) -> Result<(), String> {
    if settings.iter().all(|(_, value)| value != "yes") {
        return Ok(());
    }
    Err(format!(
        "the Redis node {node} has {READS_WHEN_DOWN} yes, so it would answer with old data while it is cut off; set it \
         to no"
    ))
}

/// Returns the value in a line `name:value`.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";

    fn node() -> NodeAddress {
        NodeAddress::parse("127.0.0.1:7000").unwrap()
    }

    #[test]
    fn what_a_node_lacks_is_named() {
        assert_eq!(check_info(&node(), GOOD, 1), Ok(()));
        for (from, to, said) in [
            ("7.0.15", "6.2.1", "version 6.2.1"),
            ("noeviction", "allkeys-lru", "maxmemory-policy allkeys-lru"),
            ("aof_enabled:1", "aof_enabled:0", "appendonly no"),
        ] {
            let told = check_info(&node(), &GOOD.replace(from, to), 1).unwrap_err();
            assert!(told.contains("127.0.0.1:7000") && told.contains(said), "{told}");
        }
        assert_eq!(check_info(&node(), &GOOD.replace("aof_enabled:1", "aof_enabled:0"), 0), Ok(()));
    }

    #[test]
    fn dead_replicas_and_old_primaries_count() {
        let nodes = "a 127.0.0.1:1@11 myself,master - 0 0 1 connected 0-5460\n\
                     b 127.0.0.1:2@12 master - 0 0 2 connected 5461-16383\n\
                     c 127.0.0.1:3@13 slave a 0 0 1 connected\n\
                     d 127.0.0.1:4@14 slave,fail a 0 0 1 disconnected\n\
                     e 127.0.0.1:5@15 slave b 0 0 2 connected\n\
                     f 127.0.0.1:6@16 master,fail - 0 0 0 disconnected\n";
        assert_eq!(Replicas::of(nodes), Replicas { own: 2, idle: 1, failed: 1 });
        let told = check_replicas(&node(), Replicas { own: 1, idle: 0, failed: 0 }, 2).unwrap_err();
        assert!(told.contains("127.0.0.1:7000 has 1 replica, dead ones included, and redis.acks is 2"), "{told}");
        assert_eq!(check_replicas(&node(), Replicas { own: 1, idle: 1, failed: 0 }, 2), Ok(()));
    }

    fn settings(acks: Option<usize>) -> RedisSettings {
        RedisSettings {
            nodes: Vec::new(),
            username: None,
            password: None,
            tls: None,
            timeout: Duration::from_secs(1),
            acks,
            prefix: "hapax".to_owned(),
            documents_expected: 1,
            check_interval: Duration::from_secs(1),
        }
    }

    fn look(role: &str, nodes: &[&str]) -> Look {
        let text = |text: &str| Ok(Value::BulkString(text.as_bytes().to_vec()));
        let info = text(&format!("{GOOD}role:{role}\r\n"));
        let mut look = Look::default();
        for nodes in nodes {
            let answers =
                [info.clone(), text("cluster_slots_assigned:16384\r\n"), text(nodes), Ok(Value::Array(Vec::new()))];
            look.judge(&node(), &answers, &settings(None));
        }
        look
    }

    /// In an earlier version, it was judged as a primary without replicas, so writes were refused.
    #[test]
    fn a_primary_that_has_become_a_replica_is_not_judged() {
        let nodes = "a 127.0.0.1:7000@17000 myself,slave b 0 0 2 connected\n\
                     b 127.0.0.1:7001@17001 master - 0 0 2 connected 0-16383\n";
        for (role, problems, is_silent) in [("slave", 0, true), ("master", 1, false)] {
            let look = look(role, &[nodes]);
            assert_eq!((look.problems.len(), look.silent.is_some()), (problems, is_silent), "{look:?}");
        }
    }

    #[test]
    fn as_many_replicas_acknowledge_as_each_primary_has() {
        let with = |replicas: &str| format!("a 127.0.0.1:1@11 myself,master - 0 0 1 connected 0-16383\n{replicas}");
        let two = with("c 127.0.0.1:3@13 slave a 0 0 1 connected\nd 127.0.0.1:4@14 slave,fail a 0 0 1 disconnected\n");
        let one = with("c 127.0.0.1:3@13 slave a 0 0 1 connected\n");
        // The other one has become the primary.
        let failed =
            with("c 127.0.0.1:3@13 slave a 0 0 1 connected\nd 127.0.0.1:4@14 master,fail - 0 0 1 disconnected\n");
        let lost = with(
            "d 127.0.0.1:4@14 master,fail - 0 0 1 disconnected\ne 127.0.0.1:5@15 master,fail - 0 0 1 disconnected\n",
        );
        // A new node that has no slots and no replicas yet.
        let new = with("c 127.0.0.1:3@13 slave a 0 0 1 connected\nd 127.0.0.1:4@14 master - 0 0 1 connected\n");
        for (nodes, acks) in [
            (vec![&two, &two], 2),
            (vec![&two, &one], 1),
            (vec![&failed, &two], 2),
            (vec![&new, &two], 1),
            (vec![&with("")], 1),
            // A node that is lost for good, and whose place another one has, completes only one primary.
            (vec![&failed, &failed, &failed], 1),
            (vec![&lost, &lost, &one], 1),
        ] {
            let nodes: Vec<_> = nodes.into_iter().map(String::as_str).collect();
            assert_eq!(look("master", &nodes).acks(), acks, "{nodes:?}");
        }
    }
}
