//! The sockets of a server: binds, serves and drains them.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::secure::Secure;
use super::socket_activation::Given;
use crate::config::Server;
use crate::http::{self, AppState};

/// The most connections that may wait in the kernel until the server accepts them. On some systems,
/// `net.core.somaxconn` sets a lower limit. The standard library uses 128. With 128, some connections were reset when a
/// few hundred clients connected at once.
const WAITING_MAX: u32 = 4096;

/// The sockets on which the server listens.
pub(super) struct Sockets {
    listener: Bound,
    probes: Option<Bound>,
}

struct Bound {
    listener: TcpListener,
    /// The address to which the socket is bound. The configured port may be 0, which means any free port.
    address: SocketAddr,
}

/// A server that accepts connections.
pub(super) struct Serving {
    address: SocketAddr,
    probes_address: Option<SocketAddr>,
    server: JoinHandle<usize>,
    probes: Option<JoinHandle<()>>,
    stop: CancellationToken,
    drained: CancellationToken,
}

impl Sockets {
    /// Takes the sockets of the service manager, and binds the other sockets. No connection is accepted until `serve`
    /// is called.
    pub(super) async fn bind(server: &Server, given: Given) -> Result<Self> {
        let listener = match given.http {
            Some(socket) => Bound::given("server.listen", socket)?,
            None => Bound::new("--listen", server.listen)?,
        };
        let probes = match (given.admin, server.admin_listen) {
            (Some(socket), _) => Some(Bound::given("server.admin_listen", socket)?),
            (None, Some(address)) => Some(Bound::new("server.admin_listen", address)?),
            (None, None) => None,
        };
        Ok(Self { listener, probes })
    }

    /// Returns the address of the listener for requests.
    pub(super) fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// Returns the addresses of all listeners.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        [Some(self.listener.address), self.probes.as_ref().map(|probes| probes.address)].into_iter().flatten()
    }

    /// Accepts connections on all sockets.
    pub(super) fn serve(self, state: AppState, secure: &Secure) -> Serving {
        let (stop, drained) = (CancellationToken::new(), CancellationToken::new());
        let Self { listener: Bound { listener, address }, probes } = self;
        let server = tokio::spawn(http::serve(secure.server(listener), state.clone(), stop.clone().cancelled_owned()));
        let (probes, probes_address) = probes.map(|Bound { listener, address }| (listener, address)).unzip();
        let probes = probes.map(|probes| {
            tokio::spawn(http::serve_probes(secure.probes(probes), state, drained.clone().cancelled_owned()))
        });
        Serving { address, probes_address, server, probes, stop, drained }
    }
}

impl Bound {
    fn new(setting: &str, address: SocketAddr) -> Result<Self> {
        let listener = listen(address)
            .map_err(|error| anyhow!("cannot listen on {address}: {error}; choose another address with {setting}"))?;
        let address = listener.local_addr().context("the listener has no address")?;
        Ok(Self { listener, address })
    }

    /// Takes a socket of the service manager. It is used instead of the address in `setting`.
    fn given(setting: &str, socket: std::net::TcpListener) -> Result<Self> {
        let context = "cannot use a socket of LISTEN_FDS";
        let address = socket.local_addr().context(context)?;
        socket.set_nonblocking(true).context(context)?;
        let listener = TcpListener::from_std(socket).context(context)?;
        tracing::info!(%address, instead_of = setting, "listening on a socket of the service manager");
        Ok(Self { listener, address })
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that starts again must not wait until the kernel has forgotten the connections of the last run.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

impl Serving {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the listener for probes, if there is one.
    pub(super) fn probes_address(&self) -> Option<SocketAddr> {
        self.probes_address
    }

    /// Waits until the server ends. Before `drain`, the server ends only unexpectedly.
    pub(super) async fn ended(&mut self) -> Result<()> {
        (&mut self.server).await.context("the server failed")?;
        Ok(())
    }

    /// Waits until open requests have ended. Probes are answered until then.
    pub(super) async fn drain(self) -> Result<()> {
        self.stop.cancel();
        let cut_off = self.server.await.context("the server failed")?;
        if cut_off > 0 {
            tracing::warn!(
                connections = cut_off,
                "closed connections whose requests took longer than server.drain_timeout_ms"
            );
        }
        self.drained.cancel();
        if let Some(probes) = self.probes {
            probes.await.context("the listener for probes failed")?;
        }
        Ok(())
    }
}
