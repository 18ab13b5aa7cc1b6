//! A verdict on one document -> the answer, for the handlers of single documents.

use crate::collections::{AskedCollections, Attached, CheckOptions, Collection, InsertOptions, JointVerdict};
use crate::http::answer::{Answer, AnswerRoom};
use crate::http::caller::Caller;
use crate::http::dto::explanation::ExplanationBody;
use crate::http::dto::verdict::{VerdictBody, text};
use crate::http::stages::Stages;
use crate::telemetry::request::current_id;
use crate::types::{Explanation, PageFacts, Revisit, Verdict};

/// The parts of a verdict that a client asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub limit: usize,
    pub with_metadata: bool,
    pub explain: bool,
    /// Whether the verdict may have a revisit. A revisit needs the digest of the payload.
    pub revisit: bool,
}

impl Wanted {
    pub(super) fn of_check(options: &CheckOptions) -> Self {
        let &CheckOptions { limit, with_metadata, explain, .. } = options;
        Self { limit, with_metadata, explain, revisit: options.payload_digest.is_some() }
    }

    pub(super) fn of_insert(options: InsertOptions, attached: &Attached) -> Self {
        let InsertOptions { limit, with_metadata, explain, .. } = options;
        Self { limit, with_metadata, explain, revisit: attached.capture.digest.is_some() }
    }

    /// Returns an upper bound on the size of the verdict as JSON, in bytes.
    pub(super) fn bytes_max(self) -> usize {
        let explanation = if self.explain { Explanation::BYTES_MAX } else { 0 };
        let (verdict, page) = (Verdict::bytes_max(self.limit, self.with_metadata), PageFacts::JSON_BYTES_MAX);
        verdict + explanation + page + self.revisit_bytes_max()
    }

    /// Returns the same bound for a verdict of several collections.
    pub(super) fn joint_bytes_max(self, asked: &AskedCollections) -> usize {
        let Self { limit, with_metadata, explain, .. } = self;
        let others = JointVerdict::bytes_max(asked.others().len(), limit, with_metadata, explain);
        self.bytes_max() + others + self.revisit_bytes_max()
    }

    fn revisit_bytes_max(self) -> usize {
        if self.revisit { Revisit::JSON_BYTES_MAX } else { 0 }
    }
}

pub(super) fn page_bytes(page: &Option<Box<PageFacts>>) -> usize {
    page.as_ref().map_or(0, |page| page.json_bytes())
}

/// Returns the answer to a client, and logs the stages of the work.
pub(super) fn told(
    collection: &Collection,
    caller: &Caller,
    stages: &Stages,
    explain: bool,
    mut joint: JointVerdict,
    room: AnswerRoom,
) -> Answer<VerdictBody> {
    stages.log(joint.verdict());
    let explanation = joint.verdict_mut().explanation.take();
    let body = VerdictBody::joint(collection.name(), joint, || current_id().unwrap_or_default());
    let body = match explain {
        true => body.explained(ExplanationBody::new(stages.all(), explanation.map(|explanation| *explanation))),
        false => body,
    };
    Answer::written(body.seen_with(caller.scores()), text::write, room)
}
