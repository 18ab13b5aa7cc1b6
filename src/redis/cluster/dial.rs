//! Connecting to one node. In: an address and the settings. Out: a connection that is logged in. If a node cannot be
//! reached, it is tried again after 10 ms, and later after up to 500 ms. The log has one line if this begins and one if
//! it ends.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::Value;
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::NodeAddress;
use super::config::ClusterConfig;
use super::connection::Connection;
use super::counts::Counts;
use super::error::ClusterError;
use super::judge::message;

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// What to do if the answer is not TLS.
const PLAIN: &str = "check that the port speaks TLS (tls-port of the node), or set redis.tls = false";
/// What to do if a node refuses a handshake. With TLS 1.3, this is known only after the handshake.
const REFUSED: &str = "the node refuses this client; set redis.cert_file and redis.key_file as it expects";

/// Connects to one node.
#[derive(Debug)]
pub(super) struct Dial {
    node: NodeAddress,
    config: Arc<ClusterConfig>,
    counts: Counts,
    failing: Mutex<Option<Failing>>,
}

/// A node that could not be reached.
#[derive(Debug)]
struct Failing {
    error: ClusterError,
    pause: Duration,
    /// No connection is tried before.
    next: Instant,
}

impl Dial {
    pub(super) fn new(node: NodeAddress, config: Arc<ClusterConfig>) -> Self {
        Self { counts: Counts::of(&node), node, config, failing: Mutex::new(None) }
    }

    pub(super) fn node(&self) -> &NodeAddress {
        &self.node
    }

    pub(super) fn config(&self) -> &ClusterConfig {
        &self.config
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns whether the last attempt to connect has failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.lock().is_some()
    }

    /// Connects and logs in. Fails at once if the last attempt has failed only a moment ago.
    pub(super) async fn connect(&self) -> Result<Connection, ClusterError> {
        let began = Instant::now();
        if let Some(failing) = &*self.failing.lock()
            && began < failing.next
        {
            return Err(failing.error.clone());
        }
        let timeout = self.config.timeout;
        let connected = match tokio::time::timeout(timeout, self.open()).await {
            Ok(connected) => connected,
            Err(_) => Err(self.timed_out()),
        };
        match &connected {
            Ok(_) => self.works(),
            Err(error) => self.fails(error, began),
        }
        connected
    }

    /// Returns the error for an answer that did not arrive in time.
    pub(super) fn timed_out(&self) -> ClusterError {
        let timeout_ms = self.config.timeout.as_millis().try_into().unwrap_or(u64::MAX);
        ClusterError::Timeout { node: self.node.clone(), timeout_ms }
    }

    /// Returns the error for a connection that cannot be opened, or has closed.
    pub(super) fn broken(&self, reason: String) -> ClusterError {
        if reason.contains("received fatal alert") {
            return self.tls(reason, REFUSED);
        }
        self.unreachable(reason)
    }

    fn unreachable(&self, reason: String) -> ClusterError {
        ClusterError::Unreachable { node: self.node.clone(), reason }
    }

    /// Returns the error for a handshake that failed.
    fn handshake_failed(&self, error: &io::Error) -> ClusterError {
        let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) else {
            return self.unreachable(error.to_string());
        };
        let remedy = match error {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                "set redis.ca_file to the certificate of the authority that has signed the node's"
            }
            rustls::Error::InvalidCertificate(_) => "correct the certificate of the node",
            rustls::Error::AlertReceived(_) => REFUSED,
            rustls::Error::InvalidMessage(_) => PLAIN,
            _ => "see the log of the node",
        };
        self.tls(error.to_string(), remedy)
    }

    fn tls(&self, reason: String, remedy: &'static str) -> ClusterError {
        ClusterError::Tls { node: self.node.clone(), reason, remedy }
    }

    fn works(&self) {
        if self.failing.lock().take().is_some() {
            tracing::info!(node = %self.node, "the Redis node can be reached again");
        }
    }

    fn fails(&self, error: &ClusterError, began: Instant) {
        let mut failing = self.failing.lock();
        let pause = match &*failing {
            None => {
                tracing::warn!(%error, "no connection to a Redis node");
                PAUSE_MIN
            }
            // Another lane has failed at the same time.
            Some(failing) if began < failing.next => return,
            Some(failing) => (failing.pause * 2).min(PAUSE_MAX),
        };
        *failing = Some(Failing { error: error.clone(), pause, next: Instant::now() + pause });
    }

    async fn open(&self) -> Result<Connection, ClusterError> {
        let unreachable = |error: io::Error| self.unreachable(error.to_string());
        let stream = TcpStream::connect((self.node.host(), self.node.port())).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let connection = match &self.config.tls {
            None => Connection::of(stream),
            Some(tls) => {
                let name = ServerName::try_from(self.node.host().to_owned())
                    .map_err(|error| self.unreachable(error.to_string()))?;
                let handshake = TlsConnector::from(tls.clone()).connect(name, stream);
                // A port without TLS may wait for the end of a line.
                let Ok(connected) = tokio::time::timeout(self.config.timeout * 4 / 5, handshake).await else {
                    return Err(self.tls("the node did not answer".to_owned(), PLAIN));
                };
                let stream = connected.map_err(|error| self.handshake_failed(&error))?;
                Connection::of(stream)
            }
        };
        self.log_in(&connection).await?;
        Ok(connection)
    }

    /// Logs in. Without a password, only waits for an answer: whatever listens there may close the connection at once.
    async fn log_in(&self, connection: &Connection) -> Result<(), ClusterError> {
        let command = match &self.config.password {
            Some(password) => {
                let mut auth = redis::cmd("AUTH");
                auth.arg(&self.config.username).arg(password.reveal());
                auth
            }
            None => redis::cmd("PING"),
        };
        let answers = connection.send(command.get_packed_command(), 1).await;
        match answers.map_err(|reason| self.broken(reason))?.first() {
            Some(Value::ServerError(error)) if self.config.password.is_some() => {
                Err(ClusterError::Login { node: self.node.clone(), reason: message(error) })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;
    use crate::telemetry::LogLines;

    #[tokio::test]
    async fn a_node_that_is_down_is_tried_rarely_and_logged_once() {
        let lines = LogLines::default();
        let made = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || made.clone()).finish();
        let _subscribed = tracing::subscriber::set_default(subscriber);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let node = NodeAddress::new("127.0.0.1", listener.local_addr().unwrap().port());
        let timeout = Duration::from_secs(1);
        let config = ClusterConfig { nodes: Vec::new(), username: None, password: None, tls: None, timeout, acks: 1 };
        let dial = Dial::new(node, Arc::new(config));
        let tries = Arc::new(Mutex::new(0));
        let counted = tries.clone();
        let _accepting = AbortOnDropHandle::new(tokio::spawn(async move {
            // It closes each connection at once.
            while listener.accept().await.is_ok() {
                *counted.lock() += 1;
            }
        }));
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            assert!(matches!(dial.connect().await, Err(ClusterError::Unreachable { .. })));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // After 0, 10, 30, 70 and 150 ms. The next one would be after 310 ms.
        let tries = *tries.lock();
        assert!((3..=5).contains(&tries), "{tries}");
        let text = lines.text();
        assert_eq!(text.matches("no connection to a Redis node").count(), 1, "{text}");
    }
}
