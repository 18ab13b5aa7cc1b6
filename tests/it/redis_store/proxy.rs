//! A proxy between one server and the nodes of a cluster. It sees each command that the server sends. It can kill the
//! server before or after a command, it can count round trips, and it can lie to the server.
//!
//! For each node it has a listener, and the server knows only their addresses: the ports in the answers of the nodes are
//! replaced.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::commands::CommandKind;
use super::deaths::{Deaths, Fate};
use super::resp::{frame, redirected, with_ports, words};
use super::rounds::Rounds;

/// How long a node may need to answer what was sent by a server that is dead.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The proxy of one server. It ends when this is dropped.
pub struct Proxy {
    addresses: Vec<String>,
    shared: Arc<Shared>,
    runtime: Runtime,
}

struct Shared {
    /// The port of the listener for each port of a node.
    ports: BTreeMap<u16, u16>,
    deaths: Deaths,
    rounds: Arc<Rounds>,
    lie: Option<Lie>,
}

/// Takes a command. Returns an answer that the server gets instead of that of the node, which gets a `PING`.
pub type Lie = fn(CommandKind) -> Option<&'static [u8]>;

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

impl Proxy {
    /// Starts a proxy for the nodes of a cluster.
    pub fn start(nodes: &[String]) -> Self {
        Self::start_with(nodes, &[], None)
    }

    /// Does the same for nodes that announce other ports than those at which they are connected, in the order of the
    /// nodes. `lie` is asked for each command.
    pub fn start_with(nodes: &[String], announced: &[u16], lie: Option<Lie>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads can be started");
        let listeners: Vec<_> =
            nodes.iter().map(|_| runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port is free")).collect();
        let own = |listener: &TcpListener| listener.local_addr().expect("it listens").port();
        let port = |node: &str| node.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("host:port");
        let connected = nodes.iter().map(|node| port(node)).zip(&listeners);
        let announced = announced.iter().copied().zip(&listeners);
        let ports = connected.chain(announced).map(|(port, listener)| (port, own(listener))).collect();
        let addresses = listeners.iter().map(|listener| format!("127.0.0.1:{}", own(listener))).collect();
        let shared = Arc::new(Shared { ports, deaths: Deaths::default(), rounds: Arc::default(), lie });
        for (listener, node) in listeners.into_iter().zip(nodes) {
            runtime.spawn(accept(listener, node.clone(), shared.clone()));
        }
        Self { addresses, shared, runtime }
    }

    /// Returns the addresses of the nodes for the server.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    pub fn deaths(&self) -> &Deaths {
        &self.shared.deaths
    }

    /// Holds all answers from here on, so that round trips can be counted.
    pub fn count_rounds(&self) -> &Rounds {
        self.runtime.spawn(self.shared.rounds.clone().count());
        &self.shared.rounds
    }
}

async fn accept(listener: TcpListener, node: String, shared: Arc<Shared>) {
    while let Ok((server, _)) = listener.accept().await {
        let (node, shared) = (node.clone(), shared.clone());
        tokio::spawn(async move {
            // If the node is dead, the connection closes.
            let Ok(to_node) = TcpStream::connect(&node).await else { return };
            _ = (server.set_nodelay(true), to_node.set_nodelay(true));
            let (from_server, to_server) = server.into_split();
            let (from_node, to_node) = to_node.into_split();
            let life = shared.deaths.life();
            let link = Link { node, life, shared, sent: Mutex::default() };
            link.run((from_server, to_server), (from_node, to_node)).await;
        });
    }
}

/// A connection of the server to a node.
struct Link {
    node: String,
    /// Which process of the server has opened it.
    life: u64,
    shared: Arc<Shared>,
    sent: Mutex<Sent>,
}

struct Command {
    kind: CommandKind,
    /// The server dies after it.
    is_fatal: bool,
    lie: Option<&'static [u8]>,
}

/// The commands that the node has not answered yet.
#[derive(Default)]
struct Sent {
    commands: VecDeque<Command>,
    /// No command follows.
    ended: bool,
}

impl Link {
    async fn run(
        &self,
        (from_server, to_server): (OwnedReadHalf, OwnedWriteHalf),
        (from_node, to_node): (OwnedReadHalf, OwnedWriteHalf),
    ) {
        let (answers, queue) = mpsc::unbounded_channel();
        let deliver = deliver(queue, to_server, self.shared.rounds.clone());
        let delivering = tokio::spawn(deliver);
        let down = self.down(from_node, answers);
        tokio::pin!(down);
        tokio::select! {
            () = &mut down => {}
            // The other half of the connection to the node must stay open: a node executes nothing for a client that
            // has closed it.
            _open = self.up(from_server, to_node) => {
                let is_open = { let mut sent = self.sent.lock(); sent.ended = true; !sent.commands.is_empty() };
                if is_open {
                    _ = tokio::time::timeout(DRAIN_MAX, down).await;
                }
            }
        }
        // Commands without answers must not be waited for.
        self.shared.rounds.lost(self.sent.lock().commands.len());
        delivering.abort();
    }

    /// Forwards commands until the connection or the server ends.
    async fn up(&self, mut from_server: OwnedReadHalf, mut to_node: OwnedWriteHalf) -> OwnedWriteHalf {
        let mut bytes = Vec::new();
        loop {
            match from_server.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return to_node,
                Ok(_) => {}
            }
            let (mut at, mut goes_on, mut forwarded) = (0, true, Vec::with_capacity(bytes.len()));
            while goes_on && let Some(length) = frame(&bytes[at..]) {
                let command = &bytes[at..at + length];
                let kind = CommandKind::of(&words(command));
                let fate = self.shared.deaths.fate(self.life, kind);
                goes_on = fate == Fate::Live;
                if fate != Fate::DieBefore {
                    let lie = self.shared.lie.and_then(|lie| lie(kind));
                    self.sent.lock().commands.push_back(Command { kind, is_fatal: fate == Fate::DieAfter, lie });
                    self.shared.rounds.sent(&self.node, kind);
                    forwarded.extend_from_slice(if lie.is_some() { PING } else { command });
                    at += length;
                }
            }
            if to_node.write_all(&forwarded).await.is_err() || !goes_on {
                return to_node;
            }
            bytes.drain(..at);
        }
    }

    /// Takes the answers of the node, until there are no more.
    async fn down(&self, mut from_node: OwnedReadHalf, answers: mpsc::UnboundedSender<(usize, Vec<u8>)>) {
        let mut bytes = Vec::new();
        while let Ok(1..) = from_node.read_buf(&mut bytes).await {
            let mut at = 0;
            while let Some(length) = frame(&bytes[at..]) {
                let answer = &bytes[at..at + length];
                at += length;
                let command = self.sent.lock().commands.pop_front();
                let Command { kind, is_fatal, lie } = command.expect("an answer follows a command");
                let answer = lie.unwrap_or(answer);
                if is_fatal {
                    self.shared.deaths.die(kind);
                }
                let round = self.shared.rounds.answered();
                if !self.shared.deaths.is_over(self.life) {
                    let answer = match kind {
                        CommandKind::Slots => with_ports(answer, &self.shared.ports),
                        _ => redirected(answer, &self.shared.ports).unwrap_or_else(|| answer.to_vec()),
                    };
                    _ = answers.send((round, answer));
                }
            }
            bytes.drain(..at);
            let sent = self.sent.lock();
            if sent.ended && sent.commands.is_empty() {
                return;
            }
        }
    }
}

/// Sends answers to the server. While round trips are counted, an answer waits for the end of its round.
async fn deliver(
    mut queue: mpsc::UnboundedReceiver<(usize, Vec<u8>)>,
    mut to_server: OwnedWriteHalf,
    rounds: Arc<Rounds>,
) {
    while let Some((round, answer)) = queue.recv().await {
        rounds.ended(round).await;
        if to_server.write_all(&answer).await.is_err() {
            return;
        }
    }
}
