//! Why an operation on the cluster failed, and what a client is told.

use super::cluster::ClusterError;
use crate::verdicts::CollectionError;

/// Why an operation failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(
        "a primary of the Redis cluster has fewer than {acks} replicas that have the write (redis.acks); nothing more is \
         written until they are back; start them again"
    )]
    TooFewReplicas { acks: usize },
    #[error("the Redis cluster has {0}; does another program write to keys that begin with `redis.prefix`?")]
    Strange(String),
}

impl Failure {
    /// Returns the error for a client. `uncertain`: the operation may have been done.
    pub(super) fn told(self, uncertain: bool) -> CollectionError {
        let detail = self.to_string();
        match self {
            Self::Cluster(ClusterError::Oom { .. }) => CollectionError::StoreFull { detail },
            Self::Cluster(_) | Self::TooFewReplicas { .. } => CollectionError::StoreUnavailable { detail, uncertain },
            Self::Strange(_) => CollectionError::Store(detail),
        }
    }
}
