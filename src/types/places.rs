//! Positions in a collection's commit order and in a listing of clusters, and points in time.

use std::time::{SystemTime, UNIX_EPOCH};

/// A position in a collection's commit order. It identifies the document that is stored there. A position is never
/// reused. 0 means no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// A position in a listing of clusters, directly after one document of a cluster. The cluster is named by the `seq` of
/// its founder, the first document in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ClusterPlace {
    pub cluster: Seq,
    pub seq: Seq,
}

/// The place of a cluster in the order of sizes: the clusters that more documents joined come first, and of two with the
/// same size the one that was founded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRank {
    /// How many documents joined the cluster. The founder is not counted.
    pub joined: u64,
    pub cluster: Seq,
}

impl ClusterRank {
    /// Returns a number that is less for a cluster that comes earlier.
    pub fn order(self) -> impl Ord + use<> {
        (std::cmp::Reverse(self.joined), self.cluster)
    }
}

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// Returns the present time by the clock of this machine.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_millis() as i64)
    }
}
