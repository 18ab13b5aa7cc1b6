//! Requests and responses.

use std::sync::Arc;

use redis::Value;

use super::packed::Packed;

/// Commands on one key, sent in this order on one connection. If the key moves to another node meanwhile, all of them
/// are sent again. With several keys this would be wrong: while a slot moves, its keys are on two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The slot of the key: [`Cluster::slot_of`](super::Cluster::slot_of).
    pub slot: u16,
    pub calls: Vec<Call>,
    /// Whether a `WAIT` follows on the same connection, and asks how many replicas have the writes.
    pub waits: bool,
}

/// One of the requests of a run, and how it must be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask {
    /// Its number in the run.
    pub number: usize,
    /// Whether `ASKING` is sent before each call.
    pub asking: bool,
    /// Whether the scripts are loaded first.
    pub load: bool,
}

/// Requests that are sent to one node together.
#[derive(Clone, Debug)]
pub(super) struct Asks {
    /// All requests of the run.
    pub requests: Arc<[Request]>,
    pub asks: Vec<Ask>,
}

impl Asks {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Ask, &Request)> {
        self.asks.iter().map(|ask| (ask, &self.requests[ask.number]))
    }
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    packed: Packed,
    /// The script that it runs. The client loads it into each node that does not have it.
    script: Option<&'static Script>,
}

/// The answers to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// One value for each call.
    pub values: Vec<Value>,
    /// The number of replicas that have the writes, if the request waits. With `acks` 0, it is 0.
    pub acknowledged: Option<usize>,
}

/// A Lua script. The nodes know it by its SHA-1.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    sha: String,
}

impl Script {
    /// Makes a script. Its text may begin with a line of flags, such as `#!lua flags=allow-oom`.
    pub(crate) fn new(text: &'static str) -> Self {
        Self { text, sha: redis::Script::new(text).get_hash().to_owned() }
    }

    /// Returns the command that loads the script into a node.
    pub(super) fn load(&self) -> Packed {
        Packed::new("SCRIPT", 2, self.text.len()).arg(b"LOAD").arg(self.text.as_bytes())
    }
}

impl Call {
    pub(crate) fn plain(command: impl Into<Packed>) -> Self {
        Self { packed: command.into(), script: None }
    }

    /// Runs a script with one key, as `EVALSHA`.
    pub(crate) fn script_on(script: &'static Script, key: &[u8], args: &[&[u8]]) -> Self {
        let bytes = script.sha.len() + key.len() + args.iter().map(|arg| arg.len()).sum::<usize>();
        let packed = Packed::new("EVALSHA", 3 + args.len(), bytes).arg(script.sha.as_bytes()).number(1).arg(key);
        Self { packed: args.iter().fold(packed, |packed, arg| packed.arg(arg)), script: Some(script) }
    }

    pub(super) fn packed(&self) -> &Packed {
        &self.packed
    }

    /// Returns the name of the command, for messages.
    pub(super) fn name(&self) -> String {
        self.packed.name()
    }

    pub(super) fn script(&self) -> Option<&'static Script> {
        self.script
    }
}
