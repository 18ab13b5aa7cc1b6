//! The nodes of the cluster and their slots. It asks nodes for changes when a request finds that something has changed:
//! one round at a time, and not more often than every 50 ms. A round asks up to six nodes. It ends with the third answer,
//! or 50 ms after the first, so a paused node delays it little. An old view among the answers does no harm.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use redis::{Cmd, Value};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::address::NodeAddress;
use super::config::ClusterConfig;
use super::error::ClusterError;
use super::judge::{Again, Outcome, judge};
use super::node::Node;
use super::request::{Ask, Asks, Call, Request};
use super::slots::{SlotMap, View};

const ROUND_PAUSE: Duration = Duration::from_millis(50);
const NODES_ASKED_MAX: usize = 6;
const VIEWS_MAX: usize = 3;
/// The time for other answers after the first.
const VIEWS_WAIT: Duration = Duration::from_millis(50);

/// The nodes of the cluster and their slots.
#[derive(Debug)]
pub(super) struct Topology {
    config: Arc<ClusterConfig>,
    /// The addresses of `config.nodes`.
    configured: Vec<NodeAddress>,
    map: RwLock<SlotMap>,
    nodes: Mutex<HashMap<NodeAddress, Arc<Node>>>,
    wanted: Notify,
    rounds: AtomicUsize,
}

impl Topology {
    /// Knows no node but the configured ones.
    pub(super) fn new(config: ClusterConfig) -> Result<Self, ClusterError> {
        let address = |text: &String| NodeAddress::parse(text).filter(|address| !address.host().is_empty());
        let parse = |text: &String| address(text).ok_or_else(|| ClusterError::Address { address: text.clone() });
        let configured = config.nodes.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            config: Arc::new(config),
            configured,
            map: RwLock::new(SlotMap::empty()),
            nodes: Mutex::new(HashMap::new()),
            wanted: Notify::new(),
            rounds: AtomicUsize::new(0),
        })
    }

    /// Asks the configured nodes for the others.
    pub(super) async fn discover(&self) -> Result<(), ClusterError> {
        self.round(&self.configured).await
    }

    pub(super) fn config(&self) -> &ClusterConfig {
        &self.config
    }

    pub(super) fn primaries(&self) -> Vec<NodeAddress> {
        self.map.read().primaries()
    }

    /// Returns the owners of all slots, as far as they are known.
    pub(super) fn slots(&self) -> RwLockReadGuard<'_, SlotMap> {
        self.map.read()
    }

    /// Returns the error of a request that got no answer.
    pub(super) fn unanswered(&self, slot: u16) -> ClusterError {
        match self.slots().owner(slot) {
            Some(address) => self.node(address).timed_out(),
            None => ClusterError::NoOwner { slot },
        }
    }

    pub(super) fn node(&self, address: &NodeAddress) -> Arc<Node> {
        let mut nodes = self.nodes.lock();
        let new = || Arc::new(Node::new(address.clone(), self.config.clone()));
        nodes.entry(address.clone()).or_insert_with(new).clone()
    }

    /// Takes the new owner of a slot that a node has named. Other slots have probably moved too, so nodes are asked.
    pub(super) fn moved(&self, slot: u16, node: NodeAddress) {
        self.map.write().moved(slot, node);
        self.want_round();
    }

    /// Lets nodes be asked soon. Does not wait for it.
    pub(super) fn want_round(&self) {
        self.wanted.notify_one();
    }

    /// Asks nodes whenever this is wanted. Never ends.
    pub(super) async fn follow(&self) {
        loop {
            self.wanted.notified().await;
            let known = self.map.read().nodes().to_vec();
            if self.round(&known).await.is_err() {
                // The error of each node is in the log already, and requests report it.
                let _ = self.round(&self.configured).await;
            }
            self.forget_strangers();
            tokio::time::sleep(ROUND_PAUSE).await;
        }
    }

    /// Asks some of these nodes. Returns an error if none of them answers.
    async fn round(&self, addresses: &[NodeAddress]) -> Result<(), ClusterError> {
        let mut deadline = Instant::now() + self.config.timeout;
        let mut nodes: Vec<_> = addresses.iter().map(|address| self.node(address)).collect();
        // Other nodes each time, and nodes that cannot be reached last.
        let turn = self.rounds.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(turn);
        nodes.sort_by_key(|node| node.is_failing());
        nodes.truncate(NODES_ASKED_MAX);
        let mut answers: FuturesUnordered<_> = nodes.iter().map(|node| view(node, deadline)).collect();
        let mut views = Vec::new();
        let mut failed = nodes.first().map_or(ClusterError::NoNodes, |node| node.timed_out());
        while views.len() < VIEWS_MAX
            && let Ok(Some(answer)) = tokio::time::timeout_at(deadline, answers.next()).await
        {
            match answer {
                Ok(view) => {
                    views.push(view);
                    deadline = deadline.min(Instant::now() + VIEWS_WAIT);
                }
                // The user must correct this one first.
                Err(_) if matches!(failed, ClusterError::Login { .. } | ClusterError::Tls { .. }) => {}
                Err(error) => failed = error,
            }
        }
        if views.is_empty() {
            return Err(failed);
        }
        self.map.write().merge(&views);
        Ok(())
    }

    /// Closes the connections to nodes that are no longer in the cluster.
    fn forget_strangers(&self) {
        let known: HashSet<_> = self.map.read().nodes().iter().cloned().collect();
        self.nodes.lock().retain(|address, _| known.contains(address));
    }
}

/// Asks a node for its view of the cluster.
async fn view(node: &Node, deadline: Instant) -> Result<View, ClusterError> {
    let commands = ["SLOTS", "NODES"].map(|part| redis::cmd("CLUSTER").arg(part).take());
    let answers = ask(node, &commands, deadline).await?;
    let values = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let [slots, nodes] = &values[..] else { unreachable!("there is one value for each command") };
    let none = || ClusterError::NotReady { node: node.address().clone(), reason: "it knows of no slots".to_owned() };
    View::read(slots, nodes, node.address()).ok_or_else(none)
}

/// The answers of one node, one for each command. An error of all: the node did not answer.
pub(super) type Answers = Result<Vec<Result<Value, ClusterError>>, ClusterError>;

/// Sends commands to one node, once and in one pipeline.
pub(super) async fn ask(node: &Node, commands: &[Cmd], deadline: Instant) -> Answers {
    let request = |command: &Cmd| Request { slot: 0, calls: vec![Call::plain(command.clone())], waits: false };
    let requests: Arc<[Request]> = commands.iter().map(request).collect();
    let asks = (0..requests.len()).map(|number| Ask { number, ..Ask::default() }).collect();
    let asks = Asks { requests: requests.clone(), asks };
    let answered = tokio::time::timeout_at(deadline, node.submit(false, asks, deadline)?).await;
    let Ok(Ok(reply)) = answered else { return Err(node.timed_out()) };
    let judged = reply?.into_iter().zip(&*requests).map(|(raw, request)| judge(raw, request, node.address()));
    Ok(judged.map(|outcome| only(outcome, node)).collect())
}

/// Returns the value of a request with one command.
fn only(outcome: Outcome, node: &Node) -> Result<Value, ClusterError> {
    match outcome {
        Outcome::Done(mut response) => Ok(response.values.pop().expect("there is one value for each command")),
        Outcome::Failed(error) | Outcome::Again(Again::Later(error)) => Err(error),
        Outcome::Again(_) => {
            let reason = "it refers to another node".to_owned();
            Err(ClusterError::NotReady { node: node.address().clone(), reason })
        }
    }
}
