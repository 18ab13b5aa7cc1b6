//! One server, with a collection for each combination of `content`, `room` and `touch`. Each combination of the table
//! is set up in its collection, the request is sent, and the result is examined. Combinations have no document in
//! common, so many of them go into one request.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::combinations::Combination;
use super::scenes::{self, Content, HEIR, SELF, Scene, Step, settings};
use crate::support::client::Client;
use crate::support::server::{Server, Starting};

/// The largest number of documents in one request.
const MANY: usize = 1000;
/// The wait before the requests. A last-seen time is shown only if it is a second later than the one on disk, and it is
/// stored in steps of half a second.
const LATER: Duration = Duration::from_millis(2100);
const HALF_OF_LATER: Duration = Duration::from_millis(1050);
const HELD: &str = "held";
const SENT: &str = "sent";

/// The recorded columns of each combination: the answer, then the state afterwards.
pub const OBSERVED: [&str; 18] = [
    "status",
    "answered_verdict",
    "outcome",
    "stored",
    "duplicate_of",
    "answered_representative",
    "previous",
    // Whether the id holds its old content, the sent content, both (if they are equal), or nothing.
    "holds",
    "has_metadata",
    "record_verdict",
    "record_duplicate_of",
    "linked",
    // The ids in the cluster of the document, the representative first.
    "cluster",
    // The best match for the sent content.
    "finds_for_sent",
    // Whether the id is found by its old content.
    "finds_held",
    "heir",
    "touched",
    // The documents of the combination, and the number of links among them.
    "documents",
];

/// A combination with its number and its setup.
pub struct Case {
    number: usize,
    combination: Combination,
    scene: Scene,
}

impl Case {
    pub fn new(number: usize, combination: Combination) -> Self {
        Self { number, combination, scene: Scene::new(&combination) }
    }

    fn id(&self, role: &str) -> String {
        format!("{}.{role}", self.number)
    }

    fn document(&self, role: &str, content: Content) -> Value {
        let mut document = self.unnamed(content);
        document["id"] = self.id(role).into();
        document
    }

    fn unnamed(&self, content: Content) -> Value {
        content.fields(self.number, &self.combination)
    }

    fn collection(&self) -> String {
        let Combination { content, room, touch, .. } = self.combination;
        format!("{content}-room-{room}-touch-{touch}")
    }
}

/// The records of a combination's documents at one time, by role.
type Records = BTreeMap<&'static str, Value>;

/// A client of one collection.
struct Collection<'a> {
    client: Client,
    name: String,
    cases: Vec<&'a Case>,
}

/// Sets up every case, acts on it, and returns the observations, in order.
pub fn observe(data: &Path, cases: &[Case]) -> Vec<String> {
    let mut names: Vec<String> = cases.iter().map(Case::collection).collect();
    names.sort();
    names.dedup();
    let of = |server: &Server| {
        let client = Client::new(server.url(""));
        let of = |name: &String| Collection {
            client: client.clone(),
            name: name.clone(),
            cases: cases.iter().filter(|case| case.collection() == *name).collect(),
        };
        names.iter().map(of).collect::<Vec<_>>()
    };
    let server = Starting::spawn_with(data, &[], &[]).ready();
    let collections = of(&server);
    side_by_side(&collections, |collection| {
        collection.set_up();
        Vec::new()
    });
    thread::sleep(LATER);
    let (no_room, room): (Vec<_>, Vec<_>) = collections.into_iter().partition(|each| !each.has_room());
    let mut seen = side_by_side(&room, Collection::act);
    drop((room, no_room));
    assert!(server.terminate().success());

    let server = Starting::spawn_with(data, &[], &[("HAPAX__LIMITS__MEMORY_MAX_BYTES", "1")]).ready();
    let no_room: Vec<_> = of(&server).into_iter().filter(|each| !each.has_room()).collect();
    seen.extend(side_by_side(&no_room, Collection::act));
    assert!(server.terminate().success());
    seen.sort();
    seen.into_iter().map(|(_, line)| line).collect()
}

fn side_by_side<'a>(
    collections: &[Collection<'a>],
    work: impl Fn(&Collection<'a>) -> Vec<(usize, String)> + Copy + Send + Sync,
) -> Vec<(usize, String)> {
    thread::scope(|scope| {
        let running: Vec<_> = collections.iter().map(|collection| scope.spawn(move || work(collection))).collect();
        running.into_iter().flat_map(|one| one.join().expect("no assertion fails")).collect()
    })
}

impl Collection<'_> {
    fn has_room(&self) -> bool {
        self.cases.iter().all(|case| case.combination.room == "yes")
    }

    fn url(&self, path: &str) -> String {
        format!("/v1/collections/{}{path}", self.name)
    }

    /// Returns the results of many documents, in order.
    fn batch(&self, op: &str, query: &str, documents: Vec<Value>) -> Vec<Value> {
        let mut results = Vec::new();
        for documents in documents.chunks(MANY) {
            let body = json!({"op": op, "documents": documents});
            let answer = self.client.post(&self.url(&format!("/batch?{query}")), &body).ok();
            results.extend(answer["results"].as_array().unwrap().iter().cloned());
        }
        results
    }

    /// Does the first step of every case, then the second step of every case, and so on.
    fn set_up(&self) {
        let Combination { content, touch, .. } = self.cases[0].combination;
        self.client.json("PUT", &self.url(""), &settings(content, touch)).json();
        let last = self.cases.iter().map(|case| case.scene.steps.len()).max().unwrap();
        for at in 0..last {
            let (mut deletes, mut inserts): (Vec<Value>, BTreeMap<&str, Vec<Value>>) = Default::default();
            for case in &self.cases {
                match case.scene.steps.get(at) {
                    Some(Step::Delete { role }) => deletes.push(json!({"id": case.id(role)})),
                    Some(&Step::Insert { role, content, on_duplicate }) => {
                        let mut document = case.document(role, content);
                        if role == SELF {
                            document["metadata"] = json!({"is": HELD});
                        }
                        inserts.entry(on_duplicate).or_default().push(document);
                    }
                    None => {}
                }
            }
            for (on_duplicate, documents) in inserts {
                for result in self.batch("insert", &format!("on_duplicate={on_duplicate}"), documents) {
                    assert_eq!(result["stored"], true, "{result}");
                }
            }
            for result in self.batch("delete", "", deletes) {
                assert_eq!(result["deleted"], 1, "{result}");
            }
        }
    }

    /// Sends the request of each case, and returns the observations.
    fn act(&self) -> Vec<(usize, String)> {
        // This time is after the whole setup, and before all later last-seen times.
        let since = Timestamp::now() - HALF_OF_LATER;
        let answers = self.send();
        let after = self.records();
        let clusters = self.clusters();
        let checks = self.checks();
        let (mut documents, mut links) = (0, 0);
        let seen = self.cases.iter().map(|case| {
            let after = &after[&case.number];
            documents += after.len();
            links += after.values().filter(|record| record["linked"] == true).count();
            let seen = Seen {
                case,
                answer: &answers[&case.number],
                since,
                after,
                cluster: clusters.get(&case.id(SELF)).map_or("-", |cluster| cluster),
                checks: &checks[&case.number],
            };
            (case.number, format!("{}\t{}", case.combination.key(), seen.line()))
        });
        let seen = seen.collect();
        let described = self.client.get(&self.url("")).ok();
        assert_eq!((&described["documents"], &described["linked"]), (&json!(documents), &json!(links)));
        seen
    }

    /// Returns the answer to each case.
    fn send(&self) -> HashMap<usize, Value> {
        let mut groups: BTreeMap<(&str, String), Vec<&Case>> = BTreeMap::new();
        for case in &self.cases {
            let Combination { op, on_duplicate, on_existing, .. } = case.combination;
            let query = match op {
                "insert" => format!("on_duplicate={on_duplicate}&on_existing={on_existing}"),
                _ => String::new(),
            };
            groups.entry((op, query)).or_default().push(case);
        }
        let mut answers = HashMap::new();
        for ((op, query), cases) in groups {
            let document = |case: &&Case| {
                let mut document = match case.scene.sent {
                    Some(content) => case.document(SELF, content),
                    None => json!({"id": case.id(SELF)}),
                };
                match case.combination.metadata {
                    "equal" => document["metadata"] = json!({"is": HELD}),
                    "other" => document["metadata"] = json!({"is": SENT}),
                    _ => {}
                }
                document
            };
            let results = self.batch(op, &query, cases.iter().map(document).collect());
            answers.extend(cases.iter().map(|case| case.number).zip(results));
        }
        answers
    }

    /// Returns the records of all documents of each case.
    fn records(&self) -> HashMap<usize, Records> {
        let mut records: HashMap<usize, Records> =
            self.cases.iter().map(|case| (case.number, Records::new())).collect();
        let ids = |case: &&Case| case.scene.roles().into_iter().map(|role| case.id(role)).collect::<Vec<_>>();
        let ids: Vec<String> = self.cases.iter().flat_map(ids).collect();
        for ids in ids.chunks(MANY) {
            let found = self.client.post(&self.url("/documents/get"), &json!({ "ids": ids })).ok();
            assert_eq!(found.get("omitted"), None);
            for record in found["documents"].as_array().unwrap() {
                let (number, role) = of_id(&record["id"]);
                records.get_mut(&number).unwrap().insert(role, record.clone());
            }
        }
        records
    }

    /// Returns for each id the roles in its cluster, the representative first. Clusters of one document are left out.
    fn clusters(&self) -> HashMap<String, String> {
        let mut stars: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut cursor = String::new();
        loop {
            let page = self.client.get(&self.url(&format!("/clusters?limit={MANY}{cursor}"))).ok();
            for member in page["members"].as_array().unwrap() {
                let id = member["id"].as_str().unwrap();
                let first = member["representative"].as_str().unwrap_or(id);
                stars.entry(first.to_owned()).or_default().push(id.to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let roles = |ids: &[String]| ids.iter().map(|id| of_id(&json!(id)).1).collect::<Vec<_>>().join(",");
        stars.values().flat_map(|ids| ids.iter().map(|id| (id.clone(), roles(ids)))).collect()
    }

    /// Checks the sent content, the old content, and the content similar to the heir.
    fn checks(&self) -> HashMap<usize, Checks> {
        let check = |id: bool, content: fn(&Case) -> Option<Content>| -> HashMap<usize, Value> {
            let document = |case: &&Case| {
                let content = content(case)?;
                Some((case.number, if id { case.document(SELF, content) } else { case.unnamed(content) }))
            };
            let documents = self.cases.iter().filter_map(document);
            let (numbers, documents): (Vec<usize>, Vec<Value>) = documents.unzip();
            let query = if id { "limit=1" } else { "" };
            numbers.into_iter().zip(self.batch("check", query, documents)).collect()
        };
        let sent: fn(&Case) -> Option<Content> = |case| case.scene.sent;
        // If the old content is also the sent one, it is checked once.
        let held: fn(&Case) -> Option<Content> = |case| case.scene.held.filter(|_| !case.combination.holds_same());
        let (holds, finds) = ([sent, held].map(|of| check(true, of)), [sent, held].map(|of| check(false, of)));
        let like_heir = check(false, |case| case.scene.like_heir);
        let checks = |case: &&Case| {
            let of = |checks: &HashMap<usize, Value>| checks.get(&case.number).cloned().unwrap_or_default();
            let both = |[sent, held]: &[HashMap<usize, Value>; 2]| {
                [of(sent), if case.combination.holds_same() { of(sent) } else { of(held) }]
            };
            let holds = both(&holds).map(|verdict| verdict["stored"] == true);
            (case.number, Checks { holds, finds: both(&finds), like_heir: of(&like_heir) })
        };
        self.cases.iter().map(checks).collect()
    }
}

struct Checks {
    /// Whether the id holds the sent content, and whether it holds its old content.
    holds: [bool; 2],
    /// The verdicts on the sent content and on the old content.
    finds: [Value; 2],
    like_heir: Value,
}

/// The observations of one case.
struct Seen<'a> {
    case: &'a Case,
    answer: &'a Value,
    since: Timestamp,
    after: &'a Records,
    cluster: &'a str,
    checks: &'a Checks,
}

impl Seen<'_> {
    /// Returns the end of the case's line in the table.
    fn line(&self) -> String {
        self.columns().map(|(_, value)| value).join("\t")
    }

    fn columns(&self) -> [(&'static str, String); OBSERVED.len()] {
        let own = self.after.get(SELF).unwrap_or(&Value::Null);
        let answered = |name: &str| word(&self.answer[name]);
        let values = [
            self.status(),
            answered("verdict"),
            answered("outcome"),
            answered("stored"),
            role(&self.answer["duplicate_of"]),
            role(&self.answer["representative"]),
            yes(!self.answer["previous"].is_null()),
            self.holds(),
            word(&own["metadata"]["is"]),
            word(&own["verdict"]),
            role(&own["duplicate_of"]),
            word(&own["linked"]),
            self.cluster.to_owned(),
            role(&self.checks.finds[0]["duplicate_of"]),
            if self.case.scene.held.is_some() { yes(finds(&self.checks.finds[1], SELF)) } else { "-".into() },
            self.heir(),
            self.touched(),
            format!("{}/{}", self.after.len(), self.after.values().filter(|one| one["linked"] == true).count()),
        ];
        let mut columns = OBSERVED.map(|name| (name, String::new()));
        columns.iter_mut().zip(values).for_each(|((_, to), value)| *to = value);
        columns
    }

    fn status(&self) -> String {
        if !self.answer["deleted"].is_null() {
            return format!("200 deleted {}", self.answer["deleted"]);
        }
        match &self.answer["error"] {
            Value::Null => "200".to_owned(),
            error => format!("{} {}", error["status"], error["code"].as_str().unwrap()),
        }
    }

    fn holds(&self) -> String {
        let holds = match (self.after.contains_key(SELF), self.checks.holds) {
            (false, [false, false]) => "nothing",
            (true, [true, false]) => "sent",
            (true, [false, true]) => "held",
            (true, [true, true]) => "same",
            other => panic!("{:?}: {other:?}", self.case.combination),
        };
        holds.to_owned()
    }

    /// Returns whether the link to the old content is still a link.
    fn heir(&self) -> String {
        let Some(heir) = self.after.get(HEIR) else { return "-".into() };
        let heir = match (&heir["linked"], finds(&self.checks.like_heir, HEIR)) {
            (Value::Bool(true), false) => "link",
            (Value::Bool(false), true) => "document",
            other => panic!("{:?}: {other:?}", self.case.combination),
        };
        heir.to_owned()
    }

    /// Returns the documents whose last-seen time was renewed.
    fn touched(&self) -> String {
        let since = |time: &Value| time.as_str().unwrap().parse::<Timestamp>().unwrap() >= self.since;
        let again = |(_, record): &(_, &Value)| since(&record["last_seen"]) && !since(&record["first_seen"]);
        let again: Vec<&str> = self.after.iter().filter(again).map(|(role, _)| *role).collect();
        if again.is_empty() { "-".into() } else { again.join(",") }
    }
}

fn finds(verdict: &Value, role: &str) -> bool {
    verdict["matches"].as_array().is_some_and(|matches| matches.iter().any(|found| of_id(&found["id"]).1 == role))
}

/// Returns the number and role of an id.
fn of_id(id: &Value) -> (usize, &'static str) {
    let (number, role) = id.as_str().unwrap().split_once('.').unwrap();
    (number.parse().unwrap(), scenes::role(role))
}

fn role(id: &Value) -> String {
    if id.is_null() { "-".into() } else { of_id(id).1.into() }
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Bool(value) => yes(*value),
        value => value.as_str().unwrap().trim_end_matches("_duplicate").to_owned(),
    }
}

fn yes(value: bool) -> String {
    if value { "yes".into() } else { "no".into() }
}
