//! The answers of a node -> what they mean for the request.

use std::sync::Arc;

use redis::{ServerError, Value};

use super::address::NodeAddress;
use super::error::ClusterError;
use super::request::{Request, Response};

/// The answers to one request, as they arrived.
#[derive(Debug)]
pub(super) struct Raw {
    /// The error of a `SCRIPT LOAD`, if one was sent and failed.
    pub load: Option<Box<ServerError>>,
    /// One value for each call.
    pub values: Vec<Value>,
    pub wait: Wait,
}

/// The answer to a `WAIT`.
#[derive(Clone, Debug)]
pub(super) enum Wait {
    /// No `WAIT` was sent.
    None,
    Replicas(usize),
    Refused(Arc<ServerError>),
    /// Something else.
    Strange,
}

impl Wait {
    pub(super) fn of(value: Value) -> Self {
        match value {
            Value::Int(replicas) => Self::Replicas(replicas.try_into().unwrap_or(0)),
            Value::ServerError(error) => Self::Refused(Arc::new(error)),
            _ => Self::Strange,
        }
    }
}

/// The result of sending a request once.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Done(Response),
    Failed(ClusterError),
    /// All commands of the request must be sent again.
    Again(Again),
}

/// How a request must be sent again.
#[derive(Debug, PartialEq)]
pub(super) enum Again {
    /// To the new owner of the slot.
    Moved(NodeAddress),
    /// To this node, with `ASKING` before each call: the slot is on its way to this node, and the key has arrived.
    Ask(NodeAddress),
    /// With the scripts.
    Load,
    /// A little later, to the node that owns the slot then. If there is no time left, the request fails with this
    /// error.
    Later(ClusterError),
}

/// Judges the answers of `node` to a request.
pub(super) fn judge(raw: Raw, request: &Request, node: &NodeAddress) -> Outcome {
    if let Some(error) = raw.load {
        return judge_error(&error, "SCRIPT LOAD", node);
    }
    for (value, call) in raw.values.iter().zip(&request.calls) {
        if let Value::ServerError(error) = value {
            return judge_error(error, &call.name(), node);
        }
    }
    let acknowledged = match raw.wait {
        Wait::None => request.waits.then_some(0),
        Wait::Replicas(replicas) => Some(replicas),
        // The node has become a replica meanwhile, so nothing is certain about the writes.
        Wait::Refused(error) => {
            return match judge_error(&error, "WAIT", node) {
                Outcome::Failed(ClusterError::Other { .. }) => not_ready(&error, node),
                outcome => outcome,
            };
        }
        Wait::Strange => {
            let (command, text) = ("WAIT".to_owned(), "the answer is not a number".to_owned());
            return Outcome::Failed(ClusterError::Other { node: node.clone(), command, text });
        }
    };
    Outcome::Done(Response { values: raw.values, acknowledged })
}

fn judge_error(error: &ServerError, command: &str, node: &NodeAddress) -> Outcome {
    let (node, command) = (node.clone(), command.to_owned());
    match error.code() {
        "MOVED" => redirected(error, &node, Again::Moved),
        "ASK" => redirected(error, &node, Again::Ask),
        "NOSCRIPT" => Outcome::Again(Again::Load),
        // MASTERDOWN, READONLY, UNBLOCKED: a replica, or a node that has just become one. BUSY: a slow script runs.
        // NOREPLICAS: min-replicas-to-write. TRYAGAIN: the slot is moving.
        "BUSY" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "NOREPLICAS" | "READONLY" | "TRYAGAIN" | "UNBLOCKED" => {
            not_ready(error, &node)
        }
        "OOM" => Outcome::Failed(ClusterError::Oom { node }),
        "NOPERM" => Outcome::Failed(ClusterError::NoPermission { node, command, reason: message(error) }),
        "NOAUTH" | "WRONGPASS" => Outcome::Failed(ClusterError::Login { node, reason: message(error) }),
        _ if message(error).contains("cluster support disabled") => Outcome::Failed(ClusterError::NotACluster { node }),
        _ => Outcome::Failed(ClusterError::Other { node, command, text: message(error) }),
    }
}

fn not_ready(error: &ServerError, node: &NodeAddress) -> Outcome {
    Outcome::Again(Again::Later(ClusterError::NotReady { node: node.clone(), reason: message(error) }))
}

/// Reads `MOVED slot host:port`. No host means the host that has answered.
fn redirected(error: &ServerError, node: &NodeAddress, to: fn(NodeAddress) -> Again) -> Outcome {
    let named = error.details().and_then(|details| NodeAddress::parse(details.split(' ').nth(1)?));
    match named {
        Some(named) if named.host().is_empty() => Outcome::Again(to(NodeAddress::new(node.host(), named.port()))),
        // The node prefers names, but the other one has none.
        Some(named) if named.host() != "?" => Outcome::Again(to(named)),
        _ => not_ready(error, node),
    }
}

/// Returns the error as the node has written it, without the full stop at its end.
pub(super) fn message(error: &ServerError) -> String {
    let text = match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    };
    text.trim_end().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::request::Call;
    use super::*;

    fn node() -> NodeAddress {
        NodeAddress::new("n", 7000)
    }

    fn error(line: &str) -> Value {
        redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
    }

    fn judged(values: Vec<Value>, wait: Option<Value>) -> Outcome {
        let calls = values.iter().map(|_| Call::plain(redis::cmd("GET").arg("a").clone())).collect();
        let request = Request { slot: 1, calls, waits: wait.is_some() };
        judge(Raw { load: None, values, wait: wait.map_or(Wait::None, Wait::of) }, &request, &node())
    }

    #[test]
    fn redirects_are_read_in_all_the_forms_of_redis() {
        let (moved, ask) = (|node| Outcome::Again(Again::Moved(node)), |node| Outcome::Again(Again::Ask(node)));
        for (line, expected) in [
            ("MOVED 3999 127.0.0.1:6381", moved(NodeAddress::new("127.0.0.1", 6381))),
            ("MOVED 3999 ::1:6381", moved(NodeAddress::new("::1", 6381))),
            ("MOVED 3999 :6381", moved(NodeAddress::new("n", 6381))),
            ("ASK 3999 redis-1:6381", ask(NodeAddress::new("redis-1", 6381))),
        ] {
            assert_eq!(judged(vec![Value::Okay, error(line)], None), expected);
        }
        let Outcome::Again(Again::Later(later)) = judged(vec![error("MOVED 3999 ?:6381")], None) else { panic!() };
        assert!(matches!(later, ClusterError::NotReady { .. }));
    }

    #[test]
    fn errors_keep_their_kind() {
        let failed = |line| match judged(vec![error(line)], None) {
            Outcome::Failed(error) => error,
            outcome => panic!("{line}: {outcome:?}"),
        };
        assert_eq!(
            failed("OOM command not allowed when used memory > 'maxmemory'."),
            ClusterError::Oom { node: node() }
        );
        let refused = failed("NOPERM User default has no permissions to run the 'get' command");
        assert!(matches!(refused, ClusterError::NoPermission { command, .. } if command == "GET"));
        assert!(matches!(failed("NOAUTH Authentication required."), ClusterError::Login { .. }));
        let text = failed("WRONGTYPE Operation against a key holding the wrong kind of value").to_string();
        assert!(text.contains("n:7000 refused GET: WRONGTYPE Operation against"), "{text}");
        let disabled = failed("ERR This instance has cluster support disabled");
        assert_eq!(disabled, ClusterError::NotACluster { node: node() });
    }

    #[test]
    fn a_node_that_is_not_ready_is_asked_again() {
        for line in
            ["CLUSTERDOWN The cluster is down", "LOADING Redis is loading", "TRYAGAIN Multiple keys", "READONLY x"]
        {
            assert!(matches!(judged(vec![error(line)], None), Outcome::Again(Again::Later(_))), "{line}");
        }
        assert_eq!(judged(vec![error("NOSCRIPT No matching script.")], None), Outcome::Again(Again::Load));
        for line in ["UNBLOCKED force unblock", "ERR WAIT cannot be used with replica instances."] {
            assert!(matches!(judged(vec![Value::Okay], Some(error(line))), Outcome::Again(Again::Later(_))), "{line}");
        }
    }

    #[test]
    fn the_number_of_replicas_is_in_the_response() {
        let done = |acknowledged| Outcome::Done(Response { values: vec![Value::Okay], acknowledged });
        assert_eq!(judged(vec![Value::Okay], Some(Value::Int(2))), done(Some(2)));
        assert_eq!(judged(vec![Value::Okay], None), done(None));
    }
}
