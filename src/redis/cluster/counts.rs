//! What the client counts for each node.

use metrics::Counter;

use super::address::NodeAddress;
use crate::telemetry::names::{self, label};
use crate::telemetry::recorder;

/// The counters of one node. They are shown as long as this exists.
#[derive(Debug)]
pub(super) struct Counts {
    node: String,
    pub pipelines: Counter,
    pub commands: Counter,
}

impl Counts {
    pub(super) fn of(node: &NodeAddress) -> Self {
        let node = node.to_string();
        recorder::admit(label::NODE, &node);
        let pipelines = metrics::counter!(names::REDIS_PIPELINES, label::NODE => node.clone());
        let commands = metrics::counter!(names::REDIS_COMMANDS, label::NODE => node.clone());
        Self { node, pipelines, commands }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        recorder::release(label::NODE, &self.node);
    }
}
