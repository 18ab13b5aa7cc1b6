//! The errors of a cluster. Each names the node and the next step.

use super::address::NodeAddress;

/// The reason that a request failed. The commands of the request may have been executed, once or several times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("{address:?} in redis.nodes is not an address: write host:port, such as 127.0.0.1:7000")]
    Address { address: String },
    #[error("redis.nodes is empty: name at least one node of the cluster, such as 127.0.0.1:7000")]
    NoNodes,
    #[error(
        "the Redis node {node} cannot be reached: {reason}; check that it is running, that no firewall blocks it, and \
         whether it needs redis.tls"
    )]
    Unreachable { node: NodeAddress, reason: String },
    #[error("the TLS handshake with the Redis node {node} failed: {reason}; {remedy}")]
    Tls { node: NodeAddress, reason: String, remedy: &'static str },
    #[error(
        "the Redis node {node} did not answer within {timeout_ms} ms: check its load and the network, or set \
         redis.timeout_ms higher"
    )]
    Timeout { node: NodeAddress, timeout_ms: u64 },
    #[error(
        "the Redis node {node} refused the login: {reason}; correct redis.username and the file \
         redis.password_file, or the users of the node (ACL LIST)"
    )]
    Login { node: NodeAddress, reason: String },
    #[error(
        "the Redis node {node} is not part of a cluster: start it with cluster-enabled yes, and join it to the others"
    )]
    NotACluster { node: NodeAddress },
    #[error("the Redis node {node} is not ready: {reason}; if this lasts, see CLUSTER INFO of the node")]
    NotReady { node: NodeAddress, reason: String },
    #[error("no Redis node has slot {slot}: see CLUSTER SLOTS, and assign all slots to nodes")]
    NoOwner { slot: u16 },
    #[error("the Redis node {node} has no memory for writes: set maxmemory higher, add nodes, or delete documents")]
    Oom { node: NodeAddress },
    #[error("the Redis node {node} does not permit {command}: {reason}; permit it for the user of hapax (ACL SETUSER)")]
    NoPermission { node: NodeAddress, command: String, reason: String },
    #[error("the Redis node {node} has too many requests in its queue: send fewer requests at once, or add nodes")]
    QueueFull { node: NodeAddress },
    #[error("the Redis node {node} refused {command}: {text}; see the log of the node")]
    Other { node: NodeAddress, command: String, text: String },
}
