//! Requests and responses.

use std::sync::Arc;

use redis::{Arg, Cmd, Value};

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
pub(crate) enum Call {
    Plain(Cmd),
    /// A script with one key, sent as `EVALSHA`. The client loads the script into each node that does not have it.
    Script {
        script: &'static Script,
        key: Vec<u8>,
        args: Vec<Vec<u8>>,
    },
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
    pub(super) fn load(&self) -> Cmd {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(self.text);
        cmd
    }
}

impl Call {
    pub(super) fn cmd(&self) -> Cmd {
        match self {
            Self::Plain(cmd) => cmd.clone(),
            Self::Script { script, key, args } => {
                let bytes = args.iter().map(Vec::len).sum::<usize>();
                let mut cmd = Cmd::with_capacity(4 + args.len(), 16 + script.sha.len() + key.len() + bytes);
                cmd.arg("EVALSHA").arg(&script.sha).arg(1).arg(key).arg(args);
                cmd
            }
        }
    }

    /// Returns the name of the command, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Plain(cmd) => match cmd.args_iter().next() {
                Some(Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
                _ => "a command".to_owned(),
            },
            Self::Script { .. } => "EVALSHA".to_owned(),
        }
    }

    pub(super) fn script(&self) -> Option<&'static Script> {
        match self {
            Self::Plain(_) => None,
            Self::Script { script, .. } => Some(script),
        }
    }
}
