//! Malicious clients, each as a loop over one connection after another. They read only as much as they must, and ignore
//! the server's answers. This module knows nothing of how the server is measured during the attacks.

mod answers;
mod bodies;
mod heads;
mod raw;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::texts::Texts;
use bodies::Payloads;
use raw::Raw;

/// A pause before an attacker whose connection was closed connects again.
const PAUSE: Duration = Duration::from_millis(20);

/// One way to attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Attack {
    /// Heads of requests, a byte a second.
    TricklingHeads,
    /// Bodies of requests, a byte a second.
    TricklingBodies,
    /// Connections that send nothing.
    IdleSockets,
    /// Requests whose long answers are not read.
    UnreadAnswers,
    /// Requests whose answers are not read, over HTTP/2, with a window of 0.
    ClosedWindows,
    /// HTTP/2 streams that are reset as soon as they are opened.
    RapidResets,
    /// Kilobytes of zstd that decode to megabytes of line feeds.
    ZstdBombs,
    /// Kilobytes of gzip that decode to megabytes of line feeds.
    GzipBombs,
    /// A small zstd body that decodes to one JSON document of a gigabyte.
    LongBombs,
    /// Bulk lines that never end.
    EndlessLines,
    /// Line feeds without compression.
    BlankLines,
    /// Batches with the largest allowed number and length of documents.
    HugeBatches,
    /// A megabyte of opening brackets.
    DeepJson,
    /// Requests with the host of another site.
    ForeignHosts,
}

impl Attack {
    pub(crate) const ALL: [Self; 14] = [
        Self::TricklingHeads,
        Self::TricklingBodies,
        Self::IdleSockets,
        Self::UnreadAnswers,
        Self::ClosedWindows,
        Self::RapidResets,
        Self::ZstdBombs,
        Self::GzipBombs,
        Self::LongBombs,
        Self::EndlessLines,
        Self::BlankLines,
        Self::HugeBatches,
        Self::DeepJson,
        Self::ForeignHosts,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TricklingHeads => "trickling heads",
            Self::TricklingBodies => "trickling bodies",
            Self::IdleSockets => "idle sockets",
            Self::UnreadAnswers => "unread answers",
            Self::ClosedWindows => "closed h2 windows",
            Self::RapidResets => "rapid h2 resets",
            Self::ZstdBombs => "zstd bombs",
            Self::GzipBombs => "gzip bombs",
            Self::LongBombs => "long zstd bombs",
            Self::EndlessLines => "endless lines",
            Self::BlankLines => "blank lines",
            Self::HugeBatches => "huge batches",
            Self::DeepJson => "deep JSON",
            Self::ForeignHosts => "foreign hosts",
        }
    }

    /// The number of attackers. There are few of those that send a lot, because they share processors with the prober.
    fn attackers(self) -> usize {
        match self {
            Self::TricklingHeads | Self::TricklingBodies => 1_500,
            Self::IdleSockets => 4_000,
            Self::UnreadAnswers => 64,
            Self::ClosedWindows => 16,
            Self::EndlessLines => 8,
            _ => 4,
        }
    }
}

/// The data that attackers share.
pub(crate) struct Ground {
    raw: Raw,
    payloads: Payloads,
    /// Requests of foreign hosts that were answered with success.
    let_in: AtomicU64,
}

impl Ground {
    /// Prepares all data that is sent, so that attackers cost this client little.
    pub(crate) fn prepare(address: std::net::SocketAddr, texts: &Texts) -> Result<Arc<Self>> {
        let (raw, payloads) = (Raw { address }, Payloads::prepare(texts)?);
        Ok(Arc::new(Self { raw, payloads, let_in: AtomicU64::new(0) }))
    }

    /// Returns how many requests of foreign hosts were answered with success.
    pub(crate) fn let_in(&self) -> u64 {
        self.let_in.load(Ordering::Relaxed)
    }
}

/// Attackers at work. When this is dropped, they stop and their connections close.
pub(crate) struct Attackers(Vec<JoinHandle<()>>);

impl Attackers {
    pub(crate) fn start(runtime: &Runtime, ground: &Arc<Ground>, attack: Attack) -> Self {
        let attacker = |_| {
            let ground = Arc::clone(ground);
            runtime.spawn(async move {
                loop {
                    // An error means that the server closes the connection, as it should.
                    let _ = round(&ground, attack).await;
                    tokio::time::sleep(PAUSE).await;
                }
            })
        };
        Self((0..attack.attackers()).map(attacker).collect())
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Attacks over one connection, until the server closes it or the attack is complete.
async fn round(ground: &Ground, attack: Attack) -> Result<()> {
    let Ground { raw, payloads, let_in } = ground;
    match attack {
        Attack::TricklingHeads => heads::trickle(raw).await,
        Attack::IdleSockets => heads::idle(raw).await,
        Attack::ForeignHosts => heads::foreign(raw, let_in).await,
        Attack::TricklingBodies => bodies::trickle(raw).await,
        Attack::ZstdBombs => bodies::send(raw, &payloads.zstd).await,
        Attack::GzipBombs => bodies::send(raw, &payloads.gzip).await,
        Attack::LongBombs => bodies::send(raw, &payloads.long).await,
        Attack::BlankLines => bodies::send(raw, &payloads.blank).await,
        Attack::HugeBatches => bodies::send(raw, &payloads.batch).await,
        Attack::DeepJson => bodies::send(raw, &payloads.deep).await,
        Attack::EndlessLines => bodies::endless(raw).await,
        Attack::UnreadAnswers => answers::unread(raw).await,
        Attack::ClosedWindows => answers::closed_window(raw).await,
        Attack::RapidResets => answers::rapid_resets(raw).await,
    }
}
