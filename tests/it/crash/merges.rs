//! Fills staging collections and merges them into its own collection, one after the other. A merge that has begun
//! decides on each document once, in order, until it ends, is stopped, or loses its staging collection. A merge that
//! has ended does not change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::http::{Failure, agent, answer, bulk, pages, whole};
use super::policy::Policy;
use crate::support::server::Address;
use crate::support::until::until_within;

pub const COLLECTION: &str = "/v1/collections/merged";
/// The number of ids in all staging collections. There are so few that merges meet some of them again.
const IDS: u32 = 300;
/// The number of texts in all staging collections. Merges meet some of them again, too.
const TEXTS: u32 = 200;
/// The number of ended jobs that are compared after each start.
const ENDED_MAX: usize = 10;
/// The number of staging collections that are kept after their merges. A backup fails if a staging collection is
/// dropped soon after its merge.
const LEFT_MAX: usize = 8;

#[derive(Clone)]
pub struct Merges {
    random: ChaCha8Rng,
    /// The most documents of a staging collection.
    documents_max: usize,
    made: u32,
    /// The numbers of the merged texts by id. A merge that has not ended is not included.
    merged: BTreeMap<String, u32>,
    staging: Option<Staging>,
    /// The names of earlier staging collections.
    left: Vec<String>,
    ended: Vec<Value>,
    acknowledged: u64,
    stopped: u64,
}

#[derive(Clone, Default)]
struct Staging {
    name: String,
    /// Whether the creation of the collection has been answered.
    made: bool,
    /// For each id, the number of its text, and whether its insert was answered.
    sent: BTreeMap<String, (u32, bool)>,
    /// The documents in their order, once they are known.
    documents: Option<Vec<(String, u32)>>,
    merge: Option<Merge>,
}

#[derive(Clone)]
struct Merge {
    policy: Policy,
    /// The name of the job, once it is known.
    job: Option<String>,
    /// Whether a request was sent that ends the merge early.
    interrupted: bool,
    /// The job as it was when it was stopped.
    stopped: Option<Value>,
}

impl Merges {
    pub fn new(seed: u64, documents_max: usize) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x3E6E),
            documents_max,
            made: 0,
            merged: BTreeMap::new(),
            staging: None,
            left: Vec::new(),
            ended: Vec::new(),
            acknowledged: 0,
            stopped: 0,
        }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the number of merges that were stopped before their end.
    pub fn stopped(&self) -> u64 {
        self.stopped
    }

    /// Takes the next step.
    pub fn work(&mut self, server: &Address) -> Result<(), Failure> {
        let Some(staging) = &mut self.staging else { return self.fill(server) };
        let Some(documents) = &staging.documents else {
            // The server refused to create the collection, or refused its documents.
            self.staging = None;
            return Ok(());
        };
        let Some(merge) = &mut staging.merge else { return self.begin(server) };
        // Without the name of the job, it is unknown until the next start whether the merge has begun.
        let Some(job) = &merge.job else { return Ok(()) };
        let url = server.url(&format!("/v1/jobs/{job}"));
        if self.random.random_bool(0.2) {
            merge.interrupted = true;
            if self.random.random_bool(0.1) {
                drop_staging(server, &staging.name)?;
            } else {
                let job = answer(agent().delete(&url).call())?;
                merge.stopped = (job["state"] != "running").then_some(job);
            }
            self.acknowledged += 1;
        }
        let now = answer(agent().get(&url).call())?;
        if now["state"] == "running" {
            std::thread::sleep(Duration::from_millis(self.random.random_range(0..10)));
            return Ok(());
        }
        let reports = pages(&format!("{url}/reports"), "reports")?;
        merge.is_at(documents, &now);
        self.end(now, &reports);
        Ok(())
    }

    /// Makes a staging collection with documents.
    fn fill(&mut self, server: &Address) -> Result<(), Failure> {
        if self.left.len() > LEFT_MAX {
            drop_staging(server, &self.left.remove(0))?;
        }
        self.made += 1;
        let name = format!("staging-{}", self.made);
        let staging = self.staging.insert(Staging { name, ..Staging::default() });
        let url = server.url(&format!("/v1/collections/{}", staging.name));
        answer(agent().put(&url).send_json(json!({})))?;
        staging.made = true;
        let count = self.random.random_range(0..=self.documents_max);
        let ids = (0..IDS).sample(&mut self.random, count).into_iter().map(|id| format!("merged-{id}"));
        let lines: Vec<_> = ids.map(|id| (id, self.random.random_range(0..TEXTS))).collect();
        staging.sent = lines.iter().map(|(id, text)| (id.clone(), (*text, false))).collect();
        let line = |(id, text): &(String, u32)| {
            format!("{}\n", json!({ "id": id, "text": words(*text), "metadata": { "text": text } }))
        };
        let body: String = lines.iter().map(line).collect();
        bulk(&format!("{url}/bulk?op=insert&on_duplicate=store"), body, lines.len(), |at, verdict| {
            assert_eq!(verdict["outcome"], "inserted", "{verdict}");
            staging.sent.get_mut(&lines[at].0).expect("just sent").1 = true;
        })?;
        staging.documents = Some(listed(&format!("{url}/documents"))?);
        self.acknowledged += count as u64;
        Ok(())
    }

    fn begin(&mut self, server: &Address) -> Result<(), Failure> {
        let staging = self.staging.as_mut().expect("it is full");
        let policy = Policy { stores: self.random.random_bool(0.5), replaces: self.random.random_bool(0.5) };
        let merge = staging.merge.insert(Merge { policy, job: None, interrupted: false, stopped: None });
        let input = policy.input(&staging.name);
        let job = answer(agent().post(server.url(&format!("{COLLECTION}/merge"))).send_json(input))?;
        merge.job = Some(job["job"].as_str().expect("a name").to_owned());
        merge.is_at(staging.documents.as_ref().expect("it is full"), &job);
        self.acknowledged += 1;
        Ok(())
    }

    /// Compares a job that has ended with the expected result.
    fn end(&mut self, job: Value, reports: &[Value]) {
        let staging = self.staging.take().expect("it was merged");
        self.left.push(staging.name);
        let (merge, documents) = (staging.merge.expect("it was begun"), staging.documents.expect("it was full"));
        let done = job["done"].as_u64().expect("a number") as usize;
        let wanted = match job["state"].as_str() {
            Some("done") => documents.len(),
            Some("aborted") if merge.interrupted => done,
            _ => panic!("nothing stopped it: {job}"),
        };
        assert_eq!((done, reports.len()), (wanted, wanted), "{job}: {reports:?}");
        let mut outcomes = BTreeMap::<&str, u64>::new();
        for ((id, text), report) in documents.iter().zip(reports) {
            let (outcome, duplicate) = merge.policy.decide(&mut self.merged, id, *text);
            let told = (report["id"].as_str(), report["outcome"].as_str());
            assert_eq!(told, (Some(&**id), Some(outcome)), "{job}: {report}");
            if let Some(duplicate) = duplicate {
                assert_eq!(report["duplicate_of"].is_string(), duplicate, "{job}: {report}");
            }
            *outcomes.entry(outcome).or_default() += 1;
        }
        let told = job.get("outcomes").cloned().unwrap_or(json!({}));
        assert_eq!(told, json!(outcomes), "{job}");
        self.stopped += u64::from(job["state"] == "aborted");
        self.ended.push(json!({ "job": job, "reports": reports }));
        self.ended.drain(..self.ended.len().saturating_sub(ENDED_MAX));
    }

    /// Compares the notes with the server's jobs and documents, and records the outcomes of unanswered requests. Waits
    /// for the end of a merge.
    pub fn verify(&mut self, server: &Address) {
        for ended in &self.ended {
            let url = server.url(&format!("/v1/jobs/{}", ended["job"]["job"].as_str().expect("a name")));
            let reports = pages(&format!("{url}/reports"), "reports").expect("the server runs");
            let now = json!({ "job": whole(agent().get(&url).call()), "reports": reports });
            assert_eq!(now, *ended, "it had ended");
        }
        self.settle(server);
        let url = server.url(&format!("{COLLECTION}/documents"));
        let there = listed(&url).expect("the server runs");
        assert_eq!(there.len(), self.merged.len());
        assert_eq!(there.into_iter().collect::<BTreeMap<_, _>>(), self.merged);
        let described = whole(agent().get(server.url(COLLECTION)).call());
        assert_eq!(described["documents"], self.merged.len(), "{described}");
        let texts: Vec<u32> = (0..TEXTS).collect();
        for texts in texts.chunks(100) {
            let documents: Vec<_> = texts.iter().map(|text| json!({ "text": words(*text) })).collect();
            let body = json!({ "op": "check", "documents": documents });
            let told = whole(agent().post(server.url(&format!("{COLLECTION}/batch"))).send_json(body));
            for (text, verdict) in texts.iter().zip(told["results"].as_array().expect("results")) {
                let there = self.merged.values().any(|one| one == text);
                let found = verdict["duplicate_of"].as_str();
                assert_eq!(found.is_some(), there, "text {text}: {verdict}");
                assert!(found.is_none_or(|id| self.merged.get(id) == Some(text)), "text {text}: {verdict}");
            }
        }
    }

    /// Finds the staging collection and its merge, and follows the merge to its end.
    fn settle(&mut self, server: &Address) {
        let Some(staging) = &mut self.staging else { return };
        if staging.documents.is_none() {
            let collections = whole(agent().get(server.url("/v1/collections")).call());
            let collections = collections["collections"].as_array().expect("collections");
            if !collections.iter().any(|one| one["name"] == staging.name) {
                assert!(!staging.made, "{} is gone", staging.name);
                self.staging = None;
                return;
            }
            let url = server.url(&format!("/v1/collections/{}/documents", staging.name));
            let there = listed(&url).expect("the server runs");
            let ids: BTreeSet<&String> = there.iter().map(|(id, _)| id).collect();
            assert_eq!(ids.len(), there.len(), "a document is listed twice");
            for (id, text) in &there {
                assert!(staging.sent.get(id).is_some_and(|(sent, _)| sent == text), "{id} was never sent");
            }
            let lost = staging.sent.iter().find(|(id, (_, answered))| *answered && !ids.contains(id));
            assert_eq!(lost, None, "it is gone");
            staging.documents = Some(there);
        }
        let (Some(merge), Some(documents)) = (&mut staging.merge, &staging.documents) else { return };
        if merge.job.is_none() {
            let jobs = whole(agent().get(server.url("/v1/jobs?collection=merged&limit=1000")).call());
            let mut jobs = jobs["jobs"].as_array().expect("jobs").iter().filter(|job| job["from"] == *staging.name);
            merge.job = jobs.next().map(|job| job["job"].as_str().expect("a name").to_owned());
            assert_eq!(jobs.next(), None, "it was begun twice");
        }
        let Some(job) = &merge.job else {
            staging.merge = None;
            return;
        };
        let url = server.url(&format!("/v1/jobs/{job}"));
        let mut now = Value::Null;
        until_within(Duration::from_secs(60), "a merge ends", || {
            now = whole(agent().get(&url).call());
            now["state"] != "running"
        });
        merge.is_at(documents, &now);
        let reports = pages(&format!("{url}/reports"), "reports").expect("the server runs");
        self.end(now, &reports);
    }
}

impl Merge {
    /// Checks that the job is this merge, and that it has not continued after it was stopped.
    fn is_at(&self, documents: &[(String, u32)], job: &Value) {
        assert_eq!(json!([job["on_duplicate"], job["on_existing"]]), json!(self.policy.options()), "{job}");
        assert_eq!(job["documents"], documents.len(), "{job}");
        assert!(self.stopped.as_ref().is_none_or(|stopped| stopped == job), "it was {:?}, and is {job}", self.stopped);
    }
}

/// Drops a staging collection, unless it is gone already.
fn drop_staging(server: &Address, name: &str) -> Result<(), Failure> {
    let response = agent().delete(server.url(&format!("/v1/collections/{name}?confirm={name}"))).call();
    match response {
        Ok(response) if response.status() == 404 => Ok(()),
        response => answer(response).map(drop),
    }
}

/// Lists documents in their order, with the numbers of their texts.
fn listed(url: &str) -> Result<Vec<(String, u32)>, Failure> {
    let document = |document: &Value| {
        let text = document["metadata"]["text"].as_u64().expect("a number") as u32;
        (document["id"].as_str().expect("an id").to_owned(), text)
    };
    Ok(pages(url, "documents")?.iter().map(document).collect())
}

fn words(text: u32) -> String {
    super::random_text(0x3E6E << 32 | u64::from(text))
}
