//! The sending of requests. All requests of a run are sent at once, and those for one node together.
//!
//! A node may answer that the slot is elsewhere (`MOVED`, `ASK`), that it does not know a script (`NOSCRIPT`), or that
//! it is not ready (`CLUSTERDOWN`, `TRYAGAIN`, `LOADING`, `READONLY`); or the connection may break. Then all commands
//! of the request are sent again, until the time is over. So commands are executed *at least once*: a command may have
//! been executed before the connection broke, and also if the request failed in the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use futures::stream::FuturesUnordered;
use redis::{Cmd, Value};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::address::NodeAddress;
use super::config::ClusterConfig;
use super::error::ClusterError;
use super::judge::{Again, Outcome, judge};
use super::lane::Ask;
use super::node::Node;
use super::request::{Request, Response};
use super::slots::slot_of;
use super::topology::{Topology, ask};

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
    /// Connects to the cluster. Fails if none of the configured nodes answers in time. The other nodes are connected
    /// when they are first used.
    pub(crate) async fn connect(config: ClusterConfig) -> Result<Self, ClusterError> {
        let topology = Arc::new(Topology::discover(config).await?);
        let followed = topology.clone();
        let follower = tokio::spawn(async move { followed.follow().await });
        Ok(Self { topology, _follower: Arc::new(AbortOnDropHandle::new(follower)) })
    }

    /// Returns the slot of a key.
    pub(crate) fn slot_of(key: &[u8]) -> u16 {
        slot_of(key)
    }

    /// Returns the nodes that have slots, as far as they are known now.
    pub(crate) fn primaries(&self) -> Vec<NodeAddress> {
        self.topology.primaries()
    }

    /// Sends a command without a key to each primary, once. Ends in time as [`Self::run`] does.
    pub(crate) async fn on_primaries(&self, command: &Cmd) -> Vec<(NodeAddress, Result<Value, ClusterError>)> {
        let deadline = Instant::now() + self.topology.config().timeout;
        let answers = join_all(self.primaries().into_iter().map(|address| async move {
            let node = self.topology.node(&address);
            let answer = ask(&node, vec![command.clone()], deadline).await;
            (address, answer.map(|mut values| values.pop().expect("there is one value for each command")))
        }));
        let answers = answers.await;
        if answers.iter().any(|(_, answer)| answer.is_err()) {
            self.topology.want_round();
        }
        answers
    }

    /// Sends requests to all nodes at once. Returns the answers in the order of the requests, at the latest after
    /// `timeout`. Requests of one run may be executed in any order.
    pub(crate) async fn run(&self, requests: Vec<Request>) -> Vec<Result<Response, ClusterError>> {
        let mut run = Run::new(&self.topology, requests);
        while let Ok(Some(event)) = tokio::time::timeout_at(run.deadline, run.events.next()).await {
            match event {
                Event::Due(attempts) => run.send(attempts),
                Event::Answered(answered) => run.settle(answered),
            }
        }
        run.end()
    }
}

/// The requests of one run.
struct Run<'a> {
    topology: &'a Topology,
    deadline: Instant,
    results: Vec<Result<Response, Open>>,
    events: FuturesUnordered<BoxFuture<'a, Event>>,
}

/// A request without an answer.
struct Open {
    /// The error of the request if it stays without an answer.
    error: ClusterError,
    /// Whether a node has given the error. Otherwise, nothing has been heard until now.
    heard: bool,
    /// Whether the request can still get an answer.
    waits: bool,
}

/// Something that a run waits for.
enum Event {
    /// These requests must be sent now.
    Due(Vec<Attempt>),
    Answered(Vec<(Attempt, Outcome)>),
}

/// A request that is sent, perhaps for the second time.
struct Attempt {
    /// Its number in the run.
    number: usize,
    ask: Ask,
    /// The node that the slot is moving to, if the key is already there.
    at: Option<NodeAddress>,
    /// How often it was sent before.
    tries: u32,
}

impl<'a> Run<'a> {
    fn new(topology: &'a Topology, requests: Vec<Request>) -> Self {
        let deadline = Instant::now() + topology.config().timeout;
        let open = |request: &Request| {
            Err(Open { error: ClusterError::NoOwner { slot: request.slot }, heard: false, waits: true })
        };
        let results = requests.iter().map(open).collect();
        let mut run = Self { topology, deadline, results, events: FuturesUnordered::new() };
        let attempt = |(number, request)| {
            let ask = Ask { request: Arc::new(request), asking: false, load: false };
            Attempt { number, ask, at: None, tries: 0 }
        };
        run.send(requests.into_iter().enumerate().map(attempt).collect());
        run
    }

    /// Sends requests to their nodes. Those that wait for replicas are sent on other connections than the rest.
    fn send(&mut self, attempts: Vec<Attempt>) {
        let mut groups: HashMap<_, Vec<_>> = HashMap::new();
        let mut again = Vec::new();
        for attempt in attempts {
            let slot = attempt.ask.request.slot;
            let waits = attempt.ask.request.waits && self.topology.config().acks > 0;
            match attempt.at.clone().or_else(|| self.topology.owner(slot)) {
                Some(node) => groups.entry((node, waits)).or_default().push(attempt),
                None => {
                    self.topology.want_round();
                    again.push(self.later(attempt, ClusterError::NoOwner { slot }));
                }
            }
        }
        self.send_later(again);
        for ((address, waits), group) in groups {
            let node = self.topology.node(&address);
            for attempt in &group {
                if let Err(open) = &mut self.results[attempt.number]
                    && !open.heard
                {
                    open.error = node.timed_out();
                }
            }
            self.events.push(send(node, waits, group, self.deadline).boxed());
        }
    }

    /// Takes answers. Requests that must be sent again are sent together.
    fn settle(&mut self, answered: Vec<(Attempt, Outcome)>) {
        let mut again = Vec::new();
        for (attempt, outcome) in answered {
            match outcome {
                Outcome::Done(response) => self.results[attempt.number] = Ok(response),
                Outcome::Failed(error) => {
                    self.results[attempt.number] = Err(Open { error, heard: true, waits: false });
                }
                Outcome::Again(how) => again.push(self.again(attempt, how)),
            }
        }
        self.send_later(again);
    }

    /// Prepares a request to be sent again.
    fn again(&mut self, mut attempt: Attempt, how: Again) -> Attempt {
        attempt.tries += 1;
        // Only the owner knows whether the slot is still moving.
        attempt.ask.asking = false;
        let asked = attempt.at.take();
        match how {
            Again::Moved(node) => self.topology.moved(attempt.ask.request.slot, node),
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
        self.results[attempt.number] = Err(Open { error, heard: true, waits: true });
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
        let waits = |result: &Result<_, Open>| result.as_ref().is_err_and(|open| open.waits);
        if self.results.iter().any(waits) {
            // The node may be paused, and another one may have its slots.
            self.topology.want_round();
        }
        self.results.into_iter().map(|result| result.map_err(|open| open.error)).collect()
    }
}

/// Sends requests to one node, once.
async fn send(node: Arc<Node>, waits: bool, group: Vec<Attempt>, deadline: Instant) -> Event {
    let asks = group.iter().map(|attempt| attempt.ask.clone()).collect();
    let outcomes: Vec<_> = match node.submit(waits, asks, deadline) {
        Err(error) => group.iter().map(|_| Outcome::Failed(error.clone())).collect(),
        Ok(reply) => match reply.await {
            Ok(Ok(raws)) => {
                let judged = |(raw, attempt): (_, &Attempt)| judge(raw, &attempt.ask.request, node.address());
                raws.into_iter().zip(&group).map(judged).collect()
            }
            Ok(Err(error)) => group.iter().map(|_| failed(error.clone())).collect(),
            // The lane has ended, because the node has left the cluster.
            Err(_) => {
                let reason = "it has left the cluster".to_owned();
                let error = ClusterError::NotReady { node: node.address().clone(), reason };
                group.iter().map(|_| failed(error.clone())).collect()
            }
        },
    };
    Event::Answered(group.into_iter().zip(outcomes).collect())
}

/// Judges a connection that has failed. Only a refused login is final: the next attempt would be refused too.
fn failed(error: ClusterError) -> Outcome {
    match error {
        ClusterError::Login { .. } => Outcome::Failed(error),
        error => Outcome::Again(Again::Later(error)),
    }
}
