//! The sending of requests. All requests of a run are sent at once, and those for one node together.
//!
//! A node may answer that the slot is elsewhere (`MOVED`, `ASK`), that it does not know a script (`NOSCRIPT`), or that
//! it is not ready (`CLUSTERDOWN`, `TRYAGAIN`, `LOADING`, `READONLY`); or the connection may break. Then all commands
//! of the request are sent again, until the time is over. So commands are executed *at least once*: a command may have
//! been executed before the connection broke, and also if the request failed in the end.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use futures::stream::FuturesUnordered;
use redis::Cmd;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::address::NodeAddress;
use super::config::ClusterConfig;
use super::error::ClusterError;
use super::judge::{Again, Outcome, judge};
use super::lane::Reply;
use super::node::Node;
use super::request::{Ask, Asks, Request, Response};
use super::slots::slot_of;
use super::topology::{Answers, Topology, ask};
use crate::telemetry::names;

/// Redirects that are followed at once. After them, each one waits a little: two nodes may each refer to the other.
const REDIRECTS_AT_ONCE: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A client of the cluster. Clones share its connections.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    topology: Arc<Topology>,
    /// Follows changes of the cluster. It ends with the last clone.
    _follower: Arc<AbortOnDropHandle<()>>,
}

impl Cluster {
    /// Makes a client that knows no node but the configured ones.
    pub(crate) fn new(config: ClusterConfig) -> Result<Self, ClusterError> {
        let topology = Arc::new(Topology::new(config)?);
        let followed = topology.clone();
        let follower = tokio::spawn(async move { followed.follow().await });
        Ok(Self { topology, _follower: Arc::new(AbortOnDropHandle::new(follower)) })
    }

    /// Asks the configured nodes for the others. Fails if none of them answers in time. The other nodes are connected
    /// when they are first used.
    pub(crate) async fn discover(&self) -> Result<(), ClusterError> {
        self.topology.discover().await
    }

    #[cfg(test)]
    pub(crate) async fn connect(config: ClusterConfig) -> Result<Self, ClusterError> {
        let cluster = Self::new(config)?;
        cluster.discover().await?;
        Ok(cluster)
    }

    /// Returns how many replicas must have a write.
    pub(crate) fn acks(&self) -> usize {
        self.topology.config().acks
    }

    /// Returns the slot of a key.
    pub(crate) fn slot_of(key: &[u8]) -> u16 {
        slot_of(key)
    }

    /// Returns the nodes that have slots, as far as they are known now.
    pub(crate) fn primaries(&self) -> Vec<NodeAddress> {
        self.topology.primaries()
    }

    /// Sends commands to each of these nodes, once and in one pipeline. Ends in time as [`Self::run`] does.
    pub(crate) async fn on_nodes(&self, nodes: Vec<NodeAddress>, commands: &[Cmd]) -> Vec<(NodeAddress, Answers)> {
        let deadline = Instant::now() + self.topology.config().timeout;
        let answers = join_all(nodes.into_iter().map(|address| async move {
            let answers = ask(&self.topology.node(&address), commands, deadline).await;
            (address, answers)
        }));
        let answers = answers.await;
        if answers.iter().any(|(_, answer)| answer.is_err()) {
            self.topology.want_round();
        }
        answers
    }

    /// Lets nodes be asked soon which node has which slot. Does not wait for it.
    pub(crate) fn look_for_changes(&self) {
        self.topology.want_round();
    }

    /// Sends requests to all nodes at once. Returns the answers in the order of the requests, at the latest after
    /// `timeout`. Requests of one run may be executed in any order.
    pub(crate) async fn run(&self, requests: Vec<Request>) -> Vec<Result<Response, ClusterError>> {
        let mut run = Run::new(&self.topology, requests);
        while let Ok(Some(event)) = tokio::time::timeout_at(run.deadline, run.events.next()).await {
            match event {
                Event::Due(attempts) => run.send(attempts),
                Event::Answered(node, group, reply) => run.settle(&node, group, reply),
            }
        }
        run.end()
    }
}

/// The requests of one run.
struct Run<'a> {
    topology: &'a Topology,
    deadline: Instant,
    requests: Arc<[Request]>,
    /// `Err(None)`: nothing has been heard until now.
    results: Vec<Result<Response, Option<Box<Open>>>>,
    events: FuturesUnordered<BoxFuture<'a, Event>>,
}

/// A request that a node has not executed, as far as it is known.
struct Open {
    /// The error of the request if it stays without an answer.
    error: ClusterError,
    /// Whether the request can still get an answer.
    waits: bool,
}

/// Something that a run waits for.
enum Event {
    /// These requests must be sent now.
    Due(Vec<Attempt>),
    Answered(Arc<Node>, Group, Reply),
}

/// A request that is sent, perhaps for the second time.
struct Attempt {
    ask: Ask,
    /// The node that the slot is moving to, if the key is already there.
    at: Option<NodeAddress>,
    /// How often it was sent before.
    tries: u32,
}

/// Requests that are sent to one node together.
struct Group {
    node: NodeAddress,
    /// Whether they wait for replicas.
    waits: bool,
    attempts: Vec<Attempt>,
}

impl<'a> Run<'a> {
    fn new(topology: &'a Topology, requests: Vec<Request>) -> Self {
        let deadline = Instant::now() + topology.config().timeout;
        let results = requests.iter().map(|_| Err(None)).collect();
        let attempt = |number| Attempt { ask: Ask { number, ..Ask::default() }, at: None, tries: 0 };
        let attempts = (0..requests.len()).map(attempt).collect();
        let mut run = Self { topology, deadline, requests: requests.into(), results, events: FuturesUnordered::new() };
        run.send(attempts);
        run
    }

    /// Sends requests, those for one node together.
    fn send(&mut self, attempts: Vec<Attempt>) {
        let (mut groups, mut homeless) = (Vec::<Group>::new(), Vec::new());
        let slots = self.topology.slots();
        for attempt in attempts {
            let request = &self.requests[attempt.ask.number];
            let waits = request.waits && self.topology.config().acks > 0;
            let Some(node) = attempt.at.as_ref().or_else(|| slots.owner(request.slot)) else {
                homeless.push(attempt);
                continue;
            };
            match groups.iter_mut().find(|group| group.waits == waits && group.node == *node) {
                Some(group) => group.attempts.push(attempt),
                None => groups.push(Group { node: node.clone(), waits, attempts: vec![attempt] }),
            }
        }
        drop(slots);
        metrics::counter!(names::REDIS_ROUND_TRIPS).increment(u64::from(!groups.is_empty()));
        for group in groups {
            self.events.push(send(self.topology, self.requests.clone(), group, self.deadline).boxed());
        }
        if !homeless.is_empty() {
            self.topology.want_round();
            let later = homeless.into_iter().map(|attempt| {
                let slot = self.requests[attempt.ask.number].slot;
                self.later(attempt, ClusterError::NoOwner { slot })
            });
            let later = later.collect();
            self.send_later(later);
        }
    }

    /// Takes the answers of a node. Requests that must be sent again are sent together.
    fn settle(&mut self, node: &Node, group: Group, reply: Reply) {
        let mut again = Vec::new();
        match reply {
            Ok(raws) => {
                for (raw, attempt) in raws.into_iter().zip(group.attempts) {
                    let number = attempt.ask.number;
                    match judge(raw, &self.requests[number], &group.node) {
                        Outcome::Done(response) => self.results[number] = Ok(response),
                        Outcome::Failed(error) => self.fail(number, error),
                        Outcome::Again(how) => again.push(self.again(node, attempt, how)),
                    }
                }
            }
            // The next attempt would be refused too.
            Err(error @ (ClusterError::Login { .. } | ClusterError::Tls { .. } | ClusterError::QueueFull { .. })) => {
                group.attempts.iter().for_each(|attempt| self.fail(attempt.ask.number, error.clone()));
            }
            Err(error) => {
                let later = |attempt| self.again(node, attempt, Again::Later(error.clone()));
                again.extend(group.attempts.into_iter().map(later));
            }
        }
        self.send_later(again);
    }

    fn fail(&mut self, number: usize, error: ClusterError) {
        self.results[number] = Err(Some(Box::new(Open { error, waits: false })));
    }

    /// Prepares a request to be sent again, because of an answer of this node.
    fn again(&mut self, node: &Node, mut attempt: Attempt, how: Again) -> Attempt {
        attempt.tries += 1;
        // Only the owner knows whether the slot is still moving.
        attempt.ask.asking = false;
        let asked = attempt.at.take();
        node.counts().sent_again(&how).increment(1);
        match how {
            Again::Moved(node) => self.topology.moved(self.requests[attempt.ask.number].slot, node),
            Again::Ask(node) => {
                attempt.ask.asking = true;
                attempt.at = Some(node);
            }
            Again::Load => {
                attempt.ask.asking = asked.is_some();
                attempt.at = asked;
                attempt.ask.load = true;
            }
            Again::Later(error) => {
                self.topology.want_round();
                return self.later(attempt, error);
            }
        }
        attempt
    }

    /// Notes why a request was not executed. It is sent again after a pause.
    fn later(&mut self, mut attempt: Attempt, error: ClusterError) -> Attempt {
        self.results[attempt.ask.number] = Err(Some(Box::new(Open { error, waits: true })));
        attempt.tries = attempt.tries.max(REDIRECTS_AT_ONCE) + 1;
        attempt
    }

    /// Lets requests be sent again: at once, or after a pause that doubles each time.
    fn send_later(&mut self, attempts: Vec<Attempt>) {
        let Some(tries) = attempts.iter().map(|attempt| attempt.tries).max() else { return };
        let doublings = tries.saturating_sub(REDIRECTS_AT_ONCE);
        let pause =
            if doublings == 0 { Duration::ZERO } else { PAUSE_MAX.min(Duration::from_millis(1 << doublings.min(10))) };
        let due = async move {
            tokio::time::sleep(pause).await;
            Event::Due(attempts)
        };
        self.events.push(due.boxed());
    }

    /// Returns the results. Requests without an answer fail.
    fn end(self) -> Vec<Result<Response, ClusterError>> {
        let waits = |result: &Result<_, Option<Box<Open>>>| {
            result.as_ref().is_err_and(|open| open.as_ref().is_none_or(|open| open.waits))
        };
        if self.results.iter().any(waits) {
            // The node may be paused, and another one may have its slots.
            self.topology.want_round();
        }
        let (topology, requests) = (self.topology, self.requests);
        let error = |number: usize, open: Option<Box<Open>>| match open {
            Some(open) => open.error,
            None => topology.unanswered(requests[number].slot),
        };
        let results = self.results.into_iter().enumerate();
        results.map(|(number, result)| result.map_err(|open| error(number, open))).collect()
    }
}

/// Sends requests to one node, once.
async fn send(topology: &Topology, requests: Arc<[Request]>, group: Group, deadline: Instant) -> Event {
    let node = topology.node(&group.node);
    let asks = group.attempts.iter().map(|attempt| attempt.ask).collect();
    let reply = match node.submit(group.waits, Asks { requests, asks }, deadline) {
        Err(error) => Err(error),
        Ok(reply) => reply.await.unwrap_or_else(|_| {
            // The lane has ended.
            let reason = "it has left the cluster".to_owned();
            Err(ClusterError::NotReady { node: node.address().clone(), reason })
        }),
    };
    Event::Answered(node, group, reply)
}
