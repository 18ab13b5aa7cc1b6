//! What the primaries tell about themselves. In: their answers to `INFO`, after each look at the cluster. Out: the
//! metrics of their memory, and a count and a line in the log for each primary that was replaced or has restarted.

use std::collections::BTreeMap;

use metrics::Counter;

use super::cluster::NodeAddress;
use super::fitness::field;
use crate::telemetry::names::{self, label, value};
use crate::telemetry::recorder;

/// The primaries that were seen last.
#[derive(Debug)]
pub(super) struct Primaries {
    known: BTreeMap<NodeAddress, Ids>,
    failovers: Counter,
    restarts: Counter,
    others: Counter,
}

/// The ids of a primary. A node gets a new `replication` when it becomes primary, and when it starts; and if it has had no
/// replica for `repl-backlog-ttl`.
#[derive(Clone, Debug)]
struct Ids {
    replication: String,
    /// The replication id that the node had before. For a former replica, it is the id of its primary.
    before: String,
    /// The id of the process.
    run: String,
}

/// What has happened to a primary.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// The node has replaced this one.
    Failover(NodeAddress),
    Restart,
    Other,
}

impl Primaries {
    /// Knows no primary.
    pub(super) fn new() -> Self {
        let counter = |kind| metrics::counter!(names::REDIS_REPLICATION_IDS_CHANGED, label::KIND => kind);
        let [failovers, restarts, others] =
            [value::CHANGED_FAILOVER, value::CHANGED_RESTART, value::CHANGED_OTHER].map(counter);
        Self { known: BTreeMap::new(), failovers, restarts, others }
    }

    /// Takes the answers to `INFO`. `is_complete` says that they are those of all primaries.
    pub(super) fn note(&mut self, infos: &[(NodeAddress, String)], is_complete: bool) {
        let of_primary = |(node, info): &(NodeAddress, String)| Some((node.clone(), Ids::read(info)?));
        let seen: BTreeMap<_, _> = infos.iter().filter_map(of_primary).collect();
        for (node, info) in infos.iter().filter(|(node, _)| seen.contains_key(node)) {
            show_memory(node, info);
        }
        for (node, ids) in &seen {
            if let Some(change) = self.change(node, ids) {
                self.tell(node, change);
            }
        }
        if is_complete {
            // Until then, a node that is missing may be the one that another node replaces.
            self.known.keys().filter(|node| !seen.contains_key(node)).for_each(hide_memory);
            self.known.clear();
        }
        self.known.extend(seen);
    }

    fn change(&self, node: &NodeAddress, ids: &Ids) -> Option<Change> {
        let known = self.known.get(node);
        if known.is_some_and(|known| known.replication == ids.replication) {
            return None;
        }
        let is_replaced = |(other, known): &(&NodeAddress, &Ids)| *other != node && known.replication == ids.before;
        if let Some((replaced, _)) = self.known.iter().find(is_replaced) {
            return Some(Change::Failover(replaced.clone()));
        }
        Some(if known?.run == ids.run { Change::Other } else { Change::Restart })
    }

    fn tell(&self, node: &NodeAddress, change: Change) {
        match change {
            Change::Failover(replaced) => {
                self.failovers.increment(1);
                tracing::warn!(%node, %replaced, "a replica of the Redis cluster has taken over from its primary");
            }
            Change::Restart => {
                self.restarts.increment(1);
                tracing::warn!(%node, "a primary of the Redis cluster has restarted");
            }
            Change::Other => {
                self.others.increment(1);
                tracing::warn!(%node, "a primary of the Redis cluster has another replication id");
            }
        }
    }
}

impl Ids {
    /// Reads an answer to `INFO`. Returns `None` if the node is not a primary.
    fn read(info: &str) -> Option<Self> {
        if field(info, "role")? != "master" {
            return None;
        }
        let text = |name| field(info, name).map(str::to_owned);
        Some(Self { replication: text("master_replid")?, before: text("master_replid2")?, run: text("run_id")? })
    }
}

fn show_memory(node: &NodeAddress, info: &str) {
    for (metric, name) in [(names::REDIS_MEMORY_USED, "used_memory"), (names::REDIS_MEMORY_MAX, "maxmemory")] {
        if let Some(bytes) = field(info, name).and_then(|bytes| bytes.parse::<f64>().ok()) {
            metrics::gauge!(metric, label::NODE => node.to_string()).set(bytes);
        }
    }
}

/// Forgets the memory of a node that is not a primary any more.
fn hide_memory(node: &NodeAddress) {
    for metric in [names::REDIS_MEMORY_USED, names::REDIS_MEMORY_MAX] {
        recorder::withdraw(metric, label::NODE, &node.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primary(port: u16, replication: &str, before: &str, run: &str) -> (NodeAddress, String) {
        let info = format!(
            "# Server\r\nrun_id:{run}\r\nrole:master\r\nmaster_replid:{replication}\r\nmaster_replid2:{before}\r\n"
        );
        (NodeAddress::new("n", port), info)
    }

    /// Returns the changes that an answer shows.
    fn seen(primaries: &mut Primaries, infos: &[(NodeAddress, String)], is_complete: bool) -> Vec<(u16, Change)> {
        let change =
            |(node, info): &(NodeAddress, String)| Some((node.port(), primaries.change(node, &Ids::read(info)?)?));
        let changes = infos.iter().filter_map(change).collect();
        primaries.note(infos, is_complete);
        changes
    }

    #[test]
    fn replaced_and_restarted_primaries_are_told_once() {
        let mut primaries = Primaries::new();
        let failover = |from| Change::Failover(NodeAddress::new("n", from));
        let [first, second] = [primary(1, "a", "0", "p1"), primary(2, "b", "0", "p2")];
        for (infos, is_complete, told) in [
            (vec![first.clone(), second.clone()], true, vec![]),
            (vec![first.clone(), second.clone()], true, vec![]),
            // The first one fails. Two looks later, it has a successor.
            (vec![second.clone()], false, vec![]),
            (vec![second.clone(), primary(3, "c", "a", "p3")], true, vec![(3, failover(1))]),
            (vec![second.clone(), primary(3, "c", "a", "p3")], true, vec![]),
            // It takes over again.
            (vec![second.clone(), primary(1, "d", "c", "p4")], true, vec![(1, failover(3))]),
            (vec![primary(2, "e", "b", "p5"), primary(1, "d", "c", "p4")], true, vec![(2, Change::Restart)]),
            (vec![primary(2, "f", "0", "p5"), primary(1, "d", "c", "p4")], true, vec![(2, Change::Other)]),
            // A new primary gets slots.
            (vec![primary(2, "f", "0", "p5"), primary(1, "d", "c", "p4"), primary(4, "g", "0", "p6")], true, vec![]),
        ] {
            assert_eq!(seen(&mut primaries, &infos, is_complete), told);
        }
    }

    #[test]
    fn a_failover_is_told_once_while_another_primary_is_silent() {
        let mut primaries = Primaries::new();
        seen(&mut primaries, &[primary(1, "a", "0", "p1"), primary(2, "b", "0", "p2")], true);
        let successor = [primary(3, "c", "a", "p3")];
        assert_eq!(seen(&mut primaries, &successor, false).len(), 1);
        assert_eq!(seen(&mut primaries, &successor, false), []);
    }

    #[test]
    fn a_replica_is_not_a_primary() {
        let (_, info) = primary(1, "a", "b", "p1");
        assert!(Ids::read(&info).is_some() && Ids::read(&info.replace("role:master", "role:slave")).is_none());
    }
}
