//! A listening socket -> answered connections, HTTP/1.1 and HTTP/2 without TLS, until told to stop.
//! Hyper's own loop under axum, because axum's `serve` has no time limit on a request's head: a client that sends it
//! byte by byte holds its connection for ever, and holds up the shutdown too.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::connections::{Activity, Places, Serving};
use super::router::{probe_router, router};
use super::state::AppState;
use crate::config::HttpLimits;
use crate::telemetry::names::{self, label, value};

/// How long to wait when the process has no file descriptor for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections to the listener for probes; a scrape and some probes at once are five.
pub const PROBE_CONNECTIONS_MAX: usize = 64;

/// Serves until `shutdown` resolves and open requests are done, or the time for that is over.
///
/// Returns how many connections had to be cut off.
pub async fn serve(listener: TcpListener, state: AppState, shutdown: impl Future<Output = ()>) -> usize {
    let limits = *state.limits();
    let draining = state.draining().clone();
    describe(&limits);
    let door = Door::new(router(state), &limits, limits.connections_max);
    door.let_in(listener, shutdown).await;
    draining.cancel();
    tracing::info!(connections = door.connections.len(), "draining");
    door.close(limits.drain_timeout).await
}

/// The same for probes and metrics alone, with places of its own that nothing else can take.
pub async fn serve_probes(listener: TcpListener, state: AppState, shutdown: impl Future<Output = ()>) {
    let limits = *state.limits();
    let door = Door::new(probe_router(state), &limits, PROBE_CONNECTIONS_MAX);
    door.let_in(listener, shutdown).await;
    door.close(Duration::ZERO).await;
}

fn describe(limits: &HttpLimits) {
    metrics::gauge!(names::HTTP_CONNECTIONS_MAX).set(limits.connections_max as f64);
    for reason in [value::CLOSED_IDLE, value::CLOSED_NO_REQUEST, value::CLOSED_FOR_ROOM] {
        metrics::counter!(names::HTTP_CONNECTIONS_CLOSED, label::REASON => reason).increment(0);
    }
}

struct Door {
    serving: Serving,
    places: Places,
    connections: TaskTracker,
}

impl Door {
    fn new(router: Router, limits: &HttpLimits, connections_max: usize) -> Self {
        Self {
            serving: Serving::new(router, limits),
            places: Places::new(connections_max),
            connections: TaskTracker::new(),
        }
    }

    /// Serves all connections, until `shutdown` resolves. Then the listener is closed.
    async fn let_in(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let coming = async {
                let stream = self.accept(&listener).await;
                let activity = Activity::new();
                let place = self.places.take(&activity).await;
                (stream, activity, place)
            };
            let (stream, activity, place) = tokio::select! {
                biased;
                () = &mut shutdown => return,
                coming = coming => coming,
            };
            self.connections.spawn(self.serving.clone().serve(stream, activity, place));
        }
    }

    /// The next connection of the kernel's queue.
    async fn accept(&self, listener: &TcpListener) -> (TcpStream, IpAddr) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Answers are written whole; waiting to join them with later ones only costs time.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "no TCP_NODELAY");
                    }
                    return (stream, peer.ip());
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    // Mostly it is descriptors that are missing.
                    self.places.make_room(Duration::ZERO);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Lets open requests end; returns how many connections had to be cut off after `patience`.
    async fn close(self, patience: Duration) -> usize {
        self.serving.drain();
        self.connections.close();
        if tokio::time::timeout(patience, self.connections.wait()).await.is_ok() {
            return 0;
        }
        let left = self.places.taken();
        self.serving.cut();
        left
    }
}
