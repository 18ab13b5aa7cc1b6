//! A verdict on one document -> the answer, for the handlers of single documents.

use crate::collections::{AskedCollections, Collection, JointVerdict};
use crate::http::caller::Caller;
use crate::http::dto::explanation::ExplanationBody;
use crate::http::dto::verdict::VerdictBody;
use crate::http::stages::Stages;
use crate::telemetry::request::current_id;
use crate::types::{Explanation, PageFacts, Verdict};

/// How much of a verdict a client asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub limit: usize,
    pub with_metadata: bool,
    pub explain: bool,
}

impl Wanted {
    /// Returns the most bytes of a verdict as JSON.
    pub(super) fn bytes_max(self) -> usize {
        let explanation = if self.explain { Explanation::BYTES_MAX } else { 0 };
        Verdict::bytes_max(self.limit, self.with_metadata) + explanation + PageFacts::JSON_BYTES_MAX
    }

    /// The same for a verdict of several collections.
    pub(super) fn joint_bytes_max(self, asked: &AskedCollections) -> usize {
        let Self { limit, with_metadata, explain } = self;
        self.bytes_max() + JointVerdict::bytes_max(asked.others().len(), limit, with_metadata, explain)
    }
}

pub(super) fn page_bytes(page: &Option<Box<PageFacts>>) -> usize {
    page.as_ref().map_or(0, |page| page.json_bytes())
}

/// Returns the answer to a client, and logs its stages.
pub(super) fn told(
    collection: &Collection,
    caller: &Caller,
    stages: &Stages,
    explain: bool,
    mut joint: JointVerdict,
) -> VerdictBody {
    stages.log(joint.verdict());
    let explanation = joint.verdict_mut().explanation.take();
    let body = VerdictBody::joint(collection.name(), joint, || current_id().unwrap_or_default());
    let body = match explain {
        true => body.explained(ExplanationBody::new(stages.all(), explanation.map(|explanation| *explanation))),
        false => body,
    };
    body.seen_with(caller.scores())
}
