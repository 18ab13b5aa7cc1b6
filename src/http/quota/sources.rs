//! The rate limit of each source: how many documents with the same label `source` a collection takes in a second. Knows
//! nothing of requests.

use std::sync::Arc;
use std::time::Duration;

use super::bounded::Bounded;
use super::limit_names::Limit;
use super::meters::Meters;
use super::share::{Owner, Share};
use crate::http::error::Problem;
use crate::keys::KeyLimits;
use crate::types::CollectionName;

/// The longest sleep of a slowed stream.
const NAP_MAX: Duration = Duration::from_secs(1);

/// The share of each source of each collection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sources(Option<Arc<Bounded<String>>>);

impl Sources {
    /// `None`: sources have no limit.
    pub(crate) fn new(documents_per_second: Option<u64>) -> Self {
        let limits = KeyLimits { documents_per_second, ..KeyLimits::default() };
        let of_source = move || Share::limited(Owner::Source, &limits, Meters::of_sources());
        Self(documents_per_second.map(|_| Arc::new(Bounded::new(of_source))))
    }

    /// Counts a document against the rate limit of its source, if it has one; 429 if the limit is reached.
    pub(crate) fn take(&self, collection: &CollectionName, source: Option<&str>) -> Result<(), Problem> {
        self.share(collection, source).map_or(Ok(()), |share| share.take(Limit::Documents, 1))
    }

    /// Does the same as [`take`](Self::take), but waits until the limit allows the document.
    pub(crate) async fn due(&self, collection: &CollectionName, source: Option<&str>) {
        let Some(share) = self.share(collection, source) else { return };
        let mut is_slowed = false;
        // Another stream may take the unit for which this stream has waited. Then this stream tries again.
        while let Err(wait) = share.try_take(Limit::Documents, 1) {
            if !std::mem::replace(&mut is_slowed, true) {
                share.slowed();
            }
            tokio::time::sleep(wait.min(NAP_MAX)).await;
        }
    }

    fn share(&self, collection: &CollectionName, source: Option<&str>) -> Option<Arc<Share>> {
        let (shares, source) = self.0.as_ref().zip(source)?;
        // The name of a collection has no colon, so the joined name is unambiguous.
        Some(shares.share(format!("{collection}:{source}").as_str()))
    }
}
