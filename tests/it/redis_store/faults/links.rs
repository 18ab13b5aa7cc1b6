//! Proxies between the nodes of a cluster, which can cut nodes off from each other. They need no rights.
//!
//! Each node announces two ports of proxies: one for the other nodes (the bus), and one for its replica. The first
//! message on a connection of the bus names its sender, so the connections of each pair of nodes are known. hapax is connected
//! without these proxies, so it still talks to a node that is cut off.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::nodes::{Index, Nodes};
use crate::support::until::until;

/// The header of a message of the bus has the id of its sender here.
const SENDER: std::ops::Range<usize> = 40..80;

/// Pairs of nodes that are cut off from each other, the lower number first.
#[derive(Clone, Debug, Default)]
struct Cuts {
    pairs: BTreeSet<(Index, Index)>,
    /// What was sent and has not arrived is lost, and the connections are closed. Otherwise it arrives later.
    is_lossy: bool,
}

impl Cuts {
    fn has(&self, link: Link) -> bool {
        match link {
            Link::Pair(one, other) => self.pairs.contains(&(one.min(other), one.max(other))),
            Link::Replica(of) => self.pairs.iter().any(|&(one, other)| one == of || other == of),
        }
    }
}

/// What a connection is for.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// The bus of two nodes.
    Pair(Index, Index),
    /// The replica of a node. A node has only one.
    Replica(Index),
}

/// The proxies of a cluster. They end when this is dropped.
pub struct Links {
    cuts: watch::Sender<Cuts>,
    /// The port that each node announces to its clients and its replica.
    ports: Vec<u16>,
    _runtime: Runtime,
}

#[derive(Clone)]
struct Door {
    node: Index,
    /// The address of the node behind it.
    address: String,
    ids: Arc<Vec<String>>,
    cuts: watch::Receiver<Cuts>,
}

impl Links {
    /// Puts proxies between the nodes of a cluster.
    pub fn between(nodes: &Nodes) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads can be started");
        let (cuts, watched) = watch::channel(Cuts::default());
        let ids = Arc::new(nodes.all().map(|node| nodes.id(node).to_owned()).collect::<Vec<_>>());
        let (mut ports, mut announced) = (Vec::new(), Vec::new());
        for node in nodes.all() {
            let door = |address: String| Door { node, address, ids: ids.clone(), cuts: watched.clone() };
            let bus = format!("127.0.0.1:{}", nodes.tell(node, "CONFIG GET cluster-port").replace("cluster-port ", ""));
            let [client, bus] = [(nodes.address(node).to_owned(), false), (bus, true)].map(|(address, is_bus)| {
                let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port is free");
                let port = listener.local_addr().expect("it listens").port();
                runtime.spawn(accept(listener, door(address), is_bus));
                port
            });
            nodes.tell(node, &format!("CONFIG SET cluster-announce-port {client}"));
            nodes.tell(node, &format!("CONFIG SET cluster-announce-bus-port {bus}"));
            // A node that starts again announces them, too.
            nodes.tell(node, "CONFIG REWRITE");
            ports.push(client);
            announced.push(format!("127.0.0.1:{client}@{bus}"));
        }
        until("all nodes see the ports of the proxies", || nodes.announce(&announced).is_ok());
        Self { cuts, ports, _runtime: runtime }
    }

    /// Returns the ports that the nodes announce to their clients.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Cuts a node off from these other nodes. `is_lossy`: what has not arrived yet is lost. Otherwise it arrives later.
    pub fn cut(&self, node: Index, others: impl IntoIterator<Item = Index>, is_lossy: bool) {
        let pairs = others.into_iter().map(|other| (node.min(other), node.max(other))).collect();
        self.cuts.send_replace(Cuts { pairs, is_lossy });
    }

    pub fn heal(&self) {
        self.cuts.send_replace(Cuts::default());
    }
}

async fn accept(listener: TcpListener, door: Door, is_bus: bool) {
    while let Ok((stream, _)) = listener.accept().await {
        let door = door.clone();
        tokio::spawn(async move { _ = door.open(stream, is_bus).await });
    }
}

impl Door {
    async fn open(self, mut stream: TcpStream, is_bus: bool) -> std::io::Result<()> {
        let mut first = Vec::new();
        let mut link = Link::Replica(self.node);
        if is_bus {
            while first.len() < SENDER.end {
                if stream.read_buf(&mut first).await? == 0 {
                    return Ok(());
                }
            }
            let sender = self.ids.iter().position(|id| id.as_bytes() == &first[SENDER]);
            let Some(sender) = sender else { return Ok(()) };
            link = Link::Pair(sender, self.node);
        }
        let mut cuts = self.cuts.clone();
        let Ok(_) = cuts.wait_for(|cuts| !cuts.has(link)).await else { return Ok(()) };
        let mut node = TcpStream::connect(&self.address).await?;
        _ = (stream.set_nodelay(true), node.set_nodelay(true));
        node.write_all(&first).await?;
        let ((from, to), (from_node, to_node)) = (stream.into_split(), node.into_split());
        tokio::select! {
            () = pump(from, to_node, link, self.cuts.clone()) => {}
            () = pump(from_node, to, link, self.cuts.clone()) => {}
            _ = cuts.wait_for(|cuts| cuts.is_lossy && cuts.has(link)) => {}
        }
        Ok(())
    }
}

/// Forwards bytes, except while the link is cut.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, link: Link, mut cuts: watch::Receiver<Cuts>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let is_open = cuts.wait_for(|cuts| !cuts.has(link)).await.is_ok();
        if !is_open || to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
