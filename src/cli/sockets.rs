//! The sockets of a server: bound, served, drained.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Server;
use crate::http::{self, AppState};

/// Where the server listens.
pub(super) struct Sockets {
    listener: Bound,
    probes: Option<Bound>,
}

struct Bound {
    listener: TcpListener,
    /// Port 0 takes any free one, so it may not be as set.
    address: SocketAddr,
}

/// A server that answers.
pub(super) struct Serving {
    address: SocketAddr,
    probes_address: Option<SocketAddr>,
    server: JoinHandle<usize>,
    probes: Option<JoinHandle<()>>,
    stop: CancellationToken,
    drained: CancellationToken,
}

impl Sockets {
    /// Binds them; nothing is accepted yet.
    pub(super) async fn bind(server: &Server) -> Result<Self> {
        let listener = Bound::new("--listen", server.listen).await?;
        let probes = match server.admin_listen {
            Some(address) => Some(Bound::new("server.admin_listen", address).await?),
            None => None,
        };
        Ok(Self { listener, probes })
    }

    /// Answers on all of them.
    pub(super) fn serve(self, state: AppState) -> Serving {
        let (stop, drained) = (CancellationToken::new(), CancellationToken::new());
        let Self { listener: Bound { listener, address }, probes } = self;
        let server = tokio::spawn(http::serve(listener, state.clone(), stop.clone().cancelled_owned()));
        let (probes, probes_address) = probes.map(|Bound { listener, address }| (listener, address)).unzip();
        let probes =
            probes.map(|probes| tokio::spawn(http::serve_probes(probes, state, drained.clone().cancelled_owned())));
        Serving { address, probes_address, server, probes, stop, drained }
    }
}

impl Bound {
    async fn new(setting: &str, address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!("cannot listen on {address} (if another server is there, {setting} takes another address)")
        })?;
        let address = listener.local_addr().context("the listener has no address")?;
        Ok(Self { listener, address })
    }
}

impl Serving {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for probes alone.
    pub(super) fn probes_address(&self) -> Option<SocketAddr> {
        self.probes_address
    }

    /// Returns only if it ends without being told to.
    pub(super) async fn ended(&mut self) -> Result<()> {
        (&mut self.server).await.context("the server broke off")?;
        Ok(())
    }

    /// Lets requests under way end; probes are answered until they have.
    pub(super) async fn drain(self) -> Result<()> {
        self.stop.cancel();
        let cut_off = self.server.await.context("the server broke off")?;
        if cut_off > 0 {
            tracing::warn!(connections = cut_off, "requests took longer than server.drain_timeout_ms and were cut off");
        }
        self.drained.cancel();
        if let Some(probes) = self.probes {
            probes.await.context("the listener for probes broke off")?;
        }
        Ok(())
    }
}
