//! The settings of the client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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

/// A password. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Password {
    pub(crate) fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

#[test]
fn a_password_is_never_printed() {
    assert!(!format!("{:?}", Password::new("secret")).contains("secret"));
}
