//! The settings of the client.

use std::sync::Arc;
use std::time::Duration;

use crate::types::Password;

/// The settings of the client.
#[derive(Clone, Debug)]
pub(crate) struct ClusterConfig {
    /// Some nodes of the cluster, each as `host:port`. The client asks them for the others.
    pub nodes: Vec<String>,
    /// `None` means the user `default`.
    pub username: Option<String>,
    pub password: Option<Password>,
    /// The trusted certificates, and the client's own certificate. `None` means connections without TLS.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Each run ends within this time. It is `redis.timeout_ms`.
    pub timeout: Duration,
    /// The number of replicas that a `WAIT` waits for. With 0, no `WAIT` is sent.
    pub acks: usize,
}
