//! The commands of the model that are under way.

use super::super::faults::{Fault, has};
use super::super::terms::{Answer, Command, Reply, Step};
use super::world::{Doc, Key, Node, World};

/// The way of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Sent,
    /// The node has run it, or its first part.
    Run {
        node: Node,
        changed: bool,
        reply: Option<Reply<Doc>>,
    },
    Answered(Answer<Doc>),
}

/// A command whose answer a server waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub step: Step<Doc>,
    pub way: Way,
}

pub(super) fn flights(steps: Vec<Step<Doc>>) -> Vec<Flight> {
    steps.into_iter().map(|step| Flight { step, way: Way::Sent }).collect()
}

/// Returns whether a command writes nothing.
pub(super) fn is_read(command: &Command<Doc>) -> bool {
    matches!(command, Command::Read { .. } | Command::Holder | Command::Probe { .. })
}

impl Flight {
    /// Returns the step and its answer.
    pub(super) fn ended(self) -> Option<(Step<Doc>, Answer<Doc>)> {
        if let Way::Answered(answer) = self.way { Some((self.step, answer)) } else { None }
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.way, Way::Answered(_))
    }

    /// Returns the nodes that may go on with the command.
    pub(super) fn nodes(&self, world: &World, key: Key) -> &'static [Node] {
        match self.way {
            Way::Sent => world.nodes(key),
            Way::Run { node: Node::First, .. } => &[Node::First],
            Way::Run { node: Node::Promoted, .. } => &[Node::Promoted],
            Way::Answered(_) => &[],
        }
    }

    /// Goes one step on. Returns the world after it, if it differs.
    pub(super) fn advance(&mut self, world: &World, key: Key, node: Node) -> Option<World> {
        let after = self.advance_once(world, key, node);
        let now = after.as_ref().unwrap_or(world);
        // If the shard cannot fail over any more, nothing can happen between a write and its `WAIT`.
        if !now.may_fail_over(key) && self.only_waits() {
            let waited = self.advance_once(now, key, node);
            return waited.or(after);
        }
        after
    }

    /// Returns whether only the `WAIT` is left.
    fn only_waits(&self) -> bool {
        matches!(self.way, Way::Run { reply: Some(_), .. }) && !has(Fault::ReadsFirst)
    }

    fn advance_once(&mut self, world: &World, key: Key, node: Node) -> Option<World> {
        let is_post = matches!(self.step.command, Command::Post { .. });
        let (way, after) = match std::mem::replace(&mut self.way, Way::Sent) {
            Way::Sent if is_post && has(Fault::ReadsFirst) => {
                (Way::Run { node, changed: true, reply: Some(Reply::Postings(world.postings(key, node))) }, None)
            }
            Way::Sent => {
                let (reply, after) = world.run(&self.step.command, key, node);
                let changed = after.is_some();
                let way = match reply {
                    // A `WAIT` behind a command that changes nothing proves nothing, so its answer is not used.
                    Some(reply) if !self.step.waits || !changed => Way::Answered(Answer { reply, replicated: false }),
                    reply => Way::Run { node, changed, reply },
                };
                (way, after)
            }
            Way::Run { reply: None, changed, .. } => {
                (Way::Run { node, changed, reply: Some(Reply::Postings(world.postings(key, node))) }, None)
            }
            Way::Run { reply: Some(reply), changed, .. } => {
                let written =
                    if is_post && has(Fault::ReadsFirst) { world.run(&self.step.command, key, node).1 } else { None };
                let now = written.as_ref().unwrap_or(world);
                let (replicated, after) = if changed { now.wait(key, node) } else { (has(Fault::TrustsNoOp), None) };
                (Way::Answered(Answer { reply, replicated }), after.or(written))
            }
            answered @ Way::Answered(_) => (answered, None),
        };
        self.way = way;
        after
    }
}
