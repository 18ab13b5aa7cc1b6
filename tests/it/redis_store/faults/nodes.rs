//! The nodes of a cluster: which of them are primaries, and whether all of them are well.

use std::collections::BTreeMap;
use std::io;

use super::admin::Admin;

/// The number of a node, in the order in which `contrib/redis-cluster` has started them.
pub type Index = usize;

/// The nodes, by their addresses, at which no proxy is between them and the test.
pub struct Nodes {
    addresses: Vec<String>,
    ids: Vec<String>,
}

/// A node, as another one sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    /// The address that the node announces.
    address: String,
    /// The node whose replica it is, or none.
    primary: Option<Index>,
    slots: Vec<String>,
}

/// A primary and its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub primary: Index,
    pub replica: Index,
}

impl Nodes {
    pub fn new(addresses: &[String]) -> Self {
        let id = |address: &String| Admin::connect(address)?.tell("CLUSTER MYID");
        let ids = addresses.iter().map(|address| id(address).expect("the node answers")).collect();
        Self { addresses: addresses.to_vec(), ids }
    }

    pub fn all(&self) -> std::ops::Range<Index> {
        0..self.addresses.len()
    }

    pub fn address(&self, node: Index) -> &str {
        &self.addresses[node]
    }

    pub fn id(&self, node: Index) -> &str {
        &self.ids[node]
    }

    /// Sends a command to a node that is well.
    pub fn tell(&self, node: Index, line: &str) -> String {
        let answer = Admin::connect(self.address(node)).and_then(|mut admin| admin.tell(line));
        answer.unwrap_or_else(|error| panic!("node {node}: {error}"))
    }

    /// Returns the pairs of primaries and replicas, if all nodes are well.
    pub fn shards(&self) -> Result<Vec<Shard>, String> {
        let first = self.view(0)?;
        for node in self.all().skip(1) {
            let view = self.view(node)?;
            if view != first {
                return Err(format!("nodes 0 and {node} see different clusters: {first:?}, {view:?}"));
            }
        }
        let replicas = first.iter().filter_map(|(&replica, seen)| Some(Shard { primary: seen.primary?, replica }));
        let shards: Vec<Shard> = replicas.collect();
        let is_whole = |shard: &Shard| !first[&shard.primary].slots.is_empty();
        if shards.len() * 2 != self.ids.len() || !shards.iter().all(is_whole) {
            return Err(format!("not each primary has a replica: {first:?}"));
        }
        shards.iter().try_for_each(|&shard| self.replicates(shard))?;
        Ok(shards)
    }

    /// Returns how a node sees all nodes.
    fn view(&self, node: Index) -> Result<BTreeMap<Index, Seen>, String> {
        let failed = |error: io::Error| format!("node {node}: {error}");
        let mut admin = Admin::connect(self.address(node)).map_err(failed)?;
        let info = admin.tell("CLUSTER INFO").map_err(failed)?;
        if !info.contains("cluster_state:ok") {
            return Err(format!("node {node} is not ok"));
        }
        let nodes = admin.tell("CLUSTER NODES").map_err(failed)?;
        nodes.lines().map(|line| self.seen(line).ok_or_else(|| format!("node {node} sees {line}"))).collect()
    }

    /// Reads a line of `CLUSTER NODES`. Returns `None` if the node is not well.
    fn seen(&self, line: &str) -> Option<(Index, Seen)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let index = |id: &str| self.ids.iter().position(|known| known == id);
        let flags: Vec<&str> = words[2].split(',').collect();
        let is_well =
            words[7] == "connected" && !flags.iter().any(|flag| flag.contains("fail") || *flag == "handshake");
        let address = words[1].split(',').next()?.to_owned();
        let slots = words[8..].iter().map(|&slots| slots.to_owned()).collect();
        is_well.then(|| Some((index(words[0])?, Seen { address, primary: index(words[3]), slots })))?
    }

    /// Returns an error unless the replica has everything that the primary had a moment before.
    fn replicates(&self, Shard { primary, replica }: Shard) -> Result<(), String> {
        let info = |node| {
            let answer = Admin::connect(self.address(node)).and_then(|mut admin| admin.tell("INFO replication"));
            answer.map_err(|error| format!("node {node}: {error}"))
        };
        let (first, second) = (info(primary)?, info(replica)?);
        let field = |text: &str, name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.unwrap_or_default().to_owned()
        };
        let number = |text: String| text.parse::<u64>().unwrap_or(0);
        let sent = number(field(&first, "master_repl_offset"));
        let has = number(field(&second, "slave_repl_offset"));
        let is_linked = field(&second, "master_link_status") == "up" && first.contains("state=online");
        if is_linked && has >= sent { Ok(()) } else { Err(format!("node {replica} has {has} of {sent} bytes")) }
    }

    /// Returns an error unless each node sees all nodes at these addresses (`host:port@bus`).
    pub fn announce(&self, announced: &[String]) -> Result<(), String> {
        for node in self.all() {
            let view = self.view(node)?;
            if !view.iter().all(|(&other, seen)| seen.address == announced[other]) {
                return Err(format!("node {node} sees other addresses: {view:?}"));
            }
        }
        Ok(())
    }
}
