//! A listening socket -> answered connections, HTTP/1.1 and HTTP/2, until told to stop.
//! This file runs hyper directly, because axum's `serve` has no time limit on a request's head. A client that sends a
//! head byte by byte would keep its connection for ever, and delay the shutdown.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::connections::{Activity, ConnectionPlace, Places, Serving};
use super::early::Early;
use super::listener::Listener;
use super::router::{probe_router, router};
use super::run_queue::Timed;
use super::state::AppState;
use crate::config::HttpLimits;
use crate::telemetry::names::{self, label, value};

/// The pause before the next attempt to accept a connection if the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The most connections that are taken out of the kernel's queue at the end. The number is limited, because clients can
/// fill the queue again all the time.
const QUEUE_MAX: usize = 4096;
/// The most connections to the listener for probes. A metrics scrape and some probes at the same time need about five.
pub const PROBE_CONNECTIONS_MAX: usize = 64;

/// Serves until `shutdown` resolves. Then waits until open requests are done, or until their time is over.
///
/// Returns the number of connections that were cut off.
pub async fn serve(listener: impl Into<Listener>, state: AppState, shutdown: impl Future<Output = ()>) -> usize {
    let listener = listener.into();
    let limits = *state.limits();
    let draining = state.draining().clone();
    describe(&limits);
    let early = Early::new(&state);
    let door = Door::new(router(state), Some(early), &limits, limits.connections_max, &listener);
    let waiting = door.let_in(listener, shutdown).await;
    draining.cancel();
    tracing::info!(connections = door.connections.len(), "shutting down: finishing open requests");
    door.close(waiting, limits.drain_timeout).await
}

/// Serves only probes and metrics, with places that no other request can take.
pub async fn serve_probes(listener: impl Into<Listener>, state: AppState, shutdown: impl Future<Output = ()>) {
    let listener = listener.into();
    let limits = *state.limits();
    let door = Door::new(probe_router(state), None, &limits, PROBE_CONNECTIONS_MAX, &listener);
    let waiting = door.let_in(listener, shutdown).await;
    door.close(waiting, Duration::ZERO).await;
}

fn describe(limits: &HttpLimits) {
    metrics::gauge!(names::HTTP_CONNECTIONS_MAX).set(limits.connections_max as f64);
    metrics::counter!(names::HTTP_STREAMS_REFUSED).increment(0);
    for reason in [value::CLOSED_IDLE, value::CLOSED_NO_REQUEST, value::CLOSED_FOR_ROOM, value::CLOSED_FLOOD] {
        metrics::counter!(names::HTTP_CONNECTIONS_CLOSED, label::REASON => reason).increment(0);
    }
}

fn describe_handshakes() {
    use value::{HANDSHAKE_CLOSED, HANDSHAKE_INVALID, HANDSHAKE_PLAIN_HTTP, HANDSHAKE_REFUSED};
    for reason in [HANDSHAKE_CLOSED, HANDSHAKE_INVALID, HANDSHAKE_PLAIN_HTTP, HANDSHAKE_REFUSED] {
        metrics::counter!(names::TLS_HANDSHAKES_FAILED, label::REASON => reason).increment(0);
    }
}

/// An accepted connection, and the address of its client.
type Accepted = (TcpStream, IpAddr);

fn accepted((stream, peer): (TcpStream, SocketAddr)) -> Accepted {
    // Answers are written whole, so waiting to join small writes would only cost time.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    (stream, peer.ip())
}

struct Door {
    serving: Serving,
    places: Places,
    connections: TaskTracker,
}

impl Door {
    fn new(
        router: Router,
        early: Option<Early>,
        limits: &HttpLimits,
        connections_max: usize,
        listener: &Listener,
    ) -> Self {
        if listener.tls().is_some() {
            describe_handshakes();
        }
        Self {
            serving: Serving::new(router, early, limits, connections_max, listener.tls().cloned()),
            places: Places::new(connections_max),
            connections: TaskTracker::new(),
        }
    }

    /// Accepts and serves connections until `shutdown` resolves. Then takes the connections out of the listener's
    /// queue, and closes the listener. If they stayed in the queue, the kernel would reset them, although their clients
    /// may have sent a request. Returns the connections that have no place yet.
    async fn let_in(&self, listener: Listener, shutdown: impl Future<Output = ()>) -> Vec<Accepted> {
        let mut waiting = Vec::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let stream = tokio::select! {
                biased;
                () = &mut shutdown => break,
                stream = self.accept(listener.tcp()) => stream,
            };
            let activity = Activity::new();
            tokio::select! {
                biased;
                place = self.places.take(&activity) => self.begin(stream, activity, place),
                () = &mut shutdown => {
                    waiting.push(stream);
                    break;
                }
            }
        }
        match listener.into_queue() {
            Ok(queue) => waiting.extend(queue.take(QUEUE_MAX).map(accepted)),
            Err(error) => tracing::warn!(%error, "cannot accept the connections that wait in the queue"),
        }
        waiting
    }

    fn begin(&self, stream: Accepted, activity: Arc<Activity>, place: ConnectionPlace) {
        self.connections.spawn(Timed::new(self.serving.clone().serve(stream, activity, place)));
    }

    /// Returns the next connection from the kernel's queue.
    async fn accept(&self, listener: &TcpListener) -> Accepted {
        loop {
            match listener.accept().await {
                Ok(connection) => return accepted(connection),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    // Usually, this fails because the process has no file descriptor left.
                    self.places.make_room(Duration::ZERO);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Lets open requests end. Returns the number of connections that were cut off after `patience`.
    async fn close(self, waiting: Vec<Accepted>, patience: Duration) -> usize {
        self.serving.drain();
        self.connections.close();
        let last = async {
            for stream in waiting {
                let activity = Activity::new();
                let place = self.places.take(&activity).await;
                self.begin(stream, activity, place);
            }
            self.connections.wait().await;
        };
        if tokio::time::timeout(patience, last).await.is_ok() {
            return 0;
        }
        let left = self.places.taken();
        self.serving.cut();
        left
    }
}
