//! A cluster with proxies between its nodes, and its servers, each behind a proxy of its own.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::links::Links;
use super::nodes::{Index, Nodes, Shard};
use crate::redis_store::proxy::{Lie, Proxy};
use crate::redis_store::{settings, start_in};
use crate::support::clock;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Server;

/// After this time without an answer, the other nodes replace a primary.
pub const NODE_TIMEOUT: Duration = Duration::from_secs(2);
/// While a cluster is not fit, a server refuses writes until it looks again. Documents never expire in a run. But with a time
/// to live, servers compare the times of documents with their clocks, and note when a document is sent again.
pub const MORE: &str = "check_interval_s = 1\n[default_collection]\nttl_s = 3600";
/// How long the nodes may need after a fault.
const WELL_MAX: Duration = Duration::from_secs(60);

pub struct World {
    pub links: Links,
    pub nodes: Nodes,
    pub cluster: RedisCluster,
}

impl World {
    /// Starts a cluster. `None` if this kind of server is not installed.
    pub fn up(kind: Kind) -> Option<Self> {
        let cluster = RedisCluster::up(kind)?;
        let nodes = Nodes::new(cluster.nodes());
        let links = Links::between(&nodes);
        let world = Self { links, nodes, cluster };
        world.until_well();
        Some(world)
    }

    /// Returns a proxy for a server. See [`Proxy::start_with`].
    pub fn proxy(&self, lie: Option<Lie>) -> Proxy {
        Proxy::start_with(self.cluster.nodes(), self.links.ports(), lie)
    }

    /// Starts a server behind this proxy. `ahead`: its clock is two minutes ahead.
    pub fn server(&self, proxy: &Proxy, dir: &Path, number: usize, ahead: bool) -> Server {
        let environment = if ahead { &clock::ahead("120")[..] } else { &[] };
        start_in(environment, "warn", &settings(proxy.addresses(), MORE), dir, &format!("server{number}")).ready()
    }

    /// Waits until all nodes are well. Returns the primaries and their replicas.
    pub fn until_well(&self) -> Vec<Shard> {
        let (begun, mut is_bumped) = (Instant::now(), false);
        loop {
            match self.nodes.shards() {
                Ok(shards) => return shards,
                Err(why) => assert!(begun.elapsed() < WELL_MAX, "the nodes are not well: {why}"),
            }
            // Redis sometimes never agrees about a slot that has moved. With new epochs, the claims of all primaries are
            // heard.
            if begun.elapsed() > WELL_MAX / 2 && !std::mem::replace(&mut is_bumped, true) {
                println!("faults: the nodes do not agree, so their epochs are bumped");
                self.nodes.all().for_each(|node| _ = self.nodes.tell(node, "CLUSTER BUMPEPOCH"));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns all nodes except this one.
    pub fn others(&self, node: Index) -> impl Iterator<Item = Index> {
        self.nodes.all().filter(move |&other| other != node)
    }
}
