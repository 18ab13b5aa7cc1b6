//! Why a collection in a cluster was not filled.

use crate::types::CollectionName;
use crate::verdicts::CollectionError;

/// Why a collection was not filled. Nothing of it is visible, unless the error is `Uncertain`.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    #[error(
        "collection `{0}` exists in the cluster, and a copy makes a new one: choose another --collection, or drop it \
         first"
    )]
    Exists(CollectionName),
    /// The copy could not renew its note in time, or a server has counted it as dead.
    #[error(
        "the copy could not renew its note in the list of collections for 20 seconds, so servers may have begun to remove \
         its data; check that the cluster and this machine are not overloaded, and run the copy again"
    )]
    Late,
    #[error("the copy was interrupted")]
    Interrupted,
    #[error(
        "{0}; it is not known whether the collection was published: `hapax collection list` shows it; if it does not, \
         run the copy again"
    )]
    Uncertain(CollectionError),
    #[error(transparent)]
    Failed(#[from] CollectionError),
}
