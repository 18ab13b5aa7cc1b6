//! What the client counts for each node.

use metrics::{Counter, Histogram};

use super::address::NodeAddress;
use super::judge::Again;
use crate::telemetry::names::{self, label, value};
use crate::telemetry::recorder;

/// The counters of one node. They are shown as long as this exists.
#[derive(Debug)]
pub(super) struct Counts {
    node: String,
    pub pipelines: Counter,
    pub commands: Counter,
    plain_duration: Histogram,
    wait_duration: Histogram,
    sent_again: SentAgain,
}

/// Requests that were sent again because of an answer of the node, by the reason.
#[derive(Debug)]
struct SentAgain {
    moved: Counter,
    ask: Counter,
    no_script: Counter,
    not_ready: Counter,
}

impl Counts {
    pub(super) fn of(node: &NodeAddress) -> Self {
        let node = node.to_string();
        recorder::admit(label::NODE, &node);
        let duration =
            |kind| metrics::histogram!(names::REDIS_PIPELINE_SECONDS, label::NODE => node.clone(), label::KIND => kind);
        let again =
            |reason| metrics::counter!(names::REDIS_SENT_AGAIN, label::NODE => node.clone(), label::REASON => reason);
        Self {
            pipelines: metrics::counter!(names::REDIS_PIPELINES, label::NODE => node.clone()),
            commands: metrics::counter!(names::REDIS_COMMANDS, label::NODE => node.clone()),
            plain_duration: duration(value::PIPELINE_PLAIN),
            wait_duration: duration(value::PIPELINE_WAIT),
            sent_again: SentAgain {
                moved: again(value::SENT_AGAIN_MOVED),
                ask: again(value::SENT_AGAIN_ASK),
                no_script: again(value::SENT_AGAIN_NO_SCRIPT),
                not_ready: again(value::SENT_AGAIN_NOT_READY),
            },
            node,
        }
    }

    /// Returns the times of pipelines that end with a `WAIT`, or of the others.
    pub(super) fn duration(&self, waits: bool) -> &Histogram {
        if waits { &self.wait_duration } else { &self.plain_duration }
    }

    /// Returns the counter of requests that are sent again like this.
    pub(super) fn sent_again(&self, how: &Again) -> &Counter {
        match how {
            Again::Moved(_) => &self.sent_again.moved,
            Again::Ask(_) => &self.sent_again.ask,
            Again::Load => &self.sent_again.no_script,
            Again::Later(_) => &self.sent_again.not_ready,
        }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        recorder::release(label::NODE, &self.node);
    }
}
