//! How many round trips and commands an operation needs, if no other operation conflicts with it. Each more of them is
//! time that every client waits, and work for the cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use ureq::Agent;

use super::commands::CommandKind::{self, *};
use super::http::{agent, ask};
use super::proxy::Proxy;
use super::rounds::Rounds;
use super::{settings, start_with};
use crate::support::client::{CHECK, DOCUMENTS};
use crate::support::library::dir;
use crate::support::redis::{Kind, RedisCluster};
use crate::support::server::Server;

/// How often an operation is measured until it keeps its bounds. On a busy machine, one round may count as two.
const TIMES: u64 = 10;
const PRIMARIES: usize = 3;

/// How many commands of each kind there are at most.
type Counts<'a> = &'a [(CommandKind, usize)];

/// A server whose rounds are counted.
struct Counted<'a> {
    server: &'a Server,
    agent: Agent,
    rounds: &'a Rounds,
    /// The number of postings of a document: one for each band, and one for its content.
    postings: usize,
}

impl Counted<'_> {
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = ask(&self.agent, method, &self.server.url(path), body).expect("it answers");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// Asserts how many rounds an operation needs at most, and how many commands of each kind before its answer and
    /// after it. `operation` gets a number, and answers what is equal for all numbers.
    fn assert_at_most(
        &self,
        name: &str,
        rounds: usize,
        (commands, later): (Counts<'_>, Counts<'_>),
        mut operation: impl FnMut(u64) -> (Value, Value),
    ) {
        let mut broken = String::new();
        for number in 0..TIMES {
            let sent = self.rounds.during(|| {
                let (answered, expected) = operation(number);
                assert_eq!(answered, expected, "{name}");
            });
            let (counts, later_counts) = (sent.commands(), sent.later());
            let is_within = |counted: &BTreeMap<CommandKind, usize>, most: Counts<'_>| {
                let most: BTreeMap<_, _> = most.iter().copied().collect();
                counted.iter().all(|(kind, count)| most.get(kind).is_some_and(|most| count <= most))
            };
            let told = format!("{name}: {} round trips, {counts:?}, later {later_counts:?}", sent.rounds.len());
            if sent.rounds.len() <= rounds && is_within(&counts, commands) && is_within(&later_counts, later) {
                println!("{told}");
                return;
            }
            broken = format!("{told}; at most {rounds}, {commands:?}, later {later:?}: {:?}", sent.rounds);
        }
        panic!("{broken}");
    }

    fn insert(&self, id: &str, text: &str) -> Value {
        self.ask("POST", DOCUMENTS, &json!({"id": id, "text": text}))
    }

    fn check(&self, document: &Value) -> Value {
        self.ask("POST", CHECK, document)
    }

    fn checks(&self) {
        let probes = (Probe, self.postings);
        self.assert_at_most("a check that meets nothing", 1, (&[probes], &[]), |number| {
            let answer = self.check(&json!({"text": text("unknown", number, 0)}));
            (json!([answer["verdict"], answer["candidates"]]), json!(["unique", 0]))
        });
        for number in 0..TIMES {
            self.insert(&format!("checked-{number}"), &text("checked", number, 0));
        }
        self.assert_at_most("a check that meets a document", 2, (&[probes, (Read, 1)], &[]), |number| {
            let answer = self.check(&json!({"text": text("checked", number, 1)}));
            (answer["duplicate_of"].clone(), json!(format!("checked-{number}")))
        });
        let with_id = [probes, (Holder, 1), (Read, 1)];
        self.assert_at_most("a check with the id of another document", 2, (&with_id, &[]), |number| {
            let document = json!({"id": format!("checked-{number}"), "text": text("unknown", number, 0)});
            (self.check(&document)["verdict"].clone(), json!("unique"))
        });
    }

    fn inserts(&self) {
        let first = [(Create, 1), (Claim, 1), (Wait, 1), (Probe, self.postings)];
        // Each primary that has some of the bands waits once.
        let (claimed, posts) = (1, PRIMARIES);
        let all = [
            (Create, 1),
            (Claim, 1),
            (Probe, self.postings),
            (Post, self.postings),
            (Keep, 1),
            (Wait, claimed + posts + 1),
        ];
        let sealed = [(Seal, 1), (Count, 1)];
        self.assert_at_most("an insert of a unique document", 3, (&all, &sealed), |number| {
            let answer = self.insert(&format!("unique-{number}"), &text("stored", number, 0));
            (json!([answer["outcome"], answer["candidates"]]), json!(["inserted", 0]))
        });
        let with_read = [&all[..], &[(Read, 1), (Share, self.postings)]].concat();
        for number in 0..TIMES {
            self.insert(&format!("near-{number}"), &text("near", number, 0));
        }
        let candidates: Vec<_> = (0..TIMES).map(|number| self.candidate(number)).collect();
        self.assert_at_most("an insert that meets a document", 5, (&with_read, &sealed), |number| {
            let answer = self.insert(&format!("met-{number}"), &candidates[number as usize]);
            (json!([answer["outcome"], answer["candidates"]]), json!(["inserted", 1]))
        });
        let undone = [(Abort, 1), (Release, 1), (Remove, 1)];
        let with_read = [&first[..], &[(Read, 1)]].concat();
        self.assert_at_most("an insert of a duplicate", 2, (&with_read, &undone), |number| {
            let answer = self.insert(&format!("duplicate-{number}"), &text("checked", number, 1));
            (answer["outcome"].clone(), json!("skipped"))
        });
        let with_read = [&first[..], &[(Read, 1)]].concat();
        self.assert_at_most("an insert of a stored document", 2, (&with_read, &undone), |number| {
            let answer = self.insert(&format!("checked-{number}"), &text("checked", number, 0));
            (answer["outcome"].clone(), json!("unchanged"))
        });
    }

    /// Returns a text that shares a band with one stored document, and is no duplicate of it.
    fn candidate(&self, number: u64) -> String {
        let tried = (8..60).map(|changes| text("near", number, changes));
        let is_met = |text: &String| {
            let answer = self.check(&json!({"text": text}));
            answer["verdict"] == "unique" && answer["candidates"] == 1
        };
        tried.into_iter().find(is_met).expect("a text shares a band")
    }

    fn deletes(&self) {
        let all = [(Holder, 1), (Read, 1), (Delete, 1), (Wait, 1)];
        let rest = [(Unpost, self.postings), (Release, 1), (Remove, 1), (Count, 1)];
        self.assert_at_most("a delete", 3, (&all, &rest), |number| {
            let answer = self.ask("DELETE", &format!("{DOCUMENTS}?id=near-{number}"), &Value::Null);
            (answer["deleted"].clone(), json!(1))
        });
        self.assert_at_most("a delete of nothing", 1, (&[(Holder, 1)], &[]), |number| {
            let answer = self.ask("DELETE", &format!("{DOCUMENTS}?id=none-{number}"), &Value::Null);
            (answer["deleted"].clone(), json!(0))
        });
    }
}

/// Returns a text, of which some words are changed.
fn text(name: &str, number: u64, changes: u64) -> String {
    let word = |at| if at * changes % 300 < changes { format!("changed{at}") } else { format!("{name}{number}w{at}") };
    (0..300).map(word).collect::<Vec<_>>().join(" ")
}

fn operations_need_few_round_trips(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    let dir = dir();
    let proxy = Proxy::start(cluster.nodes());
    let server = start_with(&settings(proxy.addresses(), ""), dir.path(), "server").ready();
    let agent = agent();
    let described = ask(&agent, "GET", &server.url("/v1/collections/default"), &Value::Null).expect("it answers").body;
    let bands = described["banding"]["bands"].as_u64().unwrap_or_else(|| panic!("{described}"));
    // The first operations connect, load the scripts, and reserve document numbers for all others.
    for number in 0..100 {
        let document = json!({"id": format!("first-{number}"), "text": text("first", number, 0)});
        ask(&agent, "POST", &server.url(DOCUMENTS), &document).expect("it answers");
    }
    let rounds = proxy.count_rounds();
    let counted = Counted { server: &server, agent, rounds, postings: bands as usize + 1 };
    counted.checks();
    counted.inserts();
    counted.deletes();
}

#[test]
fn operations_on_redis_need_few_round_trips() {
    operations_need_few_round_trips(Kind::Redis);
}

#[test]
fn operations_on_valkey_need_few_round_trips() {
    operations_need_few_round_trips(Kind::Valkey);
}
