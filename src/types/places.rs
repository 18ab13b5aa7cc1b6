//! Places in a collection's commit order and in a listing of clusters; and moments.

use std::time::{SystemTime, UNIX_EPOCH};

/// A place in a collection's commit order, and the identity of the document stored there. Never reused; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// A place in a listing of clusters: behind a document of a cluster, which is named by the `seq` of its founder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ClusterPlace {
    pub cluster: Seq,
    pub seq: Seq,
}

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// By this machine's clock.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_millis() as i64)
    }
}
